# SPDX-License-Identifier: MIT
"""Which kernel of rows is chosen: those that the clock has found quickest, or nearly so."""

from typing import Any

import pytest
import rows_choice

import cklang as ck
from cklang.arch import arch
from cklang.families import FAMILIES
from cklang.families.rowwise.problem import RowwiseProblem
from tests.support.arrays import half
from tests.support.typed import only

M, K = ck.dims("M K")


@ck.op
def column_sums(x: ck.f16[M, K]) -> ck.f32[K]:
    return ck.sum(x, axis=0)


# Within 3 % of the quickest by the clock on gfx942 (benchmarks/rows_choice.py).
CHOSEN = {
    ("added", 64, 4096): (256, 8),
    ("added", 1024, 4096): (256, 8),
    ("added", 8192, 4096): (256, 8),
    ("transposed", 64, 4096): (1, 8),
    ("transposed", 1024, 1024): (16, 8),
    ("transposed", 4096, 4096): (16, 8),
    ("added_transposed", 1024, 1024): (16, 8),
}


@pytest.mark.parametrize("case", CHOSEN, ids=lambda case: "-".join(map(str, case)))
def test_the_quickest_is_chosen_where_nothing_is_reduced(case: tuple[str, int, int]) -> None:
    op: Any = getattr(rows_choice, case[0])
    ((key, _),) = op.kernels(*rows_choice.arguments(op, *case[1:]), device="emu:gfx942")
    assert (key.algorithm.threads, key.algorithm.vector) == CHOSEN[case]


def test_memory_and_latency_hide_one_another_where_rows_are_reduced() -> None:
    x = half(4096, 512)
    ((key, _),) = column_sums.kernels(x, device="emu:gfx942")
    problem = only(RowwiseProblem, column_sums.problems(x))
    model = FAMILIES["rowwise"].cost([key], arch("gfx942"), {})
    terms = model.terms(0, problem)
    assert sum(terms.values()) == pytest.approx(float(model.times(problem)[0]))
    (table,) = model.table([0], problem)
    assert "overlap" in table
