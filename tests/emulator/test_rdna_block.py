# SPDX-License-Identifier: MIT
"""gfx12's memory operations on blocks of registers, and those that transpose tiles of matrices."""

import numpy as np
import pytest

from tests.support.assembly import Module, assembled
from tests.support.rdna import GFX12, LANE, LANES, U32

pytestmark = pytest.mark.usefixtures("emulator")

_LOADED, _STORED, _ENABLED = 0x80F0_1235, 0xC00F_0F0F, 0xFF0F_FF31
_BITS = np.arange(32)

# Register n of the block holds 1000 + n at first. The second argument gets what the block has then.
_BLOCK = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 7, v0
  {fill}
  s_wait_kmcnt 0x0
  {text}
"""
_MARKS = "\n  ".join(f"v_mov_b32 v{40 + n}, {1000 + n}" for n in range(32))
_GLOBAL = f"""
  s_mov_b32 exec_lo, {_ENABLED:#x}
  s_mov_b32 m0, {_LOADED:#x}
  global_load_block v[40:71], v1, s[4:5] offset:4
  s_wait_loadcnt 0x0
  s_mov_b32 exec_lo, -1
  s_mov_b32 m0, {_STORED:#x}
  global_store_block v1, v[40:71], s[6:7]
"""
# The block holds its own address.
_OVER_ADDRESS = """
  v_add_co_u32 v40, vcc_lo, s4, v1
  v_add_co_ci_u32_e64 v41, vcc_lo, s5, 0, vcc_lo
  s_mov_b32 m0, -1
  global_load_block v[40:71], v[40:41], off
  s_wait_loadcnt 0x0
  global_store_block v1, v[40:71], s[6:7]
"""
# Each lane keeps what it has loaded, fetches the dwords behind the first two, and stores both.
_SCRATCH = f"""
  s_mov_b32 m0, -1
  global_load_block v[72:103], v1, s[4:5]
  s_wait_loadcnt 0x0
  s_mov_b32 s8, 8
  s_mov_b32 m0, {_STORED:#x}
  scratch_store_block off, v[72:103], s8 offset:4
  s_mov_b32 m0, {_LOADED:#x}
  scratch_load_block v[40:71], off, s8 offset:4
  scratch_load_b32 v2, off, off offset:12
  s_wait_loadcnt 0x0
  v_mov_b32 v41, v2
  s_mov_b32 m0, -1
  global_store_block v1, v[40:71], s[6:7]
"""


def _picked(mask: int) -> np.ndarray:
    return (mask >> _BITS & 1).astype(bool)


@pytest.fixture(scope="module")
def blocks() -> Module:
    texts = {"global": _GLOBAL, "address": _OVER_ADDRESS, "scratch": _SCRATCH}
    bodies = {name: _BLOCK.format(fill=_MARKS, text=text) for name, text in texts.items()}
    return assembled(bodies, GFX12, wave=LANES, scratch=256)


def _run(blocks: Module, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The words before, one more than 32 a lane, and what is stored."""
    source = np.random.default_rng(0).integers(0, 1 << 32, LANES * 32 + 1, U32)
    output = np.zeros((LANES, 32), U32)
    assert blocks.launch(name, source, output, block=LANES) == "hipSuccess"
    return source, output


def test_a_block_moves_the_registers_that_m0_picks(blocks: Module) -> None:
    source, got = _run(blocks, "global")
    words, marks = source[1:].reshape(LANES, 32), np.broadcast_to(1000 + _BITS, (LANES, 32))
    enabled = _picked(_ENABLED)[LANE][:, None]
    kept = np.where(enabled & _picked(_LOADED), words, marks)
    np.testing.assert_array_equal(got, np.where(_picked(_STORED), kept, 0))


def test_a_block_may_hold_its_address(blocks: Module) -> None:
    source, got = _run(blocks, "address")
    np.testing.assert_array_equal(got, source[:-1].reshape(LANES, 32))


def test_blocks_of_private_memory(blocks: Module) -> None:
    source, got = _run(blocks, "scratch")
    words, marks = source[:-1].reshape(LANES, 32), 1000 + _BITS
    # Private memory starts as zeros here; dword n of the block stands at byte 12 + 4 n.
    kept = np.where(_picked(_STORED), words, 0)
    want = np.where(_picked(_LOADED), kept, marks)
    want[:, 1] = kept[:, 0]
    np.testing.assert_array_equal(got, want)


# A product of 16 by 16 by 16 whose B stands in memory row by row, with {stride} bytes from row to
# row, as A's rows do from 2048 bytes on. A lane of A has 8 elements of K one after the other, and
# so has one of B after the transposition; it gives the address of one half of a row.
_PRODUCT = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_and_b32 v2, 15, v0
  v_lshrrev_b32 v3, 4, v0
  v_mul_u32_u24 v2, {stride}, v2
  v_lshl_add_u32 v2, v3, {shift}, v2
  {row}
  v_mul_u32_u24 v4, {stride}, v4
  v_lshl_add_u32 v4, v5, {shift}, v4
  s_wait_kmcnt 0x0
  {load} v[8:{a}], v2, s[4:5] offset:2048
  {transposed} v[12:{b}], v4, s[4:5]
  s_wait_loadcnt 0x0
  {product}
  v_lshlrev_b32 v1, 5, v0
  global_store_b128 v1, v[16:19], s[6:7]
  global_store_b128 v1, v[20:23], s[6:7] offset:16
"""
_ZERO = "\n  ".join(f"v_mov_b32 v{16 + n}, 0" for n in range(8))
_STRIDE = 48
# Rows in v4, halves of them in v5: as measured on gfx1201.
_ROWS = {
    # row = 8 (lane / 16) + lane % 8, half = lane / 8 % 2
    128: "v_and_b32 v4, 7, v0\n  v_lshl_add_u32 v4, v3, 3, v4\n  v_bfe_u32 v5, v0, 3, 1",
    # row = 4 (lane / 8) + lane % 4, half = lane / 4 % 2
    64: "v_lshrrev_b32 v4, 3, v0\n  v_and_b32 v5, 3, v0\n  v_lshl_add_u32 v4, v4, 2, v5\n"
    "  v_bfe_u32 v5, v0, 2, 1",
}
_LOADS = {
    128: ("global_load_b128", "global_load_tr_b128"),
    64: ("global_load_b64", "global_load_tr_b64"),
}
_PRODUCTS = {
    128: "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[12:15], v[16:23]",
    64: "v_wmma_i32_16x16x16_iu8 v[16:23], v[8:9], v[12:13], v[16:23] neg_lo:[1,1,0]",
}


def _product(width: int) -> str:
    load, transposed = _LOADS[width]
    more = width // 32 - 1
    return _PRODUCT.format(
        stride=_STRIDE,
        shift=4 if width == 128 else 3,
        row=_ROWS[width],
        load=load,
        transposed=transposed,
        a=8 + more,
        b=12 + more,
        product=f"{_ZERO}\n  {_PRODUCTS[width]}",
    )


@pytest.mark.parametrize(
    ("width", "element", "result"), [(128, np.float16, np.float32), (64, np.int8, np.int32)]
)
def test_a_transposed_load_makes_operands_of_rows(width: int, element: type, result: type) -> None:
    module = assembled({"k": _product(width)}, GFX12, wave=LANES)
    memory = np.zeros(4096, np.uint8)
    rows = memory.reshape(-1, 2048)[:, : 16 * _STRIDE].reshape(2, 16, _STRIDE)
    rng = np.random.default_rng(width)
    values: np.ndarray = rng.integers(-9, 10, (2, 16, 16)).astype(element)
    rows[:, :, : values[0, 0].nbytes] = values.view(np.uint8)
    output = np.zeros((LANES, 8), np.uint32)
    assert module.launch("k", memory, output, block=LANES) == "hipSuccess"
    b, a = values.astype(np.int64)
    # Lane l has column l % 16, register r row 8 (l / 16) + r.
    words: np.ndarray = output.view(result)
    got = words.reshape(2, 16, 8).transpose(0, 2, 1).reshape(16, 16)
    np.testing.assert_array_equal(got, a @ b)


@pytest.mark.parametrize(
    ("wave", "before", "message"),
    [(32, "s_mov_b32 exec_lo, 0xffff", "exec is 0xffff of 32"), (64, "s_nop 0", "of 64")],
)
def test_other_lanes_are_refused(wave: int, before: str, message: str) -> None:
    """Nobody has published what becomes of disabled lanes, or of 64."""
    load = "v[2:5]" if wave == LANES else "v[2:3]"
    body = (
        f"  s_load_b128 s[4:7], s[0:1], 0x0\n  v_mov_b32 v1, 0\n  s_wait_kmcnt 0x0\n  {before}\n"
        f"  global_load_tr_b128 {load}, v1, s[4:5]\n"
    )
    module = assembled({"k": body}, GFX12, wave=wave)
    words = np.zeros(64, U32)
    reported = module.fault("k", words, words, block=wave)
    assert "known for 32 lanes, all enabled" in reported
    assert message in reported
