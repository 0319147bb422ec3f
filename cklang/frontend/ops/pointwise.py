# SPDX-License-Identifier: MIT
"""The pointwise functions of the language, each an op of :mod:`cklang.ir.pointwise_ops`."""

from typing import Any

import numpy as np

from cklang.errors import error
from cklang.frontend import emit
from cklang.frontend.intrinsics import Intrinsic, function
from cklang.frontend.ops.arrays import as_array, as_arrays
from cklang.frontend.scope import Scope
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe, is_number
from cklang.ir import rules
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS
from cklang.types import DType, Kind, dtype_like, f32

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cast",
    "cbrt",
    "ceil",
    "clamp",
    "copysign",
    "cos",
    "cosh",
    "elu",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fmod",
    "gelu",
    "gelu_tanh",
    "hardsigmoid",
    "hardswish",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "leaky_relu",
    "log",
    "log1p",
    "log2",
    "log10",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mish",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "where",
]


def _pointwise(text: str) -> Intrinsic:
    """Register the function of an op, from its name with its operands and an example below.

    Attributes of the op are further parameters, which take constants.
    """
    head, _, example = text.partition(")\n")
    name, _, operands = head.partition("(")
    op, names = OPS[name], operands.split(", ")

    def appended(scope: Scope, node: Located, **arguments: Item) -> Tensor:
        items = [arguments.pop(operand) for operand in names]
        attrs = {
            attr: _attribute(scope, node, name, attr, item) for attr, item in arguments.items()
        }
        return emit.pointwise(scope, node, name, *items, **attrs)

    def computed(**arguments: Any) -> Any:
        arrays = as_arrays([arguments.pop(operand) for operand in names])
        if op.dtype is rules.FLOAT_DTYPE:
            # A number may be written as an integer; the op's meaning is of floats.
            arrays = [x.astype(np.float64) if x.dtype.kind in "iu" else x for x in arrays]
        return op.numpy(*arrays, **arguments)

    rows = [row.name if row.default is None else f"{row.name}={row.default!r}" for row in op.attrs]
    signature = ", ".join((*names, *rows))
    return Intrinsic(name, op.doc, appended, computed, example=example, signature=signature)


def _attribute(scope: Scope, node: Located, function: str, name: str, item: Item) -> Attr:
    if not is_number(item):
        raise scope.error("F063", node, name=name, function=function, got=describe(item))
    return emit.constant_number(scope, node, item, f32)


def _clamped(x: Any, lo: Any, hi: Any) -> Array:
    x, lo, hi = as_arrays((x, lo, hi))
    return np.asarray(np.minimum(np.maximum(x, lo), hi))


@function(
    OPS["clamp"].doc,
    eager=_clamped,
    example="""
    >>> ck.clamp(np.array([-3.0, 0.5, 3.0]), -1.0, 1.0)
    array([-1. ,  0.5,  1. ])
    """,
    explains_numpy=False,
)
def clamp(scope: Scope, node: Located, x: Item, lo: Item, hi: Item) -> Item:
    """Limit elements to constants, by one op, or to tensors."""
    is_float = not isinstance(x, Tensor) or x.dtype.kind is Kind.FLOAT
    if is_float and is_number(lo) and is_number(hi):
        bounds = {
            name: emit.constant_number(scope, node, bound, f32)
            for name, bound in (("lo", lo), ("hi", hi))
        }
        return emit.pointwise(scope, node, "clamp", x, **bounds)
    return emit.pointwise(scope, node, "minimum", emit.pointwise(scope, node, "maximum", x, lo), hi)


def _converted(x: Any, dtype: object) -> Array:
    if isinstance(dtype, np.dtype):  # that of another array
        if (known := dtype_like(dtype)) is None:
            return as_array(x).astype(dtype)
        dtype = known
    if not isinstance(dtype, DType):
        raise error("F057", what="the dtype of a cast", got=repr(dtype))
    return OPS["cast"].numpy(as_array(x), to=dtype).astype(dtype.numpy)


@function(
    OPS["cast"].doc,
    eager=_converted,
    example="""
    >>> ck.cast(np.array([2.9, -2.9]), ck.i32)
    array([ 2, -2], dtype=int32)
    >>> ck.cast(np.array([1 / 3, 70000.0]), ck.f16)
    array([0.3333,    inf], dtype=float16)
    """,
    explains_numpy=False,
)
def cast(scope: Scope, node: Located, x: Item, dtype: Item) -> Tensor:
    """Convert elements."""
    return emit.cast(scope, node, x, dtype)


