# SPDX-License-Identifier: MIT
"""Where results come from: what torch computes in a call, and whose memory kernels have written."""

from __future__ import annotations

import builtins
import hashlib
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from cklang.pretend.tensor import GpuTensor, live_tensors, run

_ALLOCATES = ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided")
_MOVES = (
    *_ALLOCATES,
    *("zeros", "zeros_like", "new_zeros", "ones", "ones_like", "new_ones", "full", "full_like"),
    *("new_full", "fill_", "zero_", "copy_", "clone", "_to_copy", "arange", "scalar_tensor"),
    *("lift_fresh", "lift_fresh_copy", "_local_scalar_dense", "_unsafe_view", "_reshape_copy"),
    *("cat", "stack", "constant_pad_nd", "set_", "resize_", "device", "contiguous", "alias"),
    *("is_pinned", "_pin_memory", "record_stream", "detach", "repeat", "_conj", "equal"),
)
"""What torch may do in a honest call: it allocates, fills, copies and views."""


def computes(func: Any) -> bool:
    """Return whether an operation of torch computes."""
    name = func._schema.name.partition("::")[2]
    returns = func._schema.returns
    is_view = bool(returns) and all(
        result.alias_info is not None and not result.alias_info.is_write for result in returns
    )
    return not is_view and name not in _MOVES


class Watch(TorchDispatchMode):
    """Counts what torch computes, remembers what it wrote last, and fills new memory with noise."""

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.computed: Counter[str] = Counter()
        self.written: dict[int, tuple[str, bytes]] = {}
        """By the address of a storage: what wrote it last, and a digest of what it then had."""
        self._noise = torch.Generator().manual_seed(seed)
        for tensor in live_tensors():
            self._note("an earlier call", tensor.host)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        results = run(func, args, kwargs)
        name = func._schema.name.partition("::")[2]
        if computes(func):
            self.computed[name] += 1
        for value in tree_leaves(results):
            host = value.host if isinstance(value, GpuTensor) else value
            if isinstance(host, torch.Tensor) and host.layout is torch.strided:
                if name in _ALLOCATES:
                    self._fill(host)
                self._note(f"torch ({name})", host)
        return results

    def _fill(self, host: torch.Tensor) -> None:
        raw = torch.empty(0, dtype=torch.uint8).set_(host.untyped_storage())
        raw.random_(0, 256, generator=self._noise)

    def _note(self, who: str, host: torch.Tensor) -> None:
        storage = host.untyped_storage()
        self.written[storage.data_ptr()] = (who, digest(host))

    def moved(self, before: int, after: int) -> None:
        """Note that a storage has moved."""
        if before in self.written:
            self.written[after] = self.written.pop(before)

    def source_of(self, tensor: torch.Tensor) -> str:
        """Return what wrote a result; empty if it was a kernel of this call."""
        host = tensor.host if isinstance(tensor, GpuTensor) else tensor
        who, before = self.written.get(host.untyped_storage().data_ptr(), ("", b""))
        return who if before == digest(host) else ""


def digest(host: torch.Tensor) -> bytes:
    """Return a digest of all bytes of a tensor's storage."""
    raw = torch.empty(0, dtype=torch.uint8).set_(host.untyped_storage())
    return hashlib.blake2b(bytes(raw.numpy()), digest_size=16).digest()


def _guarded() -> Mapping[str, Mapping[str, Any]]:
    modules = (torch, torch.nn.functional, torch.testing, torch.cuda, torch.linalg, time, builtins)
    classes = (torch.Tensor, GpuTensor, torch.nn.Module, torch.cuda.Event, torch.cuda.Stream)
    return {owner.__name__: dict(vars(owner)) for owner in (*modules, *classes)}


@contextmanager
def noticed(changes: list[str]) -> Iterator[None]:
    """Add the names that a block replaces in torch, or in Python's own modules."""
    before, threads = _guarded(), set(threading.enumerate())
    try:
        yield
    finally:
        after = _guarded()
        for owner, values in before.items():
            now = after[owner]
            changes += [f"{owner}.{k}" for k, v in values.items() if now.get(k, v) is not v]
        changes += [f"thread {t.name}" for t in set(threading.enumerate()) - threads]
