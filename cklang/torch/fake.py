# SPDX-License-Identifier: MIT
"""What a call gives, from shapes alone: sizes may be torch's symbols, and nothing is specialised.

The IR of an op has its shapes as formulas of dims. A fake call binds the dims to the sizes of its
arguments as a call does, so a size that does not fit is the same error, and a size that torch keeps
symbolic stays so in the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, in_kernel_invocation_manager

from cklang.device.arrays import (
    Array,
    Library,
    dtype_of_torch,
    expect_device,
    place_of,
    torch_dtype,
)
from cklang.memo import BoundedMemo
from cklang.runtime.bind import Binding, ResultLayout
from cklang.runtime.op_protocol import AnyOp
from cklang.runtime.result_orders import with_result_orders

_MEMO_LIMIT = 256
_Memo: TypeAlias = BoundedMemo[object, tuple[ResultLayout, ...]]
_layouts: WeakKeyDictionary[AnyOp, _Memo] = WeakKeyDictionary()
_OF_SYMBOLS = "_cklang_results"
"""The attribute of torch's environment of symbols that has the results of calls with them."""


@dataclass(frozen=True, slots=True)
class _Fake:
    """A tensor with a dtype, a shape and strides, but no elements."""

    tensor: torch.Tensor

    def __ck_array__(self, name: str) -> Array:
        """Return it as an argument that is bound, but never read.

        Raises:
            CkTypeError: A002, A086, kernels have no such dtype, or do not run there.
        """
        tensor = self.tensor
        expect_device(name, tensor)
        return Array(
            pointer=0,
            dtype=dtype_of_torch(name, tensor.dtype),
            shape=tuple(tensor.shape),
            strides=tuple(tensor.stride()),
            writeable=True,
            place=place_of(tensor),
            library=Library.TORCH,
            owner=tensor,
        )


def fake_results(op: AnyOp, values: Sequence[Any]) -> list[torch.Tensor]:
    """Return new tensors like the results of a call; under a fake mode they are fake.

    Tensors in ``values`` may be fake, numbers symbolic.
    """
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    empty = _empty_like(tensors[0] if tensors else torch.empty(()))
    return [_result(layout, empty) for layout in _layouts_of(op, values)]


def fake_rule(fake: Callable[..., Any]) -> Callable[..., Any]:
    """Return what a fake mode calls for a custom op: ``fake`` at once where that is all there is.

    Its own way hashes all arguments for a cache which custom ops are then not looked up in, and
    takes them apart and together again: three quarters of a fake call.
    """

    def run(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if not _is_fake_alone(mode, args):
            return mode.__torch_dispatch__(func, types, args, kwargs)
        with mode:
            return fake(*args)

    return run


def _is_fake_alone(mode: FakeTensorMode, values: Sequence[Any]) -> bool:
    """Whether tensors are fakes of a mode, which knows no values of theirs."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    return (
        bool(tensors)
        and not mode.propagate_real_tensors
        and all(
            type(tensor) is FakeTensor and tensor.fake_mode is mode and tensor.constant is None
            for tensor in tensors
        )
    )


def _layouts_of(op: AnyOp, values: Sequence[Any]) -> tuple[ResultLayout, ...]:
    symbols: list[torch.SymInt] = []
    key = _keys(values, symbols)
    memo = _memo_of(op, symbols)
    if memo is None:
        return _bound_layouts(op, values)
    known = memo.get(key)
    if known is None:
        known = _bound_layouts(op, values)
        # Binding may find that two symbols are one.
        memo.put(_keys(values, []) if symbols else key, known)
    return known


def _memo_of(op: AnyOp, symbols: Sequence[torch.SymInt]) -> _Memo | None:
    """Return what is known of calls of an op; None if nothing may be kept.

    Binding symbolic sizes leaves guards in their environment, which then hold for all calls with
    the same symbols. So the environment keeps those calls, as long as it lives, and keeps none
    while it is told to forget guards.
    """
    if not symbols:
        return _layouts.setdefault(op, BoundedMemo(_MEMO_LIMIT))
    env = symbols[0].node.shape_env
    if env is None or any(symbol.node.shape_env is not env for symbol in symbols):
        return None
    if getattr(env, "_suppress_guards_tls", lambda: True)():
        return None
    known: dict[str, _Memo] = vars(env).setdefault(_OF_SYMBOLS, {})
    return known.setdefault(op.serial, BoundedMemo(_MEMO_LIMIT))


def _keys(values: Sequence[Any], symbols: list[torch.SymInt]) -> object:
    return tuple([_key(value, symbols) for value in values])


def _key(value: Any, symbols: list[torch.SymInt]) -> object:
    """Return what results depend on of an argument; its symbolic sizes go into ``symbols``."""
    if not isinstance(value, torch.Tensor):
        return type(value), repr(value)
    sizes = [*value.shape, *value.stride()]
    own = [size for size in sizes if isinstance(size, torch.SymInt)]
    if own:
        symbols += own
        sizes = [size.node.expr if isinstance(size, torch.SymInt) else size for size in sizes]
    return value.dtype, tuple(sizes), value.device


def bound(op: AnyOp, values: Sequence[Any]) -> Binding:
    """Return a call bound to its values: one for each parameter, as for :func:`fake_results`.

    Raises:
        CkTypeError, CkValueError: As binding a call.
    """
    names = [parameter.name for parameter in op.program.parameters]
    return op._bound((), dict(zip(names, map(_bindable, values), strict=True)))


def _bound_layouts(op: AnyOp, values: Sequence[Any]) -> tuple[ResultLayout, ...]:
    binding = bound(op, values)
    if op.program.has_convolutions:
        # Only these keep the order in memory of an operand's axes.
        binding = with_result_orders(op._planned(binding), binding)
    return binding.results


def _bindable(value: Any) -> Any:
    """Return what binds like an argument; of a run-time number only its kind matters."""
    if isinstance(value, torch.Tensor):
        return _Fake(value)
    if isinstance(value, torch.SymInt):
        return 0
    return 0.0 if isinstance(value, torch.SymFloat) else value


_Empty: TypeAlias = Callable[[Sequence[int], torch.dtype], torch.Tensor]
"""Returns a new tensor of a shape and a dtype."""


def _empty_like(tensor: torch.Tensor) -> _Empty:
    """Return what makes tensors in the place of a tensor: fake ones where it is fake.

    A fake mode makes a fake tensor of one on the device meta. Asked for by ``torch.empty`` it does
    the same, but first looks whether it has made such a tensor before, which takes longer.
    """
    device = tensor.device
    if not isinstance(tensor, FakeTensor):
        return lambda shape, dtype: torch.empty(shape, dtype=dtype, device=device)
    mode = tensor.fake_mode

    def fake(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        with in_kernel_invocation_manager(mode):
            inner = torch.empty(shape, dtype=dtype, device="meta")
        return FakeTensor(mode, inner, device)

    return fake


def _result(layout: ResultLayout, empty: _Empty) -> torch.Tensor:
    dtype = torch_dtype(layout.dtype)
    if not layout.order:
        return empty(layout.shape, dtype)
    inner = empty([layout.shape[axis] for axis in layout.order], dtype)
    return inner.permute([layout.order.index(axis) for axis in range(len(layout.order))])
