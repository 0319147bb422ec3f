# SPDX-License-Identifier: MIT
"""Stages of pipelines, and instructions for which the clock has no cost."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import cklang as ck
from cklang.emulator.clock import sequence
from cklang.emulator.clock.constants import ClockConstants, constants_of
from cklang.emulator.clock.power import matrix_rates
from cklang.emulator.profiler.inlining import calls_of_sections
from cklang.emulator.profiler.session import Profile
from tests.support.gemm_ops import fused


def test_stages_of_a_hip_program_follow_from_the_kinds_of_instructions(transpose: Profile) -> None:
    (launch,) = transpose.launches
    stages = {row.stage: row for row in launch.stages}
    assert stages["LDS read"].hits == stages["LDS store"].hits == 1024
    assert stages["global load"].hits == stages["global store"].hits == 1024
    assert next(iter(stages["barrier"].lost)) == "barrier"
    assert 0.8 < sum(row.share for row in launch.stages) <= 1  # the rest is between instructions
    assert sum(row.cycles for row in launch.stages) == launch.facts.duration.sum()
    assert not {"epilogue", "matrix", "bounds check"} & set(stages)
    read = next(row for row in launch.sources if "out[" in row.place.text)
    assert read.stage == "wait"
    by_instruction = {row.text.partition(" ")[0]: row.stage for row in launch.instructions}
    assert by_instruction["s_barrier"] == "barrier"
    assert by_instruction["v_add_u32_e32"] == "vector arithmetic"


@pytest.mark.usefixtures("compiler")
def test_power_limits_the_clock_of_a_product_that_fills_the_gpu() -> None:
    few, many = (np.ones((rows, 256), np.float16) for rows in (256, 16384))
    w, bias = np.ones((256, 256), np.float16), np.ones(256, np.float16)
    ((key, _),) = fused.kernels(few, w, bias, few, device="emu:gfx942")
    with ck.profile() as p:
        for x in (few, many):
            fused.using(key.algorithm)(x, w, bias, x, device="emu:gfx942")
    small, large = p.launches
    assert small.under_load is not None
    assert small.under_load.clock_hz > 0.99 * 2.1e9
    load, rates = large.under_load, matrix_rates(large.detail)
    assert load is not None
    assert load.board == "MI300X"
    # No padding: the matrix instructions are those of the product.
    assert rates == {"f16": pytest.approx(2 * 16384 * 256 * 256 / (large.us * 1e-6))}
    cost = constants_of("gfx942").boards[0].cost["f16"]
    assert load.clock_hz == pytest.approx(2.1e9 / (1 + cost * rates["f16"] / 1e12))
    assert load.us == pytest.approx(large.us * 2.1e9 / load.clock_hz)


@pytest.mark.usefixtures("compiler")
def test_stages_of_a_product_follow_from_the_functions_of_ck_tile() -> None:
    rng = np.random.default_rng(0)
    x, w, res = (rng.standard_normal((256, 256)).astype(np.float16) for _ in range(3))
    bias = rng.standard_normal(256).astype(np.float16)
    with ck.profile() as p:
        fused(x, w, bias, res, device="emu:gfx942")
    (launch,) = p.launches
    stages = {row.stage for row in launch.stages}
    needed = {"global load", "LDS store", "LDS read", "matrix", "epilogue", "address arithmetic"}
    assert needed <= stages
    matrix = [row for row in launch.instructions if row.text.startswith("v_mfma")]
    assert {row.stage for row in matrix} == {"matrix"}
    stores = [row for row in launch.instructions if row.text.startswith("buffer_store")]
    assert {row.stage for row in stores} == {"epilogue"}
    ours = [row for row in launch.sources if row.place.file.endswith("gemm_ops.py")]
    assert {row.stage for row in ours} == {"epilogue"}
    calls = calls_of_sections(launch.detail.launch.debug, launch.detail.launch.base)
    names = {call.function.partition("<")[0] for call in calls}
    assert {"load_tile", "store_tile", "ck_epilogue"} <= names
    assert "" not in names


@pytest.fixture
def without_stores(transpose: Profile, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """The transposition on a GPU whose stores and shifts the clock knows nothing of."""
    known = constants_of("gfx942")

    def constants(gpu: str, board: str | None) -> ClockConstants:
        rows = [row for row in known.operations if "store|atomic" not in row.pattern]
        kept = [row for row in rows if not row.pattern.startswith("(buffer")]
        return replace(known, gpu=gpu, operations=tuple(kept))

    monkeypatch.setattr(sequence, "constants_of", constants)
    return Profile(transpose.recorded)


def test_instructions_without_a_cost_are_named_everywhere(
    without_stores: Profile, transpose: Profile, tmp_path: Path
) -> None:
    (launch,) = without_stores.launches
    rows = {row.op: row for row in launch.unknown}
    assert set(rows) == {"global_load_dword", "global_store_dword"}
    executed = launch.counter("SQ_INSTS")
    assert rows["global_store_dword"].instructions == pytest.approx(1024 / executed)
    assert all(0 < row.cycles < 1 for row in rows.values())
    (known,) = transpose.launches
    assert known.unknown == ()
    assert launch.us < known.us
    text = str(without_stores)
    for shown in (text, without_stores.save(tmp_path / "p.html").read_text()):
        assert "global_store_dword (" in shown
        assert "The clock has no cost for global_store_dword" in shown
    assert "no cost known" in text
    assert "no cost known" not in str(transpose)
    (record,) = json.loads(without_stores.save(tmp_path / "p.json").read_text())["launches"]
    assert [row["op"] for row in record["unknown"]] == [row.op for row in launch.unknown]
    assert record["unknown"][0]["cycles"] == launch.unknown[0].cycles


def test_the_error_of_the_class_is_said_everywhere(transpose: Profile, tmp_path: Path) -> None:
    (launch,) = transpose.launches
    assert launch.error is not None
    words = f"median {launch.error:.0%} on kernels of this class"
    assert words in str(transpose)
    assert words in transpose.save(tmp_path / "p.html").read_text()
