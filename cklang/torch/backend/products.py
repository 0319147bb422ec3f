# SPDX-License-Identifier: MIT
"""Products of matrices and convolutions, which sum in f32."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.grouped import GROUPED_GEMM, GROUPED_GEMM_K
from cklang.ir.nodes import Value
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Scalar, Tensor, channels_last, inverse
from cklang.torch.backend.extents import Shape, Unsupported, product, shape_of
from cklang.types import bf16, f16, f32, i32

aten = torch.ops.aten

_DTYPES = (f16, bf16, f32)
_MOST_SUMMED = 3
"""Summed axes of a product; of more, the left operand is reshaped."""


def _product(call: Call, a: Tensor, b: Tensor, batch: int) -> Tensor:
    """Return the products of matrices of a[batch..., M, K] and b[batch..., K, N], in f32."""
    if a.dtype not in _DTYPES or a.dtype != b.dtype:
        raise Unsupported(f"products take f16, bf16 or f32, not {a.dtype} by {b.dtype}")
    left, summed = _left(call, a, batch)
    first = len(left.type.shape) - len(summed)
    own_batch = left.type.shape[: first - 1] if batch else ()
    right = call.emitter.reshaped(b.value, (*own_batch, *summed, b.shape[-1]))
    if len(summed) == 1:
        value = call.emitter.append("gemm", left, right)
    else:
        value = call.emitter.append("contract", left, right, rows=1, columns=1, summed=len(summed))
    return Tensor(value, (*a.shape[:-1], b.shape[-1]))


def _left(call: Call, a: Tensor, batch: int) -> tuple[Value, Shape]:
    """Return the left operand, and the extents of its last axes, which are summed.

    Rows of matrices without a batch may be several axes: they are taken for a batch whose
    matrices all meet the same right operand, and the planner makes one product of them.
    """
    value, before = call.emitter.split(a, len(a.shape) - 1)
    own = value.type.shape
    rows = own[:before]
    starts_with_batch = not batch or product(rows[:-1]) == product(a.shape[:-2])
    if not rows or not own[before:] or len(own) - before > _MOST_SUMMED or not starts_with_batch:
        return call.emitter.plain(a), a.shape[-1:]
    return value, own[before:]


def _mm(call: Call, a: Tensor, b: Tensor, *_: object) -> Tensor:
    return call.rounded(_product(call, a, b, 0))


def _bmm(call: Call, a: Tensor, b: Tensor, *_: object) -> Tensor:
    return call.rounded(_product(call, a, b, 1))


def _grouped_mm(
    call: Call,
    a: Tensor,
    b: Tensor,
    ends: Tensor | None = None,
    bias: Tensor | None = None,
    _out_dtype: object = None,
) -> Tensor:
    """Return products of groups of rows, or along K; torch leaves open what is in no group."""
    if ends is None or bias is not None or len(a.shape) != 2:
        raise Unsupported(
            "of grouped products those of groups of rows or along K, without a bias, are lowered"
        )
    if a.dtype not in _DTYPES or a.dtype != b.dtype or ends.dtype != i32:
        raise Unsupported(f"groups are f16, bf16 or f32 by the same, not {a.dtype} by {b.dtype}")
    operands = [call.emitter.plain(tensor) for tensor in (a, b, ends)]
    if len(b.shape) == 2:
        value = call.emitter.append(GROUPED_GEMM_K, *operands)
        return call.rounded(Tensor(value, (ends.shape[0], a.shape[0], b.shape[1])))
    value = call.emitter.append(GROUPED_GEMM, *operands)
    return call.rounded(Tensor(value, (a.shape[0], b.shape[2])))


def _plus(call: Call, bias: Tensor, result: Tensor, beta: Scalar = 1, alpha: Scalar = 1) -> Tensor:
    """Return beta bias + alpha result."""
    emitter = call.emitter
    if alpha != 1:
        result = emitter.pointwise("mul", [result, float(alpha)])
    wide = emitter.wide(bias)
    if beta != 1:
        wide = emitter.pointwise("mul", [wide, float(beta)])
    return call.rounded(emitter.pointwise("add", [result, wide]))


def _addmm(call: Call, bias: Tensor, a: Tensor, b: Tensor, **factors: Scalar) -> Tensor:
    return _plus(call, bias, _product(call, a, b, 0), **factors)


def _baddbmm(call: Call, bias: Tensor, a: Tensor, b: Tensor, **factors: Scalar) -> Tensor:
    return _plus(call, bias, _product(call, a, b, 1), **factors)


def _numbers(values: Sequence[Any], spatial: int) -> tuple[int, ...]:
    """Return a number for each spatial axis."""
    if not all(isinstance(value, int) for value in values):
        raise Unsupported("its stride, padding or dilation varies")
    return tuple(values) * (spatial if len(values) == 1 else 1)


def _geometry(
    rank: int, stride: Sequence[Any], padding: Sequence[Any], dilation: Sequence[Any], groups: int
) -> dict[str, Any]:
    """Return the attributes of a convolution of the IR."""
    spatial = rank - 2
    return {
        "stride": _numbers(stride, spatial),
        "padding": tuple((number, number) for number in _numbers(padding, spatial)),
        "dilation": _numbers(dilation, spatial),
        "groups": groups,
    }


def _convolve(
    call: Call, op: str, one: Tensor, other: Tensor, shape: Shape, attrs: Mapping[str, Any]
) -> Tensor:
    """Return a convolution of the IR, or a gradient of one, of tensors with channels second."""
    rank = len(shape)
    if one.dtype not in _DTYPES or one.dtype != other.dtype:
        raise Unsupported(f"convolutions take f16, bf16 or f32, not {one.dtype} by {other.dtype}")
    if not 3 <= rank <= 5:
        raise Unsupported("convolutions have one to three axes in space")
    last = channels_last(rank)
    operands = [call.emitter.plain(call.emitter.permuted(side, last)) for side in (one, other)]
    extents = tuple(shape[axis] for axis in last)
    value = call.emitter.append(op, *operands, shape=extents, **attrs)
    return Tensor(value, shape, inverse(last))


_DIRECTIONS = {False: ("conv", "conv_grad_input"), True: ("conv_grad_input", "conv")}
"""The op of a convolution and that of its input's gradient, by whether it is transposed."""


