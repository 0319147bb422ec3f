# SPDX-License-Identifier: MIT
"""Charts as SVG text, for notebooks and documents: stacked bars, a roofline, a timeline.

Each has a view box and no size in pixels, so it scales with the page, and its text with it.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

_FILLS = (
    *("#3b6ea5", "#e08a2e", "#5a9a4f", "#a25aa8", "#b3361b", "#7d8790", "#c7a93a", "#4aa3a8"),
    *("#9cc3e6", "#f3c998", "#b5d8ad", "#d7b3da", "#e5a293", "#c4cbd1", "#e6d698", "#a7d8db"),
)
"""Colours of the parts of a bar, in order; further parts begin again."""
_QUIET = {"wait": "#e3e6ea"}
"""Colours of parts that should not draw the eye."""
_TEXT, _LINE = "#1c2126", "#8a9199"
_WIDTH, _LABEL, _ROW, _LEGEND = 760, 190, 24, 18
_CHARACTER = 6.6
"""Width of a letter of 12 pixels, for labels that must fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A kernel in a roofline."""

    label: str
    flops: float
    bytes: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A part of a line of a timeline: from where to where, in cycles."""

    start: float
    stop: float
    kind: str


def _svg(title: str, height: float, parts: Iterator[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" role="img" '
        f'font-family="sans-serif" font-size="12" fill="{_TEXT}"><title>{escape(title)}</title>'
        f'<rect width="{_WIDTH}" height="{height:g}" rx="6" fill="#ffffff"/>'
        f"{_text(12, 20, title, size=14)}{''.join(parts)}</svg>"
    )


def _text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    larger = f' font-size="{size}"' if size != 12 else ""
    return f"<text {place}{larger}>{escape(words)}</text>"


def _rect(x: float, y: float, width: float, height: float, fill: str, title: str = "") -> str:
    box = f'x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.2):.1f}" height="{height:g}"'
    return f'<rect {box} fill="{fill}"><title>{escape(title)}</title></rect>'


def _legend(names: Sequence[str], y: float, fills: Mapping[str, str]) -> Iterator[str]:
    x = 12.0
    for name in names:
        if x + 15 + len(name) * _CHARACTER > _WIDTH:
            x, y = 12.0, y + _LEGEND
        yield _rect(x, y - 10, 11, 11, fills[name])
        yield _text(x + 15, y, name)
        x += 32 + len(name) * _CHARACTER


def _legend_height(names: Sequence[str]) -> int:
    """Return how high a legend is: a line more for each width of the chart that the names fill."""
    return _LEGEND * (1 + int(sum(32 + len(name) * _CHARACTER for name in names) // _WIDTH))


def _colours(names: Sequence[str]) -> dict[str, str]:
    return {name: _FILLS[place % len(_FILLS)] for place, name in enumerate(names)}


def _short(label: str) -> str:
    most = int((_LABEL - 16) / _CHARACTER)
    return label if len(label) <= most else f"{label[: most - 1]}…"


def stacked_bars(title: str, rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Return a chart with a bar for each row, made of its terms in µs.

    Example:
        >>> chart = stacked_bars("A", [("chosen", {"launch": 2.0, "memory": 3.0})])
        >>> chart.count("<rect"), "5 µs" in chart
        (5, True)
    """
    names = tuple(dict.fromkeys(name for _, terms in rows for name, v in terms.items() if v > 0))
    fills = _colours(names)
    longest = max((sum(terms.values()) for _, terms in rows), default=0.0) or 1.0
    scale = (_WIDTH - _LABEL - 90) / longest

    def parts() -> Iterator[str]:
        for number, (label, terms) in enumerate(rows):
            y, x = 36.0 + number * _ROW, float(_LABEL)
            yield _text(12, y + 13, _short(label))
            for name, value in terms.items():
                if value > 0:
                    words = f"{label}: {name} {value:.3g} µs"
                    yield _rect(x, y, value * scale, _ROW - 6, fills[name], words)
                x += value * scale
            yield _text(x + 6, y + 13, f"{sum(terms.values()):.3g} µs")
        yield from _legend(names, 54 + len(rows) * _ROW, fills)

    return _svg(title, 66 + len(rows) * _ROW + _legend_height(names), parts())


def roofline(
    title: str, points: Sequence[Point], *, flops_per_second: float, bytes_per_second: float
) -> str:
    """Return a roofline: the rate of kernels over their operations for each byte, on log axes.

    Example:
        >>> point = Point(label="product", flops=1e12, bytes=1e9, seconds=2e-3)
        >>> "product" in roofline("A", [point], flops_per_second=1e15, bytes_per_second=5e12)
        True
    """
    ridge = flops_per_second / bytes_per_second
    intensities = [point.flops / point.bytes for point in points]
    rates = [point.flops / point.seconds for point in points]
    low, high = min([*intensities, ridge]) / 3, max([*intensities, ridge]) * 6
    most = flops_per_second * 2
    least = min([*rates, low * bytes_per_second]) / 2
    left, right, top, bottom = 70.0, _WIDTH - 20.0, 36.0, 330.0

    def across(value: float) -> float:
        return left + (right - left) * math.log(value / low) / math.log(high / low)

    def up(value: float) -> float:
        return bottom - (bottom - top) * math.log(value / least) / math.log(most / least)

    def parts() -> Iterator[str]:
        for power in _powers(least, most):
            yield _grid(left, up(power), right, up(power))
            yield _text(left - 6, up(power) + 4, f"{power / 1e12:g}", anchor="end")
        for power in _powers(low, high):
            yield _grid(across(power), top, across(power), bottom)
            yield _text(across(power), bottom + 16, f"{power:g}", anchor="middle")
        roof = [(low, low * bytes_per_second), (ridge, flops_per_second), (high, flops_per_second)]
        path = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in roof)
        yield f'<polyline points="{path}" fill="none" stroke="{_TEXT}" stroke-width="1.5"/>'
        for point, x, y in zip(points, intensities, rates, strict=True):
            yield f'<circle cx="{across(x):.1f}" cy="{up(y):.1f}" r="4" fill="{_FILLS[4]}"/>'
            yield _text(across(x) + 7, up(y) + 14, point.label)
        peak = f"{flops_per_second / 1e12:.0f} TFLOP/s"
        yield _text(right, up(flops_per_second) - 6, peak, anchor="end")
        yield _text(left + 6, top + 4, "TFLOP/s")
        yield _text(right, bottom + 32, "operations for each byte of memory", anchor="end")

    return _svg(title, 374, parts())


def _powers(low: float, high: float) -> Iterator[float]:
    """Yield the powers of ten in a range."""
    for power in range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1):
        yield 10.0**power


def _grid(x: float, y: float, u: float, v: float) -> str:
    ends = f'x1="{x:.1f}" y1="{y:.1f}" x2="{u:.1f}" y2="{v:.1f}"'
    return f'<line {ends} stroke="{_LINE}" stroke-width="0.4"/>'


def timeline(title: str, lanes: Sequence[tuple[str, Sequence[Mark]]]) -> str:
    """Return a chart with a line for each lane, and its marks from left to right.

    ``lanes`` have a label and marks that do not overlap.

    Example:
        >>> chart = timeline("A", [("wave 0", [Mark(start=0, stop=8, kind="matrix")])])
        >>> "matrix" in chart and "8 cycles" in chart
        True
    """
    kinds = tuple(dict.fromkeys(mark.kind for _, marks in lanes for mark in marks))
    fills = {**_colours(sorted(kinds)), **_QUIET}
    begin = min((mark.start for _, marks in lanes for mark in marks), default=0.0)
    end = max((mark.stop for _, marks in lanes for mark in marks), default=1.0)
    scale = (_WIDTH - 100) / ((end - begin) or 1.0)

    def parts() -> Iterator[str]:
        for number, (label, marks) in enumerate(lanes):
            y = 36.0 + number * _ROW
            yield _text(12, y + 13, label)
            for mark in marks:
                words = f"{mark.kind}: {mark.start - begin:g} to {mark.stop - begin:g}"
                x, width = 80 + (mark.start - begin) * scale, (mark.stop - mark.start) * scale
                yield _rect(x, y, width, _ROW - 6, fills[mark.kind], words)
        y = 50.0 + len(lanes) * _ROW
        yield _text(80, y, "0")
        yield _text(_WIDTH - 20, y, f"{end - begin:g} cycles", anchor="end")
        yield from _legend(sorted(kinds), y + 20, fills)

    return _svg(title, 66 + len(lanes) * _ROW + _legend_height(sorted(kinds)), parts())
