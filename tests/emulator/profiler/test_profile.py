# SPDX-License-Identifier: MIT
"""Profiles of HIP programs: lines, reasons, occupancy, advice, and the command."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import cklang as ck
from cklang import places
from cklang.cli.main import main
from cklang.emulator.clock.native import REASONS
from cklang.emulator.profiler.advice import advice_of
from cklang.emulator.profiler.memory import BeyondL2, CacheRequests
from cklang.emulator.profiler.session import Profile
from cklang.emulator.profiler.source import Place
from cklang.errors import CkValueError
from tests.support.assembly import assembled

_SOURCE = Path(__file__).parent / "transpose.hip"
_GROUPS = 6
_STORE = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_lshl_b32 s2, s2, 8
  v_add_u32 v2, s2, v1
  v_mov_b32 v3, 7
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v3, s[6:7]
"""


def line_of(text: str) -> int:
    lines = _SOURCE.read_text().splitlines()
    return 1 + next(at for at, line in enumerate(lines) if text in line)


def test_source_lines_have_their_stalls(transpose: Profile) -> None:
    (launch,) = transpose.launches
    assert [row.cycles for row in launch.sources] == sorted(
        (row.cycles for row in launch.sources), reverse=True
    )
    first = next(row for row in launch.sources if row.place.line == line_of("= in["))
    assert first.place == Place(str(_SOURCE), line_of("= in["))
    assert next(iter(first.lost)) == "load"
    read = next(row for row in launch.sources if row.place.line == line_of("out[(x"))
    assert read.conflicts == launch.counter("SQ_LDS_BANK_CONFLICT")
    assert first.conflicts == 0
    assert first.bytes == 4 * 256 * 256


def test_lost_cycles_add_up(transpose: Profile) -> None:
    (launch,) = transpose.launches
    assert set(launch.lost) <= set(REASONS)
    assert 0.5 < sum(launch.lost.values()) < 1
    for row in launch.instructions:
        assert row.cycles >= row.stall
        if not row.text.startswith("s_wait"):  # whose issue is stall in AMD's traces
            assert sum(row.lost.values()) >= row.stall
    assert sum(row.hits for row in launch.instructions) == launch.counter("SQ_INSTS")


def test_bytes_lanes_and_phases(transpose: Profile) -> None:
    (launch,) = transpose.launches
    load = next(row for row in launch.instructions if row.text.startswith("global_load_dword "))
    assert (load.bytes, load.lanes, load.efficiency, load.phase) == (256, 64, 1, "loop")
    assert {row.phase for row in launch.instructions} == {"before", "loop", "after"}


def test_occupancy_and_its_limiter(transpose: Profile) -> None:
    (launch,) = transpose.launches
    assert launch.occupancy.limits[0] == ("wave slots", 8)
    assert launch.occupancy.limiter == "grid"
    assert dict(launch.occupancy.limits)["LDS"] == 65536 // 4096
    recorded = launch.detail.launch
    assert launch.occupancy.workgroups == recorded.resident // launch.detail.spec.compute_units


def test_advice_names_the_conflict_and_what_it_costs(transpose: Profile) -> None:
    (launch,) = transpose.launches
    advice = advice_of(launch)
    (conflict,) = [row for row in advice if "banks of the LDS" in row.what]
    assert "62.0 further passes" in conflict.evidence
    assert f"{_SOURCE.name}:{line_of('out[(x')}" in conflict.evidence
    assert conflict.us == launch.us_without(conflicts=False)
    assert conflict.us is not None
    assert conflict.us < launch.us
    gains = [row.gain or 0 for row in advice]
    assert gains == sorted(gains, reverse=True)


def test_a_wait_that_is_removed_is_lost_no_longer(transpose: Profile) -> None:
    (launch,) = transpose.launches
    every = launch.us_without(*REASONS)
    assert every < launch.us_without("load") < launch.us
    lost = launch.detail.unit.lost[:, REASONS.index("load")]
    assert launch.us_without("load", lines=np.flatnonzero(lost).tolist()) == launch.us_without(
        "load"
    )


def test_the_command_profiles_a_program(
    transpose_program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    words = ["-o", str(report), "--listing", str(transpose_program), "64"]
    assert main(["profile", *words]) == 0
    captured = capfd.readouterr()
    assert captured.out == "correct\n"
    assert "transpose on gfx942" in captured.err
    assert "s_endpgm" in captured.err
    (launch,) = json.loads(report.read_text())["launches"]
    assert (launch["kernel"], launch["groups"]) == ("transpose", [2, 2, 1])


def test_lines_of_an_op_in_another_process_are_the_users(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A process that is profiled leaves the places of its fills to the one that prints them."""
    name, place = "ck_fill_00c0ffee00c0ffee", "model.py:12"
    script = f"from cklang import places; places.note({name!r}, ({place!r},))"
    assert places.translate(f"{name}:1") == f"{name}:1"
    assert main(["profile", sys.executable, "-c", script]) == 0
    assert "nothing was launched" in capsys.readouterr().err
    assert places.translate(f"{name}:1") == place


@pytest.mark.parametrize(
    ("words", "problem"),
    [([], "it needs a program"), (["--workgroups", "0", "true"], "CK-A130"),
     (["-o", "x.pdf", sys.executable, "-c", "pass"], "CK-D020"),
     (["-o", "x.json", sys.executable, "-c", "pass"], "CK-D021")],
)  # fmt: skip
def test_wrong_words(words: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", *words]) == 1
    assert problem in capsys.readouterr().err


@pytest.mark.usefixtures("emulator")
def test_launches_of_this_process() -> None:
    module = assembled({"store": _STORE})
    output = np.zeros(64 * _GROUPS, np.uint32)
    with ck.profile(workgroups=_GROUPS) as p:
        assert module.launch("store", output, output, grid=_GROUPS) == "hipSuccess"
        module.launch("store", output, output, grid=1)
    assert (output == 7).all()
    assert [launch.groups[0] for launch in p] == [_GROUPS, 1]
    (row,) = p.kernels
    assert (row.kernel, row.launches) == ("store", 2)
    first, _ = p.launches
    assert first.counter("SQ_WAVES") == _GROUPS
    # No chiplet has two of the workgroups.
    beyond = BeyondL2(read=0, missed=_pieces(output, 128), line_bytes=128, written=_pieces(output))
    assert first.requests == CacheRequests(0, 128, _pieces(output), 0, beyond)
    assert first.roofline.bytes == pytest.approx(output.nbytes, abs=256)
    assert first.places == (None,) * len(first.detail.listing)


def _pieces(output: np.ndarray, size: int = 64) -> int:
    """The pieces of so many bytes in which each wave writes."""
    begin = output.ctypes.data
    return sum(
        len({(begin + 256 * group + 4 * lane) // size for lane in range(64)})
        for group in range(_GROUPS)
    )


def test_no_workgroup_is_refused() -> None:
    with pytest.raises(CkValueError, match="A130"), ck.profile(workgroups=0):
        pass
