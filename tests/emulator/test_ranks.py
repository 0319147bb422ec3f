# SPDX-License-Identifier: MIT
"""Processes that share memory of emulated GPUs: handles, flags, events, and lost processes."""

import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tests.support.hip_programs import built, plain_environment, run_ranks

pytestmark = pytest.mark.usefixtures("compiler")

_SIGABRT, _SIGKILL = -6, -9
_COUNT = 5000


def ranks(case: str, folder: Path, count: int, **settings: str) -> list[tuple[int, str, str]]:
    """Run a case of ``ranks.hip`` in several processes."""
    return run_ranks([built("ranks", "gfx942"), case, folder], count, **settings)


def test_the_example_adds_up(tmp_path: Path) -> None:
    """Four ranks of ``examples/hip/all_reduce.cpp``: the bits of NumPy's sum in the same order."""
    numbers = np.random.default_rng(0).normal(size=(4, 100_000)).astype(np.float32)
    for rank in range(4):
        numbers[rank].tofile(tmp_path / f"numbers{rank}")
    example = Path(__file__).parents[2] / "examples" / "hip" / "all_reduce.cpp"
    for settings in ({}, {"CKLANG_SANITIZE": "all"}):
        for code, _, errors in run_ranks([built(example, "gfx942"), tmp_path], 4, **settings):
            assert code == 0, errors
        total = numbers[0] + numbers[1] + numbers[2] + numbers[3]
        for rank in range(4):
            assert (tmp_path / f"sum{rank}").read_bytes() == total.tobytes()
            (tmp_path / f"handle{rank}").unlink()


def assert_fine(outcome: list[tuple[int, str, str]]) -> None:
    for rank, (code, out, errors) in enumerate(outcome):
        assert (code, out) == (0, f"0000:{rank + 1:02x}:00.0: 0 failed\n"), errors


@pytest.mark.parametrize("checks", ["", "all"])
@pytest.mark.parametrize("count", [2, 4])
def test_all_reduce_by_loads_from_peers(tmp_path: Path, count: int, checks: str) -> None:
    assert_fine(ranks("reduce", tmp_path, count, CKLANG_SANITIZE=checks))
    places = np.arange(_COUNT, dtype=np.float32) % 101
    numbers = [
        np.float32(0.37) * places + np.float32(1.1) * np.float32(3 * r) for r in range(count)
    ]
    for rank in range(count):
        result = np.fromfile(tmp_path / f"sum{rank}", np.float32)
        np.testing.assert_allclose(result, np.sum(numbers, axis=0), rtol=1e-6)
        assert result.tobytes() == np.fromfile(tmp_path / "sum0", np.float32).tobytes()


@pytest.mark.parametrize(
    ("case", "count"),
    [
        ("count", 4),
        ("contents", 2),
        ("mistakes", 2),
        ("event", 3),
        ("virtual", 2),
        ("registered", 2),
    ],
)
def test_processes_check_themselves(tmp_path: Path, case: str, count: int) -> None:
    assert_fine(ranks(case, tmp_path, count))


def test_other_gpus_are_another_machine(tmp_path: Path) -> None:
    program = built("ranks", "gfx942")
    processes = [
        subprocess.Popen(
            [program, "machine", tmp_path],
            env={**plain_environment(), "RANK": str(rank), "WORLD_SIZE": "2", "CKLANG_GPUS": gpus},
        )
        for rank, gpus in enumerate(("gfx942*2", "gfx942,gfx950"))
    ]
    assert [process.wait(timeout=60) for process in processes] == [0, 0]


def test_a_killed_rank_is_an_error_of_the_others(tmp_path: Path) -> None:
    """The limit is a minute, but a process that was killed is known at once."""
    begin = time.monotonic()
    outcome = ranks("killed", tmp_path, 4)
    assert sorted(code for code, _, _ in outcome) == [_SIGKILL, *3 * [_SIGABRT]]
    texts = [errors for code, _, errors in outcome if code == _SIGABRT]
    assert any("which shares memory with this one, was killed" in text for text in texts)
    assert all("deadlock: no workgroup of kernel all_reduce" in text for text in texts)
    assert time.monotonic() - begin < 30


def test_who_waits_for_an_event_or_a_word_learns_that_its_rank_was_killed(tmp_path: Path) -> None:
    killed, waiting = ranks("lost", tmp_path, 2)
    assert killed[0] == _SIGKILL
    assert waiting[:2] == (0, "0000:02:00.0: 0 failed\n"), waiting


def test_a_rank_that_exits_with_an_error_is_one(tmp_path: Path) -> None:
    outcome = ranks("failed", tmp_path, 2)
    assert [code for code, _, _ in outcome] == [_SIGABRT, 5]
    assert "which shares memory with this one, has exited with an error" in outcome[0][2]


def test_a_rank_that_never_arrives_is_waited_for_so_long(tmp_path: Path) -> None:
    outcome = ranks("absent", tmp_path, 2, CKLANG_PEER_TIMEOUT="2", CKLANG_FAULT="continue")
    assert "made progress for 2 seconds (CKLANG_PEER_TIMEOUT)" in outcome[0][2]
    assert "is there, and waits or computes on the host" in outcome[0][2]
    assert "hipErrorLaunchTimeOut" in outcome[0][1]
