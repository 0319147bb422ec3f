# SPDX-License-Identifier: MIT
"""The folder that rocprofv3 writes for the viewers of thread traces (``ui_output_agent_*``).

Each launch has a folder with ``code.json`` (the listing with its counts), ``filenames.json``,
``occupancy.json``, copies of the source files, and a file for each wave. The layout is that of
rocprofiler-sdk's ``att-tool``, version 3.0.0; a CSV of the listing is beside each folder.
"""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cklang.emulator.clock.native import COUNTERS, UNITS
from cklang.emulator.profiler.model import LaunchProfile
from cklang.emulator.profiler.timeline import WaveTrack, wave_tracks

_VERSION = "3.0.0"
_HEADER = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle"
_STATISTICS = (
    "CodeObj", "Vaddr", "Instruction", "Hitcount", "Latency", "Stall", "Idle", "Source",
)  # fmt: skip
_AGENT, _ENGINE, _CODE_OBJECT, _COMPUTE_UNIT = 1, 0, 1, 0
_CATEGORIES = {
    "smem": 1, "salu": 2, "vmem": 3, "store": 3, "lds": 5, "valu": 6, "trans": 6, "matrix": 6,
    "branch": 7, "wait": 9, "barrier": 9, "internal": 9, "end": 9,
}  # fmt: skip
"""The decoder's category of what each unit of the clock executes; 4 is a flat access."""
_NOT_TAKEN, _FLAT = 8, 4
_EXECUTES, _WAITS, _STALLS = 2, 3, 4
"""States of a wave in its timeline."""
_WAITING = ("load", "store", "LDS", "scalar load", "other counter", "barrier")


def write(folder: Path, launches: Sequence[LaunchProfile]) -> None:
    """Write a folder and a table of the listing for each launch."""
    folder.mkdir(parents=True, exist_ok=True)
    for launch in launches:
        name = f"ui_output_agent_{_AGENT}_dispatch_{launch.number + 1}"
        inside = folder / name
        inside.mkdir(exist_ok=True)
        rows = _code(launch)
        _dump(inside / "code.json", {"code": rows, "version": _VERSION, "header": _HEADER})
        (folder / f"stats_{name}.csv").write_text(_statistics(rows), encoding="utf-8")
        _write_waves(inside, launch)
        _copy_sources(inside, launch)