where = _pointwise("""where(condition, x, y)
    >>> x = np.array([-1.0, 2.0])
    >>> ck.where(x > 0, x, 0.5 * x)
    array([-0.5,  2. ])
""")
atan2 = _pointwise("""atan2(y, x)
    >>> ck.atan2(np.array([1.0, 1.0]), np.array([1.0, -1.0])).round(3)
    array([0.785, 2.356])
""")
pow = _pointwise("""pow(x, y)
    >>> ck.pow(np.array([1.0, 2.0, 3.0]), 2.0)
    array([1., 4., 9.])
""")  # noqa: A001 - a name that NumPy has too
minimum = _pointwise("""minimum(x, y)
    >>> ck.minimum(np.array([-1.0, 2.0, np.nan]), 0.0)
    array([-1.,  0., nan])
""")
maximum = _pointwise("""maximum(x, y)
    >>> ck.maximum(np.array([-1.0, 2.0, np.nan]), 0.0)
    array([ 0.,  2., nan])
""")
hypot = _pointwise("""hypot(x, y)
    >>> ck.hypot(np.array([3.0, 0.0]), np.array([4.0, 2.0]))
    array([5., 2.])
""")
fmod = _pointwise("""fmod(x, y)
    >>> ck.fmod(np.array([-5.0, 5.5]), 3.0)
    array([-2. ,  2.5])
""")
copysign = _pointwise("""copysign(x, y)
    >>> ck.copysign(np.array([3.0, -3.0]), np.array([-1.0, 0.0]))
    array([-3.,  3.])
""")
logical_and = _pointwise("""logical_and(x, y)
    >>> x = np.array([-1.0, 0.5, 3.0])
    >>> ck.logical_and(x > 0, x < 1)
    array([False,  True, False])
""")
logical_or = _pointwise("""logical_or(x, y)
    >>> x = np.array([-1.0, 0.5, 3.0])
    >>> ck.logical_or(x < 0, x > 1)
    array([ True, False,  True])
""")
logical_xor = _pointwise("""logical_xor(x, y)
    >>> ck.logical_xor(np.array([True, True]), np.array([False, True]))
    array([ True, False])
""")
relu = _pointwise("""relu(x)
    >>> ck.relu(np.array([-1.0, 0.0, 2.0, np.nan]))
    array([ 0.,  0.,  2., nan])
""")
leaky_relu = _pointwise("""leaky_relu(x)
    >>> ck.leaky_relu(np.array([-2.0, 0.0, 2.0]), slope=0.1)
    array([-0.2,  0. ,  2. ])
""")
elu = _pointwise("""elu(x)
    >>> ck.elu(np.array([-1.0, 0.0, 2.0]), alpha=0.5).round(3)
    array([-0.316,  0.   ,  2.   ])
""")
gelu = _pointwise("""gelu(x)
    >>> ck.gelu(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.159,  0.   ,  0.841])
""")
gelu_tanh = _pointwise("""gelu_tanh(x)
    >>> ck.gelu_tanh(np.array([-1.0, 0.0, 1.0])).round(5)
    array([-0.15881,  0.     ,  0.84119])
""")
sigmoid = _pointwise("""sigmoid(x)
    >>> ck.sigmoid(np.array([-1.0, 0.0, 1.0])).round(3)
    array([0.269, 0.5  , 0.731])
""")
silu = _pointwise("""silu(x)
    >>> ck.silu(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.269,  0.   ,  0.731])
""")
softplus = _pointwise("""softplus(x)
    >>> ck.softplus(np.array([-1.0, 0.0, 100.0])).round(3)
    array([  0.313,   0.693, 100.   ])
""")
softsign = _pointwise("""softsign(x)
    >>> ck.softsign(np.array([-3.0, 0.0, 1.0]))
    array([-0.75,  0.  ,  0.5 ])
""")
mish = _pointwise("""mish(x)
    >>> ck.mish(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.303,  0.   ,  0.865])
""")
hardsigmoid = _pointwise("""hardsigmoid(x)
    >>> ck.hardsigmoid(np.array([-4.0, 0.0, 1.5, 4.0]))
    array([0.  , 0.5 , 0.75, 1.  ])
""")
hardswish = _pointwise("""hardswish(x)
    >>> ck.hardswish(np.array([-4.0, 0.0, 1.5, 4.0]))
    array([-0.   ,  0.   ,  1.125,  4.   ])
""")
tanh = _pointwise("""tanh(x)
    >>> ck.tanh(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.762,  0.   ,  0.762])
""")
erf = _pointwise("""erf(x)
    >>> ck.erf(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.843,  0.   ,  0.843])
""")
exp = _pointwise("""exp(x)
    >>> ck.exp(np.array([-1.0, 0.0, 1.0])).round(3)
    array([0.368, 1.   , 2.718])
""")
exp2 = _pointwise("""exp2(x)
    >>> ck.exp2(np.array([-1.0, 0.0, 3.0]))
    array([0.5, 1. , 8. ])
""")
expm1 = _pointwise("""expm1(x)
    >>> bool(ck.expm1(np.float64(1e-20)) == 1e-20)  # exp(x) - 1 would be 0
    True
""")
log = _pointwise("""log(x)
    >>> ck.log(np.array([0.0, 1.0, 10.0])).round(3)
    array([ -inf, 0.   , 2.303])
""")
log2 = _pointwise("""log2(x)
    >>> ck.log2(np.array([0.5, 1.0, 8.0]))
    array([-1.,  0.,  3.])
""")
log10 = _pointwise("""log10(x)
    >>> ck.log10(np.array([1.0, 1000.0]))
    array([0., 3.])
""")
log1p = _pointwise("""log1p(x)
    >>> bool(ck.log1p(np.float64(1e-20)) == 1e-20)  # log(1 + x) would be 0
    True
""")
sqrt = _pointwise("""sqrt(x)
    >>> ck.sqrt(np.array([1.0, 4.0, 9.0]))
    array([1., 2., 3.])
""")
rsqrt = _pointwise("""rsqrt(x)
    >>> ck.rsqrt(np.array([1.0, 4.0, 16.0]))
    array([1.  , 0.5 , 0.25])
""")
square = _pointwise("""square(x)
    >>> ck.square(np.array([-3.0, 0.5]))
    array([9.  , 0.25])
""")
cbrt = _pointwise("""cbrt(x)
    >>> ck.cbrt(np.array([-8.0, 0.0, 27.0]))
    array([-2.,  0.,  3.])
""")
sin = _pointwise("""sin(x)
    >>> ck.sin(np.array([0.0, np.pi / 6, np.pi / 2])).round(3)
    array([0. , 0.5, 1. ])
""")
cos = _pointwise("""cos(x)
    >>> ck.cos(np.array([0.0, np.pi / 3, np.pi])).round(3)
    array([ 1. ,  0.5, -1. ])
""")
tan = _pointwise("""tan(x)
    >>> ck.tan(np.array([0.0, np.pi / 4])).round(3)
    array([0., 1.])
""")
asin = _pointwise("""asin(x)
    >>> ck.asin(np.array([0.0, 0.5, 1.0])).round(3)
    array([0.   , 0.524, 1.571])
""")
acos = _pointwise("""acos(x)
    >>> ck.acos(np.array([0.0, 0.5, 1.0])).round(3)
    array([1.571, 1.047, 0.   ])
""")
atan = _pointwise("""atan(x)
    >>> ck.atan(np.array([-np.inf, 0.0, 1.0])).round(3)
    array([-1.571,  0.   ,  0.785])
""")
sinh = _pointwise("""sinh(x)
    >>> ck.sinh(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-1.175,  0.   ,  1.175])
""")
cosh = _pointwise("""cosh(x)
    >>> ck.cosh(np.array([-1.0, 0.0, 1.0])).round(3)
    array([1.543, 1.   , 1.543])
""")
asinh = _pointwise("""asinh(x)
    >>> ck.asinh(np.array([-1.0, 0.0, 1.0])).round(3)
    array([-0.881,  0.   ,  0.881])
""")
acosh = _pointwise("""acosh(x)
    >>> ck.acosh(np.array([1.0, 2.0, 10.0])).round(3)
    array([0.   , 1.317, 2.993])
""")
atanh = _pointwise("""atanh(x)
    >>> ck.atanh(np.array([-0.5, 0.0, 1.0])).round(3)
    array([-0.549,  0.   ,    inf])
""")
erfc = _pointwise("""erfc(x)
    >>> ck.erfc(np.array([-1.0, 0.0, 2.0])).round(4)
    array([1.8427, 1.    , 0.0047])
""")
reciprocal = _pointwise("""reciprocal(x)
    >>> ck.reciprocal(np.array([0.5, 2.0, -4.0]))
    array([ 2.  ,  0.5 , -0.25])
""")
abs = _pointwise("""abs(x)
    >>> ck.abs(np.array([-1.5, 0.0, 2.0]))
    array([1.5, 0. , 2. ])
""")  # noqa: A001 - a name that NumPy has too
neg = _pointwise("""neg(x)
    >>> ck.neg(np.array([-1.0, 2.0]))
    array([ 1., -2.])
""")
sign = _pointwise("""sign(x)
    >>> ck.sign(np.array([-2.5, 0.0, 7.0, np.nan]))
    array([-1.,  0.,  1., nan])
""")
floor = _pointwise("""floor(x)
    >>> ck.floor(np.array([-1.5, 0.2, 2.0]))
    array([-2.,  0.,  2.])
""")
ceil = _pointwise("""ceil(x)
    >>> ck.ceil(np.array([-1.5, 0.2, 2.0]))
    array([-1.,  1.,  2.])
""")
round = _pointwise("""round(x)
    >>> ck.round(np.array([0.5, 1.5, 2.4]))
    array([0., 2., 2.])
""")  # noqa: A001 - a name that NumPy has too
trunc = _pointwise("""trunc(x)
    >>> ck.trunc(np.array([-1.5, 0.2, 2.7]))
    array([-1.,  0.,  2.])
""")
isnan = _pointwise("""isnan(x)
    >>> ck.isnan(np.array([0.0, np.inf, np.nan]))
    array([False, False,  True])
""")
isinf = _pointwise("""isinf(x)
    >>> ck.isinf(np.array([0.0, -np.inf, np.nan]))
    array([False,  True, False])
""")
isfinite = _pointwise("""isfinite(x)
    >>> ck.isfinite(np.array([0.0, np.inf, np.nan]))
    array([ True, False, False])
""")
signbit = _pointwise("""signbit(x)
    >>> ck.signbit(np.array([1.0, -0.0, -2.0]))
    array([False,  True,  True])
""")
logical_not = _pointwise("""logical_not(x)
    >>> ck.logical_not(np.array([True, False]))
    array([False,  True])
""")
