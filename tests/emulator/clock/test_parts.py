# SPDX-License-Identifier: MIT
"""Parts of the clock by themselves: banks, matrix instructions, listings, levels of memory."""

import json
from pathlib import Path

import numpy as np
import pytest

from cklang.arch import all_archs
from cklang.emulator.clock.constants import SOURCES, ClockConstants, constants_of
from cklang.emulator.clock.instruction import Instruction, accessed, timed, waits
from cklang.emulator.clock.lds import LANES, conflicts, passes, phase_of_lane, width_of
from cklang.emulator.clock.matrix import matrix_cycles, matrix_shape
from cklang.emulator.clock.memory import chase_latency
from cklang.emulator.clock.native import UNITS
from cklang.emulator.engine.isa.schema import load
from cklang.errors import CkUnsupportedError

GPUS = [spec.name for spec in all_archs()]
GFX942 = constants_of("gfx942")


@pytest.mark.parametrize("gpu", GPUS)
def test_every_number_has_a_source(gpu: str) -> None:
    constants = constants_of(gpu)
    sources = [number.source for number in constants.numbers.values()]
    sources += [constants.matrix.source, *(width.source for width in constants.lds)]
    sources += [row.source for row in constants.operations]
    sources += [row.source for row in constants.interlocks]
    assert not [source for source in sources if not source.startswith(SOURCES)]


def test_a_gpu_without_constants_is_named() -> None:
    with pytest.raises(CkUnsupportedError, match=r"CK-K050.*gfx000"):
        constants_of("gfx000")


@pytest.mark.parametrize("gpu", GPUS)
def test_every_phase_has_its_lanes(gpu: str) -> None:
    for width in constants_of(gpu).lds:
        lanes = np.bincount(phase_of_lane(width))
        assert set(lanes.tolist()) == {width.lanes}, width


def test_lanes_conflict_in_their_phase_and_at_one_bank_only() -> None:
    width = width_of(constants_of("gfx950"), "read", 16)
    rows = np.arange(LANES) * 256
    assert conflicts(width, rows, np.array([0, 12])) == 1
    assert conflicts(width, rows, np.array([0, 4])) == 0
    assert conflicts(width, rows + np.arange(LANES) * 16, np.array([0, 12])) == 0
    assert passes(width, np.zeros(LANES, dtype=np.int64)) == 4  # one word is read once


@pytest.mark.parametrize("gpu", GPUS)
def test_every_matrix_instruction_has_cycles(gpu: str) -> None:
    rates = constants_of(gpu).matrix
    missing = []
    for name in matrix_names(gpu):
        shape = matrix_shape(name)
        if shape is None or matrix_cycles(shape, rates) is None:
            missing.append(name)
    assert not missing


def matrix_names(gpu: str) -> list[str]:
    family = next(spec.family for spec in all_archs() if spec.name == gpu)
    names = [row.name for row in load(family).rows]
    return [n for n in names if n.startswith(("v_mfma_", "v_smfmac_", "v_wmma_", "v_swmmac_"))]


def test_operands_of_8_bits_take_the_matrix_unit_longer() -> None:
    gfx950 = constants_of("gfx950")
    registers = ("v[0:3]", "v[4:11]", "v[12:19]", "v[0:3]")
    cycles = []
    for formats in ("", "cbsz:4", "cbsz:4 blgp:4"):
        op = timed(Instruction("v_mfma_f32_16x16x128_f8f6f4", registers, formats), gfx950)
        assert op is not None
        cycles.append(op.busy)
    assert cycles == [32, 32, 16]


def test_counters_before_and_since_gfx12() -> None:
    assert waits(Instruction("s_waitcnt", (), "vmcnt(3)")) == {"load": 3}
    assert waits(Instruction("s_wait_kmcnt", (), "0x0")) == {"scalar": 0}


@pytest.mark.parametrize(
    ("op", "registers", "written", "read"),
    [
        ("ds_write_b64", ("v1", "v[2:3]"), 0, 2),
        ("v_add_co_u32", ("v1", "vcc_lo", "s6", "v1"), 2, 2),
        ("s_cselect_b64", ("s[4:5]",), 1, 1),
    ],
)
def test_registers_of_an_instruction(
    op: str, registers: tuple[str, ...], written: int, read: int
) -> None:
    writes, reads = accessed(Instruction(op, registers))
    order = 1150  # registers above are those of the model
    assert len([r for r in writes if r[0] < order]) == written
    assert len([r for r in reads if r[0] < order]) == read


def test_an_operation_without_a_row_has_no_cost() -> None:
    assert timed(Instruction("x_unheard_of", ()), GFX942) is None
    load = timed(Instruction("buffer_load_dwordx4", ("v[0:3]", "v4", "s[0:3]")), GFX942)
    assert load is not None
    assert UNITS[load.unit] == "vmem"
    assert (load.busy, load.bytes) == (16, 1024)


@pytest.mark.parametrize("gpu", ["gfx942", "gfx950"])
def test_latency_rises_with_the_footprint(gpu: str) -> None:
    sizes = np.geomspace(1 << 10, 1 << 31, 200)
    latency = chase_latency(constants_of(gpu), sizes)
    assert (np.diff(latency) >= 0).all()
    with pytest.raises(CkUnsupportedError, match="levels of memory"):
        chase_latency(constants_of("gfx1100"), sizes)


def test_files_are_what_the_loader_reads() -> None:
    for path in (Path(__file__).parents[3] / "arch_specs" / "timing").glob("*.json"):
        assert isinstance(constants_of(path.stem), ClockConstants)
        assert json.loads(path.read_text())["gpu"] == path.stem


def test_a_class_of_kernels_has_its_own_error() -> None:
    assert GFX942.validated("products", "error") == GFX942["validated_products"]
    assert GFX942.validated("programs", "error") == GFX942["validated_programs"]
    gfx1100 = constants_of("gfx1100")
    assert gfx1100.validated("products", "error") == gfx1100["validated_error"]
    assert gfx1100.validated("products") is None


def test_a_board_has_its_own_rates() -> None:
    assert GFX942.rates == constants_of("gfx942", "MI300X").rates
    assert constants_of("gfx942", "MI325X").rates == GFX942.rates  # of which power alone is known
    apu = constants_of("gfx942", "MI300A")
    for level, rates in apu.rates.items():
        assert (rates.board, rates.level) == ("MI300A", level)
        assert rates.mixed is not None
        assert [1 / rates.cycles(share) for share in (0, 0.5, 1)] == pytest.approx(
            [rates.read, rates.mixed, rates.write]
        )
    # Reads and writes disturb each other on an MI300X, and take ways of their own on an MI300A.
    for board, least in ((GFX942, True), (apu, False)):
        rates = board.rates["last_level"]
        slowest = max(rates.cycles(0), rates.cycles(1))
        assert (rates.cycles(1 / 3) > slowest) is least
    assert not constants_of("gfx1100").rates
    with pytest.raises(CkUnsupportedError, match=r"rates or power for MI355X\W.*MI300X, MI300A"):
        constants_of("gfx942", "MI355X")
