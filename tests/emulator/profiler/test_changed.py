# SPDX-License-Identifier: MIT
"""Times without a wait, beside those of kernels that were changed so that they do not wait."""

import pytest

from cklang.emulator.profiler.advice import advice_of
from cklang.emulator.profiler.model import LaunchProfile
from cklang.emulator.profiler.session import Profile
from tests.emulator.profiler.conftest import HERE, profiled
from tests.support.hip_programs import built


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory, emulator: None) -> dict[str, LaunchProfile]:
    program = built(HERE / "changed.hip", "gfx942")
    recorded = profiled(program, tmp_path_factory.mktemp("records"), "gfx942").recorded
    profile = Profile(recorded, "warm")
    return {launch.kernel: launch for launch in profile.launches}


@pytest.mark.parametrize(
    ("first", "changed", "without", "within", "words"),
    [
        ("conflicts", "padded", {"conflicts": False}, 0.01, "banks of the LDS"),
        ("barriers", "no_barriers", {"reasons": ["barrier"]}, 0.05, "Waves wait at barriers"),
        ("waiting", "ahead", {"reasons": ["load"]}, 0.05, "loads from global memory"),
    ],
)
def test_a_kernel_without_the_wait_takes_the_time_that_was_said(
    launches: dict[str, LaunchProfile],
    first: str,
    changed: str,
    without: dict[str, object],
    within: float,
    words: str,
) -> None:
    before, after = launches[first], launches[changed]
    reasons = without.get("reasons", [])
    assert isinstance(reasons, list)
    said = before.us_without(*reasons, conflicts="conflicts" not in without)
    (advice,) = [row for row in advice_of(before) if words in row.what]
    assert advice.us == said
    assert after.us < before.us
    assert said <= after.us * 1.01  # the most that a change can win
    assert said == pytest.approx(after.us, rel=within)
