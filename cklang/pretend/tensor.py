# SPDX-License-Identifier: MIT
"""Tensors that Python takes for a GPU's: torch's CPU computes with them, in the host's memory.

To torch's C++ they are tensors of the CPU, so that autograd needs no device that torch lacks. To
Python they are on ``cuda:0``: :class:`GpuMode` sees every call of torch, moves tensors where a call
asks for another device, and gives results the device of their operands.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from cklang.errors import error

GPU = torch.device("cuda", 0)
CPU = torch.device("cpu")
_aten = torch.ops.aten
_DATA: Any = torch.Tensor.data
PLACE: list[Callable[[torch.Tensor], torch.Tensor]] = [lambda host: host]
"""Gives the memory of a new tensor on the GPU another place."""
_answer = [CPU]
"""The device that torch's C++ is told; the last one counts."""


class GpuTensor(torch.Tensor):
    """A tensor on the pretended GPU, in the memory of ``host``."""

    host: torch.Tensor

    @staticmethod
    def __new__(cls, host: torch.Tensor) -> GpuTensor:
        """Make one in the memory of ``host``."""
        host = PLACE[0](host)
        self = torch.Tensor._make_subclass(cls, host, False, dispatch_device=True)
        self.host = host
        return self

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return run(func, args, kwargs or {})

    device = property(lambda self: GPU)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)

    def get_device(self) -> int:
        """Return the number of the GPU."""
        return GPU.index

    def is_pinned(self, device: object = None) -> bool:
        """Return False: it is not the host's memory."""
        return False

    def numpy(self, *, force: bool = False) -> Any:
        """Raise what torch raises; with ``force``, return a copy."""
        if not force:
            raise TypeError(
                f"can't convert {GPU} device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        return self.detach().cpu().numpy()

    def tolist(self) -> Any:
        """Return the elements as numbers, in lists."""
        return self.host.tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.numpy()

    def __repr__(self, *, tensor_contents: Any = None) -> Any:  # type: ignore[override]
        words = [repr(self.host.detach())[:-1], f"device='{GPU}'"]
        if self.grad_fn is not None:
            words.append(f"grad_fn=<{type(self.grad_fn).__name__}>")
        elif self.requires_grad:
            words.append("requires_grad=True")
        text = ", ".join(words) + ")"
        is_parameter = isinstance(self, torch.nn.Parameter)
        return f"Parameter containing:\n{text}" if is_parameter else text

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.dim() == 0 else repr(self), spec)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copy = GpuTensor(self.host.detach().clone())
            vars(copy).update({k: v for k, v in vars(self).items() if k != "host"})
            memo[id(self)] = copy.requires_grad_(self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored, (self.host.detach(), self.requires_grad)

    def record_stream(self, stream: object) -> None:
        """Do nothing: launches have ended when they return."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        face: dict[str, Any] = self.host.detach().numpy().__array_interface__
        return face | {"version": 2}


def live_tensors() -> list[GpuTensor]:
    """Return the tensors on the GPU that something still refers to."""
    return [value for value in gc.get_objects() if issubclass(type(value), GpuTensor)]


def _restored(host: torch.Tensor, requires_grad: bool) -> torch.Tensor:
    return GpuTensor(host).requires_grad_(requires_grad)


class _Move(torch.autograd.Function):
    """The same memory as a tensor of the other device; gradients go back."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        if isinstance(tensor, GpuTensor):
            tensor = _host(tensor)
            return tensor.detach()
        return GpuTensor(tensor.detach())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return _other(gradient)


def _other(tensor: torch.Tensor) -> torch.Tensor:
    with torch._C.DisableTorchFunctionSubclass():
        if not (tensor.requires_grad and torch.is_grad_enabled()):
            host: torch.Tensor = _host(tensor)
            return host.detach() if isinstance(tensor, GpuTensor) else GpuTensor(tensor)
        moved: torch.Tensor = _Move.apply(tensor)  # type: ignore[no-untyped-call]
        return moved


def on(device: torch.device, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor on a device, in the same memory."""
    is_there = isinstance(tensor, GpuTensor) is (device.type == GPU.type)
    return tensor if is_there else _other(tensor)


def is_gpu(device: Any) -> bool:
    """Whether a device, as torch takes one, is the GPU.

    Raises:
        CkValueError: E011, it is another GPU than the one there is.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        device = torch.device(GPU.type, device)
    if not isinstance(device, str | torch.device) or torch.device(device).type != GPU.type:
        return False
    if torch.device(device).index not in (None, GPU.index):
        raise error("E011", got=str(device), problem="there is one")
    return True


def _device(device: Any) -> torch.device:
    return GPU if is_gpu(device) else torch.device(device)


def _to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
    """``Tensor.to``, which may name a device, a dtype, both or another tensor."""
    device, rest = _asked(args, kwargs)
    target = tensor.device if device is None else _device(device)
    if target.type == tensor.device.type:
        return _plainly(torch.Tensor.to, (tensor, *rest), kwargs) if rest or kwargs else tensor
    if target.type not in (CPU.type, GPU.type):
        return _plainly(torch.Tensor.to, (on(CPU, tensor), target, *rest), kwargs)
    kwargs.pop("copy", None)
    return on(target, _plainly(torch.Tensor.to, (on(CPU, tensor), *rest), {**kwargs, "copy": True}))


def _asked(args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, Sequence[Any]]:
    """Return the device that a call of ``Tensor.to`` names, if any, and its other arguments."""
    like = kwargs.pop("other", None)
    if args and isinstance(args[0], torch.Tensor):
        like, args = args[0], args[1:]
    if like is not None:
        return like.device, (like.dtype, *args)
    if args and (args[0] is None or isinstance(args[0], str | int | torch.device)):
        return args[0], args[1:]
    return kwargs.pop("device", None), args


def _cuda(tensor: torch.Tensor, device: Any = None, *_: object, **kwargs: Any) -> Any:
    memory = {k: v for k, v in kwargs.items() if k == "memory_format"}
    return _to(tensor, GPU if device is None else device, **memory)


def _cpu(tensor: torch.Tensor, **kwargs: Any) -> Any:
    return _to(tensor, CPU, **kwargs)


def _type(tensor: torch.Tensor, dtype: Any = None, *args: Any, **kwargs: Any) -> Any:
    """``Tensor.type``, whose names say where a tensor is."""
    place = "torch.cuda." if isinstance(tensor, GpuTensor) else "torch."
    host = on(CPU, tensor)
    if dtype is None:
        return _plainly(torch.Tensor.type, (host,), {}).replace("torch.", place)
    if isinstance(dtype, str):
        device = GPU if dtype.startswith("torch.cuda.") else CPU
        return on(device, _plainly(torch.Tensor.type, (host, dtype.replace("cuda.", "")), kwargs))
    return on(tensor.device, _plainly(torch.Tensor.type, (host, dtype, *args), kwargs))


def _type_as(tensor: torch.Tensor, other: torch.Tensor) -> Any:
    return _to(tensor, other)


def _set_data(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """``tensor.data = data``; where it changes the device the tensor becomes another one."""
    if isinstance(tensor, GpuTensor) == isinstance(data, GpuTensor):
        if isinstance(data, GpuTensor):
            vars(tensor)["host"] = _host(data)
        _plainly(_DATA.__set__, (tensor, data), {})
        return
    new = data.detach()
    if isinstance(tensor, torch.nn.Parameter):
        new = torch.nn.Parameter(new, tensor.requires_grad)
    torch.utils.swap_tensors(tensor, new)  # type: ignore[no-untyped-call]


def _pinned(tensor: torch.Tensor, *_: object) -> torch.Tensor:
    return tensor.clone()


_MOVES: Mapping[Any, Callable[..., Any]] = {
    torch.Tensor.to: _to,
    torch.Tensor.cuda: _cuda,
    torch.Tensor.cpu: _cpu,
    torch.Tensor.type: _type,
    torch.Tensor.type_as: _type_as,
    _DATA.__set__: _set_data,
    torch.Tensor.pin_memory: _pinned,
    torch._has_compatible_shallow_copy_type: lambda *_: True,  # modules then set ``data``
}
"""What decides itself where its result is."""

_MIXES = (
    *("copy_", "__getitem__", "__setitem__", "index", "index_put", "index_put_", "set_"),
    *("_index_put_impl_", "__get__", "__set__", "__delete__", "is_same_size", "result_type"),
)
"""Functions of torch that take tensors of several devices."""

_FACTORIES = (
    *(torch.arange, torch.as_tensor, torch.asarray, torch.empty, torch.empty_permuted),
    *(torch.empty_strided, torch.eye, torch.full, torch.linspace, torch.logspace, torch.ones),
    *(torch.rand, torch.randint, torch.randn, torch.randperm, torch.range, torch.scalar_tensor),
    *(torch.tensor, torch.tril_indices, torch.triu_indices, torch.zeros),
)
"""What makes tensors where ``torch.set_default_device`` says."""


class GpuMode(TorchFunctionMode):
    """Lets calls of torch ask for the GPU."""

    default: bool = False
    """Whether new tensors are on the GPU where a call does not say where."""

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.default and func in _FACTORIES and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": GPU}
        return call(func, args, kwargs)


def call(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Return what a function of torch returns, on the device that it is asked for."""
    with torch._C.DisableTorchFunctionSubclass():
        return _call(func, args, kwargs)


def _call(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    if func in _MOVES:
        return _MOVES[func](*args, **kwargs)
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    asked = kwargs.get("device")
    if asked is None:
        on_gpu = any(isinstance(tensor, GpuTensor) for tensor in tensors)
        if on_gpu and not isinstance(func, FunctionType):
            _expect_one_device(func, tensors)
    else:
        on_gpu = is_gpu(asked)
        kwargs = {**kwargs, "device": CPU if on_gpu else asked}
    results = _plainly(func, args, kwargs)
    return _each(_to_gpu, results) if on_gpu else results


def _each(change: Callable[[Any], Any], results: Any) -> Any:
    """Change the tensors of a result, which stays what it is if it has none."""
    if isinstance(results, torch.Tensor):
        return change(results)
    has_tensors = any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(results))
    return tree_map(change, results) if has_tensors else results


def _to_gpu(value: Any) -> Any:
    """Return a tensor on the GPU, anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.is_leaf and value.requires_grad and not isinstance(value, GpuTensor):
        return GpuTensor(value.detach()).requires_grad_()  # what a call has made, not moved
    return on(GPU, value)


def _plainly(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a function of torch; one that is written in Python may ask for the GPU inside."""
    if isinstance(func, FunctionType):
        with _DispatchMode():  # type: ignore[no-untyped-call]
            return func(*args, **kwargs)
    return func(*args, **kwargs)


def _expect_one_device(func: Any, tensors: Sequence[torch.Tensor]) -> None:
    """Raise what torch raises where a function gets matrices of both devices."""
    places = {tensor.device.type for tensor in tensors if tensor.dim()}
    if len(places) > 1 and getattr(func, "__name__", "") not in _MIXES:
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{GPU} and {CPU}! (in {getattr(func, '__name__', func)})"
        )


def run(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Let the CPU compute with the memory of tensors of the GPU."""
    if func is torch.ops.prim.device.default:
        return _answer[-1]
    if func is _aten._fused_sdp_choice.default:
        return 0  # attention of single operations: the fused kernels have names of their devices
    results = func(*tree_map(_host, args), **tree_map(_host, kwargs))
    _follow(func, args, kwargs)
    if not _is_on_gpu(args, kwargs):
        return results
    return _each(lambda value: _same(value, args, kwargs), results)


def _is_on_gpu(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether new results of an operation are on the GPU."""
    asked = kwargs.get("device")
    if _answer[-1] == GPU and asked is not None:
        return torch.device(asked).type == GPU.type
    if asked is not None and torch.device(asked).type == GPU.type:
        return True
    return any(isinstance(leaf, GpuTensor) for leaf in tree_leaves((args, kwargs)))


def _host(value: Any) -> Any:
    """Return the host's tensor behind one of the GPU; anything else as the CPU takes it."""
    if isinstance(value, GpuTensor):
        return value.host
    return CPU if isinstance(value, torch.device) and value.type == GPU.type else value


def _same(value: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Return a result: the very argument that it is, or a tensor of its own."""
    if not isinstance(value, torch.Tensor) or isinstance(value, GpuTensor):
        return value
    for argument in tree_leaves((args, kwargs)):
        if argument is value or (isinstance(argument, GpuTensor) and argument.host is value):
            return argument
    return GpuTensor(value)


def _follow(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Give arguments that were resized, transposed or moved in place the shape of their memory."""
    if not func._schema.is_mutable:
        return
    for argument in tree_leaves((args, kwargs)):
        if isinstance(argument, GpuTensor):
            host = argument.host
            same = (argument.shape, argument.stride()) == (host.shape, host.stride())
            if not same or argument.data_ptr() != host.data_ptr():
                with torch.no_grad():
                    _plainly(_DATA.__set__, (argument, GpuTensor(host)), {})


class _DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Lets what is made on the GPU inside of a function of torch or C++ be a tensor there."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return run(func, args, kwargs or {})


@contextmanager
def seen_by_extensions() -> Iterator[None]:
    """Let C++ see where tensors are, which it otherwise takes for the CPU's."""
    _answer.append(GPU)
    try:
        with _DispatchMode():  # type: ignore[no-untyped-call]
            yield
    finally:
        _answer.pop()
