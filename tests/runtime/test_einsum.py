# SPDX-License-Identifier: MIT
"""``ck.einsum`` with any labels on an emulated GPU: against the reference within its bound."""

from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families.gemm.problem import Problem
from cklang.runtime.op import Op
from tests.support.algorithms import DEEP, narrow
from tests.support.arrays import eighths
from tests.support.checks import check, check_group, launches
from tests.support.typed import instance, only
from tests.support.written_ops import written_op

pytestmark = pytest.mark.usefixtures("stencils")

LABELS = "abcdefghijkl"
ODD = {"batch": (1, 3), "m": (1, 3, 5, 9), "n": (1, 3, 7), "k": (1, 3, 5)}
"""Extents with which every copy moves single elements: one stencil serves all."""
ANY = {"batch": (1, 2, 3), "m": (1, 2, 8, 9), "n": (1, 2, 7, 8), "k": (1, 2, 3, 8)}

B, S, E, H, D, M, N, K, L = ck.dims("B S E H D M N K L")


class Drawn(NamedTuple):
    """A contraction: subscripts, the extent of each label, and the group of each label."""

    subscripts: str
    sizes: dict[str, int]
    groups: dict[str, str]

    def of(self, *groups: str) -> str:
        """Return the labels of some groups that have more than one element."""
        return "".join(
            label
            for label, group in self.groups.items()
            if group in groups and self.sizes[label] > 1
        )


@st.composite
def contractions(draw: st.DrawFn, extents: dict[str, tuple[int, ...]]) -> Drawn:
    """Draw subscripts with up to three labels of each group."""
    names = iter(LABELS)
    groups: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for group, choices in extents.items():
        for number in range(draw(st.integers(int(group == "k"), 3))):
            label = next(names)
            groups[label] = group
            # One summed label is longer than 1.
            longer = [each for each in choices if each > 1]
            first = group == "k" and number == 0
            sizes[label] = draw(st.sampled_from(longer if first else choices))

    def labels(*of: str) -> str:
        return "".join(draw(st.permutations([x for x, group in groups.items() if group in of])))

    a, b, result = labels("batch", "m", "k"), labels("batch", "n", "k"), labels("batch", "m", "n")
    return Drawn(f"{a},{b}->{result}", sizes, groups)


def op_of(subscripts: str) -> Op:
    """Return the op of a contraction, with an algorithm for any strides."""
    sides, result = subscripts.split("->")
    a, b = (", ".join(part.upper()) for part in sides.split(","))
    shape = ", ".join(result.upper()) or "()"
    text = (
        f"@ck.op\ndef f(a: ck.f16[{a}], b: ck.f16[{b}]) -> ck.f16[{shape}]:\n"
        f"    return ck.einsum({subscripts!r}, a, b)\n"
    )
    return written_op(text, " ".join(LABELS.upper())).using(narrow(warp_tile=DEEP))


def array(labels: str, order: str, sizes: dict[str, int], seed: int) -> Any:
    """Return an array with the axes ``labels``, which lie in memory in the given order."""
    stored = eighths(*(sizes[label] for label in order), seed=seed)
    return stored.transpose([order.index(label) for label in labels])


def check_numpy(drawn: Drawn, orders: list[str]) -> None:
    op = op_of(drawn.subscripts)
    sides = drawn.subscripts.split("->")[0].split(",")
    args = [
        array(labels, order, drawn.sizes, seed)
        for seed, (labels, order) in enumerate(zip(sides, orders, strict=True))
    ]
    got = check(op, args)
    want = np.einsum(drawn.subscripts, *(each.astype(np.float64) for each in args))
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=2**-10, atol=2**-12)


@settings(max_examples=40, deadline=None)
@given(data=st.data(), drawn=contractions(ODD))
def test_any_labels_in_any_layout(data: st.DataObject, drawn: Drawn) -> None:
    orders = []
    for labels in drawn.subscripts.split("->")[0].split(","):
        # Rows and columns that are contiguous would be stencils of other layouts.
        last = data.draw(st.sampled_from([x for x in drawn.of("k") if x in labels]))
        rest = data.draw(st.permutations([label for label in labels if label != last]))
        orders.append("".join(rest) + last)
    check_numpy(drawn, orders)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@settings(max_examples=60, deadline=None)
