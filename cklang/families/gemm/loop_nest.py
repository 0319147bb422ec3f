# SPDX-License-Identifier: MIT
"""The loops of a launch as strides, made as few as they can be.

A kernel counts over batch axes, rows and columns. An axis of extent 1 counts nothing. A batch axis
along which B does not change, and whose steps in every other operand go on where the rows end, is
more rows; so are columns for A. Two neighbouring batch axes where one continues where the other
ends are one. What is left is the batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One loop: its extent, and the stride of each operand along it in elements."""

    extent: int
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Scales of A or B among the operands."""

    operand: int
    single: bool
    """Whether every row of A, or column of B, has scales of its own: then more may be joined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopNest:
    """All loops of a launch but K's; operands are in the order A, B, E, each D, scales.

    A matrix that is computed has as many operands as the function that computes it.
    """

    batch: tuple[Axis, ...]
    rows: Axis
    columns: Axis
    whole_k: tuple[bool, bool] = (True, True)
    """Whether the other axis of A and of B may have any stride: K is contiguous, or they are
    computed."""
    counts: tuple[int, int] = (1, 1)
    """Operands of A and of B."""
    blocks: tuple[Blocks | None, Blocks | None] = (None, None)
    """The scales of A and of B, which are operands after each D."""

    @property
    def sides(self) -> tuple[range, range]:
        """The operands of A and of B."""
        first = self.counts[0]
        return range(first), range(first, sum(self.counts))


_A, _B = range(2)


def collapse_loops(nest: LoopNest) -> LoopNest:
    """Return ``nest`` with as few batch axes as its strides allow."""
    batch = _merged([axis for axis in nest.batch if axis.extent != 1])
    kept: list[Axis] = []
    rows, columns = nest.rows, nest.columns
    first_b, e = nest.counts[0], sum(nest.counts)
    for axis in reversed(batch):
        more_rows = _joined(axis, rows) if _may_join(nest, axis, _A, _B) else None
        more_columns = _joined(axis, columns) if _may_join(nest, axis, _B, _A) else None
        if more_rows is not None and (nest.whole_k[0] or more_rows.strides[0] == 1):
            rows = more_rows
        elif (
            more_columns is not None
            and more_columns.strides[e] == 1
            and (nest.whole_k[1] or more_columns.strides[first_b] == 1)
        ):
            columns = more_columns
        else:
            kept.append(axis)
    return replace(nest, batch=tuple(reversed(kept)), rows=rows, columns=columns)


def _may_join(nest: LoopNest, axis: Axis, grows: int, stays: int) -> bool:
    """Tell whether one operand may have more rows or columns, and the other does not change."""
    more, same = nest.blocks[grows], nest.blocks[stays]
    fixed = [*nest.sides[stays], *([] if same is None else [same.operand])]
    return (more is None or more.single) and not any(axis.strides[index] for index in fixed)


def _joined(outer: Axis, inner: Axis) -> Axis | None:
    """Return the two loops as one, or None if their steps do not go on from one another."""
    extent = outer.extent * inner.extent
    if inner.extent == 1:
        return Axis(extent=extent, strides=outer.strides)
    steps = zip(outer.strides, inner.strides, strict=True)
    if any(far != near * inner.extent for far, near in steps):
        return None
    return Axis(extent=extent, strides=inner.strides)


def _merged(batch: Sequence[Axis]) -> list[Axis]:
    result: list[Axis] = []
    for axis in batch:
        joined = _joined(result[-1], axis) if result else None
        if joined is None:
            result.append(axis)
        else:
            result[-1] = joined
    return result
