# SPDX-License-Identifier: MIT
"""Default products and convolutions take no longer than they did, by the clock under load."""

from __future__ import annotations

import pytest
from by_clock import GUARDED, Case, cases, line, under_load

from tests.support.shared_data import required


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("case", GUARDED, ids=lambda case: f"{case.family}, {case.board}")
def test_the_default_is_as_quick_as_it_was(case: Case) -> None:
    """Where it is much quicker, the case's time should follow."""
    taken = under_load(case.predicted())
    assert 0.8 * case.us < taken <= 1.03 * case.us


def test_the_same_rows_are_drawn_each_time() -> None:
    for name in ("mi3xx_gemm_tuned.csv.gz", "silicon/conv_forward_gfx950.csv"):
        required(name)
    drawn = cases(3)
    assert drawn == cases(3)
    assert {len(rows) for rows in drawn.values()} == {3}
    assert ("fp8, scales of blocks", "MI300X") in drawn


def test_a_line_has_the_geometric_mean() -> None:
    assert line("f", "b", [0.5, 2.0]) == "| f | b | 2 | 1.00 | 0.50 | 2.00 |"
