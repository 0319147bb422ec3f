# SPDX-License-Identifier: MIT
"""The pointwise part of the op table (:mod:`cklang.ir.ops`): adding such an op is adding a row."""

from collections.abc import Callable
from typing import Any

import numpy as np

from cklang.ir import numeric, rules
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.op import AttrRow, Kind, Op
from cklang.ir.rules import AttrKind


def _point(
    name: str, operands: int, doc: str, numpy: Callable[..., Array], c: str | None, **more: Any
) -> Op:
    if "c_int" in more and "dtype" not in more:
        more["dtype"] = rules.NUMBER_DTYPE
    return Op(name=name, operands=operands, kind=Kind.POINTWISE, doc=doc, numpy=numpy, c=c, **more)


def _compare(name: str, doc: str, numpy: Callable[..., Array], c: str) -> Op:
    return _point(name, 2, doc, numpy, c, c_int=c, dtype=rules.COMPARE_DTYPE)


def _classify(name: str, doc: str, numpy: Callable[..., Array]) -> Op:
    return _point(name, 1, doc, numpy, f"ck_{name}({{0}})", dtype=rules.CLASSIFY_DTYPE)


def _logical(name: str, doc: str, numpy: Callable[..., Array], c: str) -> Op:
    """Return the row of an op of two booleans."""
    return _point(name, 2, doc, numpy, c, dtype=rules.LOGICAL_DTYPE, commutative=True)


def _bits(name: str, operands: int, doc: str, numpy: Callable[..., Array], c_int: str) -> Op:
    """Return the row of an op of integers alone."""
    types = {"c_int": c_int, "dtype": rules.INTEGER_DTYPE}
    commutative = name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    return _point(name, operands, doc, numpy, None, **types, commutative=commutative)


def _unsigned(sign: str) -> str:
    """Return the arithmetic that wraps, which C defines for unsigned numbers alone."""
    return f"({{int}})(({{unsigned}}){{0}} {sign} ({{unsigned}}){{1}})"


def _float_attr(name: str, default: float | None = None) -> tuple[AttrRow, ...]:
    return (AttrRow(name=name, kind=AttrKind.FLOAT, default=default),)


def _magnitude(x: Array, **_attrs: Attr) -> Array:
    return np.abs(x)


def _one(x: Array, **_attrs: Attr) -> Array:
    return np.ones_like(x)


def _clamp(x: Array, lo: float, hi: float) -> Array:
    return np.minimum(np.maximum(x, lo), hi)


def _elu(x: Array, alpha: float) -> Array:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


_FLOOR_DIVIDE_I64 = (
    "{1} == 0 ? 0 : {1} == -1 ? (long)(0ul - (unsigned long){0}) : "
    "{0} / {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0))"
)
_MOD_I64 = (
    "(unsigned long){1} + 1ul < 2ul ? 0 : "
    "{0} % {1} + ({0} % {1} != 0 && ({0} < 0) != ({1} < 0) ? {1} : 0)"
)

_ARITHMETIC = (
    _point("add", 2, "x + y", np.add, "{0} + {1}",
           c_int=_unsigned("+"), ulps=1, commutative=True),
    _point("sub", 2, "x - y", np.subtract, "{0} - {1}", c_int=_unsigned("-"), ulps=1),
    _point("mul", 2, "x * y", np.multiply, "{0} * {1}",
           c_int=_unsigned("*"), ulps=1, commutative=True),
    _point("div", 2, "x / y", np.divide, "{0} / {1}", ulps=4),
    _point("floor_divide", 2,
           "the integer at or below x / y; an integer divided by 0 gives 0, a float as x / 0",
           np.floor_divide, "ck_floor_divide({0}, {1})",
           c_int="ck_floor_divide_i32({0}, {1})", c_i64=_FLOOR_DIVIDE_I64, ulps=4,
           exact_below=2.0**22),
    _point(
        "mod",
        2,
        "x - floor_divide(x, y) * y, which has the sign of y; of an integer and 0, 0, "
        "of a float and 0, nan",
        np.mod,
        "ck_mod({0}, {1})",
        c_int="ck_mod_i32({0}, {1})",
        c_i64=_MOD_I64,
        ulps=1,
    ),
    _point("neg", 1, "-x", np.negative, "-{0}", c_int="({int})(0u - ({unsigned}){0})"),
    _point("abs", 1, "the magnitude", np.abs, "ck_abs({0})",
           c_int="{0} < 0 ? ({int})(0u - ({unsigned}){0}) : {0}"),
    _point("reciprocal", 1, "1 / x", lambda x: 1 / x, "ck_rcp({0})", ulps=4),
    _point("square", 1, "x * x", np.square, "{0} * {0}", ulps=1),
    _point("minimum", 2, "the lesser; nan if either is", np.minimum, "ck_min({0}, {1})",
           c_int="{0} < {1} ? {0} : {1}", commutative=True),
    _point("maximum", 2, "the greater; nan if either is", np.maximum, "ck_max({0}, {1})",
           c_int="{0} > {1} ? {0} : {1}", commutative=True),
    _point("clamp", 1, "minimum(maximum(x, lo), hi); nan stays nan", _clamp,
           "ck_min(ck_max({0}, {lo}), {hi})", attrs=_float_attr("lo") + _float_attr("hi")),
    _point("floor", 1, "x rounded down to an integer", np.floor, "ck_floor({0})"),
    _point("ceil", 1, "x rounded up to an integer", np.ceil, "-ck_floor(-{0})"),
    _point("round", 1, "the nearest integer; of two, the even one", np.rint, "ck_rint({0})"),
    _point("trunc", 1, "x rounded toward 0 to an integer", np.trunc,
           "ck_copysign(ck_floor(ck_abs({0})), {0})"),
    _point("sign", 1, "-1, 0 or 1; nan stays nan", np.sign,
           "{0} > 0.0f ? 1.0f : {0} < 0.0f ? -1.0f : {0}", c_int="({0} > 0) - ({0} < 0)"),
    _point("copysign", 2, "the magnitude of x with the sign of y", np.copysign,
           "ck_copysign({0}, {1})"),
)  # fmt: skip

