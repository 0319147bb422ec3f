# SPDX-License-Identifier: MIT
"""No legal algorithm may fail to compile or give a wrong result.

:mod:`tests.support.drawn_kernels` draws calls of every family with a random legal kernel. The tier
*compile* tries the 20 that come next in the campaign, so that a red run means a change; the tier
*full* goes on with the campaign, whose sums are in ``docs/coverage.md``. A failure prints the
command that repeats the call.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from cklang.arch import arch
from cklang.errors import CkMismatchError, CkUnsupportedError, error
from tests.support import campaign
from tests.support.campaign_sums import Row, Sums, table_of
from tests.support.drawn_kernels import FAMILIES, draw
from tests.support.full import ROOT

NEW = 20
"""How many kernels the tier *compile* tries."""
EACH = 12
"""How many of each family the full run adds to the campaign."""


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("place", range(NEW))
def test_the_next_legal_kernel_compiles_and_is_right(place: int) -> None:
    family = list(FAMILIES)[place % len(FAMILIES)]
    seed = Sums.read().next.get(family, 0) + place // len(FAMILIES)
    words = [sys.executable, "-m", campaign.__name__, family, str(seed)]
    # A process of its own may be ended: some kernels take the compiler minutes.
    limit = ["--seconds", str(campaign.SECONDS)]
    run = subprocess.run([*words, *limit], cwd=ROOT, capture_output=True, text=True, check=False)
    again = f"to repeat it: {campaign.repeat(family, seed)}"
    assert run.returncode == 0, f"{run.stdout}{run.stderr}{again}"


@pytest.mark.usefixtures("compiler")
@pytest.mark.full
@pytest.mark.parametrize("family", FAMILIES)
def test_the_campaign_goes_on(family: str) -> None:
    outcomes = [campaign.advance(family) for _ in range(EACH)]
    for seed, _, outcome in outcomes:
        expect_right(family, seed, outcome)


def expect_right(family: str, seed: int, outcome: campaign.Outcome) -> None:
    if outcome.error is not None:
        outcome.error.add_note(f"to repeat it: {campaign.repeat(family, seed)}")
        raise outcome.error


@pytest.mark.parametrize("family", FAMILIES)
def test_the_draw_is_legal_varied_and_repeats_itself(family: str) -> None:
    """The draw itself, without compiling."""
    calls = [draw(family, seed) for seed in range(3)]
    assert str(draw(family, 2)) == str(calls[2])
    assert len({str(call) for call in calls}) == len(calls)
    for call in calls:
        assert call.algorithms or family in ("rows", "scattered rows")
        assert arch(call.gpu).name == call.gpu


def test_every_outcome_is_counted_and_the_next_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "campaign.json"
    ends = iter(
        [
            None,
            error("B014", problem="", family="", gpu="", signature="", algorithm="", log=""),
            CkMismatchError("T001", "wrong"),
            CkUnsupportedError("D007", "refused"),
        ]
    )

    def judge(call: object) -> None:
        end = next(ends)
        if end is not None:
            raise end

    monkeypatch.setattr(campaign, "judge", judge)
    monkeypatch.setattr(campaign, "RESULTS", tmp_path)
    seen = [campaign.advance("product", path) for _ in range(4)]
    assert [seed for seed, *_ in seen] == [0, 1, 2, 3]
    kinds = [outcome.kind for *_, outcome in seen]
    assert kinds == ["right", "uncompiled", "wrong", "refused"]
    sums = Sums.read(path)
    assert sums.next == {"product": 4}
    assert sums.text() == path.read_text()
    assert [seed for row in sums.rows for seed in row.uncompiled] == [1]
    assert [seed for row in sums.rows for seed in row.wrong] == [2]
    assert sum(row.built for row in sums.rows) == 3
    assert sum(row.refused for row in sums.rows) == sum(call.refused for _, call, _ in seen) + 1
    assert (tmp_path / "campaign.txt").read_text().count("seed ") == 4


def test_a_failure_says_how_to_repeat_it() -> None:
    outcome = campaign.Outcome(kind="wrong", error=CkMismatchError("T001", "wrong"))
    with pytest.raises(CkMismatchError) as caught:
        expect_right("CK Tile's rows", 7, outcome)
    (note,) = caught.value.__notes__
    assert note.endswith('python -m tests.support.campaign "CK Tile\'s rows" 7')


def test_the_table_adds_up_commits_and_gpus() -> None:
    rows = [
        Row(commit="a", family="product", gpu="gfx942", right=3, wrong=[7]),
        Row(commit="b", family="product", gpu="gfx942", right=5),
        Row(commit="b", family="attention", gpu="gfx1201", right=1, uncompiled=[0, 2]),
    ]
    *_, attention, product, total = table_of(Sums(rows=rows)).splitlines()
    assert attention == "| attention | 0 | 3 | 3 | 0 | 2 | 0 |"
    assert product == "| product | 9 | 0 | 9 | 1 | 0 | 0 |"
    assert total == "| all | 9 | 3 | 12 | 1 | 2 | 0 |"
