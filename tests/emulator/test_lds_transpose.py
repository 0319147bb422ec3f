# SPDX-License-Identifier: MIT
"""Transposed reads of local memory (gfx950): a row-major [K][M] tile, M = 16, read by columns."""

import numpy as np
import pytest

from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

# Each lane reads at its own address from what the workgroup has written to LDS dword by dword.
_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  v_mul_u32_u24 v2, {bytes}, v0
  v_lshlrev_b32 v3, 4, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[4:7], v1, s[4:5]
  s_waitcnt vmcnt(0)
  ds_write_b128 v1, v[4:7]
  s_waitcnt lgkmcnt(0)
  s_mov_b64 exec, {exec}
  {op} v[8:{last}], v2
  s_waitcnt lgkmcnt(0)
  global_store_dwordx3 v3, v[8:10], s[6:7]
"""
READS = {16: ("ds_read_b64_tr_b16", 8), 8: ("ds_read_b64_tr_b8", 8), 4: ("ds_read_b64_tr_b4", 8),
         6: ("ds_read_b96_tr_b6", 12)}  # fmt: skip


def body(bits: int, exec_mask: str = "-1") -> str:
    op, size = READS[bits]
    return _BODY.format(op=op, bytes=size, last=7 + size // 4, exec=exec_mask)


@pytest.fixture(scope="module")
def module() -> Module:
    bodies = {f"b{bits}": body(bits) for bits in READS} | {"part": body(16, "0xffff00ff")}
    return assembled(bodies, "gfx950", lds=1024)


@pytest.mark.parametrize("bits", READS)
def test_each_lane_gets_its_column(module: Module, bits: int) -> None:
    per_lane = READS[bits][1] * 8 // bits
    rng = np.random.default_rng(bits)
    # [block of lanes][k][m]: rows of 16 elements, one block after the other.
    tile = rng.integers(0, 1 << bits, (4, per_lane, 16))
    flat = (tile.reshape(-1, 1) >> np.arange(bits) & 1).astype(np.uint8).reshape(-1)
    memory = np.zeros(1024, np.uint8)
    packed = np.packbits(flat, bitorder="little")
    memory[: len(packed)] = packed
    output = np.zeros((64, 4), np.uint32)
    assert module.launch(f"b{bits}", memory.view(np.uint32), output) == "hipSuccess"
    lanes = np.unpackbits(output.view(np.uint8), axis=1, bitorder="little")
    got = lanes[:, : per_lane * bits].reshape(64, per_lane, bits) @ (1 << np.arange(bits))
    np.testing.assert_array_equal(got, tile.transpose(0, 2, 1).reshape(64, per_lane))


def test_a_lane_that_needs_a_disabled_one_is_refused(module: Module) -> None:
    source, output = np.zeros(256, np.uint32), np.zeros((64, 4), np.uint32)
    assert "needs what the disabled lane" in module.fault("part", source, output)


def test_gfx942_has_no_transposed_reads() -> None:
    module = assembled({"k": "  .long 0xd9c60000\n  .long 0x08000002\n"})
    assert "cannot decode" in module.fault("k", np.zeros(256, np.uint32), np.zeros(256, np.uint32))
