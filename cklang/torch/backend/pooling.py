# SPDX-License-Identifier: MIT
"""aten ops that pool windows of images: maxima and means. The arithmetic is f32."""

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

import torch

from cklang.ir.nodes import Value
from cklang.ir.pooling import Windows, avg_pooled, max_pooled
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Tensor
from cklang.torch.backend.extents import Unsupported

aten = torch.ops.aten


def _max_pool(
    call: Call,
    x: Tensor,
    size: Sequence[int],
    step: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
    *,
    axes: int,
) -> list[Tensor | None]:
    value, windows = _windows(call, x, axes, (size, step, padding, dilation), ceil_mode)
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
    *,
    axes: int,
) -> Tensor:
    if divisor_override is not None:
        raise Unsupported("means of windows have the divisor that they have elements")
    value, windows = _windows(call, x, axes, (size, step, padding, (1,)), ceil_mode)
    mean = avg_pooled(call.emitter, value, windows, counts_padding=count_include_pad)
    return _result(call, x, mean)


def _adaptive_avg_pool(call: Call, x: Tensor, size: Sequence[int], *, axes: int) -> Tensor:
    extents = list(zip(x.shape[-axes:], size, strict=True))
    if not all(isinstance(extent, int) and extent % count == 0 for extent, count in extents):
        raise Unsupported("its windows have different sizes")
    sizes = [int(str(extent)) // count for extent, count in extents]
    return _avg_pool(call, x, sizes, axes=axes)


def _windows(
    call: Call, x: Tensor, axes: int, sizes: tuple[Sequence[int], ...], ceil_mode: bool
) -> tuple[Value, list[Windows]]:
    """Return a tensor as its elements are in memory, and the windows along its axes there.

    ``sizes`` are extents, strides, paddings and dilations of windows along the last ``axes`` axes.
    """
    if ceil_mode:
        raise Unsupported("windows that are cut off at the end are not pooled")
    if not call.dtype.is_floating_point:
        raise Unsupported(f"kernels pool no {str(call.dtype).removeprefix('torch.')}")
    rank, (size, step, padding, dilation) = len(x.shape), sizes
    value = call.emitter.reshaped(x.value, x.inner)
    windows = []
    for place, axis in enumerate(range(rank - axes, rank)):
        own = _each(size, place)
        windows.append(
            Windows(
                axis=x.order[axis] if x.order else axis,
                count=call.shape[axis],
                size=own,
                step=_each(step, place) if step else own,
                before=_each(padding, place),
                dilation=_each(dilation, place),
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
        aten.max_pool2d_with_indices.default: partial(_max_pool, axes=2),
        aten.max_pool3d_with_indices.default: partial(_max_pool, axes=3),
        aten.avg_pool2d.default: partial(_avg_pool, axes=2),
        aten.avg_pool3d.default: partial(_avg_pool, axes=3),
        aten._adaptive_avg_pool2d.default: partial(_adaptive_avg_pool, axes=2),
        aten._adaptive_avg_pool3d.default: partial(_adaptive_avg_pool, axes=3),
    }
)
"""The emission of each op that pools."""
