# SPDX-License-Identifier: MIT
"""The closed set of shape rules, dtype rules and attribute kinds that rows of the op table name.

A rule is its sentence, shown when it is broken, and a function that gives the result or None.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise, zip_longest
from typing import TypeAlias

from cklang.dims import is_integer
from cklang.ir.casts import CASTS
from cklang.ir.nodes import Attr, Function
from cklang.types import (
    Blocks,
    Dim,
    DType,
    Formula,
    Quotient,
    bf16,
    bool_,
    e8m0,
    extent_from_text,
    f16,
    f32,
    i4,
    i32,
    i64,
)
from cklang.widths import I32_MAX

Shape: TypeAlias = tuple[Dim | int, ...]
AttrMap: TypeAlias = Mapping[str, Attr]


class AttrKind(Enum):
    """What an attribute of a row holds; the value is how messages call it."""

    FLOAT = "a float"
    INT = "an integer"
    NUMBER = "a float, an integer or a bool"
    DTYPE = "a dtype"
    AXES = "a list of axis numbers"
    PAIRS = "a list of pairs of integers"
    EXTENTS = "a list of integers"
    REGION = "a function"
    NAMES = "a list of strings"
    BOUNDS = 'a list of integers and of extents as text, such as "K - 1"'
    SCALE = 'a float or "auto"'


def _is_ints(attr: Attr) -> bool:
    return isinstance(attr, tuple) and all(is_integer(item) for item in attr)


def _is_bound(attr: Attr) -> bool:
    if not isinstance(attr, str):
        return is_integer(attr)
    try:
        extent_from_text(attr)
    except ValueError:
        return False
    return True


_FITS: Mapping[AttrKind, Callable[[Attr], bool]] = {
    AttrKind.FLOAT: lambda attr: isinstance(attr, float),
    AttrKind.INT: is_integer,
    AttrKind.NUMBER: lambda attr: isinstance(attr, (bool, int, float)),
    AttrKind.DTYPE: lambda attr: isinstance(attr, DType),
    AttrKind.AXES: _is_ints,
    AttrKind.PAIRS: lambda attr: (
        isinstance(attr, tuple)
        and all(isinstance(item, tuple) and _is_ints(item) and len(item) == 2 for item in attr)
    ),
    AttrKind.EXTENTS: _is_ints,
    AttrKind.REGION: lambda attr: isinstance(attr, Function),
    AttrKind.NAMES: lambda attr: isinstance(attr, tuple) and all(isinstance(i, str) for i in attr),
    AttrKind.BOUNDS: lambda attr: isinstance(attr, tuple) and all(map(_is_bound, attr)),
    AttrKind.SCALE: lambda attr: isinstance(attr, (float, str)),
}


def attr_fits(kind: AttrKind, attr: Attr) -> bool:
    """Tell whether ``attr`` is of ``kind``."""
    return _FITS[kind](attr)


@dataclass(frozen=True, slots=True, kw_only=True)
class DTypeRule:
    """How the result's dtype follows from the operands'."""

    text: str
    apply: Callable[[tuple[DType, ...], AttrMap], DType | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRule:
    """How the result's shape follows from the operands'.

    ``apply`` takes the operands' shapes, the attributes and the declared result shape, which only
    a rule with ``declared`` may use: there the shape is written, not inferred.
    """

    text: str
    apply: Callable[[tuple[Shape, ...], AttrMap, Shape | None], Shape | None]
    declared: bool = False


def _same(dtypes: tuple[DType, ...], legal: tuple[DType, ...]) -> DType | None:
    return dtypes[0] if len(set(dtypes)) == 1 and dtypes[0] in legal else None


_NUMBERS = (f32, i32, i64)
_PRODUCTS = {"fp4": f32, "f16": f32, "bf16": f32, "f32": f32, "i8": i32}


def _gemm_dtype(dtypes: tuple[DType, ...], _attrs: AttrMap) -> DType | None:
    a, b = dtypes
    if b == i4:
        return f32 if a in (f16, bf16) or a.encoding else None
    if a.encoding or b.encoding:
        return f32 if a.encoding == b.encoding else None
    return _PRODUCTS.get(a.name) if a == b else None


def _select_dtype(dtypes: tuple[DType, ...], _attrs: AttrMap) -> DType | None:
    return _same(dtypes[1:], (*_NUMBERS, bool_)) if dtypes[0] == bool_ else None


_CONSTANT_TYPES: Mapping[type, DType] = {float: f32, int: i32, bool: bool_}


def _constant_dtype(_dtypes: tuple[DType, ...], attrs: AttrMap) -> DType | None:
    value = attrs["value"]
    if type(value) is int and not -I32_MAX - 1 <= value <= I32_MAX:
        return i64 if -(1 << 63) <= value < 1 << 63 else None
    return _CONSTANT_TYPES[type(value)]


def _cast_dtype(dtypes: tuple[DType, ...], attrs: AttrMap) -> DType | None:
    to = attrs["to"]
    return to if isinstance(to, DType) and (dtypes[0], to) in CASTS else None


def _scaled_dtype(dtypes: tuple[DType, ...], attrs: AttrMap) -> DType | None:
    product = _gemm_dtype(dtypes[:2], attrs)
    scales = dtypes[2:]
    return f32 if product and _same(scales, (f32, e8m0)) else None


GEMM_DTYPE = DTypeRule(
    text="both operands f16, both bf16, both f32 or 8-bit floats of one encoding, which gives f32; "
    "or both i8, which gives i32; f16, bf16 or 8-bit floats by i4, and fp4 by fp4, give f32",
    apply=_gemm_dtype,
)
CONTRACT_DTYPE = DTypeRule(
    text="both operands f16, both bf16, both f32 or 8-bit floats of one encoding, which gives f32; "
    "or both i8, which gives i32; elements of 4 bits only in products of matrices with one summed "
    "axis",
    apply=lambda dtypes, attrs: (
        None if any(dtype.packed for dtype in dtypes) else _gemm_dtype(dtypes, attrs)
    ),
)
SPARSE_DTYPE = DTypeRule(
    text="both operands f16, which gives f32",
    apply=lambda dtypes, _: f32 if _same(dtypes, (f16,)) else None,
)
SCALED_DTYPE = DTypeRule(
    text="operands that gemm takes, and scales all f32 or all e8m0; gives f32", apply=_scaled_dtype
)
FLOAT_DTYPE = DTypeRule(text="f32 operands", apply=lambda dtypes, _: _same(dtypes, (f32,)))
NUMBER_DTYPE = DTypeRule(
    text="operands all f32, all i32 or all i64", apply=lambda dtypes, _: _same(dtypes, _NUMBERS)
)
INTEGER_DTYPE = DTypeRule(
    text="operands all i32 or all i64", apply=lambda dtypes, _: _same(dtypes, (i32, i64))
)
COMPARE_DTYPE = DTypeRule(
    text="operands both f32, both i32 or both i64; gives bool",
    apply=lambda dtypes, _: bool_ if _same(dtypes, _NUMBERS) else None,
)
CLASSIFY_DTYPE = DTypeRule(
    text="an f32 operand; gives bool",
    apply=lambda dtypes, _: bool_ if _same(dtypes, (f32,)) else None,
)
LOGICAL_DTYPE = DTypeRule(text="bool operands", apply=lambda dtypes, _: _same(dtypes, (bool_,)))
SELECT_DTYPE = DTypeRule(
    text="a bool, then two operands both f32, both i32, both i64 or both bool", apply=_select_dtype
)
CONSTANT_DTYPE = DTypeRule(
    text="a float gives f32, an integer of 32 bits i32, a longer one i64, a bool bool",
    apply=_constant_dtype,
)
CAST_DTYPE = DTypeRule(
    text="from floats of 8 to 32 bits, i8, i32, i64 or bool to the same", apply=_cast_dtype
)
KEEP_DTYPE = DTypeRule(text="any dtype, kept", apply=lambda dtypes, _: dtypes[0])


def _same_shape(
    shapes: tuple[Shape, ...], _attrs: AttrMap, _declared: Shape | None
) -> Shape | None:
    return shapes[0] if len(set(shapes)) == 1 else None


def _gemm_shape(
    shapes: tuple[Shape, ...], _attrs: AttrMap, _declared: Shape | None
) -> Shape | None:
    a, b = shapes
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        return None
    batch = common_shape(a[:-2], b[:-2])
    return None if batch is None else (*batch, a[-2], b[-1])


def covers(count: Dim | int, extent: Dim | int, size: int) -> bool:
    """Tell whether ``count`` is the number of blocks of ``size`` that cover ``extent``.

    Where the count is computed, as K//128, it may be that number, and the call checks it.
    """
    if isinstance(count, Formula | Quotient):
        return True
    if isinstance(extent, Dim):
        return count == (extent if size == 1 else Blocks.of_dim(extent, size))
    return count == -(-extent // size)


def _scaled_shape(
    shapes: tuple[Shape, ...], attrs: AttrMap, _declared: Shape | None
) -> Shape | None:
    operands, scales = shapes[:2], shapes[2:]
    return _gemm_shape(operands, attrs, None) if are_blocked(operands, scales, attrs) else None


def are_blocked(operands: Sequence[Shape], scales: Sequence[Shape], attrs: AttrMap) -> bool:
    """Tell whether a product's operands have the scales that block_a and block_b say."""
    blocks = [_block(attrs[name]) for name in ("block_a", "block_b")]
    scaled = [(o, b) for o, b in zip(operands, blocks, strict=True) if b]
    if not scaled or len(scaled) != len(scales):
        return False
    along_k = {block[axis] for axis, block in ((-1, blocks[0]), (0, blocks[1])) if block}
    return len(along_k) == 1 and all(
        _blocked(scale, operand, block)
        for scale, (operand, block) in zip(scales, scaled, strict=True)
    )


