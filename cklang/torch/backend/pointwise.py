# SPDX-License-Identifier: MIT
"""Pointwise aten ops. Floats are computed in f32 and rounded to the dtype of the result."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch

from cklang.torch.backend.call import Call, Emission
from cklang.torch.backend.emitter import DTYPES, Scalar, Tensor
from cklang.torch.backend.extents import Shape, Unsupported
from cklang.types import DType, Kind, bool_, f32, i32, i64
from cklang.widths import I32_MAX

aten = torch.ops.aten

Item = Tensor | Scalar

_COMPUTED_IN = {torch.int8: i32, torch.int32: i32, torch.int64: i64, torch.bool: bool_}


def _common(call: Call, items: tuple[Item, ...], dtype: DType) -> list[Item]:
    """Return the operands of one operation, tensors cast to ``dtype``."""
    return [
        replace(item, value=call.emitter.cast(item.value, dtype))
        if isinstance(item, Tensor)
        else item
        for item in items
    ]


def _computed_in(call: Call) -> DType:
    """Return the dtype in which an op computes its result."""
    if call.dtype.is_floating_point:
        return f32
    if call.dtype in _COMPUTED_IN:
        return _COMPUTED_IN[call.dtype]
    raise Unsupported(f"kernels compute no {str(call.dtype).removeprefix('torch.')}")


def _apply(call: Call, op: str, *items: Item, **attrs: Any) -> Tensor:
    """Apply an op of the IR in the dtype in which the result is computed."""
    operands = _common(call, items, _computed_in(call))
    return call.rounded(call.emitter.pointwise(op, operands, **attrs))


def _plainly(op: str) -> Emission:
    return lambda call, *items: _apply(call, op, *items)


def _scaled(op: str) -> Emission:
    """Return the emission of x + alpha y, or of x - alpha y."""

    def emission(call: Call, x: Item, y: Item, alpha: Scalar = 1) -> Tensor:
        dtype = _computed_in(call)
        if dtype == bool_:
            raise Unsupported("kernels add no booleans")
        one, other = _common(call, (x, y), dtype)
        if alpha != 1:
            other = (
                call.emitter.pointwise("mul", [other, alpha])
                if isinstance(other, Tensor)
                else other * alpha
            )
        return call.rounded(call.emitter.pointwise(op, [one, other]))

    return emission


def _multiply(call: Call, x: Item, y: Item) -> Tensor:
    return _apply(call, "logical_and" if call.dtype == torch.bool else "mul", x, y)


def _divide(call: Call, x: Item, y: Item, rounding_mode: str | None = None) -> Tensor:
    if rounding_mode is None:
        return _apply(call, "div", x, y)
    if rounding_mode == "floor":
        return _apply(call, "floor_divide", x, y)
    x, y = _common(call, (x, y), _computed_in(call))
    if not call.dtype.is_floating_point:
        whole = call.emitter.pointwise("sub", [x, call.emitter.pointwise("fmod", [x, y])])
        return call.rounded(call.emitter.pointwise("floor_divide", [whole, y]))
    return call.rounded(call.emitter.pointwise("trunc", [call.emitter.pointwise("div", [x, y])]))


def _power(call: Call, x: Item, y: Item) -> Tensor:
    known = {2: "square", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal", 1: None}
    if isinstance(y, Tensor) or y not in known or not call.dtype.is_floating_point:
        return _apply(call, "pow", x, y)
    op = known[y]
    return _apply(call, op, x) if op else _convert(call, x)


def _compare(op: str) -> Emission:
    def emission(call: Call, x: Item, y: Item) -> Tensor:
        return call.emitter.pointwise(op, _common(call, (x, y), _joint((x, y))))

    return emission


def _joint(items: tuple[Item, ...]) -> DType:
    """Return the dtype in which operands of different dtypes are compared."""
    dtypes = {item.dtype for item in items if isinstance(item, Tensor)}
    has_float = any(isinstance(item, float) for item in items)
    if has_float or any(dtype.kind is Kind.FLOAT for dtype in dtypes):
        return f32
    return i64 if i64 in dtypes else i32


def written_where(call: Call, condition: Tensor, x: Item, y: Item) -> Tensor:
    """Return x where a condition holds, else y."""
    dtype = _computed_in(call)
    condition = replace(condition, value=call.emitter.cast(condition.value, bool_))
    operands = _common(call, (x, y), dtype)
    if not any(isinstance(operand, Tensor) for operand in operands):
        first = operands[0]
        value = call.emitter.constant(_number(first), dtype)
        operands[0] = Tensor(value, ())
    return call.rounded(call.emitter.pointwise("where", [condition, *operands]))


def _number(item: Item) -> Scalar:
    if isinstance(item, Tensor):
        raise Unsupported("a number is a tensor")
    return item


def _masked_fill(call: Call, x: Tensor, mask: Tensor, value: Item) -> Tensor:
    return written_where(call, mask, value, x)


def _logical(op: str) -> Emission:
    def emission(call: Call, *items: Item) -> Tensor:
        return call.emitter.pointwise(op, _common(call, items, bool_))

    return emission


def _bitwise(name: str) -> Emission:
    def emission(call: Call, *items: Item) -> Tensor:
        kind = "logical" if call.dtype == torch.bool else "bitwise"
        return _apply(call, f"{kind}_{name}", *items)

    return emission


def _gelu(call: Call, x: Tensor, approximate: str = "none") -> Tensor:
    return _apply(call, "gelu_tanh" if approximate == "tanh" else "gelu", x)


def _clamp(call: Call, x: Tensor, low: Item | None = None, high: Item | None = None) -> Tensor:
    (result,) = _common(call, (x,), _computed_in(call))
    for op, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            result = call.emitter.pointwise(op, [result, *_common(call, (bound,), result.dtype)])  # type: ignore[union-attr]
    return call.rounded(result)  # type: ignore[arg-type]


def _clamp_max(call: Call, x: Tensor, high: Item) -> Tensor:
    return _clamp(call, x, None, high)


def _hardtanh(call: Call, x: Tensor, low: Scalar = -1, high: Scalar = 1) -> Tensor:
    return _clamp(call, x, low, high)


def _leaky_relu(call: Call, x: Tensor, slope: Scalar = 0.01) -> Tensor:
    return _apply(call, "leaky_relu", x, slope=float(slope))


def _elu(call: Call, x: Tensor, alpha: Scalar = 1, scale: Scalar = 1, inner: Scalar = 1) -> Tensor:
    if scale != 1 or inner != 1:
        raise Unsupported("kernels have elu without factors")
    return _apply(call, "elu", x, alpha=float(alpha))


def _softplus(call: Call, x: Tensor, beta: Scalar = 1, threshold: Scalar = 20) -> Tensor:
    if beta != 1 or threshold != 20:
        raise Unsupported("kernels have softplus with beta 1 and threshold 20")
    return _apply(call, "softplus", x)


def _classify(op: str) -> Emission:
    return lambda call, x: call.emitter.pointwise(op, _common(call, (x,), f32))


def _convert(call: Call, x: Item, *_: object, **options: Any) -> Tensor:
    """Return a tensor in another dtype, or as it is: where it lies in memory is the runtime's."""
    if not isinstance(x, Tensor) or options.get("device") not in (None, call.outputs[0].device):
        raise Unsupported("it moves a tensor between devices")
    return call.rounded(x)


