# SPDX-License-Identifier: MIT
"""Counters of the profiler beside those that others measured on GPUs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cklang.emulator.profiler.advice import advice_of
from cklang.emulator.profiler.counters import absent
from cklang.emulator.profiler.session import Profile
from cklang.emulator.profiler.shared_caches import CacheMisses, instruction_misses, scalar_misses
from tests.emulator.profiler.conftest import HERE, profiled
from tests.support.hip_programs import built
from tests.support.shared_data import required

_SAME = (
    "SQ_WAVES", "SQ_ITEMS", "SQ_INSTS_FLAT", "SQ_INSTS_VMEM", "SQ_INSTS_VMEM_RD",
    "SQ_INSTS_VMEM_WR", "SQ_INSTS_LDS", "SQ_INSTS_SENDMSG", "SQ_INSTS_BRANCH", "SQ_INSTS_MFMA",
    "SQ_LDS_BANK_CONFLICT", "TA_FLAT_READ_WAVEFRONTS_sum", "TA_FLAT_WRITE_WAVEFRONTS_sum",
    "TA_FLAT_WAVEFRONTS_sum", "TA_TOTAL_WAVEFRONTS_sum", "TA_BUFFER_WAVEFRONTS_sum",
    "TCP_TCC_READ_REQ_sum", "TCP_TCC_WRITE_REQ_sum", "TCC_WRITE_sum", "TCC_ATOMIC_sum",
    "SQ_INST_CYCLES_VMEM_RD", "SQ_INST_CYCLES_VMEM_WR", "SQ_ACTIVE_INST_FLAT",
    "TD_LOAD_WAVEFRONT_sum", "TD_STORE_WAVEFRONT_sum", "TD_ATOMIC_WAVEFRONT_sum",
    "TCP_TA_TCP_STATE_READ_sum", "SPI_CSN_NUM_THREADGROUPS", "SPI_CSN_WAVE",
    "SQ_IFETCH", "SQC_ICACHE_REQ", "SQC_ICACHE_HITS", "SQC_ICACHE_MISSES",
    "SQC_ICACHE_MISSES_DUPLICATE", "SQC_DCACHE_MISSES", "SQC_DCACHE_MISSES_DUPLICATE",
    "SQC_DCACHE_ATOMIC", "SQC_TC_INST_REQ", "SQC_TC_DATA_READ_REQ", "SQC_TC_DATA_ATOMIC_REQ",
    "SQC_TC_REQ", "SQ_ACTIVE_INST_MISC", "SQ_INSTS_VALU_INT32", "SQ_INSTS_VALU_INT64",
    "SQ_INSTS_VALU_CVT", "SQ_INSTS_VALU_MFMA_F16", "TCP_TCC_RW_READ_REQ_sum",
    "TCP_TCC_RW_WRITE_REQ_sum", "SQ_WAVES_SAVED", "SQ_WAVES_RESTORED",
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
    # The GPU's compiler loads once more. Both hit but for the first loads of each cache.
    missed = [
        counters["SQC_DCACHE_REQ"] - counters["SQC_DCACHE_HITS"]
        for counters in (measured, {row.name: row.value for row in launch.counted})
    ]
    assert missed[0] == missed[1] > 0


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
    lacking = absent(launch.counted)
    assert not names & set(lacking)
    assert "every workgroup" in lacking["TCC_HIT_sum"]
    with pytest.raises(KeyError):
        launch.counter("TCC_HIT_sum")


def test_the_l2_of_a_copy_has_the_counters_of_the_gpu(copy_program: Path, tmp_path: Path) -> None:
    rows = json.loads(required("silicon/copy_counters.json").read_text())
    measured = next(row["counters_median"] for row in rows if row["gpu"] == "MI300X")
    (launch,) = profiled(copy_program, tmp_path, "gfx942", workgroups=4096).launches
    same = ("TCC_HIT_sum", "TCC_EA0_WRREQ_sum", "TCC_EA0_WRREQ_DRAM_sum", "TCC_BUBBLE_sum")
    for name in same:
        assert launch.counter(name) == measured[name]
    # On the GPU the host, the scalar cache and translation make some 250 requests, too.
    for name in ("TCC_REQ_sum", "TCC_READ_sum", "TCC_MISS_sum", "TCC_EA0_RDREQ_sum"):
        assert 0 < measured[name] - launch.counter(name) < 300
    assert (launch.counter("FETCH_SIZE"), launch.counter("WRITE_SIZE")) == (8 << 10, 8 << 10)


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory, emulator: None) -> Profile:
    """Launches of one wave a workgroup, all of which are recorded."""
    program = built(HERE / "requests.hip", "gfx942")
    return profiled(program, tmp_path_factory.mktemp("records"), "gfx942", workgroups=16)


def test_lanes_far_apart_have_a_time(requests: Profile) -> None:
    strided, same, _ = requests.launches
    (advice,) = (row for row in advice_of(strided) if "far apart" in row.what)
    assert "global_load" in advice.evidence
    assert advice.us is not None
    assert advice.us < strided.us
    assert not any("far apart" in row.what for row in advice_of(same))
    cycles = [
        next(limit.used for limit in launch.limits if limit.name == "L1 addresses")
        for launch in (strided, same)
    ]
    assert cycles[0] - cycles[1] == pytest.approx(16 * (64 - 4))  # 64 pieces a wave instead of 4


def test_stores_at_the_end_are_not_waited_for_before(copies: dict[str, Profile]) -> None:
    (launch,) = copies["gfx942"].launches
    (advice,) = (row for row in advice_of(launch) if row.what.startswith("Stores"))
    assert "when waves end" in advice.what
    assert "'s_endpgm'" in advice.evidence


def test_requests_to_the_l2_are_those_counted_by_hand(requests: Profile) -> None:
    launches = requests.launches
    names = (
        "TCC_READ_sum", "TCC_WRITE_sum", "TCC_ATOMIC_sum", "TCC_REQ_sum", "TCC_HIT_sum",
        "TCC_MISS_sum", "TCC_EA0_RDREQ_sum", "TCC_EA0_WRREQ_sum", "FETCH_SIZE",
    )  # fmt: skip
    counted = {each.kernel: [each.counter(name) for name in names] for each in launches}
    # A wave writes 4 pieces of 64 bytes in 2 lines; the second piece of a line hits.
    written, new = 16 * 4, 16 * 2
    lines = 16 * 64
    assert counted["strided"] == [
        lines, written, 0, lines + written, written - new, lines + new, lines, written, lines / 8,
    ]  # fmt: skip
    # 2 lines a workgroup; the first one of each of 8 chiplets brings them there.
    assert counted["same"] == [
        32, written, 0, 32 + written, 16 + written - new, 16 + new, 16, written, 2,
    ]  # fmt: skip
    # Atomics fetch the 2 lines of each chiplet, which writes 4 pieces back.
    assert counted["count"] == [0, 0, written, written, written - 16, 16, 16, 8 * 4, 2]


def test_waves_that_are_not_full_are_counted(transpose: Profile) -> None:
    (recorded,) = transpose.recorded
    partial = Profile([replace(recorded, block=(8, 9, 1))]).launches[0]
    names = ("EQ_64", "LT_64", "LT_48", "LT_32", "LT_16")
    counted = [partial.counter(f"SQ_WAVES_{name}") for name in names]
    assert counted == [64, 64, 64, 64, 64]  # waves of 64 and of 8 lanes in each of 64 workgroups
    assert partial.counter("SPI_CSN_WAVE") == 128


def test_what_is_counted_needs_no_clock(copies: dict[str, Profile]) -> None:
    launch = Profile(copies["gfx942"].recorded).launches[0]
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
    assert small.under_load is not None
    assert small.under_load.us == small.us
    assert "at its limit of power" not in str(transpose)
    (other,) = copies["gfx90a"].launches
    assert other.under_load is None


def test_code_that_does_not_fit_is_fetched_again(transpose: Profile) -> None:
    (launch,) = transpose.launches
    detail, executed = launch.detail, launch.facts.executed
    assert launch.counter("SQC_ICACHE_MISSES") == 0
    assert launch.counter("SQC_ICACHE_HITS") == launch.counter("SQC_ICACHE_REQ")
    small = launch.constants.with_numbers({"instruction_cache_bytes": 64})
    misses = instruction_misses(detail, small, executed)
    lines = len(np.unique(detail.code.addresses[executed > 0] // 64))
    # 64 workgroups have a cache each; some of the four waves of one come to a line at a time.
    assert misses.misses >= 64 * lines
    assert 0 < misses.duplicates <= 3 * misses.misses
    assert misses.hits(launch.counter("SQC_ICACHE_REQ")) > 0
    large = launch.constants.with_numbers({"instruction_cache_bytes": 64 * lines})
    assert instruction_misses(detail, large, executed) == CacheMisses(0, 0, 0)


def test_arguments_begin_with_a_line(
    copies: dict[str, Profile], transpose: Profile, requests: Profile
) -> None:
    for profile in (*copies.values(), transpose, requests):
        for launch in profile.recorded:
            # The first access of each wave is to its arguments, in whose first 64 bytes all are.
            assert all(wave.segments[0] % 2 == 0 for wave in launch.waves)


def test_misses_of_scalar_loads_add_up(transpose: Profile) -> None:
    (launch,) = transpose.launches
    requests = launch.counter("SQC_DCACHE_REQ")
    assert requests > 0
    misses = scalar_misses(launch.detail, launch.constants, requests)
    # Four waves a workgroup load two lines at most: one of arguments, and what follows.
    assert 64 <= misses.misses <= misses.lines <= 128
    assert misses.misses + misses.duplicates + misses.hits(requests) == requests


def test_lanes_of_one_bank_conflict(transpose: Profile) -> None:
    (launch,) = transpose.launches
    # 1,024 reads of columns: in each half of a wave 32 lanes are at one bank.
    assert launch.counter("SQ_LDS_BANK_CONFLICT") == 1024 * 2 * 31
    assert launch.counter("SQ_INSTS_LDS") == 2 * 1024