def _block(attr: Attr) -> tuple[int, ...]:
    return tuple(item for item in attr if isinstance(item, int)) if isinstance(attr, tuple) else ()


def _blocked(scale: Shape, operand: Shape, block: tuple[int, ...]) -> bool:
    """Tell whether ``scale`` has one element for each ``block`` of the matrices of ``operand``."""
    if len(block) != 2 or min(block) < 1 or len(scale) != len(operand):
        return False
    axes = zip(scale[-2:], operand[-2:], block, strict=True)
    return scale[:-2] == operand[:-2] and all(covers(*axis) for axis in axes)


def common_shape(*shapes: Shape) -> Shape | None:
    """Return the shape that all ``shapes`` broadcast to as in NumPy, or None if they do not."""
    result: list[Dim | int] = []
    for extents in zip_longest(*(shape[::-1] for shape in shapes), fillvalue=1):
        longer = {extent for extent in extents if extent != 1}
        if len(longer) > 1:
            return None
        result.append(longer.pop() if longer else 1)
    return tuple(reversed(result))


def _transpose_shape(
    shapes: tuple[Shape, ...], attrs: AttrMap, _declared: Shape | None
) -> Shape | None:
    perm = attrs["perm"]
    if not isinstance(perm, tuple) or sorted(perm) != list(range(len(shapes[0]))):  # type: ignore[type-var]
        return None
    return tuple(shapes[0][axis] for axis in perm if isinstance(axis, int))


