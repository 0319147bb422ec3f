# SPDX-License-Identifier: MIT
"""A timeline in Chrome's trace format, for ui.perfetto.dev: a track for each wave, LDS, memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from cklang.profiler.model import LaunchProfile
from cklang.profiler.timeline import Span, unit_spans, wave_tracks

__all__ = ["trace"]

Event = dict[str, Any]
_UNITS = ("LDS", "memory")


def trace(launches: Sequence[LaunchProfile]) -> str:
    """Return the timeline of launches, one process each, as JSON text.

    A launch begins where the one before ends. Times are microseconds at the GPU's highest clock;
    the arguments of each event have its cycles.
    """
    events: list[Event] = []
    begin = 0.0
    for launch in launches:
        events += _launch(launch, begin)
        begin += launch.us
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}) + "\n"


def _launch(launch: LaunchProfile, begin: float) -> Iterator[Event]:
    process = launch.number + 1
    name = f"{launch.kernel}, a compute unit of {launch.gpu}"
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    for place, unit in enumerate(_UNITS):
        yield _track(process, place + 1, unit)
        for span in unit_spans(launch, unit):
            yield _event(launch, begin, process, place + 1, span)
    for wave in wave_tracks(launch):
        thread = wave.number + len(_UNITS) + 1
        yield _track(
            process, thread, f"SIMD {wave.simd}, workgroup {wave.workgroup}, wave {wave.number}"
        )
        for span in wave.spans:
            yield _event(launch, begin, process, thread, span)


def _track(process: int, thread: int, name: str) -> Event:
    about = {"pid": process, "tid": thread}
    return {"ph": "M", "name": "thread_name", **about, "args": {"name": name}}


def _event(launch: LaunchProfile, begin: float, process: int, thread: int, span: Span) -> Event:
    mhz = launch.detail.spec.clock_hz / 1e6
    text, place = launch.detail.texts[span.line], launch.places[span.line]
    return {
        "ph": "X",
        "name": span.reason or text.partition(" ")[0],
        "cat": "stall" if span.reason else "issue",
        "pid": process,
        "tid": thread,
        "ts": round(begin + span.begin / mhz, 4),
        "dur": round(span.cycles / mhz, 4),
        "args": {
            "instruction": text,
            "source": "" if place is None else str(place),
            "cycle": span.begin,
            "cycles": span.cycles,
        },
    }
