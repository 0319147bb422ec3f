# SPDX-License-Identifier: MIT
"""The op table: one row is everything cklang knows about an op.

Adding a pointwise op is adding a row; parser, verifier, frontend names, reference, fusion and
lowering read it here.

C expressions: ``{0}``, ``{1}``… are local variables (constants too: a variable each),
``{slope}`` is an attribute as a literal. f32, f16 and bf16 values are ``float`` variables (a narrow
value is a float that the narrow type can hold), i8 and i32 values ``int``, bool values ``bool``.
Beside C's operators they use only the helpers of ``lowering/include/cklang/math.h`` and
``divide.h``. An op works on i32 when it has a ``c_i32``; i32 arithmetic wraps, as NumPy's does.

NumPy meanings take arrays (float64 or float32 for f32 values, int64 for i32, bool) and the
attributes by name. Float attributes are f32 numbers: 0.1 means the f32 nearest to 0.1.

``ulps`` says how far the f32 code of a kernel may be from the exact function: ``ulps`` times
2**-24 times ``scale(operands…, attributes…)``, which is the result's magnitude unless the row
says otherwise because the usual formula cancels on the way. 0 is exact, and so is every result
whose magnitude is less than ``exact_below``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from cklang.errors import CkError
from cklang.ir import (
    attention,
    attention_gradients,
    block_results,
    contraction,
    convolution,
    extents,
    indices,
    joins,
    log_sums,
    numeric,
    order,
    reductions,
    rules,
    scatter,
    views,
)
from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.rules import AttrKind, DTypeRule, ShapeRule
from cklang.source import Span
from cklang.types import TensorType

__all__ = ["OPS", "AttrRow", "Kind", "Op"]


class Kind(Enum):
    """What an op is to fusion."""

    ANCHOR = "anchor"
    ATTENTION = "attention"
    SHAPE = "shape"
    CAST = "cast"
    CONSTANT = "constant"
    POINTWISE = "pointwise"
    READ = "read"
    EXTENT = "extent"
    INDEX = "index"
    GATHER = "gather"
    VIEW = "view"
    JOIN = "join"
    PARTIAL = "partial"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttrRow:
    """One attribute: its name, what it holds, and the default of the user's function, if any.

    The IR has no defaults: an operation writes all its attributes.
    """

    name: str
    kind: AttrKind
    default: Attr | None = None


def _nothing_more(
    _types: Sequence[TensorType], _attrs: Mapping[str, Attr], _at: Span | None
) -> Iterator[CkError]:
    yield from ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """One row.

    ``check`` yields what is wrong with a use beyond what the rules of dtype and shape say.
    """

    name: str
    operands: int
    optional: int = 0
    """How many operands more it may have."""
    kind: Kind
    doc: str
    numpy: Callable[..., Array]
    attrs: tuple[AttrRow, ...] = ()
    shape: ShapeRule = rules.SAME_SHAPE
    dtype: DTypeRule = rules.FLOAT_DTYPE
    c: str | None = None
    c_i32: str | None = None
    ulps: float = 0.0
    scale: Callable[..., Array] | None = None
    exact_below: float = 0.0
    commutative: bool = False
    check: Callable[[Sequence[TensorType], Mapping[str, Attr], Span | None], Iterator[CkError]] = (
        _nothing_more
    )


def _point(
    name: str, operands: int, doc: str, numpy: Callable[..., Array], c: str | None, **more: Any
) -> Op:
    if "c_i32" in more and "dtype" not in more:
        more["dtype"] = rules.NUMBER_DTYPE
    return Op(name=name, operands=operands, kind=Kind.POINTWISE, doc=doc, numpy=numpy, c=c, **more)


def _compare(name: str, doc: str, numpy: Callable[..., Array], c: str) -> Op:
    return _point(name, 2, doc, numpy, c, c_i32=c, dtype=rules.COMPARE_DTYPE)


def _bits(name: str, operands: int, doc: str, numpy: Callable[..., Array], c_i32: str) -> Op:
    """Return the row of an op of i32 alone."""
    dtype = rules.INTEGER_DTYPE
    commutative = name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    return _point(
        name, operands, doc, _wrap(numpy), None, c_i32=c_i32, dtype=dtype, commutative=commutative
    )


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


def _wrap(numpy: Callable[..., Array]) -> Callable[..., Array]:
    """Make integer arithmetic wrap at 32 bits; floats pass."""

    def wrapped(*operands: Array) -> Array:
        result = numpy(*operands)
        return result if result.dtype.kind == "f" else result.astype(np.int32).astype(np.int64)

    return wrapped


def _convolution(name: str, doc: str) -> Op:
    kinds = {"stride": AttrKind.EXTENTS, "padding": AttrKind.PAIRS, "dilation": AttrKind.EXTENTS}
    rows = (AttrRow(name=attr, kind=kind) for attr, kind in kinds.items())
    return Op(
        name=name,
        operands=2,
        kind=Kind.ANCHOR,
        doc=doc,
        numpy=convolution.numpy_of(name),
        attrs=(*rows, AttrRow(name="groups", kind=AttrKind.INT)),
        shape=convolution.SHAPES[name],
        dtype=rules.GEMM_DTYPE,
    )


_ANCHORS = (
    Op(
        name="gemm",
        operands=2,
        kind=Kind.ANCHOR,
        doc="the matrix products of a[…, M, K] and b[…, K, N], summed in f32, of integers in i32",
        numpy=_wrap(np.matmul),
        shape=rules.GEMM_SHAPE,
        dtype=rules.GEMM_DTYPE,
    ),
    Op(
        name="contract",
        operands=2,
        kind=Kind.ANCHOR,
        doc="gemm over several axes or none: the sums over K... of a[…, M, K...] b[…, K..., N]; "
        "without M if rows is 0, without N if columns is 0",
        numpy=contraction.contract,
        attrs=tuple(
            AttrRow(name=name, kind=AttrKind.INT) for name in ("rows", "columns", "summed")
        ),
        shape=contraction.CONTRACTION_SHAPE,
        dtype=rules.CONTRACT_DTYPE,
    ),
    _convolution("conv", "the convolution of x[N, …, C] by w[K, …, C/G] in one to three axes"),
    _convolution("conv_grad_input", "the gradient of conv by its input: of dy[N, …, K] and w"),
    _convolution("conv_grad_weight", "the gradient of conv by its weight: of x[N, …, C] and dy"),
    Op(
        name="gemm24",
        operands=2,
        kind=Kind.ANCHOR,
        doc="gemm of a matrix a of which, in each four along K, the first two not zero count",
        numpy=lambda a, b: np.matmul(numeric.kept24(a), b),
        shape=rules.GEMM_SHAPE,
        dtype=rules.SPARSE_DTYPE,
    ),
    Op(
        name="scaled_gemm",
        operands=3,
        optional=1,
        kind=Kind.ANCHOR,
        doc="gemm(a, b) of which the sum over each block of K is multiplied by the block's scales: "
        "a scale of a (block_a: rows, K), one of b (block_b: K, columns), or both; [] for none",
        numpy=numeric.scaled_gemm,
        attrs=(
            AttrRow(name="block_a", kind=AttrKind.EXTENTS),
            AttrRow(name="block_b", kind=AttrKind.EXTENTS),
        ),
        shape=rules.SCALED_SHAPE,
        dtype=rules.SCALED_DTYPE,
    ),
)


def _reduction(
    name: str,
    doc: str,
    *,
    shape: ShapeRule = reductions.REDUCED_SHAPE,
    dtype: DTypeRule = reductions.REDUCE_DTYPE,
) -> Op:
    return Op(
        name=name,
        operands=1,
        kind=Kind.ANCHOR,
        doc=doc,
        numpy=reductions.MEANINGS[name],
        attrs=(AttrRow(name="axes", kind=AttrKind.AXES),),
        shape=shape,
        dtype=dtype,
    )


_REDUCTIONS = (
    _reduction("reduce_sum", "the sum along axes, in f32 or wrapping i32; 0 for no elements"),
    _reduction(
        "reduce_mean",
        "the mean along axes, in f32",
        dtype=reductions.MEAN_DTYPE,
    ),
    _reduction(
        "reduce_max",
        "the greatest along axes; nan if there is one",
    ),
    _reduction(
        "reduce_min",
        "the least along axes; nan if there is one",
    ),
    _reduction("reduce_prod", "the product along axes, in f32 or wrapping i32; 1 for no elements"),
    _reduction(
        "reduce_argmax",
        "the index of the greatest along one axis, the first of several, of the first nan if there "
        "is one",
        shape=reductions.INDEX_SHAPE,
        dtype=reductions.ARG_DTYPE,
    ),
    _reduction(
        "reduce_argmin",
        "the index of the least along one axis, the first of several, of the first nan if there is "
        "one",
        shape=reductions.INDEX_SHAPE,
        dtype=reductions.ARG_DTYPE,
    ),
)

_SCATTER_ATTRS = tuple(
    AttrRow(name=name, kind=AttrKind.INT) for name in ("axis", scatter.IN_PLACE, scatter.UNORDERED)
)

_SCATTERS = (
    Op(
        name=scatter.SCATTER,
        operands=3,
        kind=Kind.ANCHOR,
        doc="a tensor with rows written at indices of an axis, the last one of equal indices, or "
        "any of them with `unordered`; indices outside of the axis write nothing",
        numpy=scatter.scattered,
        attrs=_SCATTER_ATTRS,
        shape=scatter.SCATTER_SHAPE,
        dtype=scatter.SCATTER_DTYPE,
        check=scatter.check,
    ),
    Op(
        name=scatter.SCATTER_ADD,
        operands=2,
        optional=1,
        kind=Kind.ANCHOR,
        doc="a tensor, or zeros, with rows added at indices along an axis, in f32 or wrapping i32, "
        "in order or, with `unordered`, in any; indices outside of the axis add nothing",
        numpy=scatter.scattered_sum,
        attrs=_SCATTER_ATTRS,
        shape=scatter.SCATTER_SHAPE,
        dtype=scatter.SCATTER_ADD_DTYPE,
        check=scatter.check,
    ),
)

_ORDER_ATTRS = tuple(
    AttrRow(name=name, kind=AttrKind.INT) for name in ("axis", order.COUNT, order.DESCENDING)
)

_ORDERS = (
    Op(
        name=order.CUMSUM,
        operands=1,
        kind=Kind.ANCHOR,
        doc="the sums of all elements up to each along an axis, in f32 or wrapping i32",
        numpy=order.cumsum,
        attrs=(AttrRow(name="axis", kind=AttrKind.INT),),
        shape=order.CUMSUM_SHAPE,
        dtype=order.CUMSUM_DTYPE,
    ),
    Op(
        name=order.CUMPROD,
        operands=1,
        kind=Kind.ANCHOR,
        doc="the products of all elements up to each along an axis, in f32 or wrapping i32",
        numpy=order.cumprod,
        attrs=(AttrRow(name="axis", kind=AttrKind.INT),),
        shape=order.CUMSUM_SHAPE,
        dtype=order.CUMSUM_DTYPE,
    ),
    Op(
        name=order.SORT,
        operands=1,
        kind=Kind.ANCHOR,
        doc="the elements along an axis in order, the first of them or all; nan is the greatest",
        numpy=order.in_order,
        attrs=_ORDER_ATTRS,
        shape=order.SORT_SHAPE,
        dtype=order.SORT_DTYPE,
    ),
    Op(
        name=order.ARGSORT,
        operands=1,
        kind=Kind.ANCHOR,
        doc="the indices of what sort gives; of equal elements the lowest index comes first",
        numpy=order.argsorted,
        attrs=_ORDER_ATTRS,
        shape=order.SORT_SHAPE,
        dtype=order.ARGSORT_DTYPE,
    ),
)

_ATTENTION_ATTRS = (
    AttrRow(name="dropout", kind=AttrKind.FLOAT),
    AttrRow(name="mask", kind=AttrKind.REGION),
    AttrRow(name="roles", kind=AttrKind.NAMES),
    AttrRow(name="scale", kind=AttrKind.SCALE),
    AttrRow(name="score", kind=AttrKind.REGION),
)

_ATTENTION = (
    Op(
        name="attention",
        operands=3,
        optional=attention.MOST_OPTIONAL,
        kind=Kind.ATTENTION,
        doc="the values v weighted by the softmax of the scores of q and k",
        numpy=attention.attend,
        attrs=_ATTENTION_ATTRS,
        shape=attention.OUTPUT_SHAPE,
        dtype=attention.INPUT_DTYPE,
        check=attention.check,
    ),
    Op(
        name="attention_lse",
        operands=3,
        optional=attention.MOST_OPTIONAL,
        kind=Kind.ATTENTION,
        doc="the logarithm of the sum of exponentials that attention divides by",
        numpy=attention.log_sum,
        attrs=_ATTENTION_ATTRS,
        shape=attention.LSE_SHAPE,
        dtype=attention.INPUT_DTYPE,
        check=attention.check,
    ),
    Op(
        name="element",
        operands=1,
        optional=attention.MOST_AXES,
        kind=Kind.READ,
        doc="one element of a tensor, at an index for each axis that is limited to the axis",
        numpy=attention.element,
        shape=attention.ELEMENT_SHAPE,
        dtype=attention.ELEMENT_DTYPE,
    ),
    *(
        Op(
            name=name,
            operands=3 + attention_gradients.MORE,
            optional=attention.MOST_OPTIONAL,
            kind=Kind.ATTENTION,
            doc=f"the gradient of attention by {side} (s: of each score), from that by o",
            numpy=attention_gradients.gradient(side),
            attrs=(
                AttrRow(name=attention_gradients.DERIVATIVE, kind=AttrKind.REGION),
                *_ATTENTION_ATTRS,
            ),
            shape=attention_gradients.shape_like(side),
            dtype=attention_gradients.GRADIENT_DTYPE,
            check=attention_gradients.check,
        )
        for name, side in attention_gradients.GRADIENTS.items()
    ),
)

_STRUCTURE = (
    Op(
        name="transpose",
        operands=1,
        kind=Kind.SHAPE,
        doc="axes in another order: result axis i is operand axis perm[i]",
        numpy=lambda x, perm: np.transpose(x, perm),
        attrs=(AttrRow(name="perm", kind=AttrKind.AXES),),
        shape=rules.TRANSPOSE_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    Op(
        name="broadcast",
        operands=1,
        kind=Kind.SHAPE,
        doc="repetition along axes: operand axis i is result axis dims[i], other axes repeat",
        # The evaluator passes the result's extents, which the IR declares in the type.
        numpy=lambda x, dims, shape: np.broadcast_to(
            np.expand_dims(x, tuple(axis for axis in range(len(shape)) if axis not in dims)), shape
        ),
        attrs=(AttrRow(name="dims", kind=AttrKind.AXES),),
        shape=rules.BROADCAST_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    Op(
        name=views.SLICE,
        operands=1,
        kind=Kind.VIEW,
        doc="part of a tensor: elements start, start + step, ... before stop along each axis",
        numpy=views.sliced,
        attrs=(
            AttrRow(name="axes", kind=AttrKind.AXES),
            *(AttrRow(name=name, kind=AttrKind.BOUNDS) for name in views.BOUND_NAMES),
            AttrRow(name="step", kind=AttrKind.EXTENTS),
        ),
        shape=views.SLICE_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    Op(
        name=views.RESHAPE,
        operands=1,
        kind=Kind.VIEW,
        doc="the elements in order, the last axis fastest, in another shape",
        numpy=views.reshaped,
        shape=views.RESHAPE_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    Op(
        name=views.APART,
        operands=1,
        kind=Kind.VIEW,
        doc="the same tensor in memory, between an op that is called apart and what is around it: "
        "no kernel computes parts of both",
        numpy=views.apart,
        attrs=(AttrRow(name="call", kind=AttrKind.INT),),
        shape=rules.SAME_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    *(
        Op(
            name=name,
            operands=1,
            kind=Kind.PARTIAL,
            doc=f"{what} of each {log_sums.COLUMNS} elements of the last axis, which the "
            "kernel of the operand stores in its place",
            numpy=numpy,
            shape=log_sums.LOG_SUMS_SHAPE,
        )
        for name, what, numpy in (
            (log_sums.LOG_SUMS, "the log-sum-exp", log_sums.log_sums),
            (log_sums.BLOCK_SUMS, "the sum", log_sums.block_sums),
            (log_sums.BLOCK_MAXIMA, "the largest", log_sums.block_maxima),
        )
    ),
    Op(
        name=block_results.BLOCK_PEAK,
        operands=1,
        kind=Kind.BLOCK,
        doc="for each element the largest of its block of columns",
        numpy=block_results.peak,
        attrs=(AttrRow(name="columns", kind=AttrKind.INT),),
    ),
    Op(
        name=block_results.BLOCK_FIRST,
        operands=1,
        kind=Kind.PARTIAL,
        doc="a number for each block of columns, which the kernel of the operand stores",
        numpy=block_results.first,
        attrs=(AttrRow(name="columns", kind=AttrKind.INT),),
        shape=block_results.BLOCK_FIRST_SHAPE,
        dtype=rules.KEEP_DTYPE,
    ),
    *(
        Op(
            name=name,
            operands=1,
            optional=joins.MOST_PARTS - 1,
            kind=Kind.JOIN,
            doc=doc,
            numpy=numpy,
            attrs=(AttrRow(name="axis", kind=AttrKind.INT),),
            shape=shape,
            dtype=joins.JOIN_DTYPE,
        )
        for name, doc, numpy, shape in (
            (
                joins.CONCAT,
                "tensors one after the other along an axis",
                joins.concatenated,
                joins.CONCAT_SHAPE,
            ),
            (
                joins.STACK,
                "tensors one after the other along a new axis",
                joins.stacked,
                joins.STACK_SHAPE,
            ),
        )
    ),
    Op(
        name="cast",
        operands=1,
        kind=Kind.CAST,
        doc="conversion to another dtype",
        numpy=numeric.cast,
        attrs=(AttrRow(name="to", kind=AttrKind.DTYPE),),
        dtype=rules.CAST_DTYPE,
    ),
    Op(
        name="constant",
        operands=0,
        kind=Kind.CONSTANT,
        doc="a number known when the kernel is built",
        numpy=lambda value: np.asarray(value),
        attrs=(AttrRow(name="value", kind=AttrKind.NUMBER),),
        shape=rules.SCALAR_SHAPE,
        dtype=rules.CONSTANT_DTYPE,
        c="{value}",
        c_i32="{value}",
    ),
    Op(
        name=extents.EXTENT,
        operands=1,
        kind=Kind.EXTENT,
        doc="the extent of an axis of a tensor, of which nothing else is read",
        numpy=extents.extent,
        attrs=(AttrRow(name="axis", kind=AttrKind.INT),),
        shape=extents.EXTENT_SHAPE,
        dtype=extents.EXTENT_DTYPE,
    ),
    Op(
        name=indices.ARANGE,
        operands=0,
        kind=Kind.INDEX,
        doc="the index of each element along an axis: 0, 1, 2, ...",
        numpy=indices.arange,
        shape=indices.ARANGE_SHAPE,
        dtype=indices.ARANGE_DTYPE,
    ),
    Op(
        name=indices.TAKE,
        operands=2,
        kind=Kind.GATHER,
        doc="a tensor at indices along an axis, each limited to the axis",
        numpy=indices.taken,
        attrs=(AttrRow(name="axis", kind=AttrKind.INT),),
        shape=indices.TAKE_SHAPE,
        dtype=indices.TAKE_DTYPE,
    ),
)

_ARITHMETIC = (
    _point(
        "add",
        2,
        "x + y",
        _wrap(np.add),
        "{0} + {1}",
        c_i32="(int)((unsigned){0} + (unsigned){1})",
        ulps=1,
        commutative=True,
    ),
    _point(
        "sub",
        2,
        "x - y",
        _wrap(np.subtract),
        "{0} - {1}",
        c_i32="(int)((unsigned){0} - (unsigned){1})",
        ulps=1,
    ),
    _point(
        "mul",
        2,
        "x * y",
        _wrap(np.multiply),
        "{0} * {1}",
        c_i32="(int)((unsigned){0} * (unsigned){1})",
        ulps=1,
        commutative=True,
    ),
    _point("div", 2, "x / y", np.divide, "{0} / {1}", ulps=4),
    _point(
        "floor_divide",
        2,
        "the integer at or below x / y; an integer divided by 0 gives 0, a float as x / 0",
        _wrap(np.floor_divide),
        "ck_floor_divide({0}, {1})",
        c_i32="ck_floor_divide_i32({0}, {1})",
        ulps=4,
        # Below, a quotient is off by less than 1, and the kernel corrects it by its remainder.
        exact_below=2.0**22,
    ),
    _point(
        "mod",
        2,
        "x - floor_divide(x, y) * y, which has the sign of y; of an integer and 0, 0, "
        "of a float and 0, nan",
        _wrap(np.mod),
        "ck_mod({0}, {1})",
        c_i32="ck_mod_i32({0}, {1})",
        ulps=1,
    ),
    _point("neg", 1, "-x", _wrap(np.negative), "-{0}", c_i32="(int)(0u - (unsigned){0})"),
    _point(
        "abs",
        1,
        "the magnitude",
        _wrap(np.abs),
        "ck_abs({0})",
        c_i32="{0} < 0 ? (int)(0u - (unsigned){0}) : {0}",
    ),
    _point("reciprocal", 1, "1 / x", lambda x: 1 / x, "ck_rcp({0})", ulps=4),
    _point("square", 1, "x * x", np.square, "{0} * {0}", ulps=1),
    _point(
        "minimum",
        2,
        "the lesser; nan if either is",
        np.minimum,
        "ck_min({0}, {1})",
        c_i32="{0} < {1} ? {0} : {1}",
        commutative=True,
    ),
    _point(
        "maximum",
        2,
        "the greater; nan if either is",
        np.maximum,
        "ck_max({0}, {1})",
        c_i32="{0} > {1} ? {0} : {1}",
        commutative=True,
    ),
    _point(
        "clamp",
        1,
        "minimum(maximum(x, lo), hi); nan stays nan",
        _clamp,
        "ck_min(ck_max({0}, {lo}), {hi})",
        attrs=_float_attr("lo") + _float_attr("hi"),
    ),
    _point("floor", 1, "x rounded down to an integer", np.floor, "ck_floor({0})"),
    _point("ceil", 1, "x rounded up to an integer", np.ceil, "-ck_floor(-{0})"),
    _point("round", 1, "the nearest integer; of two, the even one", np.rint, "ck_rint({0})"),
    _point(
        "trunc",
        1,
        "x rounded toward 0 to an integer",
        np.trunc,
        "ck_copysign(ck_floor(ck_abs({0})), {0})",
    ),
    _point(
        "sign",
        1,
        "-1, 0 or 1; nan stays nan",
        np.sign,
        "{0} > 0.0f ? 1.0f : {0} < 0.0f ? -1.0f : {0}",
        c_i32="({0} > 0) - ({0} < 0)",
    ),
)

_BITS = (
    _bits("bitwise_and", 2, "the bits that x and y both have", np.bitwise_and, "{0} & {1}"),
    _bits("bitwise_or", 2, "the bits that x or y has", np.bitwise_or, "{0} | {1}"),
    _bits("bitwise_xor", 2, "the bits that one of x and y has", np.bitwise_xor, "{0} ^ {1}"),
    _bits("bitwise_not", 1, "the bits that x has not: -x - 1", np.bitwise_not, "~{0}"),
    _bits(
        "left_shift",
        2,
        "x times 2 to the y, wrapped; 0 where y is not from 0 to 31",
        np.left_shift,
        "(unsigned){1} < 32u ? (int)((unsigned){0} << {1}) : 0",
    ),
    _bits(
        "right_shift",
        2,
        "the integer at or below x over 2 to the y; 0 or -1, by the sign of x, where y is not "
        "from 0 to 31",
        np.right_shift,
        "{0} >> ((unsigned){1} < 32u ? {1} : 31)",
    ),
)

_FUNCTIONS = (
    _point("pow", 2, "x to the y, as powf", np.power, "ck_pow({0}, {1})", ulps=8),
    _point("exp", 1, "e to the x", np.exp, "ck_exp({0})", ulps=4),
    _point("exp2", 1, "2 to the x", np.exp2, "ck_exp2({0})", ulps=4),
    _point("expm1", 1, "exp(x) - 1", np.expm1, "ck_expm1({0})", ulps=6),
    _point("log", 1, "natural logarithm", np.log, "ck_log({0})", ulps=4),
    _point("log2", 1, "logarithm to base 2", np.log2, "ck_log({0}) * 1.44269504f", ulps=8),
    _point("log1p", 1, "log(1 + x)", np.log1p, "ck_log1p({0})", ulps=8),
    _point("sqrt", 1, "square root", np.sqrt, "ck_sqrt({0})", ulps=4),
    _point("rsqrt", 1, "1 / sqrt(x)", lambda x: 1 / np.sqrt(x), "ck_rsqrt({0})", ulps=6),
    _point("tanh", 1, "hyperbolic tangent", np.tanh, "ck_tanh({0})", ulps=8),
    _point("erf", 1, "error function", numeric.erf, "ck_erf({0})", ulps=8),
)

_ACTIVATIONS = (
    _point(
        "relu",
        1,
        "x where x > 0, else 0; nan stays nan",
        lambda x: np.maximum(x, 0),
        "ck_max({0}, 0.0f)",
    ),
    _point(
        "leaky_relu",
        1,
        "x where x > 0, else slope x",
        lambda x, slope: np.where(x > 0, x, slope * x),
        "{0} > 0.0f ? {0} : {slope} * {0}",
        attrs=_float_attr("slope", 0.01),
        ulps=1,
    ),
    _point(
        "elu",
        1,
        "x where x > 0, else alpha (exp(x) - 1)",
        _elu,
        "{0} > 0.0f ? {0} : {alpha} * ck_expm1({0})",
        attrs=_float_attr("alpha", 1.0),
        ulps=8,
    ),
    _point(
        "sigmoid",
        1,
        "1 / (1 + exp(-x))",
        numeric.sigmoid,
        "ck_rcp(1.0f + ck_exp(-{0}))",
        ulps=10,
    ),
    _point(
        "silu",
        1,
        "x sigmoid(x)",
        numeric.silu,
        "{0} * ck_rcp(1.0f + ck_exp(-{0}))",
        ulps=12,
    ),
    _point(
        "gelu",
        1,
        "0.5 x (1 + erf(x / sqrt 2))",
        numeric.gelu,
        "0.5f * {0} * (1.0f + ck_erf({0} * 0.70710678f))",
        ulps=12,
        scale=_magnitude,
    ),
    _point(
        "gelu_tanh",
        1,
        "gelu in its tanh form",
        numeric.gelu_tanh,
        "0.5f * {0} * (1.0f + ck_tanh(0.79788456f * ({0} + 0.044715f * {0} * {0} * {0})))",
        ulps=16,
        scale=_magnitude,
    ),
    _point(
        "softplus",
        1,
        "log(1 + exp(x))",
        numeric.softplus,
        "ck_max({0}, 0.0f) + ck_log1p(ck_exp(-ck_abs({0})))",
        ulps=12,
    ),
    _point(
        "mish",
        1,
        "x tanh(softplus(x))",
        lambda x: x * np.tanh(numeric.softplus(x)),
        "{0} * ck_tanh(ck_max({0}, 0.0f) + ck_log1p(ck_exp(-ck_abs({0}))))",
        ulps=24,
    ),
    _point(
        "hardsigmoid",
        1,
        "clamp(x / 6 + 1/2, 0, 1)",
        numeric.hardsigmoid,
        "ck_min(ck_max({0} * 0.16666667f + 0.5f, 0.0f), 1.0f)",
        ulps=4,
        scale=_one,
    ),
    _point(
        "hardswish",
        1,
        "x hardsigmoid(x)",
        lambda x: x * numeric.hardsigmoid(x),
        "{0} * ck_min(ck_max({0} * 0.16666667f + 0.5f, 0.0f), 1.0f)",
        ulps=6,
        scale=_magnitude,
    ),
    _point(
        "softsign",
        1,
        "x / (1 + |x|)",
        lambda x: x / (1 + np.abs(x)),
        "{0} / (1.0f + ck_abs({0}))",
        ulps=6,
    ),
)

_CHOICES = (
    _compare("lt", "x < y", np.less, "{0} < {1}"),
    _compare("le", "x <= y", np.less_equal, "{0} <= {1}"),
    _compare("gt", "x > y", np.greater, "{0} > {1}"),
    _compare("ge", "x >= y", np.greater_equal, "{0} >= {1}"),
    _compare("eq", "x == y", np.equal, "{0} == {1}"),
    _compare("ne", "x != y", np.not_equal, "{0} != {1}"),
    _point("isnan", 1, "whether x is nan", np.isnan, "ck_isnan({0})", dtype=rules.CLASSIFY_DTYPE),
    _point(
        "logical_and",
        2,
        "whether both are true",
        np.logical_and,
        "{0} && {1}",
        dtype=rules.LOGICAL_DTYPE,
        commutative=True,
    ),
    _point(
        "logical_or",
        2,
        "whether one or both are true",
        np.logical_or,
        "{0} || {1}",
        dtype=rules.LOGICAL_DTYPE,
        commutative=True,
    ),
    _point(
        "logical_xor",
        2,
        "one of the two",
        np.logical_xor,
        "{0} != {1}",
        dtype=rules.LOGICAL_DTYPE,
        commutative=True,
    ),
    _point(
        "logical_not", 1, "whether x is false", np.logical_not, "!{0}", dtype=rules.LOGICAL_DTYPE
    ),
    _point(
        "where",
        3,
        "x where the condition is true, else y",
        np.where,
        "{0} ? {1} : {2}",
        c_i32="{0} ? {1} : {2}",
        dtype=rules.SELECT_DTYPE,
    ),
)

OPS: Mapping[str, Op] = MappingProxyType(
    {
        op.name: op
        for op in (
            *_ANCHORS,
            *_REDUCTIONS,
            *_SCATTERS,
            *_ORDERS,
            *_ATTENTION,
            *_STRUCTURE,
            *_ARITHMETIC,
            *_BITS,
            *_FUNCTIONS,
            *_ACTIVATIONS,
            *_CHOICES,
        )
    }
)
"""All ops by name."""
