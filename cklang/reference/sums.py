# SPDX-License-Identifier: MIT
"""Sums of products with their error bounds; :mod:`cklang.reference.bounds` says what is assumed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from cklang.ir.numeric import Array, scaled_blocks
from cklang.reference.evaluate import F32_OVERFLOW

Product: TypeAlias = Callable[[Array, Array], Array]

UNIT = 2.0**-24
"""u: half the distance from 1 to the next f32."""

_TINY = 2.0**-126
"""The least normal f32: what a product or a sum may lose where subnormals are flushed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A value and what is known of it.

    For numbers ``error`` is the absolute bound (float64, may be infinite: anything may be there);
    for bools it is a mask of where the value may be either.
    """

    value: Array
    error: Array

    @staticmethod
    def exact(value: Array) -> Known:
        """Return a value without error."""
        kind = np.bool_ if value.dtype == np.bool_ else np.float64
        return Known(value=value, error=np.zeros(value.shape, kind))

    def real(self) -> Known:
        """Return an integer value as the same number in float64; a float as it is."""
        return Known(value=self.value.astype(np.float64), error=self.error)

    @property
    def is_bool(self) -> bool:
        """Whether the value is a bool."""
        return bool(self.value.dtype == np.bool_)


def gamma(k: int) -> float:
    """Return the bound of an f32 sum of ``k`` products relative to the sum of magnitudes."""
    return (2 * k + 8) * UNIT


def finite(x: Array) -> Array:
    """Return ``x`` with 0 for what is infinite or nan."""
    return np.where(np.isfinite(x), x, 0.0)


def float_sums(
    left: Known, right: Known, product: Product = np.matmul, k: int | None = None
) -> tuple[Array, Array, Array]:
    """Return sums of products, their errors, and their sums of magnitudes.

    ``product`` sums them: by default it is that of two matrices. A sum has ``k`` products at most;
    the last extent of ``left`` if left out.
    """
    value = product(left.value, right.value)
    size_a, size_b = finite(np.abs(left.value)), finite(np.abs(right.value))
    error_a, error_b = finite(left.error), finite(right.error)
    k = left.value.shape[-1] if k is None else k
    magnitude = product(size_a + error_a, size_b + error_b)
    exact = not error_a.any() and not error_b.any()
    passed = 0.0 if exact else magnitude - product(size_a, size_b)
    error = gamma(k) * magnitude + passed + k * _TINY
    # An infinite or unknown element next to an uncertain one may give anything; so may a partial
    # sum that leaves the range of f32.
    wild = np.zeros(value.shape, bool)
    for one, other in (
        (~np.isfinite(left.value) | np.isinf(left.error), right.error > 0),
        (left.error > 0, ~np.isfinite(right.value) | np.isinf(right.error)),
        (np.isinf(left.error), np.ones_like(right.value, bool)),
        (np.ones_like(left.value, bool), np.isinf(right.error)),
    ):
        if one.any() and other.any():
            wild |= product(one.astype(np.float64), other.astype(np.float64)) > 0
    wild |= magnitude * (1 + gamma(k)) >= F32_OVERFLOW
    error = np.where(np.isfinite(value), error, 0.0)
    return value, np.where(wild, np.inf, error), magnitude


def scaled_sums(
    operands: Sequence[Known], blocks: Mapping[str, Any], *, is_rounded: bool, is_exact: bool
) -> tuple[Array, Array]:
    """Return what ``scaled_gemm`` gives, and the error.

    ``operands`` are numbers of float64. ``is_rounded``: whether the product of two scales is
    rounded to f32; ``is_exact``: whether the sum of a block is one of integers.
    """
    sums = _integer_sums if is_exact else float_sums
    pieces = [
        scaled_blocks(x[0], x[1], x[2:], **blocks)
        for x in ([operand.value for operand in operands], [operand.error for operand in operands])
    ]
    total, error, size, wild = (np.zeros((1, 1)) for _ in range(4))
    count = 0
    for block, off in zip(*pieces, strict=True):
        count += 1
        pairs = zip(block.scales, off.scales, strict=True)
        scales = [Known(value=value, error=error) for value, error in pairs]
        scale = reduce(lambda x, y: _product(x, y, is_rounded=is_rounded), scales)
        left, right = Known(value=block.a, error=off.a), Known(value=block.b, error=off.b)
        part, part_error, magnitude = sums(left, right)
        most = finite(np.abs(scale.value)) + finite(scale.error)
        total = total + scale.value * part
        size = size + most * magnitude
        error = error + most * finite(part_error) + finite(scale.error) * magnitude
        wild = wild + (np.isinf(part_error) | np.isinf(scale.error))
        # A product of scales may round to 0, which makes nan of an infinite sum.
        may_be_zero = (scale.error > 0) & (np.abs(scale.value) <= scale.error)
        wild = wild + (np.isinf(part) & may_be_zero)
        if np.isinf(scale.value).any():
            wild = wild + (np.isinf(scale.value) & ~_keeps_infinity(left, right, part, magnitude))
    # Each element is scaled, rounded, and added to the other blocks, which may stand in parts.
    size = size * (1 + (4 * count + 8) * UNIT)
    error = error + (4 * count + 8) * UNIT * size + count * _TINY
    wild = wild + (size * (1 + gamma(operands[0].value.shape[-1])) >= F32_OVERFLOW)
    batch = np.broadcast_shapes(*(operand.value.shape[:-2] for operand in operands[:2]))
    shape = (*batch, operands[0].value.shape[-2], operands[1].value.shape[-1])
    error = np.where(wild > 0, np.inf, np.where(np.isfinite(total), error, 0.0))
    return np.broadcast_to(total, shape), np.broadcast_to(error, shape)


def _integer_sums(left: Known, right: Known) -> tuple[Array, Array, Array]:
    """Return sums of exact integers made f32, their errors, and their sums of magnitudes.

    Only the conversion rounds, numbers beyond 2**24. Beyond 32 bits sums wrap, unless workgroups
    share the block: the result may be anything.
    """
    value = np.matmul(left.value, right.value)
    magnitude = np.matmul(np.abs(left.value), np.abs(right.value))
    error = np.where(magnitude > 1 / UNIT, UNIT * magnitude, 0.0)
    return value, np.where(magnitude >= 2.0**31, np.inf, error), magnitude


def _product(x: Known, y: Known, *, is_rounded: bool) -> Known:
    """Return the product of the scales of a block, [..., M, 1] and [..., 1, N]."""
    value = x.value * y.value
    sizes, errors = [finite(np.abs(operand.value)) for operand in (x, y)], [x.error, y.error]
    error = sizes[0] * errors[1] + errors[0] * sizes[1] + errors[0] * errors[1]
    if is_rounded:
        error = error + UNIT * finite(np.abs(value)) + np.where(value == 0, 0.0, _TINY)
        beyond = np.isfinite(value) & (np.abs(value) * (1 + UNIT) >= F32_OVERFLOW)
        error = np.where(beyond, np.inf, error)
    return Known(value=value, error=np.where(np.isnan(error), np.inf, error))


def _keeps_infinity(left: Known, right: Known, part: Array, magnitude: Array) -> Array:
    """Tell where an infinite scale gives one result, whichever workgroups share the block.

    Each workgroup scales the sum of its own products, so the products must all be 0 (nan), all be
    surely above 0 or all be surely below: a workgroup whose products cancel, underflow or are all 0
    adds 0 times infinity. Where the sum is nan the result is nan anyway.
    """
    lowest, highest = np.full(part.shape, np.inf), np.full(part.shape, -np.inf)
    for k in range(left.value.shape[-1]):
        row, column = np.s_[..., :, k : k + 1], np.s_[..., k : k + 1, :]
        product = left.value[row] * right.value[column]
        size_a, size_b = np.abs(left.value[row]), np.abs(right.value[column])
        error_a, error_b = left.error[row], right.error[column]
        # The magnitudes' product is the largest that the elements' intervals allow.
        error = finite((size_a + error_a) * (size_b + error_b) - size_a * size_b)
        lowest, highest = np.minimum(lowest, product - error), np.maximum(highest, product + error)
    is_zero = (magnitude == 0) & (part == 0)
    return np.asarray(np.isnan(part) | is_zero | (lowest > _TINY) | (highest < -_TINY))
