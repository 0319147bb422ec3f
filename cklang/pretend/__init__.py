# SPDX-License-Identifier: MIT
"""torch believes that it has an AMD GPU: its ops run on the CPU, kernels on the emulated GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from importlib.util import find_spec
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils import cpp_extension

from cklang import emulator, knobs
from cklang.device.device import open_device
from cklang.emulator import flydsl, triton
from cklang.emulator.hip.headers import hip_version
from cklang.errors import error
from cklang.pretend import cuda, extension
from cklang.pretend.tensor import GPU, GpuMode, GpuTensor, is_gpu
from cklang.pretend.triton_driver import GpuDriver

__all__ = ["GPU", "GpuTensor", "pretend"]

_CPU = "cpu"


@contextmanager
def pretend(gpu: str) -> Iterator[None]:
    """Let torch believe that it has an AMD GPU, inside of a ``with`` statement.

    ``torch.cuda.is_available()`` is true, tensors can be on ``cuda``, and kernels of Triton,
    FlyDSL, HIP (``torch.utils.cpp_extension``) and cklang take them. Ops of torch are computed by
    its CPU, in the same memory. What cannot be pretended is an error that names it.

    Args:
        gpu: "gfx942", "gfx950", "gfx90a", "gfx1100" or "gfx1201".

    Example::

        with pretend("gfx942"):
            x = torch.ones(2, device="cuda")
            print(x + x)  # tensor([2., 2.], device='cuda:0')

    Raises:
        CkValueError: D001, no GPU of that name is emulated; E011, torch has a GPU already, or is
            made to believe so.
    """
    if torch.cuda.is_available():
        raise error("E011", got=gpu, problem="it has one")
    hip, mode, device = hip_version(), GpuMode(), open_device(f"emu:{gpu}")
    with ExitStack() as stack:
        stack.callback(knobs.export, knobs.export({knobs.DEVICE.name: f"emu:{gpu}"}))
        _enter_launchers(stack, gpu)
        for owner, values in _changes(mode, cuda.functions(device, hip), hip, gpu):
            for name, value in values.items():
                _replace(stack, owner, name, value)
        stack.enter_context(mode)
        yield


def _enter_launchers(stack: ExitStack, gpu: str) -> None:
    """Let the kernels of other languages be compiled for the GPU and launched there."""
    stack.enter_context(emulator.blocking_launches())
    if find_spec("flydsl") is not None:
        stack.enter_context(flydsl.device(gpu))
    if find_spec("triton") is not None:
        stack.enter_context(triton.device(gpu, driver=GpuDriver))


def _replace(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Set an attribute until the stack ends."""
    if name in vars(owner):
        stack.callback(setattr, owner, name, vars(owner)[name])
    else:
        stack.callback(delattr, owner, name)
    setattr(owner, name, value)


def _changes(
    mode: GpuMode, functions: Mapping[str, Any], hip: str, gpu: str
) -> tuple[tuple[Any, Mapping[str, Any]], ...]:
    """Return what is replaced, and where."""
    autocast = torch.amp.autocast_mode.autocast
    return (
        (torch.cuda, {**cuda.refusals(), **functions}),
        (torch.accelerator, cuda.accelerator()),
        (torch.version, {"hip": hip}),
        (cpp_extension, extension.functions(gpu)),
        (torch._C, {"_cuda_getCurrentRawStream": lambda _: 0}),
        (torch.autograd, {"_engine_run_backward": _backward(mode, torch.autograd)}),
        (autocast, {"__init__": _autocast(autocast.__init__)}),
        (
            torch,
            {
                "Generator": cuda.Generator,
                "compile": _not_compiled,
                "set_default_device": _set_default_device(mode, torch.set_default_device),
                "get_default_device": _get_default_device(mode, torch.get_default_device),
                "is_autocast_enabled": _of_cpu(torch.is_autocast_enabled),
                "get_autocast_dtype": _of_cpu(torch.get_autocast_dtype),
                "get_autocast_gpu_dtype": lambda: torch.get_autocast_dtype(_CPU),
            },
        ),
    )


def _backward(mode: GpuMode, autograd: Any) -> Callable[..., Any]:
    """Return torch's backward pass, in which functions of users see the GPU as ever.

    It is called inside of a function of torch, where no mode is on.
    """
    run = autograd._engine_run_backward

    def run_backward(*args: Any, **kwargs: Any) -> Any:
        if mode in _get_current_function_mode_stack():  # type: ignore[no-untyped-call]
            return run(*args, **kwargs)
        with mode:
            return run(*args, **kwargs)

    return run_backward


def _autocast(begin: Callable[..., None]) -> Callable[..., None]:
    """Return the beginning of an autocast, in which that of the GPU is the CPU's."""

    @wraps(begin)
    def init(self: Any, device_type: str, dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_type == GPU.type:
            device_type, dtype = _CPU, dtype or torch.float16
        begin(self, device_type, dtype, *args, **kwargs)

    return init


def _of_cpu(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return a question about an autocast, which for the GPU is answered by the CPU's."""

    def asked(device_type: str = GPU.type) -> Any:
        return ask(_CPU if device_type == GPU.type else device_type)

    return asked


def _not_compiled(model: Any = None, **_: Any) -> Any:
    """Return a function as it is: nothing is compiled for a GPU that is pretended."""
    if model is None:
        return _not_compiled
    what = getattr(model, "__name__", type(model).__name__)
    warnings.warn(f"torch.compile is not pretended: {what} runs op by op, on the CPU", stacklevel=2)
    return model


def _set_default_device(mode: GpuMode, change: Callable[..., None]) -> Callable[..., None]:
    def set_default_device(device: Any) -> None:
        mode.default = device is not None and is_gpu(device)
        change(None if mode.default else device)

    return set_default_device


def _get_default_device(mode: GpuMode, ask: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: GPU if mode.default else ask()
