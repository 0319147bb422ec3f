# SPDX-License-Identifier: MIT
"""The ops ``log_sums``, ``block_sums`` and ``block_maxima``: a number for a row's block of columns.

``log_sums`` gives the logarithm of the sum of exponentials, the others the sum and the largest
element. Users do not write them. Fusion puts them between a product and a reduction of its rows,
where the product's kernel stores these numbers in the place of its result.
"""

from collections.abc import Mapping

import numpy as np

from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.rules import Shape, ShapeRule
from cklang.types import Dim, Extent, Formula

PARTIALS = LOG_SUMS, BLOCK_SUMS, BLOCK_MAXIMA = "log_sums", "block_sums", "block_maxima"
"""The names of the ops."""
COLUMNS = 64
"""The columns of a block."""


def log_sums(x: Array) -> Array:
    """Return the log-sum-exp of each block of the last axis."""
    blocks = _blocks(x, -np.inf)
    largest = blocks.max(axis=-1)
    shift = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        total = np.log(np.exp(blocks - shift[..., None]).sum(axis=-1))
    result: Array = total + shift
    return result


def block_sums(x: Array) -> Array:
    """Return the sum of each block of the last axis.

    >>> block_sums(np.ones((1, 70))).tolist()
    [[64.0, 6.0]]
    """
    result: Array = _blocks(x, 0.0).sum(axis=-1)
    return result


def block_maxima(x: Array) -> Array:
    """Return the largest element of each block of the last axis; nan if one is."""
    result: Array = _blocks(x, -np.inf).max(axis=-1)
    return result


def _blocks(x: Array, missing: float) -> Array:
    """Return an array with an axis more: the elements of each block."""
    rest = -x.shape[-1] % COLUMNS
    padded = np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, rest)], constant_values=missing)
    return padded.reshape(*x.shape[:-1], -1, COLUMNS)


def block_count(extent: Extent) -> Extent | None:
    """Return how many blocks cover an axis; None if that is no extent of the language.

    Example:
        >>> block_count(130), str(block_count(Dim("N")))
        (3, 'N/64')
    """
    if isinstance(extent, int):
        return -(-extent // COLUMNS)
    return extent / COLUMNS if type(extent) in (Dim, Formula) else None


def _shape(
    shapes: tuple[Shape, ...], _attrs: Mapping[str, Attr], _declared: Shape | None
) -> Shape | None:
    (shape,) = shapes
    count = block_count(shape[-1]) if shape else None
    return None if count is None else (*shape[:-1], count)


LOG_SUMS_SHAPE = ShapeRule(
    text=f"a block for each {COLUMNS} elements of the last axis", apply=_shape
)
