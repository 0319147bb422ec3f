# SPDX-License-Identifier: MIT
"""Conversions of floats over every value: 8-bit codes, halves, block scales."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

F16, F32, U32 = np.float16, np.float32, np.uint32
FORMATS = {
    "gfx942": {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz},
    "gfx950": {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2},
}
# One dword a lane in, one out; 64 lanes of as many workgroups as there are values.
_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_lshl_b32 s8, s2, 8
  v_lshl_add_u32 v1, v0, 2, s8
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  v_mov_b32 v3, 0
  s_waitcnt vmcnt(0)
  {text}
  global_store_dword v1, v3, s[6:7]
"""
TEXTS = {
    "f32_fp8": "v_cvt_f32_fp8 v3, v2",
    "f32_bf8": "v_cvt_f32_bf8 v3, v2",
    "fp8_f32": "v_cvt_pk_fp8_f32 v3, v2, v2",
    "bf8_f32": "v_cvt_pk_bf8_f32 v3, v2, v2",
    "f32_f16": "v_cvt_f32_f16 v3, v2",
    "f16_f32": "v_cvt_f16_f32 v3, v2",
}
#: The fp4 code 2 is 1, so that these give the scale itself.
_SCALE = "v_mov_b32 v4, 2\n  v_cvt_scalef32_pk_f32_fp4 v[4:5], v4, v2\n  v_mov_b32 v3, v4"
SCALES = {"scale": _SCALE}
HALVES = np.arange(1 << 16, dtype=np.uint16).view(F16)


@pytest.fixture(scope="module", params=FORMATS)
def module(request: pytest.FixtureRequest) -> Module:
    arch: str = request.param
    texts = TEXTS | (SCALES if arch == "gfx950" else {})
    bodies = {name: _BODY.format(text=text) for name, text in texts.items()}
    return assembled(bodies, arch)


def run(module: Module, name: str, values: np.ndarray) -> np.ndarray:
    source, output = np.ascontiguousarray(values).view(U32), np.zeros(len(values), U32)
    assert module.launch(name, source, output, grid=len(values) // 64) == "hipSuccess"
    return output


def formats(module: Module) -> dict[str, Any]:
    return FORMATS[list(FORMATS)[module.device]]


def widened(values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return values.astype(F32)


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_every_code_of_8_bits(module: Module, kind: str) -> None:
    codes = np.arange(256, dtype=U32)
    want = codes.astype(np.uint8).view(formats(module)[kind])
    got, want = run(module, f"f32_{kind}", codes).view(F32), widened(want)
    np.testing.assert_array_equal(got, want)
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("kind", ["fp8", "bf8"])
def test_every_half_to_8_bits(module: Module, kind: str) -> None:
    dtype = formats(module)[kind]
    with np.errstate(over="ignore", invalid="ignore"):
        want = widened(HALVES).astype(dtype)
    got = run(module, f"{kind}_f32", widened(HALVES))
    assert (got & 0xFF == got >> 8 & 0xFF).all()  # both of the pair
    codes = got.astype(np.uint8)
    nan = np.isnan(want.astype(F32))
    assert np.isnan(codes[nan].view(dtype).astype(F32)).all()
    np.testing.assert_array_equal(codes[~nan], want.view(np.uint8)[~nan])


def test_every_half_both_ways(module: Module) -> None:
    got = run(module, "f32_f16", HALVES.view(np.uint16).astype(U32)).view(F32)
    np.testing.assert_array_equal(got, widened(HALVES))
    back = run(module, "f16_f32", widened(HALVES)).astype(np.uint16).view(F16)
    np.testing.assert_array_equal(back, HALVES)


@pytest.mark.parametrize("module", ["gfx950"], indirect=True)
def test_every_block_scale(module: Module) -> None:
    """The 256 scales of e8m0, as the exponent field of an f32; the last is NaN."""
    codes = np.arange(256, dtype=U32)
    with np.errstate(over="ignore"):
        want = codes.astype(np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(F32)
    got = run(module, "scale", codes << U32(23)).view(F32)
    np.testing.assert_array_equal(got, want)