@given(data=st.data(), drawn=contractions(ANY))
def test_any_labels_in_any_layout_of_every_stencil(data: st.DataObject, drawn: Drawn) -> None:
    sides = drawn.subscripts.split("->")[0].split(",")
    check_numpy(drawn, ["".join(data.draw(st.permutations(labels))) for labels in sides])


@ck.op
def merged(o: ck.f16[B, H, S, D], wo: ck.f16[E, H, D]) -> ck.f16[B, S, E]:
    return ck.einsum("bhsd,ehd->bse", o, wo)


@ck.op
def by_vector(x: ck.f16[B, M, K], v: ck.f16[K]) -> ck.f16[B, M]:
    return ck.relu(x @ v)


@ck.op
def scalars(x: ck.f16[B, K], y: ck.f16[B, K]) -> ck.f16[B]:
    return ck.einsum("bk,bk->b", x, y)


@ck.op
def outer(x: ck.f16[M], y: ck.f16[N]) -> ck.f16[M, N]:
    return ck.einsum("m,n->mn", x, y)


@ck.op
def scattered(x: ck.f16[M, K, B], w: ck.f16[N, K, B]) -> ck.f16[B, M, N]:
    return ck.einsum("mkb,nkb->bmn", x, w)


@ck.op
def last_is_batch(x: ck.f16[B, M, K], w: ck.f16[B, N, K]) -> ck.f16[M, N, B]:
    return ck.relu(ck.einsum("bmk,bnk->mnb", x, w))


@ck.op
def many(x: ck.f16[B, S, E, H, K, M, L], w: ck.f16[N, K, L]) -> ck.f16[H, E, S, B, M, N]:
    return ck.einsum("bsehkml,nkl->hesbmn", x, w)


@ck.op
def four(x: ck.f16[B, S, E, H, M, K], w: ck.f16[H, E, S, B, N, K]) -> ck.f16[B, S, E, H, M, N]:
    return ck.einsum("bsehmk,hesbnk->bsehmn", x, w)


@ck.op
def computed(x: ck.f16[M, K], s: ck.f16[K, L], w: ck.f16[N, K, L]) -> ck.f16[M, N]:
    return ck.einsum("mkl,nkl->mn", (x[:, :, None] * s).to(ck.f16), w)


MERGED = merged.using(narrow(warp_tile=DEEP))


def problem_and_copies(op: Op, *args: Any) -> tuple[Problem, list[str]]:
    """Return the one product of a call that is planned, and what is copied before it."""
    (choice,) = op._choices(args, {}, None, "emu:gfx942")
    problem = only(Problem, [choice.selection.problem])
    return problem, [next(iter(stage.written)) for stage in choice.before]


def test_summed_axes_whose_strides_go_on_are_one() -> None:
    o = np.zeros((2, 5, 3, 8), np.float16).transpose(0, 2, 1, 3)
    problem, copies = problem_and_copies(merged, o, np.zeros((7, 3, 8), np.float16))
    assert (problem.batch, problem.m, problem.n, problem.k) == ((), 10, 7, 24)
    assert copies == []


def test_the_order_of_summed_axes_is_that_of_both_operands() -> None:
    # K in the order (d, h) in both.
    o = np.zeros((2, 5, 8, 3), np.float16).transpose(0, 3, 1, 2)
    wo = np.zeros((7, 8, 3), np.float16).transpose(0, 2, 1)
    problem, copies = problem_and_copies(merged, o, wo)
    assert (problem.k, copies) == (24, [])


def test_an_operand_whose_summed_axes_do_not_go_on_is_copied() -> None:
    o, wo = np.zeros((2, 3, 5, 8), np.float16), np.zeros((7, 3, 8), np.float16)
    problem, copies = problem_and_copies(merged, o, wo)
    assert (problem.m, problem.k, copies) == (10, 24, ["o_by_0_2_1_3"])
    text = merged.explain(o, wo, device="emu:gfx942")
    assert "before     [2, 3, 5, 8] of 2-byte elements" in text
    assert "one stride each" in text
    # The smaller operand is copied where either would do.
    wo = np.zeros((7, 8, 3), np.float16).transpose(0, 2, 1)
    o = np.zeros((2, 5, 3, 8), np.float16).transpose(0, 2, 1, 3)
    assert problem_and_copies(merged, o, wo)[1] == ["wo_by_0_1_2"]


