# SPDX-License-Identifier: MIT
"""The ops ``block_peak`` and ``block_first``: what a product's kernel says of blocks of columns.

``block_peak`` gives each element the largest of its block, ``block_first`` keeps one number for
each block. Users do not write them. Fusion puts them between a product and the quantisation of its
rows in groups, so that the product's kernel computes both.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cklang.ir.nodes import Attr
from cklang.ir.numeric import Array
from cklang.ir.rules import Shape, ShapeRule

BLOCK_PEAK, BLOCK_FIRST = "block_peak", "block_first"
BLOCK_COLUMNS = (32, 64, 128, 256)
"""The columns that a block may have."""


def peak(x: Array, columns: int) -> Array:
    """Return the largest element of its block for each element; nan if one is.

    >>> peak(np.array([[1.0, 5.0, 2.0, 3.0]]), columns=2).tolist()
    [[5.0, 5.0, 3.0, 3.0]]
    """
    blocks = x.reshape(*x.shape[:-1], -1, columns)
    largest = np.broadcast_to(blocks.max(axis=-1, keepdims=True), blocks.shape)
    result: Array = largest.reshape(x.shape)
    return result


def first(x: Array, columns: int, shape: Sequence[int] = ()) -> Array:
    """Return the first element of each block, whatever ``shape`` is declared.

    >>> first(np.array([[5.0, 5.0, 3.0, 3.0]]), columns=2).tolist()
    [[5.0, 3.0]]
    """
    result: Array = x[..., ::columns]
    return result


def _shape(
    shapes: tuple[Shape, ...], attrs: Mapping[str, Attr], declared: Shape | None
) -> Shape | None:
    (shape,) = shapes
    if declared is None or not shape or len(declared) != len(shape) or declared[:-1] != shape[:-1]:
        return None
    elements, count, columns = shape[-1], declared[-1], attrs["columns"]
    if isinstance(elements, int) and isinstance(count, int) and isinstance(columns, int):
        return declared if elements == columns * count else None
    return declared


BLOCK_FIRST_SHAPE = ShapeRule(
    text="a number for each block of the last axis, which has as many elements as all blocks",
    apply=_shape,
    declared=True,
)
