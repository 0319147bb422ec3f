# SPDX-License-Identifier: MIT
"""Kernels of CK Tile for ``sanitizer_study.py``: those that three small ops launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from programs import half

import cklang as ck
from cklang import emulator, knobs
from cklang.device import module_cache
from cklang.device.device import Device, open_device
from cklang.errors import CkError

__all__ = ["OPS", "CkOp", "run_op"]

M, N, K, B, H, S, D = ck.dims("M N K B H S D")


def _product(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias)


def _attention(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D]
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v)


def _norm(x: ck.f16[M, N], gain: ck.f16[N], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.layer_norm(x, gain, bias).to(ck.f16)


@dataclass(frozen=True, slots=True, kw_only=True)
class CkOp:
    """A function of which an op is made anew for each run, and the shapes of its arguments."""

    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]

    def arguments(self) -> list[Any]:
        """The same numbers each time."""
        rng = np.random.default_rng(7)
        return [half(rng, *shape) for shape in self.shapes]

    def call(self, gpu: str) -> Any:
        """Run it on a GPU with nothing loaded before."""
        module_cache._functions.clear()
        with knobs.scope(CKLANG_DEVICE=f"emu:{gpu}"):
            return np.asarray(ck.op(self.function)(*self.arguments()))

    def codes(self, gpu: str) -> list[bytes]:
        """The code objects that it loads."""
        loaded: list[bytes] = []

        def record(code: bytes) -> bytes:
            loaded.append(code)
            return code

        with loading(record):
            self.call(gpu)
        return loaded


OPS = {
    "product": CkOp(function=_product, shapes=((160, 96), (144, 96), (144,))),
    "attention": CkOp(function=_attention, shapes=((1, 2, 160, 64),) * 3),
    "norm": CkOp(function=_norm, shapes=((40, 1024), (1024,), (1024,))),
}


@contextmanager
def loading(change: Callable[[bytes], bytes]) -> Iterator[None]:
    """Let devices load what ``change`` makes of each code object."""
    original = Device.load

    def load(device: Device, code: bytes, symbol: str) -> Any:
        return original(device, change(code), symbol)

    Device.load = load  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        Device.load = original  # type: ignore[method-assign]


def run_op(op: CkOp, gpu: str, code: bytes) -> Callable[[bytes], str]:
    """Return what runs the op with other code in the place of ``code`` and compares its result."""
    checks = knobs.SANITIZERS
    emulator.sanitize()
    expected = op.call(gpu)
    emulator.sanitize(*checks)

    def run(changed: bytes) -> str:
        try:
            with loading(lambda loaded: changed if loaded == code else loaded):
                result = op.call(gpu)
        except CkError as problem:
            device = open_device(f"emu:{gpu}")
            text = emulator.fault(device.index) or str(problem)
            device.activate()
            emulator.load().hipDeviceReset()
            return text
        return "" if np.array_equal(result, expected, equal_nan=True) else "another result"

    return run
