# SPDX-License-Identifier: MIT
"""Hypothesis strategies for arrays: extents, values with the hard cases, strides."""

from collections.abc import Sequence
from enum import Enum

import numpy as np
from hypothesis import strategies as st

from cklang.ir.numeric import Array
from cklang.types import DType, Kind, e8m0, i4

_PRIMES = (2, 3, 5, 7, 13, 31, 61, 67, 127, 131, 193, 251, 257, 293)
_EDGES = (1, 8, 15, 16, 17, 32, 33, 63, 64, 65, 96, 127, 128, 129, 192, 200, 255, 256, 257, 300)


def extents(largest: int = 300) -> st.SearchStrategy[int]:
    """Return extents 1..``largest``: any, primes, and what lies beside tile sizes."""
    chosen = sorted({extent for extent in (*_PRIMES, *_EDGES) if extent <= largest})
    return st.one_of(st.integers(1, largest), st.sampled_from(chosen))


def shapes(rank: int, largest: int = 300) -> st.SearchStrategy[tuple[int, ...]]:
    """Return shapes of ``rank`` extents."""
    return st.tuples(*[extents(largest)] * rank)


class Values(Enum):
    """What numbers an array of floats holds."""

    ORDINARY = "normally distributed"
    SMALL = "few distinct small integers: sums are exact"
    WIDE = "all magnitudes, subnormals among them"
    CANCELLING = "rows of large numbers and their negatives"
    SPECIAL = "ordinary with infinities, nan, zeros, subnormals and the largest numbers strewn in"


SPECIALS = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0)
"""Beside these, SPECIAL strews the dtype's largest, least normal and least subnormal numbers."""


