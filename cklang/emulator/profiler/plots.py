# SPDX-License-Identifier: MIT
"""Plots of a launch as SVG: roofline, timeline of waves, occupancy, busy units."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from cklang.emulator.profiler.model import LaunchProfile
from cklang.emulator.profiler.timeline import Span, unit_spans, wave_tracks

COLOURS = {
    "": "#4c8c4a",
    "load": "#d1495b",
    "store": "#e08e79",
    "LDS": "#edae49",
    "scalar load": "#b07aa1",
    "other counter": "#9c755f",
    "barrier": "#66788a",
    "matrix result": "#00798c",
    "vector result": "#3d9fb3",
    "scalar result": "#86c5d8",
    "vector unit busy": "#30638e",
    "matrix unit busy": "#5c6bc0",
    "scalar unit busy": "#7d98b3",
    "LDS queue full": "#f2c14e",
    "memory queue full": "#a23b4a",
    "s_nop, s_sleep": "#c7c7c7",
    "instruction fetch": "#8d6a9f",
}
"""The colour of issue, and of each reason not to issue."""

_EMPTY = "#80808055"
"""The colour of an empty wave slot: grey on white, and on black."""
_WIDTH, _HEIGHT = 640, 300
_MARGIN = 56
_ROW, _GAP = 14, 4
_LABEL = 190
_MOST_TRACKS = 32


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" role="img"><title>{escape(title)}</title>{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _rect(x: float, y: float, width: float, height: float, colour: str, tip: str = "") -> str:
    title = f"<title>{escape(tip)}</title>" if tip else ""
    return (
        f'<rect x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}" '
        f'fill="{colour}">{title}</rect>'
    )


def _line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" class="{kind}"/>'


def roofline(launches: Sequence[LaunchProfile]) -> str:
    """Return the roofs of the first launch's GPU, with a point for each launch."""
    first = launches[0].roofline
    ridge = first.peak_flops / first.peak_bytes
    points = [(e.roofline.intensity, e.roofline.flops_per_second, e.kernel) for e in launches]
    points = [point for point in points if point[0] > 0 and point[1] > 0]
    left = min([ridge / 100, *(x / 4 for x, _, _ in points)])
    right = max([ridge * 10, *(x * 4 for x, _, _ in points)])
    bottom = min([first.peak_flops / 1e4, *(y / 4 for _, y, _ in points)])
    top = first.peak_flops * 4

    def x_of(value: float) -> float:
        return _MARGIN + math.log(value / left) / math.log(right / left) * (_WIDTH - 2 * _MARGIN)

    def y_of(value: float) -> float:
        share = math.log(value / bottom) / math.log(top / bottom)
        return _HEIGHT - _MARGIN + -share * (_HEIGHT - 1.5 * _MARGIN)

    start = max(left, bottom / first.peak_bytes)
    foot, knee = (
        (x_of(start), y_of(start * first.peak_bytes)),
        (x_of(ridge), y_of(first.peak_flops)),
    )
    parts = [
        _line(*foot, *knee, "roof"),
        _line(*knee, x_of(right), knee[1], "roof"),
        _text(x_of(right), knee[1] - 6, f"{first.peak_flops / 1e12:.4g} TFLOP/s", "end"),
        _text(foot[0] + 32, foot[1] + 6, f"{first.peak_bytes / 1e12:.3g} TB/s"),
        _line(_MARGIN, _HEIGHT - _MARGIN, _WIDTH - _MARGIN, _HEIGHT - _MARGIN, "axis"),
        _line(_MARGIN, _HEIGHT - _MARGIN, _MARGIN, _MARGIN / 2, "axis"),
        _text(_WIDTH / 2, _HEIGHT - 16, "FLOP per byte beyond the L1", "middle"),
        _text(8, 16, "FLOP/s"),
        *(_text(x_of(10.0**n), _HEIGHT - _MARGIN + 14, f"{10.0**n:g}", "middle")
          for n in _powers(left, right)),
        *(_text(_MARGIN - 4, y_of(10.0**n) + 4, f"1e{n}", "end") for n in _powers(bottom, top)),
    ]  # fmt: skip
    for x, y, name in points:
        tip = f"{name}: {y / 1e12:.3g} TFLOP/s, {x:.3g} FLOP/byte"
        parts.append(
            f'<circle cx="{x_of(x):.1f}" cy="{y_of(y):.1f}" r="5" class="point">'
            f"<title>{escape(tip)}</title></circle>"
        )
        parts.append(_text(x_of(x) + 8, y_of(y) + 4, name))
    return _svg(_WIDTH, _HEIGHT, parts, "Roofline")


def _powers(low: float, high: float) -> Iterator[int]:
    """Yield the powers of ten between two numbers."""
    yield from range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)


def timeline(launch: LaunchProfile) -> str:
    """Return what waves, LDS and memory path do over the cycles of the timed rounds."""
    waves = wave_tracks(launch)
    end = max((wave.end for wave in waves), default=1)
    tracks: list[tuple[str, Sequence[Span]]] = [
        ("LDS", unit_spans(launch, "LDS")),
        ("memory path", unit_spans(launch, "memory")),
    ]
    tracks += [
        (f"SIMD {wave.simd}, workgroup {wave.workgroup}", wave.spans)
        for wave in sorted(waves, key=lambda wave: (wave.simd, wave.begin))[:_MOST_TRACKS]
    ]
    scale = (_WIDTH * 1.6 - _LABEL) / max(end, 1)
    parts = []
    for row, (name, spans) in enumerate(tracks):
        y = row * (_ROW + _GAP) + _GAP
        parts.append(_text(0, y + _ROW - 3, name))
        parts += [
            _rect(_LABEL + x, y, width, _ROW, COLOURS[reason], reason or "issue")
            for x, width, reason in _merged(spans, scale)
        ]
    height = len(tracks) * (_ROW + _GAP) + 24
    parts.append(_text(_LABEL, height - 6, "0"))
    parts.append(_text(_WIDTH * 1.6, height - 6, f"{end} cycles", "end"))
    return _svg(_WIDTH * 1.6, height, parts, "Timeline of a compute unit")


