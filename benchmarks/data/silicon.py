# SPDX-License-Identifier: MIT
"""Read measurements on real GPUs from the folder ``silicon`` of ``CKLANG_DATA_DIR``."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cklang.emulator.clock.instruction import Instruction
from cklang.emulator.clock.waves import WaveStream
from cklang.knobs import DATA_DIR

_BESIDE = Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Trace:
    """Waves of one compute unit: what they executed, and when a GPU executed it."""

    kernel: str
    gpu: str
    listing: tuple[Instruction, ...]
    streams: tuple[WaveStream, ...]
    issue: tuple[npt.NDArray[np.int64], ...]
    """When each packet of a wave was issued, from its first one, [packet]."""
    place: tuple[npt.NDArray[np.int64], ...]
    """The executed instruction of each packet, [packet]."""
    stall: tuple[npt.NDArray[np.int64], ...]
    """Cycles between attempt and issue, where the trace has them, [packet]."""
    alone: bool = False
    """Whether the launch had one workgroup."""


def folder() -> Path | None:
    """Return the folder, or None where it is absent."""
    path = (DATA_DIR.get() or _BESIDE) / "silicon"
    return path if path.is_dir() else None


def _load(path: Path) -> Any:
    return json.loads(
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    )


def table(path: Path, name: str) -> Any:
    """Return a JSON file of the folder."""
    return _load(path / name)


def microbench(path: Path, gpu: str, what: str) -> list[dict[str, str]]:
    """Return the rows of ``microbench.csv`` of a GPU whose subject begins with ``what``."""
    with (path / "microbench.csv").open(newline="") as file:
        return [r for r in csv.DictReader(file) if r["gpu"] == gpu and r["what"].startswith(what)]


def instruction_traces(path: Path, gpu: str) -> Iterator[Trace]:
    """Yield AMD's instruction traces of a GPU."""
    for file in sorted(path.glob(f"att_{gpu}_*.json.gz")):
        yield _attribute_trace(_load(file), file.name.removesuffix(".json.gz"))


def _attribute_trace(data: dict[str, Any], name: str) -> Trace:
    listing = tuple(Instruction(row[0], tuple(row[1]), row[2], row[3]) for row in data["lines"])
    waves = sorted(data["waves"], key=lambda wave: (wave["nth"], wave["slot"], wave["t0"]))
    groups: dict[tuple[int, int], int] = {}
    streams, issue, place, stall = [], [], [], []
    for wave in waves:
        # Products have one workgroup a compute unit at a time; the others' waves share slots.
        key = (wave["nth"], 0 if "gemm" in name else wave["slot"])
        start = np.concatenate([[0], np.cumsum(wave["dt"])]).astype(np.int64)
        waited = np.array(wave["stall"], dtype=np.int64)
        streams.append(
            WaveStream(
                np.array(wave["line"], dtype=np.int32),
                simd=wave["simd"],
                group=groups.setdefault(key, len(groups)),
                begin=wave["t0"],
            )
        )
        issue.append(start + waited)
        place.append(np.arange(len(start)))
        stall.append(waited)
    return Trace(
        name, data["gfx"], listing, tuple(streams), tuple(issue), tuple(place), tuple(stall)
    )


_SKIPPED = 4
"""So many instructions in a row leave no packet at most."""


def small_traces(path: Path, gpu: str) -> Iterator[Trace]:
    """Yield the traces of small kernels of a GPU, one for each run and shader engine."""
    for file in sorted(path.glob(f"sqtt_{gpu}_*.json.gz")):
        for name, kernel in _load(file)["kernels"].items():
            for run in kernel["runs"]:
                for engine in run["traces"]:
                    trace = _packet_trace(gpu, f"{file.stem[5:-5]} {name}", kernel, engine)
                    if trace.streams:
                        yield trace


def _packet_trace(gpu: str, name: str, kernel: dict[str, Any], engine: dict[str, Any]) -> Trace:
    rows = kernel["code"]
    listing = tuple(Instruction(op, tuple(r), remark, pc) for pc, op, r, remark in rows)
    line_at = {row[0]: line for line, row in enumerate(rows)}
    waves = sorted((w for w in engine["waves"] if w["insts"]), key=lambda wave: wave["start"])
    streams: list[WaveStream] = []
    issue, place = [], []
    for wave in waves:
        lines, places = _executed([line_at[packet[0]] for packet in wave["insts"]])
        first = wave["insts"][0][1]
        streams.append(WaveStream(lines, simd=0, group=len(streams), begin=first))
        issue.append(np.array([packet[1] - first for packet in wave["insts"]]))
        place.append(places)
    begin = min((stream.begin for stream in streams), default=0)
    shifted = tuple(replace(stream, begin=stream.begin - begin) for stream in streams)
    alone = prod(kernel["workgroups"] or (0,)) == 1
    return Trace(name, gpu, listing, shifted, tuple(issue), tuple(place), (), alone)


def _executed(lines: list[int]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the executed lines with those between two packets, and where each packet is."""
    executed: list[int] = []
    places = []
    for line in lines:
        if executed and 0 < line - executed[-1] <= _SKIPPED:
            executed += range(executed[-1] + 1, line)
        places.append(len(executed))
        executed.append(line)
    return np.array(executed, dtype=np.int32), np.array(places)