def test_an_operand_whose_batch_is_contiguous_is_copied() -> None:
    problem, copies = problem_and_copies(scattered, eighths(5, 9, 3), eighths(7, 9, 3))
    assert (problem.batch, copies) == ((3,), ["x_by_2_0_1", "w_by_2_0_1"])
    check(scattered.using(narrow(warp_tile=DEEP)), [eighths(5, 9, 3), eighths(7, 9, 3)])


def test_one_summed_axis_that_takes_steps_is_refused_as_before() -> None:
    x = np.zeros((2, 5, 16), np.float16)[..., ::2]
    with pytest.raises(ck.CkError, match="CK-A030"):
        by_vector.explain(x, np.zeros(8, np.float16), device="emu:gfx942")


def test_copies_run_before_the_product() -> None:
    check(MERGED, [eighths(2, 3, 5, 7), eighths(9, 3, 7)])
    assert [each.key.family for each in launches(MERGED)] == ["layout_copy", "gemm"]


def test_a_result_is_copied_after_the_product() -> None:
    op = last_is_batch.using(narrow(warp_tile=DEEP))
    check(op, [eighths(3, 5, 9), eighths(3, 7, 9)])
    assert [each.key.family for each in launches(op)] == ["gemm", "layout_copy"]


def test_a_copy_of_many_axes_is_several_launches() -> None:
    op = many.using(narrow(warp_tile=DEEP))
    check(op, [eighths(3, 5, 3, 5, 7, 3, 9), eighths(11, 7, 9)])
    families = [each.key.family for each in launches(op)]
    assert families == [*["layout_copy"] * 3, "gemm"]


def test_a_batch_of_four_axes_is_several_launches() -> None:
    op = four.using(narrow(warp_tile=DEEP))
    check(op, [eighths(2, 3, 4, 5, 7, 9), eighths(5, 4, 3, 2, 8, 9)])
    problems = [instance(Problem, launch.problem) for launch in launches(op)]
    assert [each.batch for each in problems] == [(3, 4, 5)] * 2


def test_sums_over_nothing_and_results_without_elements() -> None:
    o, wo = eighths(2, 3, 5, 7), eighths(9, 3, 7)
    assert (MERGED(o[..., :0], wo[..., :0]) == 0).all()
    assert (MERGED(o[:, :0], wo[:, :0]) == 0).all()
    assert MERGED(o[:0], wo).shape == (0, 5, 9)


def test_a_group_does_not_copy() -> None:
    o, wo = eighths(2, 3, 5, 8), eighths(7, 3, 8)
    with pytest.raises(ck.CkError, match="CK-A057 the summed axes of o are not one axis"):
        MERGED.grouped([(o, wo)], device="emu:gfx942")


def test_a_matrix_by_a_vector_is_columns() -> None:
    problem, _ = problem_and_copies(by_vector, eighths(3, 20, 16), eighths(16))
    # The vector is A, with one row; the rows of all matrices are columns.
    assert (problem.batch, problem.m, problem.n, problem.k) == ((), 1, 60, 16)


def test_vectors() -> None:
    check(by_vector.using(narrow(warp_tile=DEEP)), [eighths(3, 21, 40), eighths(40)])
    check(scalars.using(narrow(warp_tile=DEEP)), [eighths(5, 33), eighths(5, 33)])


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
def test_outer_products_groups_and_computed_operands() -> None:
    check(outer.using(narrow(warp_tile=DEEP)), [eighths(33), eighths(70)])
    rows, wo = eighths(2, 5, 3, 8).transpose(0, 2, 1, 3), eighths(7, 3, 8)
    check_group(MERGED, [(rows, wo), (rows[:1], wo)])
    # What the function reads has not all summed axes: a copy repeats it.
    check(computed.using(narrow(warp_tile=DEEP)), [eighths(9, 5), eighths(5, 7), eighths(11, 5, 7)])
