# SPDX-License-Identifier: MIT
"""Mistakes that other emulators have made: each is a test of ours, or names the test that is.

In other files: where s_getpc points, lane numbers of ds_bpermute that wrap (test_alu.py); both
kinds of fp8, every f16 made f32 and back (test_convert_exhaustive.py); packed integers that
saturate (test_clamp.py); the layout of D of 32x32 products (test_layouts.py); signs of int8,
denormals, infinities and NaNs of f16 products (test_matrix.py); products of several blocks, of f64
(test_matrix_blocks.py) and sparse ones (test_smfmac.py); disabled lanes of buffer loads to LDS, the
edges of 160 KB of LDS (test_ranges.py); what is not understood is refused (test_decoder.py,
test_refused.py).
"""

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Module, assemble

pytestmark = pytest.mark.usefixtures("emulator")

_HEAD = "  s_load_dwordx4 s[4:7], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
_READ = "  global_load_dword v2, v1, s[4:5]\n  s_waitcnt vmcnt(0)\n"
_WRITE = "  global_store_dword v1, v3, s[6:7]\n"
_BUFFER = (
    "  s_mov_b32 s8, {low}\n  s_mov_b32 s9, {high}\n  s_mov_b32 s10, {records}\n"
    "  s_mov_b32 s11, 0x20000\n"
)
_SOURCE = _BUFFER.format(low="s4", high="s5", records=256)
_TARGET = _BUFFER.format(low="s6", high="s7", records=256)
BODIES = {
    "cmpx": _HEAD + _READ + "  v_mov_b32 v3, 9\n  v_cmpx_gt_u32 vcc, 10, v2\n" + _WRITE,
    "rotate": _HEAD + "  ds_swizzle_b32 v3, v0 offset:0xc060\n  s_waitcnt lgkmcnt(0)\n" + _WRITE,
    "to_fp8": _HEAD + _READ + "  v_mov_b32 v3, 0\n  v_cvt_pk_fp8_f32 v3, v2, v2\n" + _WRITE,
    "to_bf8": _HEAD + _READ + "  v_mov_b32 v3, 0\n  v_cvt_pk_bf8_f32 v3, v2, v2\n" + _WRITE,
    "bytes": _HEAD + _SOURCE + "  buffer_load_ubyte v2, v0, s[8:11], 0 offen\n" + _TARGET
    + "  s_waitcnt vmcnt(0)\n  buffer_store_byte v2, v0, s[8:11], 0 offen\n",
    "shorts": _HEAD + "  v_lshlrev_b32 v1, 1, v0\n" + _SOURCE
    + "  buffer_load_sshort v2, v1, s[8:11], 0 offen\n" + _TARGET
    + "  s_waitcnt vmcnt(0)\n  buffer_store_short v2, v1, s[8:11], 0 offen\n",
    "far": _HEAD + _READ + "  v_add_u32 v4, 0x20000, v1\n  ds_write_b32 v4, v2\n"
    "  s_waitcnt lgkmcnt(0)\n  ds_read_b32 v3, v4\n  s_waitcnt lgkmcnt(0)\n" + _WRITE,
    "vskip": _HEAD + "  v_mov_b32 v3, 1\n  s_mov_b32 s8, 4\n  s_setvskip s8, 2\n  v_mov_b32 v3, 2\n"
    "  s_setvskip s8, 0\n" + _WRITE,
}  # fmt: skip
SKIP = {"gfx942": {"far"}, "gfx950": set[str]()}


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    by_arch = {}
    for arch, skipped in SKIP.items():
        bodies = {name: body for name, body in BODIES.items() if name not in skipped}
        image = assemble(bodies, arch, lds=0x28000 if arch == "gfx950" else 1024)
        by_arch[arch] = Module(image, arch)
    return by_arch


def run(module: Module, name: str, values: np.ndarray) -> np.ndarray:
    """One dword a lane, 64 at a time."""
    result = np.zeros(len(values), np.uint32)
    for start in range(0, len(values), 64):
        source = np.ascontiguousarray(values[start : start + 64]).view(np.uint32)
        output = np.zeros(64, np.uint32)
        assert module.launch(name, source, output) == "hipSuccess"
        result[start : start + 64] = output
    return result


LANES = np.arange(64, dtype=np.uint32)


def test_stores_after_cmpx_happen_for_the_lanes_that_pass(modules: dict[str, Module]) -> None:
    np.testing.assert_array_equal(run(modules["gfx942"], "cmpx", LANES), np.where(LANES < 10, 9, 0))


def test_swizzle_rotates_within_each_half(modules: dict[str, Module]) -> None:
    want = (LANES & 32) | ((LANES + 3) & 31)
    np.testing.assert_array_equal(run(modules["gfx942"], "rotate", LANES), want)


FLAVOURS = [
    ("gfx942", "fp8", ml_dtypes.float8_e4m3fnuz),
    ("gfx942", "bf8", ml_dtypes.float8_e5m2fnuz),
    ("gfx950", "fp8", ml_dtypes.float8_e4m3fn),
    ("gfx950", "bf8", ml_dtypes.float8_e5m2),
]


@pytest.mark.parametrize(("arch", "name", "dtype"), FLAVOURS)
def test_rounding_to_fp8(modules: dict[str, Module], arch: str, name: str, dtype: type) -> None:
    codes = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float32)
    finite = np.sort(codes[np.isfinite(codes)])
    middle = (finite[:-1] + finite[1:]) / 2  # ties, and their neighbours
    near = [middle, np.nextafter(middle, np.float32(9e9)), np.nextafter(middle, np.float32(-9e9))]
    values = np.concatenate([finite, *near]).astype(np.float32)
    values = values[: len(values) // 64 * 64]
    got = (run(modules[arch], f"to_{name}", values) & 0xFF).astype(np.uint8)
    np.testing.assert_array_equal(got, values.astype(dtype).view(np.uint8))


def test_byte_and_short_buffer_accesses_move_bytes_and_shorts(modules: dict[str, Module]) -> None:
    data = np.arange(64, dtype=np.uint32) * 0x01030507 + 0xFEDCBA98
    got = run(modules["gfx942"], "bytes", data).view(np.uint8)
    np.testing.assert_array_equal(got[:64], data.view(np.uint8)[:64])
    assert not got[64:].any()
    got = run(modules["gfx942"], "shorts", data).view(np.uint16)
    np.testing.assert_array_equal(got[:64], data.view(np.uint16)[:64])
    assert not got[64:].any()


def test_local_memory_beyond_64_kilobytes(modules: dict[str, Module]) -> None:
    np.testing.assert_array_equal(run(modules["gfx950"], "far", LANES * 7), LANES * 7)


def test_skipped_vector_instructions(modules: dict[str, Module]) -> None:
    assert (run(modules["gfx942"], "vskip", LANES) == 1).all()
