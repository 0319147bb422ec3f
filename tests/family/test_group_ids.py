# SPDX-License-Identifier: MIT
"""``ck.group_ids``: places of ids in the order of their groups, and where groups end."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families import plan_of
from cklang.runtime.op import Op
from tests.support.checks import check
from tests.support.coverage import Covered
from tests.support.errors import expect_error

T, G = ck.dims("T G")
GPUS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
Array = np.ndarray[Any, Any]


@ck.op
def both(ids: ck.i32[T], like: ck.f32[G]) -> tuple[ck.i32[T], ck.i32[G]]:
    return ck.group_ids(ids, G)


@ck.op
def ends(ids: ck.i64[T], like: ck.f32[G]) -> ck.i32[G]:
    _, last = ck.group_ids(ids, G)
    return last


@ck.op
def order(ids: ck.i64[T], like: ck.f32[G]) -> ck.i32[T]:
    places, _ = ck.group_ids(ids, G)
    return places


@pytest.mark.parametrize("op", [both, ends, order], ids=lambda op: op.program.name)
def test_one_kernel_gives_order_and_ends(op: Op) -> None:
    assert [kernel.family for kernel in plan_of(op.program.specialise()).kernels] == ["group_ids"]


@given(ids=st.lists(st.integers(-2, 9), max_size=40), count=st.integers(0, 7))
def test_the_meaning_is_that_of_a_stable_sort(ids: list[int], count: int) -> None:
    places, last = ck.group_ids(np.array(ids, np.int32), count)
    groups = [each if 0 <= each < count else count for each in ids]
    assert places.tolist() == sorted(range(len(ids)), key=lambda place: groups[place])
    assert last.tolist() == [sum(group <= own for group in groups) for own in range(count)]


def ids_of_every_number(gpu: str) -> None:
    """Check ids on a GPU."""

    @settings(max_examples=12, deadline=None)
    @given(t=st.integers(0, 3000), g=st.integers(1, 12), seed=st.integers(0, 99))
    @example(t=1, g=1, seed=0)
    @example(t=1025, g=3, seed=1)
    def drawn(t: int, g: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        ids, like = random.integers(-1, g + 2, 2 * t), np.zeros(g, np.float32)
        check(both, (ids.astype(np.int32)[::2], like), gpu)
        check(ends, (ids[:t] << (ids[:t] > g) * 32, like), gpu)

    drawn()
    same = np.full(700, 2, np.int32)
    check(both, (same, np.zeros(5, np.float32)), gpu)
    check(order, (same.astype(np.int64), np.zeros(2, np.float32)), gpu)


@pytest.mark.usefixtures("stencils")
def test_ids_of_every_number(covered: Covered) -> None:
    ids_of_every_number("gfx942")
    covered("ids by group", "f16", "gfx942")


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", [gpu for gpu in GPUS if gpu != "gfx942"])
def test_other_gpus(gpu: str, covered: Covered) -> None:
    ids_of_every_number(gpu)
    covered("ids by group", "f16", gpu)


def test_refusals() -> None:
    def floats(ids: ck.f32[T], like: ck.f32[G]) -> tuple[ck.i32[T], ck.i32[G]]:
        return ck.group_ids(ids, G)

    with expect_error("F066", match="the ids are f32"):
        ck.op(floats).program.specialise()

    def matrices(ids: ck.i32[T, G]) -> tuple[ck.i32[T], ck.i32[G]]:
        return ck.group_ids(ids, G)

    with expect_error("F066", match=r"legal: ids\[T\]"):
        ck.op(matrices).program.specialise()
