# SPDX-License-Identifier: MIT
"""aten ops along an ordered axis: sorts, running sums and products, extremes with their indices."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import torch

from cklang.ir.order import ARGSORT, COUNT, CUMPROD, CUMSUM, DESCENDING, SORT
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Tensor
from cklang.torch.backend.extents import Unsupported
from cklang.torch.backend.reductions import REDUCTIONS
from cklang.types import DType, bool_, f32, i32

aten = torch.ops.aten


def _in_order(call: Call, x: Tensor, axis: int, count: int, *, descending: bool) -> list[Tensor]:
    """Return the first elements along an axis in order, and their indices."""
    if not x.shape:
        raise Unsupported("a number has no order")
    value = call.emitter.plain(x)
    attrs: dict[str, Any] = {"axis": axis % len(x.shape), COUNT: count, DESCENDING: int(descending)}
    return [Tensor(call.emitter.append(op, value, **attrs), call.shape) for op in (SORT, ARGSORT)]


def _sort(call: Call, x: Tensor, axis: int = -1, descending: bool = False) -> list[Tensor]:
    return _in_order(call, x, axis, 0, descending=descending)


def _stable_sort(
    call: Call, x: Tensor, *, stable: object, dim: int = -1, descending: bool = False
) -> list[Tensor]:
    return _in_order(call, x, dim, 0, descending=descending)


def _topk(
    call: Call, x: Tensor, k: Any, axis: int = -1, largest: bool = True, _sorted: bool = True
) -> list[Tensor]:
    if not isinstance(k, int) or k < 1:
        raise Unsupported("kernels take a constant number of elements from 1")
    return _in_order(call, x, axis, k, descending=largest)


def _running(op: str) -> Emission:
    def emission(call: Call, x: Tensor, axis: int, dtype: object = None) -> Tensor:
        if not x.shape:
            return call.rounded(x)
        value = call.emitter.cast(call.emitter.plain(x), _accumulated_in(call, x))
        value = call.emitter.append(op, value, axis=axis % len(x.shape))
        return call.rounded(Tensor(value, call.shape))

    return emission


def _accumulated_in(call: Call, x: Tensor) -> DType:
    """Return the dtype of running sums: of truth values they are no larger than the axis is."""
    if call.dtype.is_floating_point:
        return f32
    if call.dtype == torch.int32 or x.dtype == bool_:
        return i32
    raise Unsupported(f"kernels add up no {str(call.dtype).removeprefix('torch.')}")


def _extreme(reduction: Any, index: Any) -> Emission:
    """Return the emission of the greatest or least elements of an axis, and where they are."""

    def emission(call: Call, x: Tensor, axis: int, _keep: bool = False) -> list[Tensor]:
        values, indices = (Call(call.emitter, (output,)) for output in call.outputs)
        if not x.shape:
            zero = call.emitter.constant(0, i32)
            return [call.rounded(x), Tensor(zero, ())]
        results = REDUCTIONS[reduction](values, x, axis), REDUCTIONS[index](indices, x, axis)
        return cast("list[Tensor]", list(results))

    return emission


ORDERING: Mapping[Any, Emission] = MappingProxyType(
    {
        aten.sort.default: _sort,
        aten.sort.stable: _stable_sort,
        aten.topk.default: _topk,
        aten.cumsum.default: _running(CUMSUM),
        aten.cumprod.default: _running(CUMPROD),
        aten.max.dim: _extreme(aten.amax.default, aten.argmax.default),
        aten.min.dim: _extreme(aten.amin.default, aten.argmin.default),
    }
)
"""The emission of each op along an ordered axis."""
