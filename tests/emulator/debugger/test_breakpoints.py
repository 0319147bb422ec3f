# SPDX-License-Identifier: MIT
"""Places to stop at, as users write them, and in the code of a launch."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from cklang.emulator.debugger.breakpoints import (
    Breakpoint,
    Location,
    Waves,
    parse_breakpoint,
    stops_of,
)
from cklang.emulator.debugger.code import Code, read_fills
from cklang.emulator.debugger.wire import ANY, StopAt, Where
from cklang.emulator.engine.recording import PackedWaves, RecordedLaunch
from cklang.emulator.profiler.source import Place
from cklang.errors import CkValueError

_FILL = "ck_fill_0123456789abcdef"


def launch() -> RecordedLaunch:
    """Eight dwords: two of a header, four of a file in two lines, two of a fill."""
    rows = [(0, 2, 0, 5), (2, 4, 1, 10), (4, 5, 1, 12), (5, 6, 1, 10), (6, 8, 2, 2)]
    return RecordedLaunch(
        kernel="_Z5saxpyfPKfPf", gpu="gfx942", code=bytes(32), groups=(2, 1, 1), block=(64, 1, 1),
        lds_bytes=0, vgprs=8, sgprs=16, scratch_bytes=0, lanes=64, resident=1, bytes_loaded=0,
        bytes_stored=0, executed=np.zeros(8, np.uint64),
        files=("/hip/index.h", "/home/user/saxpy.cpp", f"/tmp/{_FILL}"),
        sources=np.array(rows, np.uint32), waves=PackedWaves(np.zeros(0, np.uint8), 0),
    )  # fmt: skip


@pytest.fixture
def code() -> Code:
    made = Code(launch(), 2, {_FILL: ("", "/home/model.py:7")})
    made.__dict__["instructions"] = {
        2: "v_add_f32 v0, v1, v2", 3: "s_waitcnt vmcnt(0)", 4: "v_mul_f32 v0, v1, v2",
        7: "s_endpgm",
    }  # fmt: skip
    return made


def stops(code: Code, text: str) -> list[StopAt]:
    return stops_of(Breakpoint(1, *parse_breakpoint(text, None)), code)


def test_a_line_is_that_of_all_its_instructions(code: Code) -> None:
    (stop,) = stops(code, "saxpy.cpp:10")
    assert stop.where is Where.LINE
    assert np.flatnonzero(code.lines == stop.begin).tolist() == [2, 3, 5]


def test_a_line_without_code_means_the_next(code: Code) -> None:
    assert stops(code, "saxpy.cpp:11") == stops(code, "saxpy.cpp:12")
    assert not stops(code, "saxpy.cpp:13")


def test_lines_of_fills_are_the_users(code: Code) -> None:
    (stop,) = stops(code, "model.py:7")
    assert code.place(6) == Place("/home/model.py", 7)
    assert code.places[stop.begin - 1].short == "model.py:7"


@pytest.mark.parametrize(
    ("text", "dwords"),
    [("*0x4", [3]), ("*4", [3]), ("*0x6", []), ("*0xc", []), ("@v_*", [2, 4]), ("@s_endpgm", [7])],
)
def test_instructions(code: Code, text: str, dwords: list[int]) -> None:
    assert [stop.begin for stop in stops(code, text)] == dwords


def test_a_kernel_stops_once_unless_waves_are_named(code: Code) -> None:
    (once,) = stops(code, "saxpy")
    assert (once.begin, once.group, once.wave) == (2, 0, 0)
    (named,) = stops(code, "sax* wave 1")
    assert (named.group, named.wave, named.lane) == (ANY, 1, ANY)
    assert not stops(code, "axpy")


def test_memory(code: Code) -> None:
    watch = Breakpoint(3, Location(memory=(64, 72)))
    assert stops_of(watch, code) == [StopAt(3, Where.WRITE, 64, 72)]
    reads = replace(watch, location=Location(memory=(64, 72), reads=True))
    assert stops_of(reads, code)[0].where is Where.ACCESS


def test_the_bytes_of_the_interface() -> None:
    packed = StopAt(1, Where.WRITE, 16, 20, wave=3).packed()
    assert struct.unpack("<7Q", packed) == (1, 2, 16, 20, ANY, 3, ANY)


def test_a_line_of_the_file_that_is_shown() -> None:
    location, waves = parse_breakpoint("18 lane 3", Place("/a/b.cpp", 2))
    assert (location, waves) == (Location(file="/a/b.cpp", line=18), Waves(lane=3))


@pytest.mark.parametrize("text", ["", "18", "*", "@", "a.cpp:3 wave", "a.cpp:3 wave x", "k if 3"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(CkValueError, match="D032"):
        parse_breakpoint(text, None)


def test_fills_that_nobody_has_noted(tmp_path: object) -> None:
    assert read_fills(tmp_path / "none") == {}  # type: ignore[operator]
