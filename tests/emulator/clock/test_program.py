# SPDX-License-Identifier: MIT
"""``cklang predict``, with the program in ``docs/clock.md``."""

import re
from pathlib import Path

import pytest

from cklang.cli.main import main
from cklang.cli.profile import recorded
from cklang.emulator.clock.sequence import launch_details
from cklang.emulator.profiler.prediction import PredictedLaunch, Prediction
from tests.support.hip_programs import built

_PAGE = Path(__file__).parents[3] / "docs" / "clock.md"
_PROGRAM = re.compile(r"<!-- program: saxpy.hip -->\n```cpp\n(.*?)```", re.DOTALL)
_OUTPUT = re.compile(r"(<!-- output: predict -->\n```text\n)(.*?)(```)", re.DOTALL)


@pytest.fixture(scope="module")
def saxpy(tmp_path_factory: pytest.TempPathFactory, emulator: None) -> Path:
    source = tmp_path_factory.mktemp("saxpy") / "saxpy.hip"
    source.write_text(_PROGRAM.findall(_PAGE.read_text())[0])
    return built(source, "gfx942")


def predicted(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["predict", *words]) == 0
    return capfd.readouterr().err


def test_the_output_of_the_page_is_printed(
    saxpy: Path, capfd: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    page = _PAGE.read_text()
    printed = predicted(capfd, "--board", "MI300X", str(saxpy), "1048576")
    if request.config.getoption("--update-golden"):
        _PAGE.write_text(_OUTPUT.sub(lambda match: match[1] + printed + match[3], page))
        return
    (shown,) = [match[2] for match in _OUTPUT.finditer(page)]
    assert shown == printed


def test_small_grids_cold_caches_and_boards(saxpy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def row(*words: str) -> list[str]:
        text = predicted(capfd, *words, "--kernel", "saxpy", str(saxpy), "1024")
        return next(line for line in text.splitlines() if line.startswith("saxpy")).split()

    warm, cold, apu = row(), row("--cold"), row("--board", "MI300A")
    assert warm[1:3] == ["4", "1"]
    assert float(warm[3]) == float(warm[4])  # four workgroups draw little power
    assert " ".join(warm).endswith("4 workgroups for 304 compute units")
    assert float(cold[3]) > float(warm[3])
    assert " ".join(apu).endswith("4 workgroups for 228 compute units")
    assert "not known" in " ".join(apu)


@pytest.mark.parametrize(
    ("words", "problem"),
    [([], "Z010"), (["true"], "A134"), (["--board", "MI9", "true"], "K050")],
)
def test_wrong_words(words: list[str], problem: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *words]) == 1
    assert f"CK-{problem}" in capfd.readouterr().err


@pytest.mark.usefixtures("compiler")
def test_arrays_of_an_op_in_another_process_are_known() -> None:
    call = ["tests.support.gemm_ops:fused", "M=256", "N=256", "K=256", "--dtype", "T=f16"]
    status, launches = recorded(call, 3, CKLANG_DEVICE="emu:gfx942")
    assert status == 0
    (detail,) = launch_details(launches)
    assert detail.footprint == pytest.approx(2 * (4 * 256 * 256 + 256), rel=0.01)


def test_launches_that_are_alike_have_one_row() -> None:
    def launch(us: float, bound: str) -> PredictedLaunch:
        return PredictedLaunch(
            kernel="k", cycles=1, us=us, workgroups=4, resident=1, stall={}, unknown={}, error=None,
            us_under_load=us, bound=bound, flops=0, peak_flops=1,
        )  # fmt: skip

    launches = launch(1, "the L2 (60% busy)"), launch(3, "the L2 (61% busy)"), launch(2, "waits")
    _, first, second, _ = Prediction(6, 3, None, launches).table().splitlines()
    assert first.split()[:5] == ["k", "4", "2", "2.00", "2.00"]
    assert second.split() == ["k", "4", "1", "2.00", "2.00", "waits"]
