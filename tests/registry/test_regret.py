# SPDX-License-Identifier: MIT
"""How far from the best a choice can be, and the strategy that times kernels where that is far."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families.gemm.synthetic import problem
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.selection.regret import CASES, regret_bound
from cklang.selection.select import AnySelection, select
from cklang.tune import strategies
from cklang.tune.database import Database
from cklang.tune.on_device import Costs
from cklang.tune.strategies import Clock
from cklang.types import bf16
from tests.support.errors import expect_error

FUNCTIONS = Functions.parse(
    {"epilogue": "func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}"}
)
UNSURE = (48, 5120, 6400)


def choice(arch: str = "gfx942", **how: Any) -> AnySelection:
    query = problem(*UNSURE, a=bf16, alignment=16)
    return select(query, arch=arch, preset="catalogue", **how)


@pytest.mark.parametrize("spread", [0.02, 0.05])
@pytest.mark.parametrize("count", [2, 10, 30])
def test_a_bound_holds_in_nine_of_ten_cases(count: int, spread: float) -> None:
    random = np.random.default_rng(count)
    cases = 4000
    predicted = 10.0 * np.exp(random.uniform(0.0, 4.0 * spread, (cases, count)))
    real = predicted * np.exp(-spread * random.gumbel(size=predicted.shape))
    rows, chosen = np.arange(cases), predicted.argmin(1)
    regret = real[rows, chosen] / real.min(1) - 1.0
    bounds = np.array(
        [regret_bound(times, int(at), spread) for times, at in zip(predicted, chosen, strict=True)]
    )
    unsure = bounds > 0.0
    assert unsure.sum() > cases / 10
    assert (regret <= bounds)[unsure].mean() == pytest.approx(CASES, abs=0.02)


def test_a_choice_without_a_rival_is_the_best() -> None:
    assert regret_bound(np.array([5.0, np.inf, np.inf]), 0, 0.05) == 0.0


def test_the_reason_states_the_bound_where_the_error_of_the_model_is_known() -> None:
    assert " % from the best in 9 of 10 cases" in choice().reason
    borrowed = choice("gfx90a").reason
    assert "constants carried over" in borrowed
    assert "9 of 10" not in borrowed
    attention = ck.dispatch.attention_problem(2, 32, 512, 512, 128)
    assert "9 of 10" not in select(attention, arch="gfx942").reason


@pytest.mark.usefixtures("emulator")
def test_the_clock_times_kernels_of_different_tiles_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[AnyKey] = []

    def measured(device: str, keys: Sequence[AnyKey], *_: Any, caches: str) -> Costs:
        assert (device, caches) == ("emu:gfx942", "cold")
        timed.extend(keys)
        values = tuple(float(9 - place) for place in range(len(keys)))
        return Costs(values=values, unit="µs", device=device)

    monkeypatch.setattr(strategies, "measured_on", measured)

    def choose(limit: int) -> Any:
        strategy = Clock(limit=limit, database=tmp_path / "t.sqlite")
        return choice(strategy=strategy, functions=FUNCTIONS)

    chosen = choose(3)
    assert len({key.algorithm.tile for key in timed}) == len(timed) == 3
    assert chosen.key == timed[2]
    assert chosen.reason.startswith("7.00 µs by the clock, the least of 3 kernels; by the cost")
    assert choose(3) == chosen
    assert len(timed) == 3
    choose(4)
    assert len(timed) == 4
    tuned = ck.dispatch.Tuned(tmp_path / "t.sqlite")
    assert "nothing of it" in choice(strategy=tuned).reason


@pytest.mark.usefixtures("emulator")
def test_the_clock_times_nothing_where_the_model_is_sure(tmp_path: Path) -> None:
    strategy = Clock(enough=0.5, database=tmp_path / "t.sqlite")
    assert choice(strategy=strategy) == choice()
    assert not (tmp_path / "t.sqlite").exists()


def test_the_clock_needs_something_to_build() -> None:
    with expect_error("K010"):
        choice(strategy="clock")


@pytest.mark.usefixtures("compiler")
def test_a_call_takes_the_quickest_by_the_clock(tmp_path: Path) -> None:
    m, k = ck.dims("M K")

    @ck.op
    def squared(x: ck.f16[m, k]) -> ck.f16[m, m]:
        return x @ x.T

    x = np.ones((64, 64), np.float16)
    strategy = Clock(limit=2, enough=-1.0, database=tmp_path / "t.sqlite")
    with ck.using(strategy=strategy):
        predicted = ck.predict(squared, x, device="emu:gfx942")
        text = str(squared.explain(x, device="emu:gfx942"))
    assert "µs by the clock, the least of 2 kernels; by the cost model" in text
    with Database(tmp_path / "t.sqlite") as database:
        (question,) = database.questions()
        times = [row.cost for row in database.measurements(question)]
    assert "cold caches, not checked" in question.device
    assert len(times) == 2
    assert min(cost for cost in times if cost is not None) >= predicted.us