def _merged(spans: Sequence[Span], scale: float) -> Iterator[tuple[float, float, str]]:
    """Yield spans in pixels; short ones next to each other as one of the longest reason."""
    begin, end, cycles = 0.0, -1.0, dict[str, int]()
    for span in spans:
        left, right = span.begin * scale, (span.begin + span.cycles) * scale
        if cycles and (left > end + 1 or end - begin >= 1):
            yield begin, max(end - begin, 0.5), max(cycles, key=lambda name: cycles[name])
            cycles = {}
        if not cycles:
            begin = left
        end = max(end, right) if cycles else right
        cycles[span.reason] = cycles.get(span.reason, 0) + span.cycles
    if cycles:
        yield begin, max(end - begin, 0.5), max(cycles, key=lambda name: cycles[name])


@dataclass(frozen=True, slots=True)
class _Flow:
    """What moves between two levels of memory."""

    level: str
    reads: str
    writes: str


def _size(count: float) -> str:
    """Return bytes with their unit.

    Example:
        >>> _size(1536), _size(0)
        ('1.5 KB', '0 B')
    """
    power = min(int(math.log(count, 1024)), 4) if count >= 1 else 0
    return f"{count / 1024**power:.4g} {('B', 'KB', 'MB', 'GB', 'TB')[power]}"


def memory_chart(launch: LaunchProfile) -> str:
    """Return what moves between the lanes of a launch, the LDS, the L1, the L2 and memory."""
    recorded, requests, facts = launch.detail.launch, launch.requests, launch.facts
    width, y, box = _WIDTH * 1.4, 30, 100

    def boxed(x: float, top: float, *lines: str) -> list[str]:
        frame = (
            f'<rect x="{x:.0f}" y="{top:.0f}" width="{box}" height="44" fill="none" class="axis"/>'
        )
        texts = [
            _text(x + box / 2, top + 18 + 15 * at, line, "middle") for at, line in enumerate(lines)
        ]
        return [frame, *texts]

    lds = [launch.counter("SQ_INSTS_LDS"), launch.counter("SQ_LDS_BANK_CONFLICT")]
    flows = [_Flow("L1", _size(recorded.bytes_loaded), _size(recorded.bytes_stored))]
    if requests is not None:
        reads = requests.read_bytes * facts.scale
        writes = 64 * (requests.writes + requests.atomics) * facts.scale
        flows.append(_Flow("L2", _size(reads), _size(writes)))
    total = launch.roofline.bytes
    behind = _Flow("memory", f"{_size(total)} in all", "")
    parts = boxed(0, y, "waves", f"{launch.waves}")
    step = (width - box) / (len(flows) + 1)
    for at, flow in enumerate((*flows, behind), 1):
        left, x = (at - 1) * step + box, at * step
        parts += [
            *boxed(x, y, flow.level),
            _line(left + 4, y + 15, x - 4, y + 15, "axis"),
            _text(
                (left + x) / 2, y + 10, f"← {flow.reads}" if flow.writes else flow.reads, "middle"
            ),
        ]
        if flow.writes:
            parts.append(_line(left + 4, y + 30, x - 4, y + 30, "axis"))
            parts.append(_text((left + x) / 2, y + 44, f"→ {flow.writes}", "middle"))
    low = y + 100
    parts += [
        *boxed(step, low, "LDS", _size(recorded.lds_bytes)),
        _line(box / 2, y + 48, box / 2, low + 22, "axis"),
        _line(box / 2, low + 22, step - 4, low + 22, "axis"),
        _text((box / 2 + step) / 2, low + 16, f"{lds[0]:.0f} instructions", "middle"),
        _text((box / 2 + step) / 2, low + 38, f"{lds[1]:.0f} conflicts", "middle"),
    ]
    return _svg(width, low + 56, parts, "Memory chart")


def bars(rows: Sequence[tuple[str, float, str]], title: str) -> str:
    """Return shares between 0 and 1 as bars."""
    width = _WIDTH - _LABEL - 60
    parts = []
    for row, (name, share, colour) in enumerate(rows):
        y = row * (_ROW + _GAP) + _GAP
        parts.append(_text(0, y + _ROW - 3, name))
        parts.append(_rect(_LABEL, y, max(min(share, 1.0), 0) * width, _ROW, colour))
        parts.append(_text(_LABEL + min(share, 1.0) * width + 6, y + _ROW - 3, f"{share:.1%}"))
    return _svg(_WIDTH, max(len(rows), 1) * (_ROW + _GAP) + 8, parts, title)


def occupancy(launch: LaunchProfile) -> str:
    """Return the waves of a compute unit as boxes, those that are there filled."""
    about = launch.occupancy
    simds = launch.detail.spec.simds_per_cu
    slots = about.most_waves // simds
    parts = []
    for place in range(about.most_waves):
        row, column = place % simds, place // simds
        colour = COLOURS[""] if place < about.waves else _EMPTY
        parts.append(_rect(_LABEL + column * 22, row * 22 + 2, 18, 18, colour))
    parts += [_text(0, row * 22 + 16, f"SIMD {row}") for row in range(simds)]
    return _svg(_LABEL + slots * 22 + 10, simds * 22 + 6, parts, "Occupancy")