_BITS = (
    _bits("bitwise_and", 2, "the bits that x and y both have", np.bitwise_and, "{0} & {1}"),
    _bits("bitwise_or", 2, "the bits that x or y has", np.bitwise_or, "{0} | {1}"),
    _bits("bitwise_xor", 2, "the bits that one of x and y has", np.bitwise_xor, "{0} ^ {1}"),
    _bits("bitwise_not", 1, "the bits that x has not: -x - 1", np.bitwise_not, "~{0}"),
    _bits("left_shift", 2, "x times 2 to the y, wrapped; 0 where y is not from 0 to 31, or 63",
          np.left_shift, "({unsigned}){1} < {bits}u ? ({int})(({unsigned}){0} << {1}) : 0"),
    _bits("right_shift", 2,
          "the integer at or below x over 2 to the y; 0 or -1, by the sign of x, where y is not "
          "from 0 to 31, or 63", np.right_shift,
          "{0} >> (({unsigned}){1} < {bits}u ? {1} : {last})"),
)  # fmt: skip

_FUNCTIONS = (
    _point("pow", 2, "x to the y, as powf", np.power, "ck_pow({0}, {1})", ulps=8),
    _point("exp", 1, "e to the x", np.exp, "ck_exp({0})", ulps=4),
    _point("exp2", 1, "2 to the x", np.exp2, "ck_exp2({0})", ulps=4),
    _point("expm1", 1, "exp(x) - 1", np.expm1, "ck_expm1({0})", ulps=6),
    _point("log", 1, "natural logarithm", np.log, "ck_log({0})", ulps=4),
    _point("log2", 1, "logarithm to base 2", np.log2, "ck_log({0}) * 1.44269504f", ulps=8),
    _point("log10", 1, "logarithm to base 10", np.log10, "ck_log({0}) * 0.43429448f", ulps=8),
    _point("log1p", 1, "log(1 + x)", np.log1p, "ck_log1p({0})", ulps=8),
    _point("sqrt", 1, "square root", np.sqrt, "ck_sqrt({0})", ulps=4),
    _point("rsqrt", 1, "1 / sqrt(x)", lambda x: 1 / np.sqrt(x), "ck_rsqrt({0})", ulps=6),
    _point("tanh", 1, "hyperbolic tangent", np.tanh, "ck_tanh({0})", ulps=8),
    _point("erf", 1, "error function", numeric.erf, "ck_erf({0})", ulps=8),
)


def _wide(name: str, operands: int, doc: str, numpy: Callable[..., Array], c: str = "") -> Op:
    """Return the row of a function that ``cklang/trig64.h`` computes in double precision."""
    call = f"ck64_{c or name}({', '.join(f'(double){{{place}}}' for place in range(operands))})"
    return _point(name, operands, doc, numpy, f"(float){call}", ulps=2)


_WIDE_FUNCTIONS = (
    _wide("sin", 1, "sine of an angle in radians", np.sin),
    _wide("cos", 1, "cosine of an angle in radians", np.cos),
    _wide("tan", 1, "tangent of an angle in radians", np.tan),
    _wide("asin", 1, "the angle from -pi/2 to pi/2 whose sine is x", np.arcsin),
    _wide("acos", 1, "the angle from 0 to pi whose cosine is x", np.arccos),
    _wide("atan", 1, "the angle from -pi/2 to pi/2 whose tangent is x", np.arctan),
    _wide("atan2", 2, "the angle from -pi to pi of the point (y, x)", np.arctan2),
    _wide("sinh", 1, "hyperbolic sine", np.sinh),
    _wide("cosh", 1, "hyperbolic cosine", np.cosh),
    _wide("asinh", 1, "inverse hyperbolic sine", np.arcsinh),
    _wide("acosh", 1, "inverse hyperbolic cosine", np.arccosh),
    _wide("atanh", 1, "inverse hyperbolic tangent", np.arctanh),
    _wide("cbrt", 1, "cube root", np.cbrt),
    _wide("erfc", 1, "1 - erf(x), which keeps its digits where that is small", numeric.erfc,
          "erfc_single"),
    _wide("hypot", 2, "sqrt(x * x + y * y) without overflow on the way", np.hypot),
    _point("fmod", 2,
        "x - trunc(x / y) * y, which has the sign of x; of an integer and 0, 0, of a float and 0, "
        "nan", np.fmod, "(float)ck64_fmod((double){0}, (double){1})",
        c_int="({unsigned}){1} + 1u < 2u ? 0 : {0} % {1}"),
)  # fmt: skip

