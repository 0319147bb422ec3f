# SPDX-License-Identifier: MIT
"""Mistakes of HIP programs, and what the checks report of them."""

import json
from pathlib import Path

import pytest

from tests.support.hip_programs import built, run

pytestmark = pytest.mark.usefixtures("compiler")

_GPUS = ("gfx942", "gfx90a", "gfx1201")
_ALL = {"CKLANG_GPUS": "gfx942", "CKLANG_SANITIZE": "all"}


@pytest.fixture(scope="module")
def program() -> Path:
    return built("mistakes", *_GPUS, options=("-O3",))


#: What a program does, a check that sees it, and a part of the report; "": there is none.
KERNELS = {
    "reverse": ("races", "race in local memory: ds_"),
    "reverse_unwritten": ("uninitialized", "uninitialized local memory: ds_"),
    "reverse_beyond": ("memory", "bytes at byte -0x4 of local memory"),
    "reverse_right": ("all", ""),
    "shared_volatile": ("races", "race in local memory: flat_"),
    "shared_volatile_right": ("all", ""),
    "add_halves": ("all", ""),
    "add_wide": ("all", ""),
    "add_elsewhere": ("global_races", "race in global memory: "),
    "private_array": ("uninitialized", "uninitialized private memory: "),
    "private_array_right": ("all", ""),
    "barrier_of_lanes": ("barriers", "of the wave's 64 threads execute s_barrier"),
    "barrier_of_waves": ("barriers", "barrier in divergent code: "),
    "barriers_of_all": ("barriers", ""),
}


@pytest.mark.parametrize("gpu", _GPUS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(program: Path, name: str, gpu: str) -> None:
    check, report = KERNELS[name]
    done = run(program, name, CKLANG_SANITIZE=check, CKLANG_GPUS=gpu)
    assert (done.returncode == 0) == (report == ""), done.stderr
    assert report.replace("64", "32" if gpu == "gfx1201" else "64") in done.stderr
    if report == "":
        assert done.stderr == ""


def test_arrays_in_registers_are_seen_without_optimisation() -> None:
    program = built("mistakes", "gfx942", options=("-O0",))
    report = run(program, "private_registers", **_ALL).stderr
    assert KERNELS["private_array"][1] in report
    assert "mistakes.hip:" in report
    assert run(program, "private_array_right", **_ALL).stderr == ""


def test_barriers_are_checked_by_name_alone(program: Path) -> None:
    assert run(program, "barrier_of_lanes", **_ALL).stderr == ""


#: The same of calls of the host, which go on.
CALLS = {
    "nothing": "",
    "pinned": "",
    "leak": "memory that is not freed: 1024 bytes in 1 allocations",
    "stream": "streams that are not destroyed: 1\n  a stream of device 0, number 1 of those",
    "freed twice": "a wrong free: the memory at 0x",
    "to the host": "hipMemcpyDeviceToHost, where the target 0x",
    "from the device": "hipMemcpyDeviceToDevice, where the source 0x",
}


@pytest.mark.parametrize("name", CALLS)
def test_calls(program: Path, name: str) -> None:
    done = run(program, name, **_ALL)
    assert done.returncode == 0
    assert CALLS[name] in done.stderr
    if CALLS[name] == "":
        assert done.stderr == ""
    assert run(program, name, CKLANG_SANITIZE="waits", CKLANG_GPUS="gfx942").stderr == ""


def test_calls_are_written_down(program: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    for name in ("freed twice", "to the host"):
        done = run(program, name, **_ALL, CKLANG_REPORTS=str(reports))
        assert done.stderr == ""
    lines = [json.loads(line) for line in reports.read_text().splitlines()]
    assert [line["check"] for line in lines] == ["memory", "memory"]
    assert [line["kernel"] for line in lines] == ["(host)", "(host)"]
    assert "was freed before" in lines[0]["message"]
    assert "wrong direction of a copy" in lines[1]["message"]


def test_leaks_without_a_launch() -> None:
    """Destructors of the program may free memory after main."""
    program = built("no_kernel", "gfx942", options=("-O3",))
    assert "memory that is not freed: 4096 bytes in 1 allocations" in run(program, **_ALL).stderr
    assert run(program, "all", **_ALL).stderr == ""
