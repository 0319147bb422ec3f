# SPDX-License-Identifier: MIT
"""Files that a profile writes: they hold its numbers, in the layouts that viewers read."""

import csv
import io
import json
import xml.etree.ElementTree as ET
from collections import defaultdict
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cklang.emulator.profiler.session import Profile
from cklang.emulator.profiler.stages import STAGES
from cklang.errors import CkValueError

_SOURCE = Path(__file__).parent / "transpose.hip"
_VOID = {"meta", "input"}


def test_json_has_everything(transpose: Profile, tmp_path: Path) -> None:
    data = json.loads(transpose.save(tmp_path / "p.json").read_text())
    (launch,) = data["launches"]
    (ours,) = transpose.launches
    assert launch["us"] == ours.us
    assert launch["counters"]["SQ_LDS_BANK_CONFLICT"] == {"value": 63488, "origin": "recorded"}
    assert len(launch["instructions"]) == len(ours.instructions)
    assert launch["error"] == ours.error
    assert {row["stage"] for row in launch["stages"]} <= set(STAGES)
    assert sum(row["hits"] for row in launch["stages"]) == ours.counter("SQ_INSTS")
    assert launch["sources"][0]["place"] == str(ours.sources[0].place)
    assert data["kernels"][0]["share"] == 1
    assert "TCC_HIT_sum" in data["absent_counters"]


def test_csv_has_a_row_for_each_instruction(transpose: Profile, tmp_path: Path) -> None:
    text = transpose.save(tmp_path / "p.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    (launch,) = transpose.launches
    assert [int(row["hits"]) for row in rows] == [row.hits for row in launch.instructions]
    assert {row["phase"] for row in rows} == {"before", "loop", "after"}


def test_timeline_has_a_track_for_each_wave_and_unit(transpose: Profile, tmp_path: Path) -> None:
    data = json.loads(transpose.save(tmp_path / "p.perfetto.json").read_text())
    names = {e["tid"]: e["args"]["name"] for e in data["traceEvents"] if e["name"] == "thread_name"}
    spans = defaultdict(list)
    for event in data["traceEvents"]:
        if event["ph"] == "X":
            spans[names[event["tid"]]].append(event["args"])
    (launch,) = transpose.launches
    assert {"LDS", "memory"} <= set(spans)
    assert len(spans) == 2 + len(launch.detail.unit.waves)
    for events in spans.values():
        for one, other in pairwise(events):
            assert one["cycle"] + one["cycles"] <= other["cycle"]
    _overlaps_nowhere(data["traceEvents"])
    detail = launch.detail
    each = detail.sums.lds_cycles.sum() / len(detail.launch.waves)  # All waves do the same.
    assert sum(e["cycles"] for e in spans["LDS"]) == each * len(detail.streams)


def _overlaps_nowhere(events: list[dict[str, Any]]) -> None:
    """Perfetto takes nanoseconds, rounded or cut off, and drops events that overlap others."""
    tracks = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append((event["ts"], event["dur"]))
    for spans in tracks.values():
        for whole in (int, round):
            times = sorted((whole(1000.0 * at), whole(1000.0 * length)) for at, length in spans)
            assert all(length > 0 for _, length in times)
            assert all(one + length <= other for (one, length), (other, _) in pairwise(times))


def test_speedscope_weights_are_cycles(transpose: Profile, tmp_path: Path) -> None:
    data = json.loads(transpose.save(tmp_path / "p.speedscope.json").read_text())
    (profile,) = data["profiles"]
    frames = data["shared"]["frames"]
    assert profile["endValue"] == sum(profile["weights"])
    assert len(profile["samples"]) == len(profile["weights"])
    deepest = max(zip(profile["weights"], profile["samples"], strict=True))[1]
    names = [frames[at]["name"] for at in deepest]
    assert names[0] == "transpose"
    assert names[1] in STAGES
    assert names[2].rpartition(":")[0] == "transpose.hip"
    assert names[-1].startswith("waits: ")
    lines = {frames[sample[2]]["name"].rpartition(":")[0] for sample in profile["samples"]}
    assert "transpose.hip" in lines


def test_folder_for_viewers_of_thread_traces(transpose: Profile, tmp_path: Path) -> None:
    folder = transpose.save(tmp_path / "att") / "ui_output_agent_1_dispatch_1"
    code = json.loads((folder / "code.json").read_text())
    (launch,) = transpose.launches
    header = [name.strip() for name in code["header"].split(",")]
    assert len(header) == len(code["code"][0])
    rows = [dict(zip(header, row, strict=True)) for row in code["code"]]
    assert [row["LineNumber"] for row in rows] == list(range(len(rows)))
    assert sum(row["Stall"] for row in rows) == launch.facts.stall.sum()
    names = json.loads((folder / "filenames.json").read_text())
    assert names["thread_trace"]
    assert not names["pc_sampling"]
    events = json.loads((folder / "occupancy.json").read_text())["0"]
    assert all(0 <= number < 256 for event in events for number in event[1:4])  # of 8 bits there
    waves = [name for simds in names["wave_filenames"]["0"].values() for name in simds.values()]
    files = [folder / wave["0"][0] for wave in waves]
    assert len(files) == len(launch.detail.unit.waves)
    for file in files:
        wave = json.loads(file.read_text())["wave"]
        clock, kind, stall, duration, line = wave["instructions"][-1]
        assert rows[line]["ISA"] == "s_endpgm"
        assert clock + duration == wave["end"]
        assert sum(cycles for _, cycles in wave["timeline"]) == wave["end"] - wave["begin"]
        assert kind == 9
        assert 0 <= stall <= duration  # a wave ends when its stores have left
    tree = json.loads((folder / "snapshots.json").read_text())
    for part in _SOURCE.parts:
        tree = tree[part]
    assert (folder / tree).read_bytes() == _SOURCE.read_bytes()


class Checker(HTMLParser):
    """Every element is closed, and nothing comes from the network."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.pictures = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("link", "img", "iframe")
        assert not {name for name, _ in attrs} & {"src", "href"}
        self.pictures += tag == "svg"
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del tag, attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_report_is_one_file_with_plots(transpose: Profile, tmp_path: Path) -> None:
    page = transpose.save(tmp_path / "p.html").read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert checker.pictures == 7 + len(transpose.tiles())
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    for start in (at for at in range(len(page)) if page.startswith("<svg", at)):
        end = page.index("</svg>", start) + len("</svg>")
        assert float(ET.fromstring(page[start:end]).attrib["width"]) > 0
    assert "tile[threadIdx.x][row]" in page
    assert transpose._repr_html_().startswith("<iframe")


def test_an_unknown_ending_is_refused(transpose: Profile, tmp_path: Path) -> None:
    with pytest.raises(CkValueError, match=r"D020.*p\.pdf"):
        transpose.save(tmp_path / "p.pdf")
    with pytest.raises(CkValueError, match="D021"):
        Profile([]).save(tmp_path / "p.html")