_ACTIVATIONS = (
    _point("relu", 1, "x where x > 0, else 0; nan stays nan", lambda x: np.maximum(x, 0),
           "ck_max({0}, 0.0f)"),
    _point("leaky_relu", 1, "x where x > 0, else slope x",
           lambda x, slope: np.where(x > 0, x, slope * x), "{0} > 0.0f ? {0} : {slope} * {0}",
           attrs=_float_attr("slope", 0.01), ulps=1),
    _point("elu", 1, "x where x > 0, else alpha (exp(x) - 1)", _elu,
           "{0} > 0.0f ? {0} : {alpha} * ck_expm1({0})", attrs=_float_attr("alpha", 1.0), ulps=8),
    _point("sigmoid", 1, "1 / (1 + exp(-x))", numeric.sigmoid, "ck_rcp(1.0f + ck_exp(-{0}))",
           ulps=10),
    _point("silu", 1, "x sigmoid(x)", numeric.silu, "{0} * ck_rcp(1.0f + ck_exp(-{0}))", ulps=12),
    _point("gelu", 1, "0.5 x (1 + erf(x / sqrt 2))", numeric.gelu,
           "0.5f * {0} * (1.0f + ck_erf({0} * 0.70710678f))", ulps=12, scale=_magnitude),
    _point("gelu_tanh", 1, "gelu in its tanh form", numeric.gelu_tanh,
           "0.5f * {0} * (1.0f + ck_tanh(0.79788456f * ({0} + 0.044715f * {0} * {0} * {0})))",
           ulps=16, scale=_magnitude),
    _point("softplus", 1, "log(1 + exp(x))", numeric.softplus,
           "ck_max({0}, 0.0f) + ck_log1p(ck_exp(-ck_abs({0})))", ulps=12),
    _point("mish", 1, "x tanh(softplus(x))", lambda x: x * np.tanh(numeric.softplus(x)),
           "{0} * ck_tanh(ck_max({0}, 0.0f) + ck_log1p(ck_exp(-ck_abs({0}))))", ulps=24),
    _point("hardsigmoid", 1, "clamp(x / 6 + 1/2, 0, 1)", numeric.hardsigmoid,
           "ck_min(ck_max({0} * 0.16666667f + 0.5f, 0.0f), 1.0f)", ulps=4, scale=_one),
    _point("hardswish", 1, "x hardsigmoid(x)", lambda x: x * numeric.hardsigmoid(x),
           "{0} * ck_min(ck_max({0} * 0.16666667f + 0.5f, 0.0f), 1.0f)", ulps=6, scale=_magnitude),
    _point("softsign", 1, "x / (1 + |x|)", lambda x: x / (1 + np.abs(x)),
           "{0} / (1.0f + ck_abs({0}))", ulps=6),
)  # fmt: skip

_CHOICES = (
    _compare("lt", "x < y", np.less, "{0} < {1}"),
    _compare("le", "x <= y", np.less_equal, "{0} <= {1}"),
    _compare("gt", "x > y", np.greater, "{0} > {1}"),
    _compare("ge", "x >= y", np.greater_equal, "{0} >= {1}"),
    _compare("eq", "x == y", np.equal, "{0} == {1}"),
    _compare("ne", "x != y", np.not_equal, "{0} != {1}"),
    _classify("isnan", "whether x is nan", np.isnan),
    _classify("isfinite", "whether x is neither infinite nor nan", np.isfinite),
    _classify("isinf", "whether x is infinite, of either sign", np.isinf),
    _classify("signbit", "whether the sign of x is minus, of -0.0 and nan too", np.signbit),
    _logical("logical_and", "whether both are true", np.logical_and, "{0} && {1}"),
    _logical("logical_or", "whether one or both are true", np.logical_or, "{0} || {1}"),
    _logical("logical_xor", "one of the two", np.logical_xor, "{0} != {1}"),
    _point("logical_not", 1, "whether x is false", np.logical_not, "!{0}",
           dtype=rules.LOGICAL_DTYPE),
    _point("where", 3, "x where the condition is true, else y", np.where, "{0} ? {1} : {2}",
           c_int="{0} ? {1} : {2}", dtype=rules.SELECT_DTYPE),
)  # fmt: skip

POINTWISE = (*_ARITHMETIC, *_BITS, *_FUNCTIONS, *_WIDE_FUNCTIONS, *_ACTIVATIONS, *_CHOICES)
"""All of them."""
