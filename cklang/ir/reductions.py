# SPDX-License-Identifier: MIT
"""Axes reduced to one number each: rules of types and the NumPy meaning."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from types import MappingProxyType

import numpy as np

from cklang.errors import error
from cklang.ir.nodes import Attr, Operation
from cklang.ir.numeric import Array
from cklang.ir.rules import DTypeRule, Shape, ShapeRule
from cklang.types import DType, bf16, f16, f32, i32

REDUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "reduce_sum",
        "mean": "reduce_mean",
        "max": "reduce_max",
        "amax": "reduce_max",
        "min": "reduce_min",
        "prod": "reduce_prod",
        "argmax": "reduce_argmax",
        "argmin": "reduce_argmin",
    }
)
"""The ops by what they do with a row, as NumPy calls it."""

NEED_ELEMENTS = frozenset(
    ("reduce_max", "reduce_min", "reduce_mean", "reduce_argmax", "reduce_argmin")
)
"""The ops that mean nothing where there is no element; a sum is 0 and a product 1."""

SINGLE_AXIS = frozenset(("reduce_argmax", "reduce_argmin"))
"""The ops that reduce one axis, since their result is an index along it."""

MOST_AXES = 5
"""The axes of a tensor that is reduced, at most."""

ROW_DTYPES = (f16, bf16, f32)
"""The floats that are reduced; the arithmetic is f32."""

_I32 = np.iinfo(np.int32)
# What the maximum and the minimum of no element are, by the kind of number.
_LEAST = {"f": -np.inf, "i": _I32.min}
_GREATEST = {"f": np.inf, "i": _I32.max}


def wrapped(x: Array) -> Array:
    """Return integers as i32 arithmetic that wraps gives them; floats as they are."""
    return x if x.dtype.kind == "f" else np.asarray(x.astype(np.int32), np.int64)


def reduced_extents(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """Return how many elements are reduced to one."""
    return int(np.prod([shape[axis] for axis in axes], dtype=np.int64))


def _sum(x: Array, axes: tuple[int, ...]) -> Array:
    return wrapped(np.asarray(np.sum(x, axis=axes)))


def _prod(x: Array, axes: tuple[int, ...]) -> Array:
    return wrapped(np.asarray(np.prod(x, axis=axes)))


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    # In these words, since NumPy's mean warns of no element and this is nan without a warning.
    count = np.asarray(reduced_extents(x.shape, axes), x.dtype)
    return np.asarray(np.sum(x, axis=axes) / count)


def _max(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.max(x, axis=axes, initial=_LEAST[x.dtype.kind]))


def _min(x: Array, axes: tuple[int, ...]) -> Array:
    return np.asarray(np.min(x, axis=axes, initial=_GREATEST[x.dtype.kind]))


def _argmax(x: Array, axes: tuple[int, ...]) -> Array:
    return _index(np.argmax, x, axes)


def _argmin(x: Array, axes: tuple[int, ...]) -> Array:
    return _index(np.argmin, x, axes)


def _index(function: Callable[..., Array], x: Array, axes: tuple[int, ...]) -> Array:
    (axis,) = axes
    if x.shape[axis] == 0:
        return np.zeros((*x.shape[:axis], *x.shape[axis + 1 :]), np.int64)
    return np.asarray(function(x, axis=axis), np.int64)


MEANINGS: Mapping[str, Callable[[Array, tuple[int, ...]], Array]] = MappingProxyType(
    {
        "reduce_sum": _sum,
        "reduce_mean": _mean,
        "reduce_max": _max,
        "reduce_min": _min,
        "reduce_prod": _prod,
        "reduce_argmax": _argmax,
        "reduce_argmin": _argmin,
    }
)
"""What each op computes of an array and the axes that it drops."""


def read_axes(axis: object, rank: int, *, is_single: bool = False) -> tuple[int, ...]:
    """Return the axes that ``axis`` names as NumPy's functions do, ascending.

    Args:
        axis: None for all axes, an axis, or a tuple of axes; negative ones count from the end.
        rank: How many axes there are.
        is_single: Whether it must be one axis.

    Example:
        >>> read_axes((-1, 0), 3)
        (0, 2)
    """
    if axis is None:
        axes = tuple(range(rank))
    else:
        axes = tuple(_axis(item, rank) for item in (axis if isinstance(axis, tuple) else (axis,)))
    if not axes:
        raise ValueError("axis names no axis", _AXIS_ADVICE)
    if is_single and len(axes) > 1:
        problem = f"axis is {axis}, but an index is one along one axis"
        raise ValueError(problem, "legal: an axis, as in axis=-1")
    if len(set(axes)) < len(axes):
        raise ValueError(f"axis is {axis}, which names an axis twice", _AXIS_ADVICE)
    return tuple(sorted(axes))


_AXIS_ADVICE = "legal: an axis, a tuple of different axes, or None for all"


def _axis(axis: object, rank: int) -> int:
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise ValueError(f"axis is {axis!r}", _AXIS_ADVICE)  # noqa: TRY004 - the caller's error
    if not -rank <= axis < rank:
        problem = f"axis is {axis}, but there are {rank} axes"
        raise ValueError(problem, f"legal: {-rank} to {rank - 1}")
    return int(axis) % rank


def _shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    (shape,), axes = shapes, attrs["axes"]
    if not isinstance(axes, tuple) or not axes or not 1 <= len(shape) <= MOST_AXES:
        return None
    places = [axis for axis in axes if isinstance(axis, int)]
    if places[0] < 0 or places[-1] >= len(shape) or any(a >= b for a, b in pairwise(places)):
        return None
    return tuple(extent for axis, extent in enumerate(shape) if axis not in places)


def _index_shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    axes = attrs["axes"]
    is_single = isinstance(axes, tuple) and len(axes) == 1
    return _shape(shapes, attrs, declared) if is_single else None


def _dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    (dtype,) = dtypes
    return i32 if dtype == i32 else _mean_dtype(dtypes, _attrs)


def _mean_dtype(dtypes: tuple[DType, ...], _attrs: Mapping[str, Attr]) -> DType | None:
    return f32 if dtypes[0] in ROW_DTYPES else None


REDUCED_SHAPE = ShapeRule(
    text=f"one to {MOST_AXES} axes; those in `axes`, ascending, are dropped",
    apply=_shape,
)
INDEX_SHAPE = ShapeRule(
    text=f"one to {MOST_AXES} axes; the one in `axes` is dropped", apply=_index_shape
)
REDUCE_DTYPE = DTypeRule(
    text="an operand of f16, bf16 or f32, which gives f32, or of i32, which gives i32", apply=_dtype
)
MEAN_DTYPE = DTypeRule(text="an operand of f16, bf16 or f32; gives f32", apply=_mean_dtype)
ARG_DTYPE = DTypeRule(
    text="an operand of f16, bf16, f32 or i32; gives i32",
    apply=lambda dtypes, _attrs: i32 if dtypes[0] in (*ROW_DTYPES, i32) else None,
)


def check(operation: Operation, dims: Mapping[str, int]) -> None:
    """Check that an op of :data:`NEED_ELEMENTS` has an element to reduce.

    Raises:
        CkValueError: I048, the axes that are reduced have none.
    """
    shape = operation.operands[0].type.extents(dims)
    axes = reduced_axes(operation)
    if not all(shape[axis] for axis in axes):
        raise error(
            "I048",
            at=operation.span,
            name=operation.op.removeprefix("reduce_"),
            axes=", ".join(map(str, axes)),
            shape=shape,
        )


def reduced_axes(operation: Operation) -> tuple[int, ...]:
    """Return the axes of its operand that an operation reduces, ascending; none of another op."""
    if operation.op not in MEANINGS:
        return ()
    axes = operation.attr("axes")
    items = axes if isinstance(axes, tuple) else (axes,)
    return tuple(axis for axis in items if isinstance(axis, int))
