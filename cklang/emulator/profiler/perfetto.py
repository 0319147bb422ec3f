# SPDX-License-Identifier: MIT
"""A timeline in Chrome's trace format, for ui.perfetto.dev: a track for each wave, LDS, memory."""

import json
from collections.abc import Iterator, Sequence
from math import ceil
from typing import Any

from cklang.emulator.profiler.model import LaunchProfile
from cklang.emulator.profiler.timeline import Span, unit_spans, wave_tracks

Event = dict[str, Any]
_UNITS = ("LDS", "memory")


def trace(launches: Sequence[LaunchProfile]) -> str:
    """Return the timeline of launches, one process each, as JSON text.

    A launch begins where the one before ends. A microsecond of the viewer is a cycle: Perfetto
    keeps whole nanoseconds, about two cycles, and drops events that overlap.
    """
    events: list[Event] = []
    begin = 0
    for launch in launches:
        events += _launch(launch, begin)
        begin += ceil(max(launch.cycles, *(wave.end for wave in launch.detail.unit.waves)))
    about = {"a microsecond of the viewer": "a cycle of the shader clock"}
    data = {"displayTimeUnit": "ns", "otherData": about, "traceEvents": events}
    return json.dumps(data) + "\n"


def _launch(launch: LaunchProfile, begin: int) -> Iterator[Event]:
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


def _event(launch: LaunchProfile, begin: int, process: int, thread: int, span: Span) -> Event:
    text, place = launch.detail.texts[span.line], launch.places[span.line]
    return {
        "ph": "X",
        "name": span.reason or text.partition(" ")[0],
        "cat": "stall" if span.reason else "issue",
        "pid": process,
        "tid": thread,
        "ts": begin + span.begin,
        "dur": span.cycles,
        "args": {
            "instruction": text,
            "stage": launch.stage_of_line[span.line],
            "source": "" if place is None else str(place),
            "cycle": span.begin,
            "cycles": span.cycles,
        },
    }