@st.composite
def arrays(
    draw: st.DrawFn, dtype: DType, shape: Sequence[int], values: Sequence[Values] = tuple(Values)
) -> Array:
    """Return arrays of ``dtype`` and ``shape``, row-major.

    The numbers come from a drawn seed, since drawing each would take long; failures shrink in
    shape and in ``values``, whose first is the simplest.

    Args:
        draw: Hypothesis's.
        dtype: Any dtype of cklang; those of 4 bits are arrays of ml_dtypes, one in a byte.
        shape: The extents.
        values: What floats may be: ordinary, small integers, all magnitudes, rows that cancel,
            infinities and nan.

    Example:
        >>> from hypothesis import given
        >>> from cklang.testing import arrays
        >>> @given(arrays(ck.bf16, (3, 40)))
        ... def test_it(x):
        ...     assert x.shape == (3, 40)
        >>> test_it()
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_float = dtype.kind not in (Kind.BOOL, Kind.INT)
    chosen = draw(st.sampled_from(list(values))) if is_float else Values.ORDINARY
    return random_array(rng, dtype, shape, chosen)


def random_array(
    rng: np.random.Generator, dtype: DType, shape: Sequence[int], values: Values
) -> Array:
    """Return an array of ``dtype`` and ``shape``, row-major.

    Integers cover all numbers of their dtype, or -3 to 3 where ``values`` is SMALL.
    """
    if dtype.kind is Kind.BOOL:
        return rng.integers(0, 2, tuple(shape)).astype(np.bool_)
    if dtype == e8m0:
        return rng.integers(120, 134, tuple(shape)).astype(np.uint8).view(dtype.numpy)
    if dtype.kind is Kind.INT and values is Values.SMALL:
        return rng.integers(-3, 4, tuple(shape)).astype(dtype.numpy)
    if dtype == i4:
        return rng.integers(-8, 8, tuple(shape)).astype(dtype.numpy)
    if dtype.kind is Kind.INT:
        info = np.iinfo(dtype.numpy)
        return rng.integers(info.min, info.max, tuple(shape), endpoint=True, dtype=dtype.numpy)
    return _floats(rng, dtype, tuple(shape), values)


def _floats(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], values: Values
) -> Array:
    with np.errstate(all="ignore"):
        return _wide(rng, dtype, shape, values).astype(dtype.numpy)


def _wide(rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], values: Values) -> Array:
    ordinary = rng.standard_normal(shape)
    match values:
        case Values.ORDINARY:
            return ordinary
        case Values.SMALL:
            return rng.integers(-3, 4, shape).astype(np.float64)
        case Values.WIDE:
            low, high = _exponents(dtype)
            return ordinary * np.exp2(rng.integers(low, high, shape))
        case Values.CANCELLING:
            signs = np.where(np.arange(ordinary.size).reshape(shape) % 2, -1.0, 1.0)
            return signs * (100.0 + np.round(ordinary))
        case Values.SPECIAL:
            low, high = _exponents(dtype)
            strewn = np.array([*SPECIALS, 2.0**low, -(2.0 ** (low + 10)), 2.0 ** (high - 1)])
            chosen = rng.choice(strewn, shape)
            # Few enough that most rows of a matrix keep finite sums.
            return np.where(rng.random(shape) < 2 / (1 + max(shape, default=1)), chosen, ordinary)


def _exponents(dtype: DType) -> tuple[int, int]:
    """Return the exponents of the least subnormal and of what is beyond the largest number."""
    return {
        "f16": (-24, 16),
        "bf16": (-133, 128),
        "f32": (-149, 128),
        "f64": (-1074, 1024),
        "fp4": (-1, 3),
        "fp8": (-9, 8),
        "bf8": (-16, 15),
        "fp8_fnuz": (-10, 7),
        "bf8_fnuz": (-17, 15),
    }[dtype.name]


class Layout(Enum):
    """The memory layout of an array; of a batch, that of each of its matrices."""

    ROW = "row-major"
    COLUMN = "column-major"
    PADDED_ROW = "row-major with a longer leading dimension"
    PADDED_COLUMN = "column-major with a longer leading dimension"
    OFFSET = "a window of a larger row-major array"
    STEPPED = "every second element of a larger array"


CONTIGUOUS = tuple(layout for layout in Layout if layout is not Layout.STEPPED)
"""The layouts with a contiguous matrix axis, which operands of products must have."""


def laid_out(array: Array, layout: Layout, pad: int = 8) -> Array:
    """Return a view that equals ``array`` and lies in memory as ``layout`` says.

    ``pad`` elements are added to a leading dimension or around a window; they hold garbage.
    """
    if array.ndim == 0 or layout is Layout.ROW:
        return np.array(array, order="C")
    if layout in (Layout.COLUMN, Layout.PADDED_COLUMN):
        turned = Layout.ROW if layout is Layout.COLUMN else Layout.PADDED_ROW
        if array.ndim == 1:
            return laid_out(array, turned, pad)
        return laid_out(array.swapaxes(-1, -2), turned, pad).swapaxes(-1, -2)
    if layout is Layout.STEPPED:
        room = np.full(tuple(2 * extent for extent in array.shape), 113, array.dtype)
        window = room[tuple(slice(None, None, 2) for _ in array.shape)]
    elif layout is Layout.PADDED_ROW:
        room = np.full((*array.shape[:-1], array.shape[-1] + pad), 113, array.dtype)
        window = room[..., : array.shape[-1]]
    else:
        room = np.full(tuple(extent + 2 * pad for extent in array.shape), 113, array.dtype)
        window = room[tuple(slice(pad, pad + extent) for extent in array.shape)]
    window[...] = array
    return window


def strided(array: Array, layouts: Sequence[Layout] = CONTIGUOUS) -> st.SearchStrategy[Array]:
    """Return ``array`` in drawn layouts and paddings; the simplest is row-major.

    Args:
        array: The numbers.
        layouts: By default those that every operand may have. ``tuple(Layout)`` adds arrays
            without a contiguous axis: epilogues read them, products refuse them (A030).

    Example:
        >>> from hypothesis import given
        >>> import numpy as np
        >>> @given(strided(np.ones((3, 4), np.float16)))
        ... def test_linear(x): ...
    """
    return st.builds(
        laid_out, st.just(array), st.sampled_from(list(layouts)), st.sampled_from([8, 1, 3, 64])
    )
