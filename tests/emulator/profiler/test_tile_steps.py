# SPDX-License-Identifier: MIT
"""Who holds what: lanes, registers and bytes of a HIP program and of a product of CK Tile."""

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import cklang as ck
from cklang.emulator.profiler.session import Profile
from cklang.emulator.profiler.tiles import TileStep, text_of

WAVES, LANES, TILE = 4, 64, 32

M, N, K = ck.dims("M N K")


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return ck.relu(x @ w.T)


def of_lanes(step: TileStep) -> np.ndarray:
    """Return the first byte of each lane, [wave, lane]."""
    at = np.zeros((WAVES, LANES), np.int64)
    for each in step.held:
        at[each.wave, each.lane] = each.at
    return at


def test_a_transposition_step_by_step(transpose: Profile) -> None:
    load, write, read, store = transpose.tiles()
    assert [step.memory for step in (load, write, read, store)] == [
        "global",
        "LDS",
        "LDS",
        "global",
    ]
    assert [step.cycle for step in (load, write, read, store)] == sorted(
        step.cycle for step in (load, write, read, store)
    )
    y, x = np.divmod(np.arange(WAVES * LANES).reshape(WAVES, LANES), TILE)
    assert (of_lanes(write) == 4 * (TILE * y + x)).all()
    assert (of_lanes(read) == 4 * (TILE * x + y)).all()
    loaded = of_lanes(load)
    assert (loaded - loaded[0, 0] == 4 * (256 * y + x)).all()
    # Each lane's word of the LDS is read by the lane whose row and column are the other way round.
    assert write.conflicts == 0
    assert read.conflicts == WAVES * (LANES - 2)
    assert [each.conflict for each in read.held[:TILE]] == list(range(TILE))
    assert load.efficiency == store.efficiency == 1
    assert {each.register for each in load.held} == {each.register for each in write.held}
    assert {each.register for each in read.held} == {each.register for each in store.held}
    assert text_of(read).endswith("248 of 256 accesses conflict in the banks")
    (launch,) = transpose.launches
    assert launch.counter("SQ_LDS_BANK_CONFLICT") / launch.waves / 4 == 2 * (TILE - 1)


def test_pictures_colour_conflicts(transpose: Profile, tmp_path: Path) -> None:
    text = transpose.save(tmp_path / "tiles.svg").read_text()
    boxes = [e for e in ET.fromstring(text).iter() if e.tag.endswith("rect")]
    marked = [box for box in boxes if "stroke" in box.attrib]
    # Registers of the first wave, and the LDS of all.
    assert len(marked) == LANES - 2 + WAVES * (LANES - 2)
    tips = [next(iter(box)).text or "" for box in marked]
    assert tips[0] == "wave 0, lane 1, v6: 4 bytes at 0x80, bank 0, pass 2"


@pytest.mark.usefixtures("compiler", "emulator")
def test_a_product_of_ck_tile_has_operands_of_matrix_instructions() -> None:
    """Both operands of the product, in bytes, pass through LDS and registers once."""
    x, w = np.ones((256, 64), np.float16), np.ones((512, 64), np.float16)
    with ck.profile() as profiled:
        linear(x, w, device="emu:gfx942")
    steps = profiled.tiles()
    matrix = next(step for step in steps if step.matrix is not None)
    assert matrix.matrix is not None
    assert set(matrix.matrix.operands) == {"A", "B", "D"}
    assert matrix.text.split()[0] in text_of(matrix)
    a = matrix.matrix.operands["A"]
    registers = {f"{a.file}{a.register(n)}" for n in range(a.places.shape[1])}
    reads = [step for step in steps if step.stage == "LDS read" and step.cycle < matrix.cycle]
    held = {
        f"v{int(each.register[1:]) + word}"
        for step in reads
        for each in step.held
        for word in range(each.bytes // 4)
    }
    assert registers <= held
    writes = [step for step in steps if step.stage == "LDS store"]
    assert sum(step.conflicts for step in (*reads, *writes)) == 0
    assert all(each.bytes == 16 for step in writes for each in step.held)
