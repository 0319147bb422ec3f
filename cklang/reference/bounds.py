# SPDX-License-Identifier: MIT
"""Evaluate a function together with how far a right kernel may be from it: the only tolerances.

Every number travels with an absolute error bound; every bool with a mask of where it may be
either. One mechanism serves all ops: the op's own NumPy meaning is evaluated at the ends (and,
for one operand, the middles) of its operands' error intervals, and the largest deviation is the
error passed on. To that an op adds its own rounding: ``ulps`` of the op table times u = 2**-24
times the scale of the op's formula. A cast is monotone and adds nothing else: its interval's ends,
rounded, are exactly what a kernel may give, so a result rounds the same way or to a neighbour.

**Sums.** A kernel may add in any order, in blocks, in trees, with fused or separate products and
inside a matrix unit. Each product passes at most K additions, each at most 2u of the sum of
magnitudes off: CDNA3's units truncate (published bit-accurate models, arXiv 2511.10909: products
are aligned and cut at 24 fractional bits, C is added with truncation), which is twice as far as
rounding to nearest. So |error| <= gamma(K) * sum |a||b| with gamma(K) = (2 K + 8) u for every
order, the 8 for the final rounding and the second stage of the cut. Nothing is assumed about the
order, so the bound stands for every tile, split and numerics mode of the emulator.

**Scaled sums.** Each block of K is such a sum of its own; its error is multiplied by the scales,
whose product and whose application round once each, and the blocks are added in any order: gamma of
K and four times the number of blocks, times the sum of scales times magnitudes, is as far as that
may be off. The f32 product of two f32 scales may overflow where the whole does not; scales of e8m0
are exponents, and their product does not round. Workgroups that share a block each scale their own
sums of it: an infinite scale gives one result only where all products of the block are surely of
one sign, or all 0, since a workgroup whose products are 0 adds nan.

**Small numbers.** CDNA2's matrix units flush subnormal inputs and hardware's functions flush
subnormals: an operand that is subnormal in its type counts as uncertain down to zero there.

**Infinities and nan** must be met in kind, unless the bound is infinite: where an error interval
reaches past the largest f32, or a partial sum may.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cklang.ir import numeric
from cklang.ir.convolution import geometry_of, summed
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.numeric import Array
from cklang.ir.ops import OPS, Kind, Op
from cklang.ir.windows import DIRECTIONS
from cklang.reference.evaluate import F32_OVERFLOW, apply, bind, from_wide, limit
from cklang.reference.sums import UNIT, Known, Product, finite, float_sums, gamma, scaled_sums
from cklang.types import Dim, DType, f32
from cklang.types import Kind as NumberKind

__all__ = [
    "UNIT",
    "Known",
    "evaluate_with_bound",
    "flushable",
    "gamma",
    "run_body",
    "run_region",
]

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


def evaluate_with_bound(
    function: Function, arrays: Sequence[Any]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the results of ``function`` and, for each, the absolute error a kernel may have.

    Args:
        function: A verified function.
        arrays: One array for each parameter, as for :func:`cklang.reference.evaluate.evaluate`.

    Returns:
        The results in their dtypes, and float64 bounds of the same shapes: infinite where
        anything is right (and where a bool may be either).

    Raises:
        CkError: As :func:`cklang.reference.evaluate.evaluate`.
    """
    bound = bind(function, arrays)
    known = {name: Known.exact(array) for name, array in bound.values.items()}
    with np.errstate(all="ignore"):
        run_body(function, known, bound.dims)
    results = [(value, known[value.name]) for value in function.results]
    values = tuple(from_wide(value, each.value) for value, each in results)
    bounds = tuple(_bound(known, value) for (_, known), value in zip(results, values, strict=True))
    return values, bounds


def run_body(
    function: Function,
    known: dict[str, Known],
    dims: dict[Dim, int],
    before: Operation | None = None,
) -> None:
    """Add to ``known`` the values that a function makes, or those made before an operation."""
    for operation in function.body:
        if operation is before:
            return
        operands = [known[operand.name] for operand in operation.operands]
        known[operation.result.name] = _step(operation, operands, dims)


