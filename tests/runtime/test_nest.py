# SPDX-License-Identifier: MIT
"""Folding the loops of a launch: fewer of them, over the same elements."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from cklang.families.gemm.loop_nest import Axis, LoopNest, collapse_loops


def axis(extent: int, *strides: int) -> Axis:
    return Axis(extent=extent, strides=strides)


def access_range(nest: LoopNest) -> list[tuple[int, ...]]:
    """The offsets of A, B and E at every element of the result."""
    axes = [*nest.batch, nest.rows, nest.columns]
    addresses = []
    for place in itertools.product(*(range(each.extent) for each in axes)):
        moved = [
            [at * stride for stride in each.strides] for at, each in zip(place, axes, strict=True)
        ]
        steps = zip(*moved, strict=True)
        addresses.append(tuple(sum(step) for step in steps))
    return sorted(addresses)


def test_a_batch_that_shares_b_is_more_rows() -> None:
    nest = LoopNest(batch=(axis(3, 40, 0, 20),), rows=axis(4, 10, 0, 5), columns=axis(5, 0, 10, 1))
    assert collapse_loops(nest) == LoopNest(batch=(), rows=axis(12, 10, 0, 5), columns=nest.columns)


def test_a_batch_that_shares_a_is_more_columns() -> None:
    nest = LoopNest(batch=(axis(3, 0, 50, 5),), rows=axis(4, 10, 0, 15), columns=axis(5, 0, 10, 1))
    assert collapse_loops(nest) == LoopNest(batch=(), rows=nest.rows, columns=axis(15, 0, 10, 1))


def test_neighbours_are_one_axis() -> None:
    batch = (axis(2, 120, 150, 60), axis(3, 40, 50, 20), axis(1, 7, 7, 7))
    nest = LoopNest(batch=batch, rows=axis(4, 10, 0, 5), columns=axis(5, 0, 10, 1))
    assert collapse_loops(nest).batch == (axis(6, 40, 50, 20),)


def test_one_row_takes_the_steps_of_the_batch_if_a_stays_readable() -> None:
    columns = axis(5, 0, 10, 1)
    nest = LoopNest(batch=(axis(3, 100, 0, 5),), rows=axis(1, 0, 0, 0), columns=columns)
    assert collapse_loops(nest).rows == axis(3, 100, 0, 5)
    strided_k = LoopNest(
        batch=nest.batch, rows=nest.rows, columns=nest.columns, whole_k=(False, True)
    )
    assert collapse_loops(strided_k) == strided_k


STRIDES = st.sampled_from([0, 1, 2, 4, 6, 8, 12, 24, 48])
AXES = st.builds(
    lambda extent, strides: Axis(extent=extent, strides=strides),
    st.integers(1, 4),
    st.tuples(STRIDES, STRIDES, STRIDES),
)


@given(batch=st.lists(AXES, max_size=3), rows=AXES, columns=AXES, whole=st.booleans())
def test_the_same_elements_are_computed(
    batch: list[Axis], rows: Axis, columns: Axis, whole: bool
) -> None:
    nest = LoopNest(batch=tuple(batch), rows=rows, columns=columns, whole_k=(whole, whole))
    collapsed = collapse_loops(nest)
    assert access_range(collapsed) == access_range(nest)
    assert len(collapsed.batch) <= sum(each.extent != 1 for each in batch)
