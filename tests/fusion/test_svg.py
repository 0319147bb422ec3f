# SPDX-License-Identifier: MIT
"""The picture of a plan: well-formed SVG, a box for each node, thick lines for fused edges."""

from itertools import pairwise
from typing import Any
from xml.etree import ElementTree as ET

import cklang as ck
from cklang.families import plan_of

M, N, K = ck.dims("M N K")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16)
SVG = "{http://www.w3.org/2000/svg}"


@ck.op
def chain(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[K, N]) -> ck.f16[M, K]:
    return ck.relu(x @ w.T).to(ck.f16) @ v.T + x


@ck.op
def of_any(x: T[M, K], w: T[N, K]) -> T[M, N]:
    return x @ w.T


def test_boxes_lines_and_reasons() -> None:
    plan = plan_of(chain.program.specialise())
    root = ET.fromstring(chain._repr_svg_() or "")
    boxes, lines = root.findall(f"{SVG}rect"), root.findall(f"{SVG}line")
    assert len(boxes) == plan.graph.number_of_nodes()
    assert len(lines) == plan.graph.number_of_edges()
    fused = {(each.edge.source, each.edge.target) for each in plan.decisions if each.fused}
    thick = [line for line in lines if "stroke-dasharray" not in line.attrib]
    assert 0 < len(thick) < len(lines)
    assert len(fused) <= len(thick)
    reasons = {line.findtext(f"{SVG}title") for line in lines}
    assert {each.reason for each in plan.decisions} <= {
        part for reason in reasons for part in (reason or "").split("; ")
    } | {reason or "" for reason in reasons}


def test_no_box_covers_another_and_values_run_down() -> None:
    root = ET.fromstring(plan_of(chain.program.specialise())._repr_svg_())
    places = [
        (float(box.attrib["y"]), float(box.attrib["x"]), float(box.attrib["width"]))
        for box in root.findall(f"{SVG}rect")
    ]
    for row in {y for y, _, _ in places}:
        spans = sorted((x, x + width) for y, x, width in places if y == row)
        assert all(one[1] < other[0] for one, other in pairwise(spans))
    assert all(
        float(line.attrib["y1"]) < float(line.attrib["y2"]) for line in root.findall(f"{SVG}line")
    )


def test_an_op_whose_arguments_decide_its_program_has_none() -> None:
    assert of_any._repr_svg_() is None
