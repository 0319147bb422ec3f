# SPDX-License-Identifier: MIT
"""Times of calls: statistics, rates, the schedule of calls between events, and the command."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.cli.main import main
from cklang.device.device import open_device
from cklang.errors import CkValueError
from cklang.ops.bench import CLOCK, Benchmarks, BenchRow, Schedule, event_samples
from cklang.runtime.op import Op
from tests.support.gemm_ops import fused

_ROW = BenchRow(
    op="linear",
    call="float16[2, 3]",
    device="somewhere",
    source=CLOCK,
    samples=(4.0, 1.0, 2.0, 3.0, 10.0),
    flops=6e6,
    bytes=1500,
    peak_flops=4e12,
    peak_bytes=1e9,
    error=None,
)


def test_statistics_and_rates() -> None:
    assert (_ROW.median, _ROW.mean) == (3, 4)
    assert _ROW.deviation == pytest.approx(np.std([4, 1, 2, 3, 10]))
    assert _ROW.percentile(100) == 10
    assert _ROW.tflops == pytest.approx(2)
    assert _ROW.gbps == pytest.approx(0.5)
    # Both roofs allow 1.5 µs; the median takes 3.
    assert _ROW.roofline_share == pytest.approx(0.5)


def test_tables() -> None:
    table = Benchmarks((_ROW,))
    (row,) = csv.DictReader(io.StringIO(table.csv()))
    assert (row["source"], float(row["p50_us"])) == ("clock", 3)
    assert json.loads(table.json())[0]["max_us"] == 10
    head, _, line = table.markdown().splitlines()
    assert head.count("|") == line.count("|")
    assert "| linear(float16[2, 3]) | clock | 3 | 4 |" in line


@pytest.mark.parametrize("name", ["warmup", "rounds", "iterations", "rotate"])
def test_numbers_below_the_least_are_refused(name: str) -> None:
    settings: dict[str, Any] = {name: -1}
    with pytest.raises(CkValueError, match=f"A132.*{name} is -1"):
        ck.bench(fused, **settings)


@pytest.mark.usefixtures("emulator")
@pytest.mark.parametrize(("cold", "samples"), [(False, 2), (True, 6)])
def test_calls_between_events(cold: bool, samples: int) -> None:
    made: list[int] = []

    def call(number: int) -> Callable[[], None]:
        return lambda: made.append(number)

    schedule = Schedule(warmup=2, rounds=2, iterations=3, cold=cold)
    times = event_samples(open_device("emu:gfx1201"), [call(0), call(1)], schedule)
    assert made == [0, 1, *[0, 1, 0] * 2]
    assert len(times) == samples
    assert all(time >= 0 for time in times)


@pytest.mark.usefixtures("compiler")
def test_an_emulated_device_is_timed_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    x, w, res = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(3))
    bias = rng.standard_normal(256).astype(np.float16)
    row = ck.bench(fused, x, w, bias, res, device="emu:gfx942")
    predicted = ck.predict(fused, x, w, bias, res, device="emu:gfx942")
    # The two calls allocate other addresses, on which lines of the caches depend a little.
    assert row.samples == pytest.approx((predicted.us,), rel=0.03)
    assert row.source == CLOCK
    cold = ck.bench(fused, x, w, bias, res, device="emu:gfx942", cold=True)
    assert cold.median > 1.1 * row.median
    assert row.error == pytest.approx(predicted.error)
    assert row.bytes == sum(array.nbytes for array in (x, w, bias, res)) + res.nbytes
    assert row.flops is not None
    assert 2 * 256**3 <= row.flops < 2.5 * 256**3
    assert 0 < row.roofline_share < 1
    text = fused.explain(x, w, bias, res, device="emu:gfx942", clock=True)
    clock = text[text.index("by the clock: ") :]
    assert clock.count("\n") == str(predicted).count("\n") + 1
    assert predicted.kernels[0].kernel in clock
    assert re.search(r"\n  compiled by clang \d+\.\d+", clock)
    # The op's own record has the same clock, where calls are asked to measure themselves.
    monkeypatch.setenv("CKLANG_TIMING", "1")
    timed = Op(fused.program)
    result = timed(x, w, bias, res, device="emu:gfx942")
    last = timed.last
    assert last is not None
    assert last.ms is not None
    assert 0 < last.ms < 1
    assert "ms by the clock" in str(last)
    with ck.profile() as p:
        again = timed(x, w, bias, res, device="emu:gfx942")
    assert (again == result).all()
    assert timed.last is not None
    assert timed.last.ms is None
    assert len(p) == len(last.launches)
    # Lines of the function that the op computes are those of the user's Python.
    assert any(row.place.file.endswith("gemm_ops.py") for row in p.launches[0].sources)


@pytest.mark.usefixtures("compiler")
def test_the_command_times_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "ops.py"
    source.write_text("from tests.support.gemm_ops import fused\n")
    table = tmp_path / "t.csv"
    words = [f"{source}:fused", "M=256", "N=256", "K=256", "--dtype", "T=f16"]
    assert main(["bench", "--calls", "--csv", str(table), *words, "--device", "emu:gfx942"]) == 0
    assert "µs by the clock" in capsys.readouterr().out
    (row,) = csv.DictReader(io.StringIO(table.read_text()))
    assert row["source"] == "clock"


@pytest.mark.usefixtures("emulator")
def test_recordings_do_not_nest() -> None:
    with ck.profile(), pytest.raises(CkValueError, match="A131"), ck.profile():
        pass
