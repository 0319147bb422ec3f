# SPDX-License-Identifier: MIT
"""The folder of a profile, read as strictly as ROCprof Compute Viewer reads it.

The viewer is in no package registry. What it asks of each file was found in its sources
(``src/data/json_emitter.cpp``, ``wavemanager.cpp``, ``code/codeload.cpp``): fields by name or by
place, of one type each; it drops a file of another form, or shows nothing.
"""

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cklang.emulator.profiler.session import Profile

_WAVE_NAME = re.compile(r"se(\d+)_sm(\d+)_sl(\d+)_wv(\d+)\.json")
_TYPES = range(1, 16)
"""Of a wave's instructions; 0 stands for idle time and is not drawn."""
_STATES = range(5)
"""Of a wave: empty, idle, executes, waits, stalls."""
_BYTE = range(256)


class FormError(Exception):
    """The viewer would not read this."""


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise FormError(f"{value!r} is no {kind.__name__}")
    return value


def _number(value: Any, known: range | None = None) -> int:
    number: int = _of(int, value)
    if known is not None and number not in known:
        raise FormError(f"{number} is not in {known}")
    return number


def _field(data: Any, name: str | int, kind: type) -> Any:
    _of(dict if isinstance(name, str) else list, data)
    try:
        return _of(kind, data[name])
    except (KeyError, IndexError):
        raise FormError(f"no {name!r}") from None


def _row(row: Any, *kinds: type) -> list[Any]:
    return [_field(row, at, kind) for at, kind in enumerate(kinds)]


