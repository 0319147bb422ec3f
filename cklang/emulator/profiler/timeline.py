# SPDX-License-Identifier: MIT
"""What waves, the LDS and the memory path of a compute unit do over time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cklang.emulator.clock.kernel import LaunchDetail
from cklang.emulator.clock.native import REASONS, UNITS
from cklang.emulator.profiler.model import LaunchProfile

MOST = 200_000
"""Spans of a launch that a timeline has at most: the earliest."""


@dataclass(frozen=True, slots=True)
class Span:
    """A time at which something was busy, or a wave did not issue."""

    begin: int
    cycles: int
    line: int
    """The line of the listing."""
    reason: str
    """Why the wave did not issue; '' where it did."""


@dataclass(frozen=True, slots=True)
class WaveTrack:
    """A wave and what it does, in order."""

    number: int
    simd: int
    workgroup: int
    begin: int
    end: int
    spans: tuple[Span, ...]


def wave_tracks(launch: LaunchProfile, most: int = MOST) -> list[WaveTrack]:
    """Return the timed waves, each with its stalls and instructions.

    They have at most ``most`` spans together; waves that start later are left out.
    """
    detail = launch.detail
    tracks: list[WaveTrack] = []
    left = most
    for number, (stream, wave) in enumerate(zip(detail.streams, detail.unit.waves, strict=True)):
        if left <= 0 or len(wave.start) == 0:
            continue
        spans = tuple(_spans(detail, number))
        left -= len(spans)
        track = WaveTrack(number, stream.simd, stream.group, int(wave.start[0]), wave.end, spans)
        tracks.append(track)
    return tracks


def _spans(detail: LaunchDetail, number: int) -> Iterator[Span]:
    stream, wave = detail.streams[number], detail.unit.waves[number]
    for line, start, stall, duration, reason in zip(
        stream.line.tolist(),
        wave.start.tolist(),
        wave.stall.tolist(),
        wave.duration.tolist(),
        wave.reason.tolist(),
        strict=True,
    ):
        if stall:
            yield Span(start, stall, line, REASONS[reason] if reason else "")
        if duration > stall:
            yield Span(start + stall, duration - stall, line, "")


_QUEUES = {"LDS": ("lds",), "memory": ("vmem", "store")}


def unit_spans(launch: LaunchProfile, name: str, most: int = MOST) -> list[Span]:
    """Return when the LDS or the memory path was busy, in order.

    ``name`` is ``LDS`` or ``memory``.
    """
    detail = launch.detail
    wanted = {UNITS.index(unit) for unit in _QUEUES[name]}
    rows = []
    for stream, wave in zip(detail.streams, detail.unit.waves, strict=True):
        units = detail.prog.unit[stream.line]
        at = np.flatnonzero(np.isin(units, list(wanted)))
        busy = detail.prog.busy[stream.line[at]]
        cycles = busy if stream.cycles is None else stream.cycles[at]
        cycles = np.where(cycles < 0, busy, cycles)
        rows.append(np.stack([wave.start[at] + wave.stall[at], cycles, stream.line[at]], axis=1))
    issued = np.concatenate(rows) if rows else np.zeros((0, 3), np.int64)
    issued = issued[np.argsort(issued[:, 0], kind="stable")][:most]
    spans, free = [], 0
    for at, cycles, line in issued.tolist():
        begin = max(at, free)
        free = begin + cycles
        spans.append(Span(begin, cycles, line, ""))
    return spans