def _dump(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _code(launch: LaunchProfile) -> list[list[Any]]:
    """Return a row for each instruction of the listing, behind one that names the kernel."""
    symbol = launch.detail.launch.kernel
    rows: list[list[Any]] = [[f"; {symbol}", 0, 0, "", _CODE_OBJECT, 0, 0, 0, 0, 0]]
    hits, latency, stall = _timed(launch)
    for at, text in enumerate(launch.detail.texts):
        place = launch.places[at]
        rows.append(
            [
                *(text, 0, at + 1, "" if place is None else str(place), _CODE_OBJECT),
                launch.detail.listing[at].address,
                *(hits[at], latency[at], stall[at], 0),
            ]
        )
    return rows


def _timed(launch: LaunchProfile) -> tuple[list[int], list[int], list[int]]:
    """Return hits, cycles and stall of each line, of the waves that were timed."""
    detail, facts = launch.detail, launch.facts
    hits = [0] * len(detail.texts)
    for stream in detail.streams:
        for line in stream.line.tolist():
            hits[line] += 1
    return hits, [int(c) for c in facts.duration], [int(c) for c in facts.stall]


def _statistics(rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(_STATISTICS)
    for isa, _, _, source, code_object, address, hits, latency, stall, idle in rows:
        table.writerow([code_object, address, isa, hits, latency, stall, idle, source])
    return text.getvalue()


def _write_waves(folder: Path, launch: LaunchProfile) -> None:
    names: dict[str, dict[str, dict[str, list[Any]]]] = {}
    events = []
    slots: dict[int, int] = {}
    for wave in wave_tracks(launch):
        slot = slots.get(wave.simd, 0)
        slots[wave.simd] = slot + 1
        name = f"se{_ENGINE}_sm{wave.simd}_sl{slot}_wv0.json"
        _dump(folder / name, _wave(launch, wave, slot))
        by_slot = names.setdefault(str(wave.simd), {}).setdefault(str(slot), {})
        by_slot["0"] = [name, wave.begin, wave.end]
        events += [
            [wave.begin, _COMPUTE_UNIT, wave.simd, slot, 1, 1],
            [wave.end, _COMPUTE_UNIT, wave.simd, slot, 0, 1],
        ]
    major = launch.detail.spec.version[0]
    about: dict[str, Any] = {
        "global_begin_time": 0,
        "gfxv": "vega" if major <= 9 else "navi",
        "gfxip": major,
        "version": _VERSION,
        "thread_trace": True,
        "pc_sampling": False,
        "is_pcs_stochastic": False,
        "counter_names": [],
        "wave_filenames": {str(_ENGINE): names},
        "other_simd_filenames": {},
        "shaderdata_filenames": {},
    }
    _dump(folder / "filenames.json", about)
    occupancy = {
        str(_ENGINE): sorted(events),
        "dispatches": {"1": launch.detail.launch.kernel},
        "version": _VERSION,
    }
    _dump(folder / "occupancy.json", occupancy)


def _wave(launch: LaunchProfile, wave: WaveTrack, slot: int) -> dict[str, Any]:
    stream = launch.detail.streams[wave.number]
    timed = launch.detail.unit.waves[wave.number]
    lines = stream.line.tolist()
    instructions = [
        [start, _category(launch, lines, at), stall, duration, lines[at] + 1]
        for at, (start, stall, duration) in enumerate(
            zip(timed.start.tolist(), timed.stall.tolist(), timed.duration.tolist(), strict=True)
        )
    ]
    return {
        "name": f"SE{_ENGINE}",
        "duration": wave.end - wave.begin,
        "wave": {
            "cu": _COMPUTE_UNIT,
            "id": 0,
            "simd": wave.simd,
            "slot": slot,
            "begin": wave.begin,
            "end": wave.end,
            "instructions": instructions,
            "timeline": _timeline(wave),
            "waitcnt": _waits(launch, lines),
            "info": _info(instructions),
        },
        "num_stitched": len(lines),
        "num_insts": len(lines),
    }


_NAMES = {
    1: "SMEM", 2: "SALU", 3: "VMEM", 4: "FLAT", 5: "LDS", 6: "VALU", 7: "JUMP", 8: "NEXT",
    9: "IMMED",
}  # fmt: skip
"""What the decoder calls its categories."""


def _info(instructions: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return how many instructions of each category a wave executed, and how long they stalled.

    Example:
        >>> _info([[0, 6, 0, 4, 1], [4, 6, 8, 12, 2]])
        {'VALU': 2, 'VALU_stall': 8}
    """
    info: dict[str, int] = {}
    for _, category, stall, _, _ in instructions:
        name = _NAMES[category]
        info[name] = info.get(name, 0) + 1
        info[f"{name}_stall"] = info.get(f"{name}_stall", 0) + stall
    return info


def _waits(launch: LaunchProfile, lines: Sequence[int]) -> list[list[Any]]:
    """Return the lines at which a wave waits for memory, each with those that it waits for.

    Operations that count together end in order.
    """
    ops = launch.detail.prog.ops
    under_way: list[list[int]] = [[] for _ in COUNTERS]
    found: dict[int, dict[int, None]] = {}
    concerned = {
        line: (ops[line].counter, tuple(enumerate(ops[line].wait)))
        for line in set(lines)
        if ops[line].counter >= 0 or max(ops[line].wait) >= 0
    }
    for line in lines:
        if line not in concerned:
            continue
        counter, waits = concerned[line]
        for number, left in waits:
            ended = len(under_way[number]) - left
            if left < 0 or ended <= 0:
                continue
            found.setdefault(line, {}).update(dict.fromkeys(under_way[number][:ended]))
            del under_way[number][:ended]
        if counter >= 0:
            under_way[counter].append(line)
    return [[at + 1, [[line + 1, 0] for line in ended]] for at, ended in found.items()]


def _category(launch: LaunchProfile, lines: Sequence[int], at: int) -> int:
    line = lines[at]
    unit = UNITS[launch.detail.prog.ops[line].unit]
    if unit == "branch" and at + 1 < len(lines) and lines[at + 1] == line + 1:
        return _NOT_TAKEN
    if unit in ("vmem", "store") and launch.detail.texts[line].startswith(("flat_", "global_")):
        return _FLAT
    return _CATEGORIES[unit]


def _timeline(wave: WaveTrack) -> list[list[int]]:
    """Return the states of a wave, one after the other, without gaps."""
    states: list[list[int]] = []
    now = wave.begin
    for span in wave.spans:
        kind = _EXECUTES if not span.reason else _WAITS if span.reason in _WAITING else _STALLS
        for state, cycles in ((_STALLS, span.begin - now), (kind, span.cycles)):
            if cycles <= 0:
                continue
            if states and states[-1][0] == state:
                states[-1][1] += cycles
            else:
                states.append([state, cycles])
        now = max(now, span.begin + span.cycles)
    return states


def _copy_sources(folder: Path, launch: LaunchProfile) -> None:
    """Copy the source files that are here, and write where the viewer finds each."""
    tree: dict[str, Any] = {}
    files = sorted({place.file for place in launch.places if place is not None})
    for number, name in enumerate(files):
        path = Path(name)
        if not path.is_file():
            continue
        copied = f"source_{number}_{path.name}"
        (folder / copied).write_bytes(path.read_bytes())
        branch = tree
        for part in path.parts[:-1]:
            branch = branch.setdefault(part, {})
        branch[path.name] = copied
    if tree:
        _dump(folder / "snapshots.json", tree)
