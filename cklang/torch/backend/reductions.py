# SPDX-License-Identifier: MIT
"""aten ops that reduce axes: sums and extremes, softmax, norms. The arithmetic is f32."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch

from cklang.ir.nodes import Value
from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import Emitter, Tensor, channels_last, inverse
from cklang.torch.backend.extents import Shape, Unsupported, product
from cklang.types import DType, bool_, f32, i32, i64

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class _Rows:
    """A tensor whose axes are reduced: its value in f32, and which axes of that value."""

    emitter: Emitter
    value: Value
    axes: tuple[int, ...]
    shape: Shape
    """As torch sees the tensor."""

    @classmethod
    def of(cls, call: Call, x: Tensor, axes: Sequence[int], dtype: DType = f32) -> _Rows:
        x = Tensor(call.emitter.cast(x.value, dtype), x.shape)
        chosen = {axis % max(len(x.shape), 1) for axis in axes}
        tensor, own = call.emitter.axes_of(x, sorted(chosen))
        return cls(call.emitter, tensor.value, own, tensor.shape)

    @property
    def own(self) -> Shape:
        return self.value.type.shape

    @property
    def count(self) -> Any:
        """How many elements are reduced to one."""
        return product(self.own[axis] for axis in self.axes)

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes that are left."""
        return tuple(axis for axis in range(len(self.own)) if axis not in self.axes)

    def reduced(self, op: str, value: Value | None = None) -> Value:
        """Reduce the tensor, or another value of its own shape."""
        source = self.value if value is None else value
        return self.emitter.append(op, source, axes=self.axes) if self.axes else source

    def back(self, value: Value) -> Value:
        """Repeat what was reduced along the axes that it lost."""
        return self.emitter.broadcast(value, self.own, self.kept)

    def point(self, op: str, *values: Value, **attrs: Any) -> Value:
        return self.emitter.append(op, *values, **attrs)

    def number(self, value: float, like: Value) -> Value:
        return self.emitter.constant(value, f32, like.type.shape)

    def centered(self) -> tuple[Value, Value]:
        """Return the mean, and the distances from it."""
        mean = self.reduced("reduce_mean")
        return mean, self.point("sub", self.value, self.back(mean))


def _all_axes(x: Tensor, axes: Sequence[int] | int | None) -> Sequence[int]:
    if axes is None or axes == []:
        return range(len(x.shape))
    return [axes] if isinstance(axes, int) else axes


def _reduction(op: str) -> Emission:
    def emission(
        call: Call, x: Tensor, axes: Any = None, _keep: bool = False, **_options: Any
    ) -> Tensor:
        # What is no i64 in the IR, and no larger reduced, is reduced in i32.
        is_short = x.dtype == bool_ or (x.dtype == i32 and op in ("reduce_max", "reduce_min"))
        if not (call.dtype.is_floating_point or call.dtype == torch.int32 or is_short):
            raise Unsupported(f"kernels reduce no {str(call.dtype).removeprefix('torch.')}")
        dtype = f32 if call.dtype.is_floating_point else i32
        rows = _Rows.of(call, x, _all_axes(x, axes), dtype)
        return call.rounded(Tensor(rows.reduced(op), call.shape))

    return emission


def _any(op: str) -> Emission:
    def emission(call: Call, x: Tensor, axes: Any = None, _keep: bool = False) -> Tensor:
        truth = Tensor(call.emitter.cast(x.value, bool_), x.shape)
        rows = _Rows.of(call, truth, _all_axes(x, axes), i32)
        value = call.emitter.cast(rows.reduced(op), bool_)
        return Tensor(value, call.shape)

    return emission


def _arg(op: str) -> Emission:
    def emission(call: Call, x: Tensor, axis: int | None = None, _keep: bool = False) -> Tensor:
        if x.dtype == i64:
            raise Unsupported("kernels reduce no int64")
        shape = x.shape if axis is not None else (product(x.shape),)
        value = call.emitter.reshaped(call.emitter.plain(x), shape)
        rows = _Rows.of(call, Tensor(value, shape), [axis or 0])
        return Tensor(rows.reduced(op), call.shape)

    return emission


def _variance(rows: _Rows, correction: float) -> tuple[Value, Value]:
    """Return the mean and the variance, over the number of elements minus ``correction``."""
    mean, centered = rows.centered()
    squares = rows.point("square", centered)
    if correction == 0:
        return mean, rows.reduced("reduce_mean", squares)
    if not isinstance(rows.count, int):
        raise Unsupported("its correction asks for the number of elements, which varies")
    total = rows.reduced("reduce_sum", squares)
    return mean, rows.point("div", total, rows.number(max(rows.count - correction, 0.0), total))


def _var(call: Call, x: Tensor, axes: Any = None, **options: Any) -> Tensor:
    return _var_mean(call, x, axes, **options)[0]


def _var_mean(
    call: Call, x: Tensor, axes: Any = None, *, correction: float | None = None, **_: Any
) -> list[Tensor]:
    rows = _Rows.of(call, x, _all_axes(x, axes))
    mean, variance = _variance(rows, 1 if correction is None else correction)
    return [
        call.rounded(Tensor(value, call.shape), place)
        for place, value in enumerate((variance, mean)[: len(call.outputs)])
    ]


def _softmax(call: Call, x: Tensor, axis: int, _half: bool = False) -> Tensor:
    rows = _Rows.of(call, x, [axis])
    shifted = rows.point("sub", rows.value, rows.back(rows.reduced("reduce_max")))
    powers = rows.point("exp", shifted)
    total = rows.back(rows.reduced("reduce_sum", powers))
    return call.rounded(Tensor(rows.point("div", powers, total), call.shape))