def _broadcast_shape(
    shapes: tuple[Shape, ...], attrs: AttrMap, declared: Shape | None
) -> Shape | None:
    dims = attrs["dims"]
    if declared is None or not isinstance(dims, tuple) or len(dims) != len(shapes[0]):
        return None
    axes = [axis for axis in dims if isinstance(axis, int)]
    rising = all(low < high for low, high in pairwise(axes))
    inside = all(0 <= axis < len(declared) for axis in axes)
    if not rising or not inside:
        return None
    pairs = zip(shapes[0], (declared[axis] for axis in axes), strict=True)
    return declared if all(extent in (1, result) for extent, result in pairs) else None


SAME_SHAPE = ShapeRule(text="operands of one shape", apply=_same_shape)
GEMM_SHAPE = ShapeRule(
    text="[M, K] and [K, N] give [M, N]; axes before them are broadcast as in NumPy",
    apply=_gemm_shape,
)
SCALED_SHAPE = ShapeRule(
    text="the shapes of gemm, then one scale for each of block_a and block_b that is not []: with "
    "the axes of its operand, as many elements along the last two as blocks cover them; blocks of "
    "both are equally long along K",
    apply=_scaled_shape,
)
TRANSPOSE_SHAPE = ShapeRule(
    text="perm names each axis of the operand once; result axis i is operand axis perm[i]",
    apply=_transpose_shape,
)
BROADCAST_SHAPE = ShapeRule(
    text="dims rises, one entry for each operand axis: the result axis with the same extent, "
    "or any extent where the operand's is 1",
    apply=_broadcast_shape,
    declared=True,
)
SCALAR_SHAPE = ShapeRule(text="rank 0", apply=lambda _shapes, _attrs, _declared: ())
