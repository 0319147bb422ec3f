# SPDX-License-Identifier: MIT
"""The shipped constants against the published measurements they were fitted to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from data import published

from cklang.arch import arch
from cklang.families.cost_constants import fitted
from cklang.families.gemm.cost.model import CostModel
from tests.support.shared_data import required

if TYPE_CHECKING:
    from data.published import Table

required(published.TABLE)


def _sampled(gpu: str, units: int, count: int) -> Table:
    table = published.read(arch(gpu).with_compute_units(units), "a8w8_blockscale")
    return table.take(np.random.RandomState(0).permutation(len(table))[:count])


def test_the_table_is_whole() -> None:
    gpus = {(spec.name, spec.compute_units) for spec in published.gpus()}
    assert gpus == {("gfx942", 80), ("gfx942", 304), ("gfx950", 256)}
    table = published.read(arch("gfx942"), "a8w8_blockscale")
    assert (len(table), len(table.kernels), len(set(table.shapes()))) == (14112, 23, 33)
    assert (table.us > 0).all()
    assert table.legal()[np.arange(len(table)), table.winner].all()


def test_folds_share_no_weight_shape() -> None:
    table = published.read(arch("gfx950"), "a8w8_blockscale")
    assigned = published.folds(table)
    shapes = np.array(table.shapes())
    weight_shapes = [{tuple(s) for s in shapes[assigned == fold].tolist()} for fold in range(5)]
    assert sum(map(len, weight_shapes)) == len(set.union(*weight_shapes))


@pytest.mark.parametrize(
    ("gpu", "units", "most_error", "least_first"),
    [("gfx942", 304, 0.045, 0.94), ("gfx950", 256, 0.10, 0.80)],
)
def test_times_and_choices_are_near_the_measured_ones(
    gpu: str, units: int, most_error: float, least_first: float
) -> None:
    table = _sampled(gpu, units, 800)
    model = CostModel([kernel.traits(table.spec) for kernel in table.kernels], table.spec)
    problems = zip(table.m.tolist(), table.n.tolist(), table.k.tolist(), strict=True)
    us = np.array([model.times(m, n, k) for m, n, k in problems])
    won = us[np.arange(len(table)), table.winner]
    assert np.median(np.abs(won / table.us - 1)) < most_error
    legal = np.where(table.legal(), us, np.inf)
    assert (legal.argmin(1) == table.winner).mean() > least_first
    assert fitted(table.spec).compute_units == units