def run_region(region: Function, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return the result of a region for every element of operands that broadcast."""
    known = dict(zip((param.name for param in region.params), operands, strict=True))
    run_body(region, known, dims)
    return known[region.results[0].name]


def _bound(known: Known, given: Array) -> Array:
    """Return the bound around the value as it is given, which may be rounded to its dtype."""
    if known.is_bool:
        return np.where(known.error, np.inf, 0.0)
    with np.errstate(all="ignore"):
        moved = np.abs(given.astype(np.float64) - known.value)
    return known.error + finite(moved)


def _step(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    row = OPS[operation.op]
    if operation.op == "scaled_gemm":
        return _scaled_gemm(operation, operands)
    if operation.op == "gemm24":
        return _gemm24(operation, *operands)
    if row.kind is Kind.ANCHOR:
        return _sums(operation, dims, *operands)
    if row.kind is Kind.ATTENTION:
        from cklang.reference.attention import attended

        return attended(operation, operands, dims)
    if row.kind is Kind.READ:
        return _read(operation, operands, dims)
    if row.kind is Kind.SHAPE:
        (operand,) = operands
        value = apply(operation, [operand.value], dims)
        return Known(value=value, error=_shaped(operation, operand.error, dims))
    if row.kind is Kind.CONSTANT:
        return Known.exact(apply(operation, [], dims))
    if row.ulps > 1:
        operands = [flushable(each, f32) for each in operands]
    return _pointwise(operation, row, operands, dims)


def _read(operation: Operation, operands: Sequence[Known], dims: dict[Dim, int]) -> Known:
    """Return an element with its error; an uncertain index may give any element."""
    tensor, *indices = operands
    value = apply(operation, [each.value for each in operands], dims)
    at = [each.value for each in indices]
    moved = apply(operation, [tensor.error.astype(np.float64), *at], dims)
    for index in indices:
        moved = np.where(index.error > 0, np.inf, moved)
    return Known(value=value, error=moved.astype(tensor.error.dtype))


def _shaped(operation: Operation, error: Array, dims: dict[Dim, int]) -> Array:
    moved = apply(operation, [error.astype(np.float64)], dims)
    return moved.astype(error.dtype)


def flushable(known: Known, dtype: DType) -> Known:
    """Let what is subnormal in ``dtype`` be zero as well."""
    if known.is_bool or known.value.dtype.kind != "f" or dtype.kind is not NumberKind.FLOAT:
        return known
    size = np.abs(known.value)
    small = (size < _LEAST_NORMAL[dtype.name]) & (size > known.error)
    return Known(value=known.value, error=np.where(small, size, known.error))


# --- sums of products


def _sums(operation: Operation, dims: dict[Dim, int], a: Known, b: Known) -> Known:
    def product(left: Array, right: Array) -> Array:
        return apply(operation, [left, right], dims)

    left, right = (
        flushable(each, value.type.dtype)
        for each, value in zip((a, b), operation.operands, strict=True)
    )
    if operation.result.type.dtype.kind is NumberKind.INT:
        return _integer_sums(product, left, right)
    k = _summed(operation, left.value.shape, right.value.shape)
    value, error, _ = float_sums(left, right, product, k)
    if _meets_padding(operation, right.value):
        error = np.full_like(error, np.inf)
    return Known(value=limit(operation.result, value), error=error)


def _summed(operation: Operation, a: tuple[int, ...], b: tuple[int, ...]) -> int:
    """Return how many products an element of the result is the sum of."""
    found = geometry_of(operation)
    if found is None:
        return a[-1]
    direction = DIRECTIONS[operation.op]
    shapes = dict(zip(direction.operands, (a, b), strict=True))
    return summed(found, direction.result, shapes)


def _meets_padding(operation: Operation, weight: Array) -> bool:
    """Tell whether a kernel may multiply what is not finite by zeros that the reference has not.

    The gradient of the input sums over outputs beyond the edges as over zeros, and need not: an
    infinite weight gives nan there, or nothing.
    """
    return operation.op == "conv_grad_input" and not np.isfinite(weight).all()


def _scaled_gemm(operation: Operation, operands: Sequence[Known]) -> Known:
    given = [
        flushable(each, value.type.dtype).real()
        for each, value in zip(operands, operation.operands, strict=True)
    ]
    blocks = {name: attr for name, attr in operation.attrs if isinstance(attr, tuple)}
    is_rounded = operation.operands[-1].type.dtype == f32
    value, error = scaled_sums(given, blocks, is_rounded=is_rounded)
    return Known(value=limit(operation.result, value), error=error)


def _gemm24(operation: Operation, a: Known, b: Known) -> Known:
    f16 = operation.operands[0].type.dtype
    left, right = flushable(_kept24(a), f16), flushable(b, f16)
    value, error, _ = float_sums(left, right, np.matmul, left.value.shape[-1])
    # A zero that is not kept meets no infinity or nan of the other side.
    wild = (left.value == 0).astype(np.float64) @ (~np.isfinite(right.value)) > 0
    return Known(value=limit(operation.result, value), error=np.where(wild, np.inf, error))


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


def _pointwise(
    operation: Operation, row: Op, operands: Sequence[Known], dims: dict[Dim, int]
) -> Known:
    center = apply(operation, [each.value for each in operands], dims)
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


# Poles and isolated points, which lie between the ends of an interval and are not seen from them.
_ISOLATED: Mapping[str, Callable[..., Array]] = {
    "reciprocal": lambda x: _spans(x, 0.0),
    "div": lambda _x, y: _spans(y, 0.0),
    "pow": _pow_breaks,
}


def _variants(operands: Sequence[Known]) -> list[list[Array]]:
    """Return operand lists from the ends of the error intervals, without the middle of all."""
    exact = [not each.error.any() for each in operands]
    choices = [
        [each.value] if is_exact else _ends(each, middles=len(operands) == 1)
        for each, is_exact in zip(operands, exact, strict=True)
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
        size = np.maximum(size, row.scale(*(each.value for each in operands), **attrs))
    lost = _FLUSHED if row.ulps > 1 else _QUANTUM
    return np.where(np.isfinite(center), row.ulps * UNIT * finite(size) + lost, 0.0)


def _limited(value: Value, center: Array, error: Array) -> Known:
    """Give a number the range of its type: near the end of f32 it may be infinite or not."""
    if value.type.dtype == f32:
        size = np.abs(center)
        edge = (size + error >= F32_OVERFLOW) & (size - error < F32_OVERFLOW) & np.isfinite(center)
        error = np.where(edge, np.inf, error)
        beyond = (size >= F32_OVERFLOW) & ~edge & ~np.isinf(error)
        error = np.where(beyond, 0.0, error)
    return Known(value=limit(value, center), error=error)
