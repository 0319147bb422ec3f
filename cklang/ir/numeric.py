# SPDX-License-Identifier: MIT
"""NumPy meanings that take more than one NumPy call.

Each works in float64 and in float32 and returns the dtype it was given. Callers silence NumPy's
warnings: infinities and nan are values here, not accidents.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from cklang.types import DType, Kind

Array: TypeAlias = NDArray[Any]

_ERF = np.frompyfunc(math.erf, 1, 1)
_ERFC = np.frompyfunc(math.erfc, 1, 1)

# name: (bits of the significand with its hidden bit, least normal exponent, largest finite value)
_FLOATS = {
    "f16": (11, -14, 65504.0),
    "bf16": (8, -126, float.fromhex("0x1.fep127")),
    "f32": (24, -126, float.fromhex("0x1.fffffep127")),
    "f64": (53, -1022, float.fromhex("0x1.fffffffffffffp1023")),
    "fp8": (4, -6, 448.0),
    "bf8": (3, -14, 57344.0),
    "fp8_fnuz": (4, -7, 240.0),
    "bf8_fnuz": (3, -15, 57344.0),
}


def largest(name: str) -> float:
    """Return the largest finite value of the float type called ``name``."""
    return _FLOATS[name][2]


def erf(x: Array) -> Array:
    """Return the error function, accurate in float64."""
    return np.asarray(_ERF(x)).astype(x.dtype)


def erfc(x: Array) -> Array:
    """Return 1 - erf(x), accurate in float64 where that is small."""
    return np.asarray(_ERFC(x)).astype(x.dtype)


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x)) without overflow on the way."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x < 0, small, 1) / (1 + small))


def silu(x: Array) -> Array:
    """Return x * sigmoid(x)."""
    return x * sigmoid(x)


def softplus(x: Array) -> Array:
    """Return log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)), which large x cannot overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def gelu(x: Array) -> Array:
    """Return 0.5 x (1 + erf(x / sqrt 2))."""
    return np.asarray(0.5 * x * (1 + erf(x * np.asarray(math.sqrt(0.5), x.dtype))))


def gelu_tanh(x: Array) -> Array:
    """Return the tanh form of gelu: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    scale = np.asarray(math.sqrt(2 / math.pi), x.dtype)
    inside = scale * (x + np.asarray(0.044715, x.dtype) * x * x * x)
    return np.asarray(0.5 * x * (1 + np.tanh(inside)))


def hardsigmoid(x: Array) -> Array:
    """Return x / 6 + 1/2 limited to 0..1, nan kept."""
    return np.minimum(np.maximum(x / 6 + 0.5, 0), 1)


def kept24(x: Array) -> Array:
    """Return ``x`` with zeros in place of all but the first two that are not zero of every four.

    The fours are counted along the last axis from its start; what is left over at its end is a four
    with zeros behind it. nan is not zero.
    """
    pad = -x.shape[-1] % 4
    padded = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, pad)])
    fours = padded.reshape(*x.shape[:-1], -1, 4)
    nonzero = fours != 0
    first_two = nonzero & (np.cumsum(nonzero, axis=-1) <= 2)
    kept = np.where(first_two, fours, 0).reshape(padded.shape)
    return np.asarray(kept[..., : x.shape[-1]], x.dtype)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """One block of K of a scaled product.

    ``a`` is [..., M, k], ``b`` [..., k, N]; ``scales`` are those of a, [..., M, 1], and those of b,
    [..., 1, N], or one of the two.
    """

    a: Array
    b: Array
    scales: tuple[Array, ...]


def scaled_blocks(
    a: Array, b: Array, scales: Sequence[Array], block_a: tuple[int, ...], block_b: tuple[int, ...]
) -> Iterator[Scaled]:
    """Yield the blocks of K of ``scaled_gemm`` in order; its row of the op table says the rest."""
    size = block_a[1] if block_a else block_b[0]
    rows, columns = a.shape[-2], b.shape[-1]
    for block, k in enumerate(range(0, a.shape[-1], size)):
        factors = []
        if block_a:
            left = np.repeat(scales[0][..., block : block + 1], block_a[0], axis=-2)
            factors.append(left[..., :rows, :])
        if block_b:
            right = np.repeat(scales[-1][..., block : block + 1, :], block_b[1], axis=-1)
            factors.append(right[..., :columns])
        yield Scaled(a=a[..., k : k + size], b=b[..., k : k + size, :], scales=tuple(factors))


def scaled_gemm(
    a: Array, b: Array, *scales: Array, block_a: tuple[int, ...], block_b: tuple[int, ...]
) -> Array:
    """Return the sum over the blocks of K of the scales' product times the sum of the block."""
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    result = np.zeros((*batch, a.shape[-2], b.shape[-1]))
    for block in scaled_blocks(a, b, scales, block_a, block_b):
        result = result + reduce(np.multiply, block.scales) * np.matmul(block.a, block.b)
    return np.asarray(result)


def round_float(x: Array, dtype: DType) -> Array:
    """Round to nearest even to the numbers of float ``dtype``, beyond them to infinity.

    8-bit floats saturate: a finite number beyond them becomes the largest. Infinity stays infinity
    in bf8 and becomes nan in the others, which have none; the fnuz encodings have one zero.

    The result keeps the dtype of ``x``. One rounding, also from float64 to bf16, where a way
    through float32 would round twice.
    """
    bits, least, largest = _FLOATS[dtype.name]
    finite = np.where(np.isfinite(x), x, 0)
    _, exponent = np.frexp(finite)
    # frexp's fraction is in [0.5, 1): the exponent of the number is one less.
    shift = np.maximum(exponent - 1, least) - (bits - 1)
    rounded = np.ldexp(np.rint(np.ldexp(finite, -shift)), shift)
    rounded = np.where(np.isfinite(x), rounded, x)
    beyond = largest if dtype.encoding else np.inf
    outside = (np.abs(rounded) > largest) & np.isfinite(rounded)
    limited = np.where(outside, np.copysign(beyond, x), rounded)
    if dtype.encoding and dtype.name != "bf8":
        limited = np.where(np.isinf(limited), np.nan, limited)
    if dtype.encoding == "fnuz":
        limited = np.where(limited == 0, 0.0, limited)
    return np.asarray(limited, x.dtype)


def cast(x: Array, to: DType) -> Array:
    """Convert ``x`` as the op ``cast`` does.

    To a float: round to nearest even (integers through f32). To an integer: toward zero,
    saturating, nan to 0. To bool: whether it is not zero. Floats stay in the float dtype of ``x``
    (float64 when ``x`` is no float), integers become int64: no arithmetic on them is lossy.
    """
    if to.kind is Kind.BOOL:
        return np.asarray(x != 0)
    if to.kind is Kind.INT:
        info = np.iinfo(to.numpy)
        if x.dtype.kind != "f":
            return np.asarray(np.clip(x.astype(np.int64), info.min, info.max))
        # In float64, which holds the ends of i32, and 2**63, one more than i64 does.
        wide = np.nan_to_num(x.astype(np.float64), nan=0.0)
        bounded = np.trunc(np.clip(wide, float(info.min), float(info.max)))
        with np.errstate(invalid="ignore"):
            return np.where(bounded >= info.max, info.max, bounded.astype(np.int64))
    if x.dtype.kind != "f":
        x = np.asarray(x.astype(np.float32), np.float64)
    return round_float(x, to)
