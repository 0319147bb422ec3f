# SPDX-License-Identifier: MIT
"""Counters of the profiler beside those that others measured on GPUs."""

from __future__ import annotations

import json

import pytest

from cklang.profiler.counters import ABSENT
from cklang.profiler.model import launch_profile
from cklang.profiler.session import Profile
from tests.support.shared_data import required

_SAME = (
    "SQ_WAVES", "SQ_ITEMS", "SQ_INSTS_FLAT", "SQ_INSTS_VMEM", "SQ_INSTS_VMEM_RD",
    "SQ_INSTS_VMEM_WR", "SQ_INSTS_LDS", "SQ_INSTS_SENDMSG", "SQ_INSTS_BRANCH", "SQ_INSTS_MFMA",
    "SQ_LDS_BANK_CONFLICT", "TA_FLAT_READ_WAVEFRONTS_sum", "TA_FLAT_WRITE_WAVEFRONTS_sum",
    "TA_FLAT_WAVEFRONTS_sum", "TA_TOTAL_WAVEFRONTS_sum", "TA_BUFFER_WAVEFRONTS_sum",
    "TCP_TCC_READ_REQ_sum", "TCP_TCC_WRITE_REQ_sum", "TCC_WRITE_sum",
)  # fmt: skip
"""Counters of the copy that do not depend on how a compiler computes an address."""


@pytest.mark.parametrize(("gpu", "product"), [("gfx942", "MI300X"), ("gfx90a", "MI210")])
def test_a_copy_has_the_counters_of_the_gpu(
    copies: dict[str, Profile], gpu: str, product: str
) -> None:
    rows = json.loads(required("silicon/copy_counters.json").read_text())
    measured = next(row["counters_median"] for row in rows if row["gpu"] == product)
    (launch,) = copies[gpu].launches
    ours = {name: launch.counter(name) for name in _SAME}
    assert ours == {name: measured[name] for name in _SAME}


def test_counters_of_all_workgroups_and_of_some(copies: dict[str, Profile]) -> None:
    (launch,) = copies["gfx942"].launches
    origin = {counter.name: counter.origin for counter in launch.counters}
    assert origin["SQ_INSTS"] == "executed"
    assert origin["TCP_TCC_READ_REQ_sum"] == "recorded"
    assert origin["SQ_WAVE_CYCLES"] == "timed"
    assert launch.facts.scale == 4096 / 8


def test_what_the_model_lacks_is_named(copies: dict[str, Profile]) -> None:
    (launch,) = copies["gfx942"].launches
    names = {counter.name for counter in launch.counters}
    assert not names & set(ABSENT)
    with pytest.raises(KeyError):
        launch.counter("TCC_HIT_sum")


def test_what_is_counted_needs_no_clock(copies: dict[str, Profile]) -> None:
    launch = launch_profile(0, copies["gfx942"].recorded[0])
    assert launch.counter("SQ_INSTS_VMEM_RD") > 0
    assert launch.counter("SQ_LDS_BANK_CONFLICT") == 0
    assert "unit" not in vars(launch.detail)
    assert launch.counter("GRBM_GUI_ACTIVE") == launch.cycles
    assert "unit" in vars(launch.detail)


def test_power_limits_the_clock_of_a_launch_that_fills_the_gpu(
    copies: dict[str, Profile], transpose: Profile
) -> None:
    (launch,) = copies["gfx942"].launches
    load = launch.under_load
    assert load is not None
    assert load.clock_hz < launch.detail.spec.clock_hz
    assert load.us == launch.us  # memory has a clock of its own
    assert "at its limit of power" in str(copies["gfx942"])
    (small,) = transpose.launches
    assert small.under_load is None
    (other,) = copies["gfx90a"].launches
    assert other.under_load is None


def test_lanes_of_one_bank_conflict(transpose: Profile) -> None:
    (launch,) = transpose.launches
    # 1,024 reads of columns: in each half of a wave 32 lanes are at one bank.
    assert launch.counter("SQ_LDS_BANK_CONFLICT") == 1024 * 2 * 31
    assert launch.counter("SQ_INSTS_LDS") == 2 * 1024
