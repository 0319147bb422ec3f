# SPDX-License-Identifier: MIT
"""``torch.vmap`` of an op: one call of an op that has the batch as an axis more, or a loop.

An op over the batch is made of the op's program (:mod:`cklang.ir.batched`). A program with an op
that has no such form, as attention and convolutions, or whose form no kernels compute, is called
once for each element, and the results are stacked.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import torch

from cklang.device.arrays import dtype_of_torch
from cklang.errors import CkError
from cklang.ir.batched import with_batch
from cklang.ir.nodes import Function
from cklang.ir.verifier import verify
from cklang.memo import BoundedMemo
from cklang.runtime.ir_program import IrProgram
from cklang.runtime.op_protocol import AnyOp
from cklang.torch.backend.extents import hint_of
from cklang.torch.fake import bound

_MEMO_LIMIT = 64


@dataclass(frozen=True, slots=True)
class Batched:
    """An op over a batch."""

    op: Any
    names: tuple[str, ...]
    """The parameters of the op that it takes, in order."""
    has_axis: tuple[bool, ...]
    """Whether each result has the axis of the batch."""


_Memo: TypeAlias = BoundedMemo[object, tuple[Batched | None]]
_known: WeakKeyDictionary[AnyOp, _Memo] = WeakKeyDictionary()


def register_batching(
    op: AnyOp, overload: Any, qualname: str, library: torch.library.Library
) -> None:
    """Let ``torch.vmap`` call an overload of an op."""

    def mapped(info: Any, in_dims: Any, *values: Any, **options: Any) -> tuple[Any, Any]:
        if not info.batch_size:
            return _none_of(overload(*_zeros(values, in_dims), **options))
        moved = [
            value if dim is None else value.movedim(dim, 0)
            for value, dim in zip(values, in_dims, strict=True)
        ]
        batched = batched_op(op, moved, in_dims, options.get("device"))
        if batched is not None:
            return _called(op, batched, moved, options)
        return _looped(overload, values, in_dims, info.batch_size, options)

    torch.library.register_vmap(qualname, mapped, lib=library)


def batched_op(
    op: AnyOp, values: Sequence[Any], in_dims: Sequence[int | None], device: str | None
) -> Batched | None:
    """Return the op over a batch for a call; None if the call is a loop.

    Some ``values`` have the batch in front; ``in_dims`` is None for the others.
    """
    parameters = [parameter.name for parameter in op.program.parameters]
    is_batched = tuple(dim is not None for dim in in_dims)
    memo = _known.setdefault(op, BoundedMemo(_MEMO_LIMIT))
    key = is_batched, tuple(map(_described, values)), device
    known = memo.get(key)
    if known is None:
        names = [name for name, has in zip(parameters, is_batched, strict=True) if has]
        batched = _new(op, values, names, memo)
        by_name = dict(zip(parameters, map(_described, values), strict=True))
        is_computed = batched is not None and not _mistakes(batched, by_name, device)
        known = (batched if is_computed else None,)
        memo.put(key, known)
    return known[0]


def _new(op: AnyOp, values: Sequence[Any], names: Sequence[str], memo: _Memo) -> Batched | None:
    """Return an op over a batch of some parameters, one for each function of its program."""
    parameters = [parameter.name for parameter in op.program.parameters]
    pairs = zip(parameters, values, strict=True)
    binding = bound(op, [value[0] if name in names else value for name, value in pairs])
    function = op.program.specialise(binding.dtypes, binding.consts, binding.dims)
    key = str(function), tuple(names)
    known = memo.get(key)
    if known is None:
        pair = with_batch(function, names)
        own = tuple(param.name for param in function.params)
        known = (None if pair is None else _over_batch(op, pair[0], own, pair[1]),)
        memo.put(key, known)
    return known[0]


def _over_batch(
    op: AnyOp, function: Function, names: tuple[str, ...], has_axis: tuple[bool, ...]
) -> Batched:
    """Return an op with the kernels that were asked for."""
    new: Any = type(op)
    return Batched(new(IrProgram(ir=verify(function)), op.request), names, has_axis)


def _described(value: Any) -> Any:
    """Return a tensor as ``op.check`` takes it, and anything else as it is."""
    if not isinstance(value, torch.Tensor):
        return value
    shape, strides = (tuple(map(hint_of, numbers)) for numbers in (value.shape, value.stride()))
    return shape, dtype_of_torch("an argument", value.dtype).name, strides


def _mistakes(
    batched: Batched, by_name: Mapping[str, Any], device: str | None
) -> Sequence[CkError]:
    """Return why no kernels compute a call."""
    values = (by_name[name] for name in batched.names)
    mistakes: Sequence[CkError] = batched.op.check(*values, device=device).mistakes
    return mistakes


def _called(
    op: AnyOp, batched: Batched, values: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Any, Any]:
    parameters = [parameter.name for parameter in op.program.parameters]
    by_name = dict(zip(parameters, values, strict=True))
    result = batched.op(*(by_name[name] for name in batched.names), **options)
    dims = tuple(0 if has else None for has in batched.has_axis)
    return (result, dims) if isinstance(result, tuple) else (result, dims[0])


def _looped(
    overload: Any, values: Any, in_dims: Any, size: int, options: Mapping[str, Any]
) -> tuple[Any, Any]:
    results = [overload(*_at(values, in_dims, index), **options) for index in range(size)]
    if isinstance(results[0], torch.Tensor):
        return torch.stack(results), 0
    stacked = tuple(map(torch.stack, zip(*results, strict=True)))
    return stacked, (0,) * len(stacked)


def _at(values: Any, in_dims: Any, index: int) -> list[Any]:
    pairs = zip(values, in_dims, strict=True)
    return [value if dim is None else value.select(dim, index) for value, dim in pairs]


def _zeros(values: Any, in_dims: Any) -> list[Any]:
    """Return arguments of one call where the batch has no element to take them from."""
    return [
        value
        if dim is None
        else value.new_zeros([n for axis, n in enumerate(value.shape) if axis != dim])
        for value, dim in zip(values, in_dims, strict=True)
    ]


def _none_of(result: Any) -> tuple[Any, Any]:
    if isinstance(result, torch.Tensor):
        return result.new_empty((0, *result.shape)), 0
    return tuple(tensor.new_empty((0, *tensor.shape)) for tensor in result), (0,) * len(result)
