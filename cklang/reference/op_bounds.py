# SPDX-License-Identifier: MIT
"""The bound rule of each op but attention: how far its result moves with its operands' errors.

:mod:`cklang.reference.bounds` says what is assumed of kernels, and applies these rules.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from cklang.ir import numeric
from cklang.ir.block_results import BLOCK_FIRST, BLOCK_PEAK
from cklang.ir.contraction import Contraction
from cklang.ir.convolution import geometry_of, summed
from cklang.ir.grouped import (
    GROUP_ENDS,
    GROUP_ORDER,
    GROUPED_GEMM,
    GROUPED_GEMM_K,
    SCALED_GROUPED_GEMM,
    group_bounds,
)
from cklang.ir.indices import GATHER_AXES
from cklang.ir.log_sums import BLOCK_MAXIMA, BLOCK_SUMS, COLUMNS, LOG_SUMS
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS, Kind, Op
from cklang.ir.rules import INTEGER_DTYPE
from cklang.ir.sampling import SAMPLE
from cklang.ir.windows import DIRECTIONS
from cklang.reference.evaluate import F32_OVERFLOW, apply, limit
from cklang.reference.order_bounds import GATE_BOUNDS, ORDER_BOUNDS, SCATTER_BOUNDS
from cklang.reference.row_bounds import ROW_BOUNDS
from cklang.reference.sample_bound import bound_sample
from cklang.reference.sums import UNIT, Known, Product, finite, float_sums, scaled_sums
from cklang.types import Dim, DType, f32, i8
from cklang.types import Kind as NumberKind

BoundRule: TypeAlias = Callable[[Operation, Sequence[Known], dict[Dim, int]], Known]
"""The result of an operation with its error, from its operands and the extents of dims."""

_LEAST_NORMAL = {
    "f16": 2.0**-14,
    "bf16": 2.0**-126,
    "f32": 2.0**-126,
    "f64": 2.0**-1022,
    # No unit flushes those of 8 bits.
    **dict.fromkeys(("fp4", "fp8", "bf8", "fp8_fnuz", "bf8_fnuz", "e8m0"), 0.0),
}

# What an inexact function may lose below the normal numbers, hardware flushing its results and
# the steps of its formula; arithmetic keeps subnormals, so one quantum.
_FLUSHED = 2.0**-122
_QUANTUM = 2.0**-149


def run_operations(
    operations: Sequence[Operation],
    known: dict[str, Known],
    dims: dict[Dim, int],
    rules: Mapping[str, BoundRule],
) -> None:
    """Add the results of ``operations`` to ``known``, each by the rule of its op."""
    for operation in operations:
        operands = [known[operand.name] for operand in operation.operands]
        result = rules[operation.op](operation, operands, dims)
        known[operation.result.name] = _in_its_type(operation.result, result)


def _in_its_type(value: Value, known: Known) -> Known:
    """Return a result as the reference keeps it; how far rounding moves it is an error more."""
    if value.type.dtype != f32:
        return known
    rounded = limit(value, known.value)
    return Known(value=rounded, error=known.error + finite(np.abs(rounded - known.value)))


def run_region(region: Function, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return the result of a region for every element of operands that broadcast.

    A region is a function of one score, so it holds no attention.
    """
    pairs = zip(region.params, operands, strict=True)
    known = {param.name: _in_its_type(param, operand) for param, operand in pairs}
    run_operations(region.body, known, dims, OP_BOUNDS)
    return known[region.results[0].name]


