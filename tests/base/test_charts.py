# SPDX-License-Identifier: MIT
"""Charts are well-formed, scale, and show what they are given; objects show themselves."""

import pickle
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis.vendor.pretty import pretty

import cklang as ck
from cklang.charts import Mark, Point, roofline, stacked_bars, timeline
from cklang.runtime.explain import Explanation
from cklang.testing import Report

SVG = "{http://www.w3.org/2000/svg}"
M, N, K, B, H, S, D = ck.dims("M N K B H S D")


@ck.op
def normed(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.softmax(x @ w.T, axis=-1)


@ck.op
def heads(q: ck.f16[B, H, S, D]) -> ck.f16[B, H, S, D]:
    return ck.attention(q, q, q)


@ck.op
def sums(x: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.cumsum(x, axis=1)


def rects(chart: str) -> list[ET.Element]:
    root = ET.fromstring(chart)
    assert "viewBox" in root.attrib
    assert "width" not in root.attrib
    return [each for each in root.findall(f"{SVG}rect") if each.find(f"{SVG}title") is not None]


def test_bars_are_as_long_as_their_terms() -> None:
    rows = [("a", {"x": 1.0, "y": 3.0, "none": 0.0}), ("b", {"x": 2.0, "y": 0.0, "none": 0.0})]
    shown = rects(stacked_bars("two <bars>", rows))
    widths = [float(each.attrib["width"]) for each in shown if each.findtext(f"{SVG}title")]
    assert len(widths) == 3
    assert widths[1] == pytest.approx(3 * widths[0], rel=0.01)
    assert widths[2] == pytest.approx(2 * widths[0], rel=0.01)


def test_a_long_legend_has_several_lines() -> None:
    names = {f"term number {index}": 1.0 for index in range(16)}
    root = ET.fromstring(stacked_bars("many", [("a", names)]))
    height = float(root.attrib["viewBox"].split()[3])
    lines = {float(each.attrib["y"]) for each in root.findall(f"{SVG}text")}
    assert len(lines) >= 4
    assert max(lines) < height
    assert max(float(each.attrib["x"]) for each in root.findall(f"{SVG}text")) < 760


def test_points_are_below_the_roof() -> None:
    points = [Point(label="a", flops=1e12, bytes=1e9, seconds=1e-3)]
    root = ET.fromstring(roofline("r", points, flops_per_second=2e15, bytes_per_second=4e12))
    (circle,) = root.findall(f"{SVG}circle")
    (roof,) = root.findall(f"{SVG}polyline")
    tops = [float(pair.split(",")[1]) for pair in roof.attrib["points"].split()]
    assert min(tops) < float(circle.attrib["cy"])


def test_marks_of_a_timeline_are_in_order() -> None:
    marks = [Mark(start=10, stop=20, kind="wait"), Mark(start=20, stop=50, kind="matrix")]
    shown = rects(timeline("t", [("wave 0", marks)]))
    first, second = (each for each in shown if each.findtext(f"{SVG}title"))
    assert first.findtext(f"{SVG}title") == "wait: 0 to 10"
    widths = [float(each.attrib["width"]) for each in (first, second)]
    assert widths[1] == pytest.approx(3 * widths[0], rel=0.01)


@pytest.mark.parametrize(
    ("op", "array", "kernels"),
    [(heads, np.ones((1, 2, 64, 64), np.float16), 1), (sums, np.ones((5, 7), np.float32), 0)],
)
def test_an_explanation_is_text_with_a_chart(op: ck.Op, array: np.ndarray, kernels: int) -> None:
    explanation = op.explain(array, device="emu:gfx942")
    assert isinstance(explanation, Explanation)
    assert len(explanation.bars) >= kernels
    assert explanation == pickle.loads(pickle.dumps(explanation))
    assert (explanation._repr_svg_() is None) == (not explanation.bars)
    assert "<pre>func @" in explanation._repr_html_()


def test_the_terms_of_a_chart_are_the_predicted_times() -> None:
    x, w = np.ones((64, 128), np.float16), np.ones((32, 128), np.float16)
    explanation = normed.explain(x, w, device="emu:gfx942")
    summary = normed.summary(x, w, device="emu:gfx942")
    chosen = [terms for name, terms in explanation.bars if "runner-up" not in name]
    assert len(chosen) == len(summary.kernels) == 2
    for terms, kernel in zip(chosen, summary.kernels, strict=True):
        # The summary adds copies and functions.
        assert sum(terms.values()) <= (kernel.microseconds or 0) + 1e-6
    assert len([e for e in rects(summary._repr_svg_() or "") if e.findtext(f"{SVG}title")]) == 2
    assert "<pre>kernel" in summary._repr_html_()


def test_reports_are_shown_as_text() -> None:
    x = np.ones((5, 7), np.float32)
    compared = Report(got=x, expected=x, bound=x)
    for shown in (compared, sums.check(x), sums.check(x[0])):
        assert pretty(shown) == str(shown)
