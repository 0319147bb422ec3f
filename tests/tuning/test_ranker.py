# SPDX-License-Identifier: MIT
"""The learned ranker: what it sees, what is shipped, and where it chooses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from data import published
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.arch import arch
from cklang.errors import CkUnsupportedError, CkValueError
from cklang.families.cost_constants import fitted
from cklang.families.gemm.cost.model import CostModel, GemmShape
from cklang.families.gemm.key import Scale
from cklang.families.gemm.learned import FEATURES, Wins, features, learned, prior, read_ranker
from cklang.selection.select import select
from tests.support.shared_data import required

if TYPE_CHECKING:
    from data.published import Table

FOLDER = Path(__file__).parents[2] / "cklang" / "families" / "fitted" / "rankers"
GPUS = (("gfx942", 304), ("gfx950", 256))
BLOCK, WEIGHTS = Scale(dtype=ck.f32, block=(1, 128)), Scale(dtype=ck.f32, block=(128, 128))
SCALED: dict[str, Any] = {"e": ck.bf16, "scale_a": BLOCK, "scale_b": WEIGHTS}

shapes = st.lists(st.tuples(*[st.sampled_from((1, 2, 30, 400, 5000))] * 3), min_size=1, max_size=6)


@given(shapes, shapes, st.data())
def test_distances_are_those_to_the_nearest_win(
    queried: list[tuple[int, ...]], won: list[tuple[int, ...]], data: st.DataObject
) -> None:
    kernels = ((128, 128, 128, 1, 1), (16, 64, 256, 2, 1), (64, 64, 128, 1, 0))
    winner = data.draw(st.lists(st.integers(0, 2), min_size=len(won), max_size=len(won)))
    wins = Wins(np.log(np.array(won, float)), np.array(winner), kernels)
    # In another order, and one that nobody knows.
    candidates = [kernels[2], (1, 2, 3, 4, 5), kernels[0]]
    for own in (False, True):
        distances = wins.distances(np.log(np.array(queried, float)), candidates, other_weights=own)
        for row, shape in enumerate(queried):
            for column, kernel in enumerate((2, None, 0)):
                least = 12.0
                for each, by in zip(won, winner, strict=True):
                    if by == kernel and not (own and each[1:] == shape[1:]):
                        apart = np.linalg.norm(np.log(each) - np.log(shape))
                        least = min(least, float(apart))
                assert distances[row, column] == pytest.approx(least)


def test_the_prior_is_the_order_of_the_model() -> None:
    us = np.array([[12.0, 10.0, 11.0], [1.0, 1000.0, 1.0]])
    logits = prior(us, 0.05)
    assert (logits.max(1) == 0).all()
    assert logits[0].argsort().tolist() == [0, 2, 1]
    assert logits[0, 2] == pytest.approx(-np.log(1.1) / 0.05)
    assert logits[1, 1] == -30


@pytest.fixture(scope="module")
def table() -> Table:
    required(published.TABLE)
    whole = published.read(arch("gfx950"), "a8w8_blockscale")
    return whole.take(np.flatnonzero(whole.m <= 64)[::4])


def model_of(table: Table) -> CostModel:
    return CostModel([kernel.traits(table.spec) for kernel in table.kernels], table.spec)


def test_the_trees_see_the_terms_of_the_model(table: Table) -> None:
    model = model_of(table)
    extents = tuple(x[:, None].astype(float) for x in (table.m, table.n, table.k))
    far = np.arange(len(table) * len(table.kernels), dtype=float).reshape(len(table), -1)
    c = fitted(table.spec).constants
    feature_values, us = features(model.columns, model.spec, c, extents, far)  # type: ignore[arg-type]
    assert feature_values.shape == (len(table), len(table.kernels), len(FEATURES))
    for row in (0, 7):
        m, n, k = (int(x[row]) for x in (table.m, table.n, table.k))
        np.testing.assert_allclose(us[row], model.times(m, n, k), rtol=1e-12)
        of = dict(zip(FEATURES, feature_values[row, 3], strict=True))
        predicted = model.estimate(3, m, n, k)
        assert np.exp(of["log total"]) == pytest.approx(predicted.us)
        assert np.exp(of["log workgroups"]) == pytest.approx(predicted.workgroups)
        assert of["epilogues"] == pytest.approx(predicted.terms["epilogue"] / predicted.us)
        assert of["split"] == pytest.approx(predicted.terms["split_k"] / predicted.us)
        assert of["tile_n"] == table.kernels[3].tile[1]
        assert of["nearest win less the least"] == far[row, 3] - far[row].min()


@pytest.mark.parametrize(("gpu", "units"), GPUS)
def test_shipped_rankers_say_where_they_come_from(gpu: str, units: int) -> None:
    ranker = read_ranker(gpu, (FOLDER / f"{gpu}_{units}.json").read_text())
    assert (ranker.gpu, ranker.compute_units) == (gpu, units)
    assert {"data", "script", "validation", "family", "rows"} <= set(ranker.provenance)
    first, five = (ranker.score[f"winner among the first {n}"] for n in (1, 5))
    assert 0.88 < first < five < 1
    assert ranker.to_json() == json.loads((FOLDER / f"{gpu}_{units}.json").read_text())


def test_it_chooses_better_than_the_model_where_that_is_weak(table: Table) -> None:
    model = model_of(table)
    signature = ck.problem(8, 256, 256, a=ck.fp8, **SCALED).signature
    ranker = learned(table.spec, signature)
    assert ranker is not None
    hits = np.zeros(2)
    for row, legal in enumerate(table.legal()):
        shape = GemmShape(m=int(table.m[row]), n=int(table.n[row]), k=int(table.k[row]))
        logits = ranker.logits(model, shape)
        orders = (logits, -model.times_of(shape))
        hits += [np.where(legal, o, -np.inf).argmax() == table.winner[row] for o in orders]
    assert hits[0] > 1.3 * hits[1]


def test_where_nothing_was_learned() -> None:
    def signature(**more: Any) -> Any:
        return ck.problem(8, 256, 256, **more).signature

    eight = signature(a=ck.fp8, **SCALED)
    assert learned(arch("gfx950"), eight) is not None
    assert learned(arch("gfx942").with_compute_units(80), eight) is None
    assert learned(arch("gfx90a"), eight) is None
    assert learned(arch("gfx950"), signature(a=ck.fp8, e=ck.bf16)) is None
    assert learned(arch("gfx950"), signature(a=ck.f16)) is None
    wide = {**SCALED, "scale_a": Scale(dtype=ck.f32, block=(1, 64)), "scale_b": None}
    assert learned(arch("gfx950"), signature(a=ck.fp8, **wide)) is None


def test_the_strategy() -> None:
    problem = ck.problem(24, 7168, 2304, a=ck.fp8, alignment=16, **SCALED)
    chosen = select(problem, arch="gfx950", strategy="learned")
    assert "preferred by the learned ranker" in chosen.reason
    assert chosen.pool.legal(problem)[chosen.position]
    assert select(problem, arch="gfx950", strategy="learned").key == chosen.key
    other = ck.problem(24, 7168, 2304)
    fallback = select(other, arch="gfx950", strategy="learned")
    assert fallback.key == select(other, arch="gfx950", strategy="heuristic").key
    assert fallback.reason.startswith("nothing was learned of such products on gfx950; ")


def test_without_lightgbm_only_the_strategy_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    from cklang.families.gemm import learned as ranker

    monkeypatch.setitem(sys.modules, "lightgbm", None)
    monkeypatch.setattr(ranker, "_booster", ranker._booster.__wrapped__)
    problem = ck.problem(25, 7168, 2304, a=ck.fp8, alignment=16, **SCALED)
    select(problem, arch="gfx950", strategy="heuristic")
    with pytest.raises(CkUnsupportedError) as caught:
        select(problem, arch="gfx950", strategy="learned")
    assert caught.value.code == "N012"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"version": 2}, "K003"),
        ({"features": ["log total"]}, "N011"),
        ({"wins": [[1, 2, 3, 99]]}, "N011"),
        ({"wins": [[0, 2, 3, 0]]}, "N011"),
        ({"temperature": 0}, "N011"),
        ({"trees": None}, "N011"),
        ({"gpu": ...}, "N011"),
    ],
)
def test_a_spoilt_ranker_is_refused(change: dict[str, Any], code: str) -> None:
    data = json.loads((FOLDER / "gfx950_256.json").read_text())
    for name, value in change.items():
        if value is ...:
            del data[name]
        else:
            data[name] = value
    with pytest.raises(CkValueError) as caught:
        read_ranker("spoilt", json.dumps(data))
    assert caught.value.code == code
    with pytest.raises(CkValueError, match="spoilt"):
        read_ranker("spoilt", "{")
