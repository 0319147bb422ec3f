# SPDX-License-Identifier: MIT
"""aten ops that pool windows of images: maxima and means. The arithmetic is f32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import torch

from cklang.ir.nodes import Value
from cklang.ir.pooling import Windows, avg_pooled, max_pooled
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Tensor
from cklang.torch.backend.refusal import Unsupported

aten = torch.ops.aten
_SPATIAL = 2


def _max_pool(
    call: Call,
    x: Tensor,
    size: Sequence[int],
    step: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> list[Tensor | None]:
    if set(dilation) != {1}:
        raise Unsupported("windows with holes are not pooled")
    value, windows = _windows(call, x, size, step, padding, ceil_mode)
    # The indices are read by its gradient alone.
    return [_result(call, x, max_pooled(call.emitter, value, windows)), None]


def _avg_pool(
    call: Call,
    x: Tensor,
    size: Sequence[int],
    step: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    if divisor_override is not None:
        raise Unsupported("means of windows have the divisor that they have elements")
    value, windows = _windows(call, x, size, step, padding, ceil_mode)
    mean = avg_pooled(call.emitter, value, windows, counts_padding=count_include_pad)
    return _result(call, x, mean)


def _adaptive_avg_pool(call: Call, x: Tensor, size: Sequence[int]) -> Tensor:
    extents = list(zip(x.shape[-_SPATIAL:], size, strict=True))
    if not all(isinstance(extent, int) and extent % count == 0 for extent, count in extents):
        raise Unsupported("its windows have different sizes")
    return _avg_pool(call, x, [int(str(extent)) // count for extent, count in extents])


def _windows(
    call: Call,
    x: Tensor,
    size: Sequence[int],
    step: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
) -> tuple[Value, list[Windows]]:
    """Return a tensor as its elements are in memory, and the windows along its axes there."""
    if ceil_mode:
        raise Unsupported("windows that are cut off at the end are not pooled")
    if not call.dtype.is_floating_point:
        raise Unsupported(f"kernels pool no {str(call.dtype).removeprefix('torch.')}")
    rank = len(x.shape)
    value = call.emitter.reshaped(x.value, x.inner)
    windows = []
    for place, axis in enumerate(range(rank - _SPATIAL, rank)):
        own = _each(size, place)
        windows.append(
            Windows(
                axis=x.order[axis] if x.order else axis,
                count=call.shape[axis],
                size=own,
                step=_each(step, place) if step else own,
                before=_each(padding, place),
            )
        )
    return value, windows


def _each(numbers: Sequence[int], place: int) -> int:
    """Return the number of an axis; one number is that of both."""
    return numbers[place % len(numbers)]


def _result(call: Call, x: Tensor, value: Value) -> Tensor:
    return call.rounded(Tensor(value, call.shape, x.order))


POOLING: Mapping[torch._ops.OpOverload, Emission] = MappingProxyType(
    {
        aten.max_pool2d_with_indices.default: _max_pool,
        aten.avg_pool2d.default: _avg_pool,
        aten._adaptive_avg_pool2d.default: _adaptive_avg_pool,
    }
)
"""The emission of each op that pools."""