def _convolution(
    call: Call,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[Any],
    padding: Sequence[Any],
    dilation: Sequence[Any],
    transposed: bool,
    _output_padding: Sequence[Any],
    groups: int,
) -> Tensor:
    if len(x.shape) != len(weight.shape):
        raise Unsupported("its input has no axis of images")
    attrs = _geometry(len(x.shape), stride, padding, dilation, groups)
    op, _ = _DIRECTIONS[transposed]
    result = _convolve(call, op, x, weight, call.shape, attrs)
    if bias is None:
        return call.rounded(result)
    channels = Tensor(bias.value, (*bias.shape, *(1 for _ in x.shape[2:])))
    return _plus(call, channels, result)


def _convolution_backward(
    call: Call,
    dy: Tensor,
    x: Tensor,
    weight: Tensor,
    _bias_sizes: object,
    stride: Sequence[Any],
    padding: Sequence[Any],
    dilation: Sequence[Any],
    transposed: bool,
    _output_padding: Sequence[Any],
    groups: int,
    wanted: Sequence[bool],
) -> list[Tensor | None]:
    attrs = _geometry(len(x.shape), stride, padding, dilation, groups)
    results: list[Tensor | None] = [None, None, None]
    if wanted[0]:
        _, op = _DIRECTIONS[transposed]
        dx = _convolve(call, op, dy, weight, shape_of(call.outputs[0]), attrs)
        results[0] = call.rounded(dx, 0)
    if wanted[1]:
        pair = (dy, x) if transposed else (x, dy)
        dw = _convolve(call, "conv_grad_weight", *pair, shape_of(call.outputs[1]), attrs)
        results[1] = call.rounded(dw, 1)
    if wanted[2]:
        wide = call.emitter.wide(dy)
        channels = [axis for axis in range(len(dy.shape)) if axis != 1]
        rows, axes = call.emitter.axes_of(wide, channels)
        total = call.emitter.append("reduce_sum", rows.value, axes=axes)
        results[2] = call.rounded(Tensor(total, shape_of(call.outputs[2])), 2)
    return results


PRODUCTS: Mapping[Any, Emission] = MappingProxyType(
    {
        aten.mm.default: _mm,
        aten.bmm.default: _bmm,
        aten.addmm.default: _addmm,
        aten.baddbmm.default: _baddbmm,
        aten._grouped_mm.default: _grouped_mm,
        aten.convolution.default: _convolution,
        aten.convolution_backward.default: _convolution_backward,
    }
)
"""The emission of each product and convolution."""