def _log_softmax(call: Call, x: Tensor, axis: int, _half: bool = False) -> Tensor:
    rows = _Rows.of(call, x, [axis])
    shifted = rows.point("sub", rows.value, rows.back(rows.reduced("reduce_max")))
    total = rows.reduced("reduce_sum", rows.point("exp", shifted))
    logarithm = rows.back(rows.point("log", total))
    return call.rounded(Tensor(rows.point("sub", shifted, logarithm), call.shape))


def _affine(
    call: Call, x: Tensor, weight: Tensor | None, bias: Tensor | None, shape: Shape
) -> Tensor:
    """Return x times weight plus bias, both seen in ``shape``."""
    for op, item in (("mul", weight), ("add", bias)):
        if item is not None:
            factor = call.emitter.wide(Tensor(item.value, shape))
            x = call.emitter.pointwise(op, [x, factor])
    return x


def _normalised(rows: _Rows, eps: float) -> tuple[Value, Value, Value]:
    """Return x minus its mean over the root of its variance, the mean, and one over the root."""
    mean, centered = rows.centered()
    variance = rows.reduced("reduce_mean", rows.point("square", centered))
    root = rows.point("rsqrt", rows.point("add", variance, rows.number(eps, variance)))
    return rows.point("mul", centered, rows.back(root)), mean, root


def _statistics(call: Call, *values: Value) -> list[Tensor]:
    """Return mean and root as results after the first one, in the shapes that torch gives them."""
    return [
        call.rounded(Tensor(value, Call(call.emitter, (output,)).shape), place)
        for place, (value, output) in enumerate(zip(values, call.outputs[1:], strict=True), start=1)
    ]


def _layer_norm(
    call: Call,
    x: Tensor,
    shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> list[Tensor]:
    first = len(x.shape) - len(shape)
    rows = _Rows.of(call, x, range(first, len(x.shape)))
    y, mean, root = _normalised(rows, eps)
    result = _affine(call, Tensor(y, x.shape), weight, bias, x.shape[first:])
    return [call.rounded(result), *_statistics(call, mean, root)]


def _group_norm(
    call: Call,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    _n: object,
    channels: Any,
    _size: object,
    groups: int,
    eps: float,
) -> list[Tensor]:
    if not isinstance(channels, int):
        raise Unsupported("its number of channels varies")
    # As kernels of convolutions write it, and with the groups as an axis, which torch sees as one
    # with the channels.
    last = channels_last(len(x.shape))
    n, *space = (x.shape[axis] for axis in last[:-1])
    own = (n, *space, groups, channels // groups)
    value = call.emitter.plain(call.emitter.permuted(x, last))
    grouped = Tensor(call.emitter.reshaped(value, own), own)
    rows = _Rows.of(call, grouped, [axis for axis in range(1, len(own)) if axis != len(own) - 2])
    y, mean, root = _normalised(rows, eps)
    result = _affine(call, Tensor(y, own), weight, bias, own[-2:])
    normed = Tensor(result.value, x.shape, inverse(last))
    return [call.rounded(normed), *_statistics(call, mean, root)]


def _batch_norm(
    call: Call,
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    _momentum: float,
    eps: float,
) -> list[Tensor | None]:
    """Return the norm by running statistics, with which inference computes."""
    emitter = call.emitter
    shape = (x.shape[1], *(1 for _ in x.shape[2:]))
    centered = emitter.pointwise("sub", [emitter.wide(x), emitter.wide(Tensor(mean.value, shape))])
    wide = emitter.wide(Tensor(variance.value, shape))
    root = emitter.pointwise("rsqrt", [emitter.pointwise("add", [wide, eps])])
    scaled = emitter.pointwise("mul", [centered, root])
    result = _affine(call, scaled, weight, bias, shape)
    return [call.rounded(result), *[None] * (len(call.outputs) - 1)]


def _softmax_backward(call: Call, dy: Tensor, y: Tensor, axis: int, _dtype: object) -> Tensor:
    product_ = call.emitter.pointwise("mul", [call.emitter.wide(dy), call.emitter.wide(y)])
    rows = _Rows.of(call, product_, [axis])
    total = Tensor(rows.back(rows.reduced("reduce_sum")), product_.shape)
    part = call.emitter.pointwise("mul", [call.emitter.wide(y), total])
    return call.rounded(call.emitter.pointwise("sub", [product_, part]))


REDUCTIONS: Mapping[Any, Emission] = MappingProxyType(
    {
        aten.sum.default: _reduction("reduce_sum"),
        aten.sum.dim_IntList: _reduction("reduce_sum"),
        aten.mean.default: _reduction("reduce_mean"),
        aten.mean.dim: _reduction("reduce_mean"),
        aten.amax.default: _reduction("reduce_max"),
        aten.amin.default: _reduction("reduce_min"),
        aten.max.default: _reduction("reduce_max"),
        aten.min.default: _reduction("reduce_min"),
        aten.prod.default: _reduction("reduce_prod"),
        aten.prod.dim_int: _reduction("reduce_prod"),
        aten.any.default: _any("reduce_max"),
        aten.any.dim: _any("reduce_max"),
        aten.all.default: _any("reduce_min"),
        aten.all.dim: _any("reduce_min"),
        aten.argmax.default: _arg("reduce_argmax"),
        aten.argmin.default: _arg("reduce_argmin"),
        aten.var.correction: _var,
        aten.var_mean.correction: _var_mean,
        aten._softmax.default: _softmax,
        aten._log_softmax.default: _log_softmax,
        aten._softmax_backward_data.default: _softmax_backward,
        aten.native_layer_norm.default: _layer_norm,
        aten.native_group_norm.default: _group_norm,
        aten._native_batch_norm_legit_no_training.default: _batch_norm,
    }
)
"""The emission of each op that reduces axes."""
