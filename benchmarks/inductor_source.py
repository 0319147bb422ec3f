# SPDX-License-Identifier: MIT
"""The Triton kernel that torch's Inductor generates for an AMD GPU, without the GPU.

Inductor asks torch for the properties of its device, and then only writes text. Here it gets those
of an MI355X, inputs without contents, and stops before it would compile, so that a CPU build of
torch generates as one for ROCm does.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch.cuda.random
import torch.utils._triton
from torch._dynamo.device_interface import CudaInterface
from torch._guards import TracingContext, tracing
from torch._inductor import compile_fx, config
from torch._inductor.fx_passes import fuse_attention, misc_patterns, pad_mm
from torch._inductor.graph import GraphLowering
from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.hints import DeviceProperties
from torch._subclasses.fake_tensor import FakeTensorMode

_PROPERTIES = SimpleNamespace(
    name="AMD Instinct MI355X",
    gcnArchName="gfx950:sramecc+:xnack-",
    multi_processor_count=256,
    major=9,
    minor=5,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    warp_size=64,
    total_memory=288 << 30,
    shared_memory_per_block=64 << 10,
    L2_cache_size=4 << 20,
)
_HEURISTICS = ("reduction", "persistent_reduction", "pointwise")


@dataclass(frozen=True, slots=True)
class Generated:
    """A kernel as Inductor wrote it."""

    kernel: Any
    """Triton's."""
    configs: tuple[Any, ...]
    """The values of its constants that Inductor takes, or times and takes the best of."""
    extents: dict[str, int]
    """Numbers of elements, such as ``xnumel``."""


class _WrittenError(Exception):
    """The text is there; nothing need be compiled."""


def _write(lowering: Any, *_: Any, **__: Any) -> None:
    code, _ = lowering.codegen()
    raise _WrittenError(code.value)


@contextmanager
def _with_gpu() -> Iterator[None]:
    """Let torch believe that it is one for ROCm, and has a GPU."""
    seed = torch._ops.ops.prims.inductor_lookup_seed.default
    fakes: list[tuple[Any, str, Any]] = [
        (torch.version, "hip", "7.0"),
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: 1),
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda, "get_device_properties", lambda *_: _PROPERTIES),
        (torch.cuda, "_get_device_properties", lambda *_: _PROPERTIES),
        (torch.cuda, "get_device_capability", lambda *_: (9, 5)),
        (torch.cuda, "get_device_name", lambda *_: _PROPERTIES.name),
        (torch.cuda, "_lazy_init", lambda: None),
        (torch.cuda, "_exchange_device", lambda _: 0),
        (torch.cuda, "_maybe_exchange_device", lambda _: 0),
        (torch.cuda, "get_rng_state", lambda *_: torch.get_rng_state()),
        (torch.cuda, "set_rng_state", lambda *_: None),
        (torch.cuda.random, "_lazy_init", lambda: None),
        (CudaInterface, "get_compute_capability", staticmethod(lambda *_: "gfx950")),
        (CudaInterface, "is_triton_capable", staticmethod(lambda *_: True)),
        (CudaInterface, "raise_if_triton_unavailable", staticmethod(lambda *_: None)),
        (CudaInterface.Worker, "get_device_properties", staticmethod(lambda *_: _PROPERTIES)),
        (CudaInterface.Worker, "current_device", staticmethod(lambda: 0)),
        # Patterns of attention and products, which would be traced on the GPU.
        (fuse_attention, "_sfdp_init", lambda *_: None),
        (pad_mm, "_pad_mm_init", lambda *_: None),
        (misc_patterns, "_misc_patterns_init", lambda *_: None),
        (seed, "prim_meta_impl", lambda seeds, _: seeds.new_empty(())),
        (torch.utils._triton, "triton_hash_with_backend", lambda: "none"),
        (GraphLowering, "compile_to_module", _write),
    ]
    with ExitStack() as stack:
        for owner, name, value in fakes:
            stack.enter_context(mock.patch.object(owner, name, value, create=True))
        DeviceProperties.create.cache_clear()
        yield


def source(function: Callable[..., Any], shapes: Sequence[tuple[int, ...]]) -> str:
    """Return the program that Inductor writes for a function of bf16 arrays.

    Args:
        function: Of tensors.
        shapes: Of its arguments.
    """
    with _with_gpu(), config.patch(force_disable_caches=True), torch.no_grad():
        mode = FakeTensorMode()
        with mode:
            inputs = [torch.empty(each, dtype=torch.bfloat16, device="cuda") for each in shapes]
            traced = torch.fx.symbolic_trace(function)
            try:
                with tracing(TracingContext(mode)):
                    compile_fx.compile_fx(traced, inputs)
            except Exception as error:
                text = _written(error)
                if text is None:
                    raise
                return text
    raise RuntimeError("Inductor wrote nothing")


def _written(error: BaseException) -> str | None:
    chain: BaseException | None = error
    while chain is not None and not isinstance(chain, _WrittenError):
        chain = getattr(chain, "inner_exception", None) or chain.__cause__ or chain.__context__
    return chain.args[0] if chain is not None else None


def generated(text: str, folder: Path, name: str) -> Generated:
    """Return the only kernel of a program.

    Args:
        text: What Inductor wrote.
        folder: Triton reads the kernel's source from a file there.
        name: Of the file.
    """
    (body,) = text.split("async_compile.triton(")[1:]
    path = folder / f"{name}.py"
    path.write_text(body.split("'''")[1].replace("triton_helpers.set_driver_to_gpu()", ""))
    found: list[tuple[Any, Any]] = []

    def noted(heuristic: Callable[..., Any]) -> Callable[..., Any]:
        def decorate(**arguments: Any) -> Callable[[Any], Any]:
            configs = heuristic(**arguments, return_configs=True)
            return lambda kernel: found.append((kernel, configs))

        return decorate

    with ExitStack() as stack:
        stack.enter_context(_with_gpu())
        for each in _HEURISTICS:
            ours = noted(getattr(triton_heuristics, each))
            stack.enter_context(mock.patch.object(triton_heuristics, each, ours))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    ((kernel, configs),) = found
    extents = {
        line.split("=")[0].strip(): int(line.split("=")[1])
        for line in path.read_text().splitlines()
        if "numel = " in line and line.split("=")[1].strip().isdigit()
    }
    return Generated(kernel, tuple(configs), extents)
