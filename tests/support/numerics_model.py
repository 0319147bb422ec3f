# SPDX-License-Identifier: MIT
"""Sums of products with stated rounding, in rational numbers: the second implementation.

`exact` rounds the exact sum once. `cdna3` is the model of the MI300's matrix units that
arXiv 2511.10909 published and validated on hardware: its TR-FDPA (f16, bf16, xf32) and GTR-FDPA
(8-bit floats). Everything is `fractions.Fraction`; nothing is shared with the emulator.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np


def power(exponent: int) -> Fraction:
    """2 to the power of `exponent`."""
    return Fraction(2) ** exponent


def floor_log2(x: Fraction) -> int:
    """The exponent e with 2^e <= |x| < 2^(e+1)."""
    x = abs(x)
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if power(guess) <= x else guess - 1


def to_float(x: Fraction, mantissa: int, lowest: int) -> float:
    """`x` rounded to nearest even, with `mantissa` bits and normal numbers from 2^lowest on."""
    if x == 0:
        return 0.0
    unit = power(max(floor_log2(x), lowest) - mantissa)
    quotient = x / unit
    below = math.floor(quotient)
    rest = quotient - below
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and below % 2 == 1)
    value = (below + up) * unit
    if abs(value) >= power(2 - lowest):
        return math.copysign(math.inf, value)
    return float(value)


def to_f32(x: Fraction) -> float:
    """`x` as f32, subnormal numbers kept."""
    return to_float(x, 23, -126)


def special(a: np.ndarray, b: np.ndarray, c: float) -> float | None:
    """What IEEE makes of infinities and NaN among the operands; None if there are none."""
    with np.errstate(invalid="ignore"):
        total = float((a * b)[~(np.isfinite(a) & np.isfinite(b))].sum())
    if np.isfinite(c) and total == 0:
        return None
    return total + (0.0 if np.isfinite(c) else c)


def exact(a: np.ndarray, b: np.ndarray, c: float, mantissa: int = 23, lowest: int = -126) -> float:
    """c plus the sum of a[k] * b[k], rounded once."""
    if (non_finite := special(a, b, c)) is not None:
        return non_finite
    total = sum((Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True)), Fraction(c))
    return to_float(total, mantissa, lowest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The published model of one kind of operands."""

    group: int
    split: bool = False
    lowest: tuple[int, int] = (-126, -126)
    """Exponents below which the numbers of A and of B are subnormal."""


def exponent(x: Fraction, lowest: int) -> int:
    """The exponent that the unit works with: that of subnormals for them and for zero."""
    return lowest if x == 0 else max(floor_log2(x), lowest)


def cut(x: Fraction, unit: Fraction) -> Fraction:
    """`x` toward zero in multiples of `unit`."""
    return int(x / unit) * unit


def down(x: Fraction, unit: Fraction) -> Fraction:
    """`x` toward minus infinity in multiples of `unit`."""
    return math.floor(x / unit) * unit


def aligned_sum(model: Model, a: np.ndarray, b: np.ndarray) -> tuple[Fraction, int]:
    """Products cut off 24 bits below the largest exponent, and that exponent."""
    pairs = [(Fraction(x), Fraction(y)) for x, y in zip(a, b, strict=True)]
    exponents = [
        exponent(x, model.lowest[0]) + exponent(y, model.lowest[1]) if x * y != 0 else -126
        for x, y in pairs
    ]
    largest = max(exponents)
    return sum((cut(x * y, power(largest - 24)) for x, y in pairs), Fraction(0)), largest


def cdna3(model: Model, a: np.ndarray, b: np.ndarray, c: float) -> float:
    """The model's result, group after group."""
    for k in range(0, len(a), model.group):
        left, right = (x[k : k + model.group].astype(np.float64) for x in (a, b))
        with np.errstate(invalid="ignore"):
            over = np.abs(left * right) >= 2.0**128  # products that are no f32 are infinite
            non_finite = special(np.where(over, np.inf * left, left), right, c)
        if non_finite is not None:
            c = non_finite
            continue
        if model.split:
            parts = [aligned_sum(model, left[n::2], right[n::2]) for n in (0, 1)]
            largest = max(e for _, e in parts)
            total = sum((down(part, power(largest - 24)) for part, _ in parts), Fraction(0))
        else:
            total, largest = aligned_sum(model, left, right)
        addend = Fraction(c)
        own = exponent(addend, -126)
        top = max(largest, own)
        total = down(total, power(top - 31))
        if not model.split or own >= top - 25:
            total += down(addend, power(top - 24))
        c = to_f32(total)
    return c