def _keys(data: Any, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the entries of an object whose keys the viewer takes as numbers."""
    for key, value in _field(data, name, dict).items():
        yield int(key), value


@dataclass(frozen=True)
class Entry:
    """A wave of ``filenames.json``."""

    simd: int
    slot: int
    begin: int
    end: int


def read_names(data: Any) -> dict[str, Entry]:
    """Return the waves by the names of their files."""
    if _field(data, "gfxip", int) < 9 or _field(data, "gfxv", str) not in ("vega", "navi"):
        raise FormError("no such GPU")
    if not _field(data, "thread_trace", bool) or _field(data, "pc_sampling", bool):
        raise FormError("no thread trace")
    for name in _field(data, "counter_names", list):
        _of(str, name)
    if _field(data, "other_simd_filenames", dict) or _field(data, "shaderdata_filenames", dict):
        raise FormError("files of which a profile has none")
    waves = {}
    for engine, simds in _keys(data, "wave_filenames"):
        for simd, slots in ((int(key), value) for key, value in _of(dict, simds).items()):
            for slot, numbers in ((int(key), value) for key, value in _of(dict, slots).items()):
                for number, row in ((int(k), value) for k, value in _of(dict, numbers).items()):
                    name, begin, end = _row(row, str, int, int)
                    place = _WAVE_NAME.fullmatch(name)
                    if place is None or [*map(int, place.groups())] != [engine, simd, slot, number]:
                        raise FormError(f"{name} is another wave")
                    waves[name] = Entry(simd, slot, begin, end)
    return waves


@dataclass(frozen=True)
class Line:
    """A row of ``code.json``."""

    hits: int
    latency: int
    stall: int


def read_code(data: Any) -> dict[int, Line]:
    """Return the rows by the numbers that waves name."""
    _field(data, "version", str)
    lines: dict[int, Line] = {}
    for row in _field(data, "code", list):
        _field(row, 0, str)
        source = _of(list, row)[3] if len(row) > 3 else ""
        if source is not None and _of(str, source) and not re.search(r":\d+$", source):
            raise FormError(f"{source} is no line of a file")
        number, code_object, address, hits, latency, stall, idle = (
            _field(row, at, int) for at in (2, 4, 5, 6, 7, 8, 9)
        )
        if min(number, code_object, address, hits, stall, idle) < 0 or stall > latency:
            raise FormError(f"{row} cannot be")
        if number in lines:
            raise FormError(f"two lines {number}")
        lines[number] = Line(hits, latency, stall)
    return lines


def read_wave(data: Any, entry: Entry, lines: dict[int, Line]) -> list[int]:
    """Return the numbers of the lines that a wave executes."""
    wave = _field(data, "wave", dict)
    begin, end = (_field(wave, name, int) for name in ("begin", "end"))
    places = [_field(wave, name, int) for name in ("cu", "id", "simd", "slot")]
    if (begin, end, *places[2:]) != (entry.begin, entry.end, entry.simd, entry.slot):
        raise FormError("another wave")
    executed = []
    for row in _field(wave, "instructions", list):
        clock, kind, stall, cycles, line = _row(row, int, int, int, int, int)
        _number(kind, _TYPES)
        if not begin <= clock <= clock + max(stall, cycles) <= end or line not in lines:
            raise FormError(f"{row} is outside")
        executed.append(line)
    now = begin
    for row in _field(wave, "timeline", list):
        state, cycles = _row(row, int, int)
        _number(state, _STATES)
        now += cycles
    if now != end:
        raise FormError("the states do not fill the wave")
    for wait in _field(wave, "waitcnt", list):
        line, sources = _row(wait, int, list)
        for source in sources:
            other, _ = _row(source, int, int)
            if not {line, other} <= set(executed):
                raise FormError("a wait for what the wave does not execute")
    for value in _field(wave, "info", dict).values():
        _of(int, value)
    return executed


def read_occupancy(data: Any, entries: list[Entry]) -> None:
    """Check that waves begin and end as their files say."""
    names = {number for number, name in _keys(data, "dispatches") if _of(str, name)}
    times = []
    for key, events in data.items():
        if not key.isdigit():
            continue
        for event in _of(list, events):
            time, cu, simd, slot, start, kernel = _row(event, int, int, int, int, int, int)
            for value in (cu, simd, slot):
                _number(value, _BYTE)
            _number(start, range(2))
            if kernel not in names:
                raise FormError(f"no kernel {kernel}")
            times.append((time, simd, slot, start))
        if any(one[0] > other[0] for one, other in pairwise(events)):
            raise FormError("not in order")
    begins = [(entry.begin, entry.simd, entry.slot, 1) for entry in entries]
    ends = [(entry.end, entry.simd, entry.slot, 0) for entry in entries]
    if sorted(times) != sorted(begins + ends):
        raise FormError("other waves")


def read_sources(tree: Any, files: set[str], path: str = "") -> dict[str, str]:
    """Return the copies of source files by their paths."""
    found: dict[str, str] = {}
    for name, value in _of(dict, tree).items():
        here = name if not path else f"{path.rstrip('/')}/{name}"
        if isinstance(value, dict):
            found |= read_sources(value, files, here)
        elif _of(str, value) in files:
            found[here] = value
        else:
            raise FormError(f"no file {value}")
    return found


def read(folder: dict[str, Any]) -> None:
    """Read a folder, its files parsed; raise FormError where the viewer would drop something."""
    for name in ("filenames.json", "code.json", "occupancy.json", "snapshots.json"):
        _field(folder, name, dict)
    entries, lines = read_names(folder["filenames.json"]), read_code(folder["code.json"])
    hits = dict.fromkeys(lines, 0)
    for name, entry in entries.items():
        # The viewer finds the listing by cutting the path of the wave at its last "se".
        if "se" in name[2:]:
            raise FormError(f"the listing of {name} is not found")
        for line in read_wave(_field(folder, name, dict), entry, lines):
            hits[line] += 1
    if hits != {number: line.hits for number, line in lines.items()}:
        raise FormError("the waves execute other lines")
    read_occupancy(folder["occupancy.json"], list(entries.values()))
    sources = read_sources(folder["snapshots.json"], set(folder))
    named = {row[3].rpartition(":")[0] for row in folder["code.json"]["code"] if row[3]}
    if not sources.keys() <= named:
        raise FormError("a source that no line names")


@pytest.fixture(scope="module")
def folder(transpose: Profile, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The files of the transposition's launch; sources are left unread."""
    path = transpose.save(tmp_path_factory.mktemp("viewer") / "att")
    (inside,) = (each for each in path.iterdir() if each.is_dir())
    return {file.name: _content(file) for file in inside.iterdir()}


def _content(file: Path) -> Any:
    return json.loads(file.read_text()) if file.suffix == ".json" else {}


def test_the_viewer_reads_the_folder(folder: dict[str, Any]) -> None:
    read(folder)
    assert sum(bool(_WAVE_NAME.fullmatch(name)) for name in folder) == 4


def test_waits_name_what_they_wait_for(folder: dict[str, Any]) -> None:
    texts = {row[2]: row[0] for row in folder["code.json"]["code"]}
    waits = folder["se0_sm0_sl0_wv0.json"]["wave"]["waitcnt"]
    named = [(texts[line], {texts[at].split()[0] for at, _ in rows}) for line, rows in waits]
    assert ("s_waitcnt vmcnt(0)", {"global_load_dword"}) in named
    assert ("s_waitcnt lgkmcnt(0)", {"ds_read_b32"}) in named
    assert any(ops == {"s_load_dword"} for _, ops in named)


_WAVE = "se0_sm0_sl0_wv0.json"
_READ: tuple[tuple[str, ...], ...] = (
    *(("filenames.json", name) for name in (
        "gfxip", "gfxv", "thread_trace", "pc_sampling", "counter_names", "wave_filenames",
        "other_simd_filenames", "shaderdata_filenames",
    )),
    *(("filenames.json", "wave_filenames", "0", "0", "0", "0", at) for at in "012"),
    ("code.json", "code"),
    ("code.json", "version"),
    *(("code.json", "code", "5", at) for at in "02456789"),
    *((_WAVE, "wave", name) for name in (
        "begin", "end", "cu", "id", "simd", "slot", "instructions", "timeline", "waitcnt", "info",
    )),
    *((_WAVE, "wave", "instructions", "3", at) for at in "01234"),
    *((_WAVE, "wave", "timeline", "0", at) for at in "01"),
    *((_WAVE, "wave", "waitcnt", "0", at) for at in "01"),
    *((_WAVE, "wave", "waitcnt", "0", "1", "0", at) for at in "01"),
    ("occupancy.json", "dispatches"),
    ("occupancy.json", "dispatches", "1"),
    *(("occupancy.json", "0", "0", at) for at in "012345"),
    *((name,) for name in ("filenames.json", "code.json", "occupancy.json", "snapshots.json")),
    (_WAVE,),
)  # fmt: skip
"""What the viewer reads, as paths in the files."""


@pytest.mark.parametrize("path", _READ, ids="/".join)
@pytest.mark.parametrize("change", ["missing", "null", "another type"])
def test_what_is_missing_or_of_another_type_is_found(
    folder: dict[str, Any], path: tuple[str, ...], change: str
) -> None:
    damaged = deepcopy({name: folder[name] for name in folder})
    place: Any = damaged
    for word in path[:-1]:
        place = place[int(word) if isinstance(place, list) else word]
    last: Any = int(path[-1]) if isinstance(place, list) else path[-1]
    if change == "missing":
        del place[last]
    else:
        other = {} if isinstance(place[last], list) else [place[last]]
        place[last] = None if change == "null" else other
    with pytest.raises(FormError):
        read(damaged)