def _fill(call: Call, *_: object, number: Scalar) -> Tensor:
    return filled(call, number, call.shape)


def filled(call: Call, number: Scalar, shape: Shape) -> Tensor:
    """Return a number of the result's dtype, repeated to a shape."""
    dtype = DTYPES.get(call.dtype, f32)
    is_short = dtype == i64 and -I32_MAX <= number <= I32_MAX
    kind = i32 if is_short else dtype if dtype in (f32, i32, i64, bool_) else f32
    return call.rounded(Tensor(call.emitter.constant(number, kind, shape), shape))


def _full(call: Call, _shape: object, number: Any, **_options: Any) -> Tensor:
    if not isinstance(number, bool | int | float):
        raise Unsupported("it is filled with a size")
    return _fill(call, number=number)


def _scalar_tensor(call: Call, number: Any, **_options: Any) -> Tensor:
    return _full(call, (), number)


_UNARY = {
    "abs": "abs", "neg": "neg", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log",
    "log2": "log2", "log1p": "log1p", "sqrt": "sqrt", "rsqrt": "rsqrt", "reciprocal": "reciprocal",
    "tanh": "tanh", "erf": "erf", "sigmoid": "sigmoid", "silu": "silu", "relu": "relu",
    "mish": "mish", "hardswish": "hardswish", "hardsigmoid": "hardsigmoid", "floor": "floor",
    "ceil": "ceil", "round": "round", "trunc": "trunc", "sign": "sign",
    **{name: name for name in ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")},
    **{name: name for name in ("asinh", "acosh", "atanh", "erfc", "log10")},
}  # fmt: skip
"""Ops of one operand, by the name of the op of the IR."""

POINTWISE: Mapping[Any, Emission] = MappingProxyType(
    {
        **{getattr(aten, name).default: _plainly(op) for name, op in _UNARY.items()},
        aten.add.Tensor: _scaled("add"),
        aten.add.Scalar: _scaled("add"),
        aten.sub.Tensor: _scaled("sub"),
        aten.sub.Scalar: _scaled("sub"),
        aten.rsub.Scalar: lambda call, x, y, alpha=1: _scaled("sub")(call, y, x, alpha),
        aten.mul.Tensor: _multiply,
        aten.mul.Scalar: _multiply,
        aten.div.Tensor: _divide,
        aten.div.Scalar: _divide,
        aten.div.Tensor_mode: _divide,
        aten.pow.Tensor_Scalar: _power,
        aten.pow.Tensor_Tensor: _power,
        aten.pow.Scalar: _power,
        aten.minimum.default: _plainly("minimum"),
        aten.maximum.default: _plainly("maximum"),
        aten.atan2.default: _plainly("atan2"),
        aten.hypot.default: _plainly("hypot"),
        aten.copysign.Tensor: _plainly("copysign"),
        **dict.fromkeys((aten.fmod.Tensor, aten.fmod.Scalar), _plainly("fmod")),
        **dict.fromkeys((aten.remainder.Tensor, aten.remainder.Scalar), _plainly("mod")),
        aten.floor_divide.default: _plainly("floor_divide"),
        **{
            getattr(getattr(aten, name), kind): _compare(name)
            for name in ("lt", "le", "gt", "ge", "eq", "ne")
            for kind in ("Tensor", "Scalar")
        },
        aten.where.self: written_where,
        aten.where.ScalarOther: written_where,
        aten.where.ScalarSelf: written_where,
        aten.masked_fill.Scalar: _masked_fill,
        aten.masked_fill.Tensor: _masked_fill,
        aten.logical_and.default: _logical("logical_and"),
        aten.logical_or.default: _logical("logical_or"),
        aten.logical_xor.default: _logical("logical_xor"),
        aten.logical_not.default: _logical("logical_not"),
        **{
            getattr(getattr(aten, f"bitwise_{name}"), kind): _bitwise(name)
            for name in ("and", "or", "xor")
            for kind in ("Tensor", "Scalar")
        },
        aten.bitwise_not.default: _bitwise("not"),
        **{
            overload: _plainly(f"{side}_shift")
            for side, packet in (("left", aten.__lshift__), ("right", aten.__rshift__))
            for shift in (getattr(aten, f"bitwise_{side}_shift"),)
            for overload in (packet.Tensor, packet.Scalar, shift.Tensor, shift.Tensor_Scalar)
        },
        aten.gelu.default: _gelu,
        aten.clamp.default: _clamp,
        aten.clamp.Tensor: _clamp,
        aten.clamp_min.default: _clamp,
        aten.clamp_max.default: _clamp_max,
        aten.hardtanh.default: _hardtanh,
        aten.leaky_relu.default: _leaky_relu,
        aten.elu.default: _elu,
        aten.softplus.default: _softplus,
        aten.isnan.default: _classify("isnan"),
        aten.isinf.default: _classify("isinf"),
        aten.signbit.default: _classify("signbit"),
        aten._to_copy.default: _convert,
        torch.ops.prims.convert_element_type.default: _convert,
        aten.clone.default: _convert,
        aten.lift_fresh_copy.default: _convert,
        aten.full.default: _full,
        aten.full_like.default: lambda call, _x, number, **_options: _full(call, (), number),
        aten.scalar_tensor.default: _scalar_tensor,
        aten.zeros_like.default: lambda call, *_, **_options: _fill(call, number=0),
        aten.ones_like.default: lambda call, *_, **_options: _fill(call, number=1),
    }
)
"""The emission of each pointwise op."""
