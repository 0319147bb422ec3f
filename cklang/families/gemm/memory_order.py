# SPDX-License-Identifier: MIT
"""The orders of axes in memory with which products of temporaries are few and large.

The planner lays a temporary out as the kernel that reads it asks, or the one that writes it. With
heads ``h`` of ``d`` elements, ``bse,hde->bhsd`` writes its result in the order ``bshd``, since rows
``bs`` and columns ``hd`` are then one product; and ``bhsd,ehd->bse`` reads it so, since ``hd`` is
then one axis.
"""

from cklang.families.gemm.plan import FusedGemm
from cklang.families.gemm.summed_axes import split_axes
from cklang.fusion.plan import Computed, View
from cklang.fusion.sites import Axes
from cklang.ir.nodes import Value


def collapsible_order(kernel: FusedGemm) -> tuple[int, ...]:
    """Return the order of a result in which batch axes of A alone are rows, of B alone columns.

    The columns are contiguous.
    """
    *batch, row, column = kernel.axes
    runs = [
        tuple(_runs_with(side, place) for side in (kernel.a, kernel.b))
        for place in range(len(batch))
    ]
    rows, columns = (
        [axis for axis, own in zip(batch, runs, strict=True) if own == alone]
        for alone in ((True, False), (False, True))
    )
    shared = [axis for axis in batch if axis not in rows and axis not in columns]
    order = (*shared, *rows, row, *columns, column)
    return tuple(axis for axis in order if axis is not None)


def summable_order(kernel: FusedGemm, value: Value) -> tuple[int, ...] | None:
    """Return the order of an operand in which the axes that are summed over are one axis.

    It is that of the other operand, whose array mostly has the order of the program; None if the
    product has one such axis, or ``value`` is no operand of it.
    """
    if kernel.depth == 1:
        return None
    for of_a, side, other in ((True, kernel.a, kernel.b), (False, kernel.b, kernel.a)):
        for read in side.reads:
            if read.value == value:
                axes = split_axes(read.axes, kernel.depth, of_a=of_a)
                _, _, like = split_axes(other.reads[0].axes, kernel.depth, of_a=not of_a)
                return _order(value.type.rank, *axes, like)
    return None


def _order(rank: int, batch: Axes, own: Axes, k: Axes, like: Axes) -> tuple[int, ...]:
    places = sorted(range(len(k)), key=lambda place: -1 if (at := like[place]) is None else at)
    summed = [k[place] for place in places]
    # The last axis stays the last one: most kernels write that side by side.
    matrix = [*summed, *own] if own == (rank - 1,) else [*own, *summed]
    known = [axis for axis in (*batch, *matrix) if axis is not None]
    return (*(axis for axis in range(rank) if axis not in known), *known)


def _runs_with(side: View | Computed, place: int) -> bool:
    return any(read.axes[place] is not None for read in side.reads)
