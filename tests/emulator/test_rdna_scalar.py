# SPDX-License-Identifier: MIT
"""RDNA's scalar operations, and masks of 32 lanes: one line of NumPy each."""

import numpy as np
import pytest

from tests.support.assembly import Module
from tests.support.rdna import (
    F16,
    F32,
    GFX12,
    I32,
    LANES,
    PICKED,
    U32,
    VCC,
    Case,
    Words,
    bits,
    build,
    check,
    f32,
    first,
    fma,
    halves,
    high,
    low,
    minimum,
    selected,
)

pytestmark = pytest.mark.usefixtures("emulator")

CASES: dict[str, Case] = {
    "saveexec": Case("s_and_saveexec_b32 s11, vcc_lo\n  v_mov_b32 v8, v2\n  s_mov_b32 exec_lo, s11",
                     lambda a, b, c, d: np.where(PICKED, a, d)),
    "and_not0_wrexec": Case("s_and_not0_wrexec_b32 s11, vcc_lo\n  v_mov_b32 v8, s11",
                            lambda a, b, c, d: np.where(PICKED, d, ~VCC & 0xFFFFFFFF)),
    "cmp_leaves_the_next_register": Case(
        "s_mov_b32 s13, 77\n  v_cmp_lt_u32 s12, v2, v4\n  v_mov_b32 v8, s13",
        lambda a, b, c, d: np.full(LANES, 77),
    ),
    "cmpx_keeps_vcc": Case("v_cmpx_lt_u32 v2, v4\n  v_mov_b32 v8, v6\n  v_mov_b32 v9, vcc_lo",
                           lambda a, b, c, d: np.where(a < b, c, d)),
    "vccz_looks_at_32_bits": Case(
        "s_mov_b32 vcc_lo, 0\n  v_mov_b32 v8, 1\n  s_cbranch_vccz .Lzero\n"
        "  v_mov_b32 v8, 0\n.Lzero:",
        lambda a, b, c, d: np.ones(LANES),
    ),
    "pack_hl": Case("s_pack_hl_b32_b16 s11, s8, s9\n  v_mov_b32 v8, s11",
                    lambda a, b, c, d: first(a >> U32(16) | b << U32(16))),
    "s_add_f32": Case("s_add_f32 s11, s8, s9\n  v_mov_b32 v8, s11",
                      lambda a, b, c, d: first(bits(f32(a) + f32(b))), archs=(GFX12,), floats=F32),
    "s_fmac_f32": Case("s_mov_b32 s11, s10\n  s_fmac_f32 s11, s8, s9\n  v_mov_b32 v8, s11",
                       lambda a, b, c, d: first(bits(fma(f32(a), f32(b), f32(c)))), archs=(GFX12,),
                       floats=F32),
    "s_minimum_f16": Case(
        "s_minimum_f16 s11, s8, s9\n  v_mov_b32 v8, s11",
        lambda a, b, c, d: first(halves(minimum(low(a), low(b)), np.zeros(LANES))),
        archs=(GFX12,),
        floats=F16,
    ),
    "s_cvt_hi_f32_f16": Case("s_cvt_hi_f32_f16 s11, s8\n  v_mov_b32 v8, s11",
                             lambda a, b, c, d: first(bits(high(a))), archs=(GFX12,), floats=F32),
    "s_cmp_f32": Case("s_cmp_nlt_f32 s8, s9\n  s_cselect_b32 s11, 1, 0\n  v_mov_b32 v8, s11",
                      lambda a, b, c, d: np.full(LANES, not f32(a)[0] < f32(b)[0]), archs=(GFX12,)),
    "s_mul_u64": Case(
        "s_mov_b32 s12, s8\n  s_mov_b32 s13, s9\n  s_mov_b32 s14, s10\n  s_mov_b32 s15, s8\n"
        "  s_mul_u64 s[16:17], s[12:13], s[14:15]\n  v_mov_b32 v8, s16\n  v_mov_b32 v9, s17",
        lambda a, b, c, d: _product64(a, b, c),
        archs=(GFX12,),
    ),
    "v_s_rcp": Case("v_s_rcp_f32 s11, |s8|\n  v_mov_b32 v8, s11",
                    lambda a, b, c, d: first(bits(F32(1) / np.abs(f32(a)))), archs=(GFX12,),
                    floats=F32),
    "s_load_parts": Case(
        "s_load_u8 s11, s[4:5], 0x1\n  s_load_i16 s12, s[4:5], 0x2\n"
        "  s_wait_kmcnt 0x0\n  v_mov_b32 v8, s11\n  v_mov_b32 v9, s12",
        lambda a, b, c, d: (
            first(a >> U32(8) & U32(255)),
            first((a >> U32(16)).astype(np.int16).astype(I32).view(U32)),
        ),
        archs=(GFX12,),
    ),
    "s_load_b96": Case(
        "s_load_b96 s[12:14], s[4:5], 0x8\n  s_wait_kmcnt 0x0\n  v_mov_b32 v8, s12\n"
        "  v_mov_b32 v9, s14",
        lambda a, b, c, d: (first(b), first(c)),
        archs=(GFX12,),
    ),
}  # fmt: skip


def _product64(a: Words, b: Words, c: Words) -> tuple[Words, Words]:
    left, right = int(a[0]) | int(b[0]) << 32, int(c[0]) | int(a[0]) << 32
    product = left * right
    return np.full(LANES, product & 0xFFFFFFFF), np.full(LANES, product >> 32 & 0xFFFFFFFF)


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return build(CASES)


@pytest.mark.parametrize(("arch", "name"), selected(CASES))
def test_operation(modules: dict[str, Module], arch: str, name: str) -> None:
    check(modules[arch], name, CASES[name])