def _constant(operation: Operation, _operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    return Known.exact(apply(operation, [], dims))


def _extent(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    return Known.exact(apply(operation, [operands[0].value], dims))


def _shape(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    (operand,) = operands
    value = apply(operation, [operand.value], dims)
    moved = apply(operation, [operand.error.astype(np.float64)], dims)
    return Known(value=value, error=moved.astype(operand.error.dtype))


def _joined(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    value = apply(operation, [operand.value for operand in operands], dims)
    moved = apply(operation, [operand.error.astype(np.float64) for operand in operands], dims)
    return Known(value=value, error=moved.astype(operands[0].error.dtype))


def _log_sums(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return the log-sum-exp of each block, which moves no further than its elements do."""
    (x,) = operands
    value = apply(operation, [x.value], dims)
    rest = -x.value.shape[-1] % COLUMNS
    error = np.pad(x.error.astype(np.float64), [*[(0, 0)] * (x.value.ndim - 1), (0, rest)])
    moved = error.reshape(*value.shape, COLUMNS).max(axis=-1)
    # Sums of at most COLUMNS positive numbers, exponentials and a logarithm, then one addition.
    own = UNIT * (COLUMNS + 8 + 2 * np.abs(finite(value)))
    return Known(value=value, error=moved + own)


def _block_sums(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return the sum of each block, added in any order."""
    (x,) = operands
    value = apply(operation, [x.value], dims)
    sizes = apply(operation, [np.abs(finite(x.value)) + finite(x.error)], dims)
    moved = apply(operation, [x.error.astype(np.float64)], dims)
    return Known(value=value, error=moved + COLUMNS * UNIT / (1 - COLUMNS * UNIT) * sizes)


def _block_maxima(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return the largest of each block, which moves no further than its elements do."""
    (x,) = operands
    value = apply(operation, [x.value], dims)
    return Known(value=value, error=apply(operation, [x.error.astype(np.float64)], dims))


def _read(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return an element with its error; an uncertain index may give any element."""
    tensor, *indices = operands
    value = apply(operation, [operand.value for operand in operands], dims)
    at = [index.value for index in indices]
    moved = apply(operation, [tensor.error.astype(np.float64), *at], dims)
    for index in indices:
        moved = np.where(index.error > 0, np.inf, moved)
    return Known(value=value, error=moved.astype(tensor.error.dtype))


def _taken(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return elements with their errors; an uncertain index may give any element."""
    table, indices = operands
    value = apply(operation, [table.value, indices.value], dims)
    moved = apply(operation, [table.error.astype(np.float64), indices.value], dims)
    axis = int(str(operation.attr("axis")))
    _, axes = GATHER_AXES[operation.op](table.value.ndim, indices.value.ndim, axis)
    new = tuple(place for place, own in enumerate(axes) if own is None)
    moved = np.where(np.expand_dims(indices.error > 0, new), np.inf, moved)
    return Known(value=value, error=moved.astype(table.error.dtype))


def flushable(known: Known, dtype: DType) -> Known:
    """Let what is subnormal in ``dtype`` be zero as well."""
    if known.is_bool or known.value.dtype.kind != "f" or dtype.kind is not NumberKind.FLOAT:
        return known
    size = np.abs(known.value)
    small = (size < _LEAST_NORMAL[dtype.name]) & (size > known.error)
    return Known(value=known.value, error=np.where(small, size, known.error))


# --- sums of products


def _sums(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    def product(left: Array, right: Array) -> Array:
        return apply(operation, [left, right], dims)

    left, right = (
        flushable(operand, value.type.dtype)
        for operand, value in zip(operands, operation.operands, strict=True)
    )
    if operation.result.type.dtype.kind is NumberKind.INT:
        return _integer_sums(product, left, right)
    k = _summed(operation, left.value.shape, right.value.shape)
    value, error, _ = float_sums(left, right, product, k)
    # The gradient of the input sums over outputs beyond the edges as over zeros, and need not: an
    # infinite weight gives nan there, or nothing.
    if operation.op == "conv_grad_input" and not np.isfinite(right.value).all():
        error = np.full_like(error, np.inf)
    return Known(value=value, error=error)


def _summed(operation: Operation, a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Return how many products an element of the result is the sum of."""
    geometry = geometry_of(operation)
    if geometry is None:
        return math.prod(Contraction.of(operation).split_a(a)[-1])
    direction = DIRECTIONS[operation.op]
    shapes = dict(zip(direction.operands, (a, b), strict=True))
    return summed(geometry, direction.result, shapes)


def _scaled_gemm(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    """Bound a product of two matrices with scales, the first operands of the operation."""
    dtypes = [value.type.dtype for value in operation.operands[: len(operands)]]
    sides = [flushable(*pair).real() for pair in zip(operands, dtypes, strict=True)]
    blocks = {name: attr for name, attr in operation.attrs if isinstance(attr, tuple)}
    is_rounded, is_exact = dtypes[-1] == f32, dtypes[0] == i8
    value, error = scaled_sums(sides, blocks, is_rounded=is_rounded, is_exact=is_exact)
    return Known(value=value, error=error)


def _gemm24(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    a, b = operands
    f16 = operation.operands[0].type.dtype
    left, right = flushable(_kept24(a), f16), flushable(b, f16)
    value, error, _ = float_sums(left, right, np.matmul, left.value.shape[-1])
    # A zero that is not kept meets no infinity or nan of the other side.
    wild = (left.value == 0).astype(np.float64) @ (~np.isfinite(right.value)) > 0
    return Known(value=value, error=np.where(wild, np.inf, error))


def _of_uncertain_groups(ends: Known) -> float:
    """Return the error where it is open what is in a group: ends fall, or are uncertain."""
    return np.inf if ends.error.any() or (np.diff(ends.value) < 0).any() else 0.0


def _scaled_grouped_gemm(
    operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]
) -> Known:
    """Each group is a product with scales; rows of no group are 0."""
    *matrices, ends = operands
    unsure = _of_uncertain_groups(ends)
    by_rows = [True, False, *([True] if operation.attr("block_a") else []), False]
    shape = matrices[0].value.shape[0], matrices[1].value.shape[-1]
    value, error = np.zeros(shape), np.full(shape, unsure)
    for group, bounds in enumerate(itertools.pairwise(group_bounds(ends.value, shape[0]))):
        places = [slice(*bounds) if rows else group for rows in by_rows]
        parts = [
            Known(value=known.value[place], error=known.error[place])
            for known, place in zip(matrices, places, strict=False)
        ]
        one = _scaled_gemm(operation, parts, dims)
        value[slice(*bounds)], error[slice(*bounds)] = one.value, one.error + unsure
    return Known(value=value, error=error)


def _grouped_gemm(operation: Operation, operands: Sequence[Known], _dims: dict[Dim, int]) -> Known:
    *sides, ends = operands
    unsure = _of_uncertain_groups(ends)
    left, right = (
        flushable(operand, value.type.dtype)
        for operand, value in zip(sides, operation.operands, strict=False)
    )

    def product(a: Array, b: Array) -> Array:
        return OPS[operation.op].numpy(a, b, ends.value)

    if operation.result.type.dtype.kind is NumberKind.INT:
        known = _integer_sums(product, left, right)
    else:
        value, error, _ = float_sums(left, right, product, left.value.shape[-1])
        known = Known(value=value, error=error)
    return Known(value=known.value, error=known.error + unsure)


def _grouped_ids(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Groups of integers are exact, unless one of them is not."""
    value = apply(operation, [operand.value for operand in operands], dims)
    unsure = any(operand.error.any() for operand in operands)
    return Known(value=value, error=np.full(value.shape, np.inf if unsure else 0.0))


def _kept24(a: Known) -> Known:
    """Return a sparse operand; which two of four are kept is unsure where one of them is."""
    kept = numeric.kept24(a.value)
    if not a.error.any():
        return Known(value=kept, error=a.error)
    pad = [(0, 0)] * (a.error.ndim - 1) + [(0, -a.error.shape[-1] % 4)]
    fours = np.pad(a.error > 0, pad).reshape(*a.error.shape[:-1], -1, 4).any(axis=-1)
    unsure = np.repeat(fours, 4, axis=-1)[..., : a.error.shape[-1]]
    return Known(value=kept, error=np.where(unsure, np.abs(a.value) + a.error, a.error))


def _integer_sums(product: Product, left: Known, right: Known) -> Known:
    """Sums of integers are exact; they wrap at 32 bits, as the kernel's do."""
    value = product(left.value, right.value)
    if not left.error.any() and not right.error.any():
        return Known.exact(value)
    size_a, size_b = np.abs(left.value) + left.error, np.abs(right.value) + right.error
    largest = product(size_a, size_b)
    error = largest - product(np.abs(left.value) + 0.0, np.abs(right.value) + 0.0)
    return Known(value=value, error=np.where(largest >= 2.0**31, np.inf, error))


# --- pointwise ops and casts


def _pointwise(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    row = OPS[operation.op]
    if row.ulps > 1:
        operands = [flushable(operand, f32) for operand in operands]
    center = apply(operation, [operand.value for operand in operands], dims)
    if operation.result.type.dtype.kind is NumberKind.BOOL:
        return Known(value=center, error=_uncertain(operation, center, operands, dims))
    error = np.zeros(center.shape)
    for variant in _variants(operands):
        error = np.maximum(error, _deviation(apply(operation, variant, dims), center))
    if operation.op in _ISOLATED:
        # Not by assignment: of rank 0 it is a NumPy scalar.
        error = np.where(_ISOLATED[operation.op](*operands), np.inf, error)
    error += _rounding(operation, row, operands, center, error)
    return _limited(operation.result, center, error)


def _spans(known: Known, point: float) -> Array:
    """Tell where an uncertain value may be ``point``."""
    return np.asarray((known.error > 0) & (np.abs(known.value - point) <= known.error))


def _pow_breaks(x: Known, y: Known) -> Array:
    """Tell where pow may jump: its base 0, an exponent that may be an integer, and 1 and 0."""
    integer = np.signbit(x.value - x.error) & (y.error > 0)
    ones = (np.isnan(y.value) & _spans(x, 1.0)) | (np.isnan(x.value) & _spans(y, 0.0))
    return np.asarray(_spans(x, 0.0) | integer | ones)


def _mod_breaks(x: Known, y: Known) -> Array:
    """Tell where the quotient of an uncertain x and y may be another integer: there mod jumps."""
    corners = [
        np.floor_divide(x.value + i * x.error, y.value + j * y.error)
        for i in (-1, 1)
        for j in (-1, 1)
    ]
    is_one = (np.min(corners, axis=0) == np.max(corners, axis=0)) & np.isfinite(corners[0])
    is_unsure = (x.error > 0) | (y.error > 0)
    return np.asarray(is_unsure & (~is_one | _spans(y, 0.0)))


def _tan_breaks(x: Known) -> Array:
    """Tell where a pole may lie between the ends of x."""
    ends = [np.floor((x.value + sign * x.error) / np.pi + 0.5) for sign in (-1, 1)]
    return np.asarray((x.error > 1) | (ends[0] != ends[1]))


def _bits(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return an integer made of bits: exact, or anything where an operand is uncertain."""
    value = apply(operation, [operand.value for operand in operands], dims)
    error = np.zeros(value.shape)
    for operand in operands:
        error = np.where(operand.error > 0, np.inf, error)
    return Known(value=value, error=error)


# Poles and isolated points, which lie between the ends of an interval and are not seen from them.
_ISOLATED: Mapping[str, Callable[..., Array]] = {
    "reciprocal": lambda x: _spans(x, 0.0),
    "div": lambda _x, y: _spans(y, 0.0),
    "floor_divide": lambda _x, y: _spans(y, 0.0),
    "mod": _mod_breaks,
    "fmod": _mod_breaks,
    "atan2": lambda y, x: _spans(y, 0.0) & (x.value - x.error <= 0),
    "sin": lambda x: x.error > 1,
    "cos": lambda x: x.error > 1,
    "tan": _tan_breaks,
    "pow": _pow_breaks,
}


def _variants(operands: Sequence[Known]) -> list[list[Array]]:
    """Return operand lists from the ends of the error intervals, without the middle of all."""
    exact = [not operand.error.any() for operand in operands]
    choices = [
        [operand.value] if is_exact else _ends(operand, middles=len(operands) == 1)
        for operand, is_exact in zip(operands, exact, strict=True)
    ]
    return [list(variant) for variant in itertools.product(*choices)][1:]


def _ends(known: Known, *, middles: bool) -> list[Array]:
    if known.is_bool:
        return [known.value, known.value ^ known.error]
    # Where anything may be, two probes stand for it: nan, which reaches every result that depends
    # on the operand, and 1, which tells a nan that is certain from one that only may be.
    wild = np.isinf(known.error)
    error = np.where(wild, 0.0, known.error)
    steps = (1.0, -1.0, 0.5, -0.5) if middles else (1.0, -1.0)
    return [
        known.value,
        *(np.where(wild, np.nan if s > 0 else 1.0, known.value + s * error) for s in steps),
    ]


def _deviation(variant: Array, center: Array) -> Array:
    distance = np.abs(variant.astype(np.float64) - center.astype(np.float64))
    same = (variant == center) | ((variant != variant) & (center != center))
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def _uncertain(
    operation: Operation, center: Array, operands: Sequence[Known], dims: dict[Dim, int]
) -> Array:
    """Return where a bool result may be either."""
    if len(operands) == 2 and not operands[0].is_bool:
        x, y = operands
        error = x.error + y.error
        # A comparison with a nan that is surely there is surely what it is.
        nan = (np.isnan(x.value) & np.isfinite(x.error)) | (
            np.isnan(y.value) & np.isfinite(y.error)
        )
        return np.asarray((error > 0) & ~(np.abs(x.value - y.value) > error) & ~nan)
    unsure = np.zeros(center.shape, bool)
    for variant in _variants(operands):
        unsure |= apply(operation, variant, dims) != center
    return unsure


def _rounding(
    operation: Operation, row: Op, operands: Sequence[Known], center: Array, error: Array
) -> Array:
    """Return the op's own error: ulps of its scale, and what is lost among subnormals.

    A kernel rounds what it has, which is up to ``error`` larger than the reference's value.
    """
    if row.ulps == 0 or center.dtype.kind != "f":
        return np.zeros(center.shape)
    size = np.abs(center) + error
    if row.scale is not None:
        attrs = dict(operation.attrs)
        size = np.maximum(size, row.scale(*(operand.value for operand in operands), **attrs))
    lost = _FLUSHED if row.ulps > 1 else _QUANTUM
    is_rounded = np.isfinite(center) & (size >= row.exact_below)
    return np.where(is_rounded, row.ulps * UNIT * finite(size) + lost, 0.0)


def _limited(value: Value, center: Array, error: Array) -> Known:
    """Give a number the range of its type: near the end of f32 it may be infinite or not."""
    if value.type.dtype == f32:
        size = np.abs(center)
        edge = (size + error >= F32_OVERFLOW) & (size - error < F32_OVERFLOW) & np.isfinite(center)
        error = np.where(edge, np.inf, error)
        beyond = (size >= F32_OVERFLOW) & ~edge & ~np.isinf(error)
        error = np.where(beyond, 0.0, error)
    return Known(value=center, error=error)


_KIND_BOUNDS: Mapping[Kind, BoundRule] = {
    Kind.ANCHOR: _sums,
    Kind.CAST: _pointwise,
    Kind.CONSTANT: _constant,
    Kind.EXTENT: _extent,
    Kind.GATHER: _taken,
    Kind.INDEX: _constant,
    Kind.JOIN: _joined,
    Kind.POINTWISE: _pointwise,
    Kind.READ: _read,
    Kind.SHAPE: _shape,
    Kind.VIEW: _shape,
}

OP_BOUNDS: Mapping[str, BoundRule] = MappingProxyType(
    {name: _KIND_BOUNDS[op.kind] for name, op in OPS.items() if op.kind in _KIND_BOUNDS}
    | {name: _bits for name, op in OPS.items() if op.dtype is INTEGER_DTYPE}
    | {LOG_SUMS: _log_sums, BLOCK_SUMS: _block_sums, BLOCK_MAXIMA: _block_maxima}
    | {BLOCK_PEAK: _block_maxima, BLOCK_FIRST: _shape}
    | {
        "gemm24": _gemm24,
        "scaled_gemm": _scaled_gemm,
        SCALED_GROUPED_GEMM: _scaled_grouped_gemm,
        **dict.fromkeys((GROUPED_GEMM, GROUPED_GEMM_K), _grouped_gemm),
    }
    | dict.fromkeys((GROUP_ENDS, GROUP_ORDER), _grouped_ids)
    | dict(ROW_BOUNDS)
    | dict(SCATTER_BOUNDS)
    | dict(ORDER_BOUNDS)
    | dict(GATE_BOUNDS)
    | {SAMPLE: bound_sample}
)
"""The rule of each op but attention, by its name."""
