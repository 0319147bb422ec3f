# SPDX-License-Identifier: MIT
"""Vector operations that RDNA alone has, or has otherwise: one line of NumPy each."""

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import Module
from tests.support.rdna import (
    F16,
    F32,
    F64,
    GFX11,
    GFX12,
    I32,
    LANE,
    LANES,
    PICKED,
    U32,
    Case,
    Words,
    bits,
    build,
    check,
    f32,
    fma,
    halves,
    high,
    low,
    max_num,
    maximum,
    min_num,
    minimum,
    selected,
)

pytestmark = pytest.mark.usefixtures("emulator")


def nibbles(words: Words, signed: bool, count: int) -> np.ndarray:
    width = 32 // count
    parts = np.stack([words >> U32(width * n) & U32((1 << width) - 1) for n in range(count)])
    wide = parts.astype(np.int64)
    return np.where(signed & (wide >> (width - 1) != 0), wide - (1 << width), wide)


def dot(a: Words, b: Words, c: Words, count: int, signs: tuple[bool, bool]) -> Words:
    products = nibbles(a, signs[0], count) * nibbles(b, signs[1], count)
    return (products.sum(0) + c.view(I32)).astype(np.int64).astype(I32).view(U32)


def fp8_dot(a: Words, b: Words, c: Words, left: type, right: type) -> Words:
    total = f32(c).copy()
    for n in range(4):
        x = (a >> U32(8 * n) & U32(255)).astype(np.uint8).view(left).astype(F32)
        y = (b >> U32(8 * n) & U32(255)).astype(np.uint8).view(right).astype(F32)
        total = x * y + total
    return total.view(U32)


_FP8, _BF8 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


def _row(lane: np.ndarray, inside: np.ndarray) -> np.ndarray:
    return lane & ~15 | inside & 15


def _dpp8(words: Words) -> Words:
    return words[LANE & ~7 | np.array([7, 6, 5, 4, 0, 0, 1, 2])[LANE & 7]]


def _selectors(low_word: Words, high_word: Words) -> np.ndarray:
    word = int(low_word[0]) | int(high_word[0]) << 32
    return np.array([word >> (4 * (lane % 16)) & 15 for lane in range(LANES)])


CASES: dict[str, Case] = {
    # Names that CDNA has otherwise
    "add_nc": Case("v_add_nc_u32 v8, v2, v4", lambda a, b, c, d: a + b),
    "add_co_ci": Case("v_add_co_ci_u32 v8, vcc_lo, v2, v4, vcc_lo",
                      lambda a, b, c, d: a + b + PICKED),
    "sub_co_masks_exec": Case("v_sub_co_u32 v8, vcc_lo, v2, v4",
                              lambda a, b, c, d: (a < b) & (LANE < 16), exec="0xffff", vcc=True),
    "cndmask": Case("v_cndmask_b32 v8, v2, v4, vcc_lo", lambda a, b, c, d: np.where(PICKED, b, a)),
    "clz": Case("v_clz_i32_u32 v8, v2",
                lambda a, b, c, d: np.array([32 - int(x).bit_length() if x else -1 for x in a])),
    "ctz": Case("v_ctz_i32_b32 v8, v2",
                lambda a, b, c, d: np.array([(int(x) & -int(x)).bit_length() - 1 for x in a])),
    "xor3": Case("v_xor3_b32 v8, v2, v4, v6", lambda a, b, c, d: a ^ b ^ c),
    "null_discards": Case("v_add_co_u32 v8, null, v2, v4\n  s_mov_b32 null, 7",
                          lambda a, b, c, d: a + b),
    "null_reads_zero": Case("v_add_nc_u32 v8, v2, null", lambda a, b, c, d: a),
    "mad_u64": Case("v_mad_u64_u32 v[8:9], null, v2, v4, v[6:7]", lambda a, b, c, d: a * b + c,
                    archs=(GFX11,)),
    # Minimum, maximum
    "minmax_i32": Case(
        "v_minmax_i32 v8, v2, v4, v6",
        lambda a, b, c, d: np.maximum(np.minimum(a.view(I32), b.view(I32)), c.view(I32)).view(U32),
    ),
    "maxmin_u32": Case("v_maxmin_u32 v8, v2, v4, v6",
                       lambda a, b, c, d: np.minimum(np.maximum(a, b), c)),
    "minimum_f32": Case("v_minimum_f32 v8, v2, v4",
                        lambda a, b, c, d: bits(minimum(f32(a), f32(b))), archs=(GFX12,),
                        floats=F32),
    "max_num_f32": Case("v_max_num_f32 v8, v2, v4",
                        lambda a, b, c, d: bits(max_num(f32(a), f32(b))), archs=(GFX12,),
                        floats=F32),
    "maximumminimum_f32": Case("v_maximumminimum_f32 v8, v2, -v4, v6",
                               lambda a, b, c, d: bits(minimum(maximum(f32(a), -f32(b)), f32(c))),
                               archs=(GFX12,), floats=F32),
    "minmax_num_f32": Case("v_minmax_num_f32 v8, v2, v4, v6",
                           lambda a, b, c, d: bits(max_num(min_num(f32(a), f32(b)), f32(c))),
                           archs=(GFX12,), floats=F32),
    "maximum_f16": Case("v_maximum_f16 v8, v2, v4 op_sel:[0,1,1]",
                        lambda a, b, c, d: halves(low(d), maximum(low(a), high(b))), archs=(GFX12,),
                        floats=F16),
    "pk_minimum_f16": Case(
        "v_pk_minimum_f16 v8, v2, v4 op_sel_hi:[0,1]",
        lambda a, b, c, d: halves(minimum(low(a), low(b)), minimum(low(a), high(b))),
        archs=(GFX12,),
        floats=F16,
    ),
    # Zero wins
    "mul_dx9": Case(
        "v_mul_dx9_zero_f32 v8, v2, v4",
        lambda a, b, c, d: bits(np.where((f32(a) == 0) | (f32(b) == 0), 0, f32(a) * f32(b))),
        floats=F32,
    ),
    "fma_dx9": Case(
        "v_fma_dx9_zero_f32 v8, v2, v4, v6",
        lambda a, b, c, d: bits(
            np.where((f32(a) == 0) | (f32(b) == 0), f32(c), fma(f32(a), f32(b), f32(c)))
        ),
        floats=F32,
    ),
    # 16 bits
    "add_f16_halves": Case("v_add_f16 v8.h, v2.l, v4.h",
                           lambda a, b, c, d: halves(low(d), low(a) + high(b)), archs=(GFX11,),
                           floats=F16),
    "add_f16_keeps": Case("v_add_f16 v8.l, v2.h, -v4.l",
                          lambda a, b, c, d: halves(high(a) - low(b), high(d)), archs=(GFX11,),
                          floats=F16),
    "fmac_f16_high": Case(
        "v_fmac_f16 v8.h, v2.l, v4.l",
        lambda a, b, c, d: halves(
            low(d), low(a).astype(F64) * low(b).astype(F64) + high(d).astype(F64)
        ),
        archs=(GFX11,),
        floats=F16,
    ),
    "mov_b16": Case("v_mov_b16 v8.h, v2.h",
                    lambda a, b, c, d: a & U32(0xFFFF0000) | d & U32(0xFFFF), archs=(GFX11,)),
    "swap_b16": Case(
        "v_swap_b16 v8.h, v2.l\n  v_mov_b32 v9, v2",
        lambda a, b, c, d: (d & U32(0xFFFF) | a << U32(16), a & U32(0xFFFF0000) | d >> U32(16)),
        archs=(GFX11,),
    ),
    "not_b16": Case("v_not_b16 v8.l, v2.h",
                    lambda a, b, c, d: ~(a >> U32(16)) & U32(0xFFFF) | d & U32(0xFFFF0000),
                    archs=(GFX11,)),
    "cvt_f32_f16_high": Case("v_cvt_f32_f16 v8, v2.h", lambda a, b, c, d: bits(high(a)),
                             archs=(GFX11,), floats=F32),
    "cvt_f16_f32": Case("v_cvt_f16_f32 v8, v2", lambda a, b, c, d: halves(f32(a), high(d)),
                        archs=(GFX12,), floats=F16),
    "cvt_i32_i16": Case("v_cvt_i32_i16 v8, v2",
                        lambda a, b, c, d: a.astype(np.int16).astype(I32).view(U32),
                        archs=(GFX12,)),
    "cvt_pk_i16_f32": Case(
        "v_cvt_pk_i16_f32 v8, v2, v4",
        lambda a, b, c, d: sum(
            np.trunc(np.nan_to_num(f32(x), nan=0.0, posinf=9e9, neginf=-9e9).clip(-32768, 32767))
            .astype(np.int16)
            .view(np.uint16)
            .astype(U32)
            << U32(16 * n)
            for n, x in enumerate((a, b))
        ),
    ),
    "fma_mix": Case(
        "v_fma_mix_f32 v8, |v2|, 2.0, -v4 op_sel:[1,0,0] op_sel_hi:[1,1,1]",
        lambda a, b, c, d: bits(np.abs(high(a)).astype(F32) * F32(2) - low(b).astype(F32)),
        floats=F32,
    ),
    "fma_mix_dpp": Case(
        "v_fma_mix_f32_e64_dpp v8, v2, v4, v6 op_sel_hi:[1,0,1] row_shr:1 row_mask:0xf "
        "bank_mask:0xf bound_ctrl:1",
        lambda a, b, c, d: bits(
            fma(np.where((LANE & 15) == 0, 0, low(np.roll(a, 1))), f32(b), low(c))
        ),
        archs=(GFX12,),
        floats=F32,
    ),
    # Dot products
    "dot4_iu8": Case("v_dot4_i32_iu8 v8, v2, v4, v6 neg_lo:[1,0,0]",
                     lambda a, b, c, d: dot(a, b, c, 4, (True, False))),
    "dot4_iu8_clamp": Case(
        "v_dot4_i32_iu8 v8, v2, v4, 0x7fffffff clamp",
        lambda a, b, c, d: np.minimum(
            (nibbles(a, False, 4) * nibbles(b, False, 4)).sum(0) + 0x7FFFFFFF, 0x7FFFFFFF
        ),
    ),
    "dot8_iu4": Case("v_dot8_i32_iu4 v8, v2, v4, v6 neg_lo:[1,1,0]",
                     lambda a, b, c, d: dot(a, b, c, 8, (True, True))),
    "dot4_u32_u8": Case("v_dot4_u32_u8 v8, v2, v4, v6",
                        lambda a, b, c, d: dot(a, b, c, 4, (False, False))),
    "dot4_fp8_bf8": Case("v_dot4_f32_fp8_bf8 v8, v2, v4, v6",
                         lambda a, b, c, d: fp8_dot(a, b, c, _FP8, _BF8), archs=(GFX12,),
                         floats=F32),
    "cvt_f32_fp8": Case("v_cvt_f32_fp8 v8, v2 byte_sel:1",
                        lambda a, b, c, d: bits((a >> U32(8)).astype(np.uint8).view(_FP8)),
                        archs=(GFX12,), floats=F32),
    "cvt_f32_bf8": Case("v_cvt_f32_bf8 v8, v2 byte_sel:2",
                        lambda a, b, c, d: bits((a >> U32(16)).astype(np.uint8).view(_BF8)),
                        archs=(GFX12,), floats=F32),
    # Between lanes
    "row_share": Case("v_mov_b32_dpp v8, v2 row_share:3 row_mask:0xf bank_mask:0xf",
                      lambda a, b, c, d: a[_row(LANE, np.full(LANES, 3))]),
    "row_xmask": Case("v_add_nc_u32_dpp v8, v2, v4 row_xmask:5 row_mask:0xf bank_mask:0xf",
                      lambda a, b, c, d: a[LANE ^ 5] + b),
    "row_shr_out_of_row": Case("v_mov_b32_dpp v8, v2 row_shr:4 row_mask:0xf bank_mask:0xf",
                               lambda a, b, c, d: np.where((LANE & 15) >= 4, np.roll(a, 4), d)),
    "dpp_bound_ctrl": Case("v_mov_b32_dpp v8, v2 row_shl:1 row_mask:0xf bank_mask:0xf bound_ctrl:1",
                           lambda a, b, c, d: np.where((LANE & 15) == 15, 0, np.roll(a, -1))),
    "dpp_inactive": Case("v_mov_b32_dpp v8, v2 row_xmask:1 row_mask:0xf bank_mask:0xf",
                         lambda a, b, c, d: np.where(0x0000FF0F >> LANE & 1, a[LANE ^ 1], d),
                         exec="0x0000ff0f"),
    "dpp_fetch_inactive": Case("v_mov_b32_dpp v8, v2 row_xmask:8 row_mask:0xf bank_mask:0xf fi:1",
                               lambda a, b, c, d: np.where(LANE < 8, a[LANE ^ 8], d),
                               exec="0x000000ff"),
    "dpp8": Case("v_mov_b32_dpp v8, v2 dpp8:[7,6,5,4,0,0,1,2]", lambda a, b, c, d: _dpp8(a)),
    "dpp8_inactive_gives_zero": Case("v_mov_b32_dpp v8, v2 dpp8:[7,6,5,4,0,0,1,2]",
                                     lambda a, b, c, d: np.where((LANE & 7) < 4, 0, d),
                                     exec="0x0f0f0f0f"),
    "dpp8_fetch_inactive": Case("v_mov_b32_dpp v8, v2 dpp8:[7,6,5,4,0,0,1,2] fi:1",
                                lambda a, b, c, d: np.where((LANE & 7) < 4, _dpp8(a), d),
                                exec="0x0f0f0f0f"),
    "dpp_of_64_bit_encoding": Case(
        "v_add3_u32_e64_dpp v8, v2, v4, v6 row_ror:2 row_mask:0xf bank_mask:0xf",
        lambda a, b, c, d: a[_row(LANE, LANE - 2)] + b + c,
    ),
    "permlane16": Case("v_permlane16_b32 v8, v2, s9, s10",
                       lambda a, b, c, d: a[_row(LANE, _selectors(b, c))]),
    "permlanex16": Case("v_permlanex16_b32 v8, v2, s9, s10",
                        lambda a, b, c, d: a[_row(LANE ^ 16, _selectors(b, c))]),
    "permlanex16_inactive": Case("v_permlanex16_b32 v8, v2, s9, s10", lambda a, b, c, d: d,
                                 exec="0x0000ffff"),
    "permlanex16_bound_ctrl": Case("v_permlanex16_b32 v8, v2, s9, s10 op_sel:[0,1]",
                                   lambda a, b, c, d: np.where(LANE < 16, 0, d), exec="0x0000ffff"),
    "permlanex16_fetch_inactive": Case(
        "v_permlanex16_b32 v8, v2, s9, s10 op_sel:[1,0]",
        lambda a, b, c, d: np.where(LANE < 16, a[_row(LANE ^ 16, _selectors(b, c))], d),
        exec="0x0000ffff",
    ),
    "permlane16_var": Case("v_permlane16_var_b32 v8, v2, v4",
                           lambda a, b, c, d: a[_row(LANE, b & 15)], archs=(GFX12,)),
    "permlane64_is_nothing": Case("v_permlane64_b32 v8, v2", lambda a, b, c, d: d),
    "bpermute_wraps": Case("ds_bpermute_b32 v8, v4, v2", lambda a, b, c, d: a[b // 4 % LANES]),
    "readlane_wraps": Case("v_readlane_b32 s11, v2, 37\n  v_mov_b32 v8, s11",
                           lambda a, b, c, d: np.full(LANES, a[5])),
    "movrels": Case("s_mov_b32 m0, 4\n  v_movrels_b32 v8, v2", lambda a, b, c, d: c),
    "movrelsd_2": Case("s_mov_b32 m0, 0x10002\n  v_movrelsd_2_b32 v7, v2\n  s_nop 0",
                       lambda a, b, c, d: b),
    # Two at once
    "dual": Case("v_dual_add_f32 v8, v2, v4 :: v_dual_mul_f32 v9, v3, v5",
                 lambda a, b, c, d: bits(f32(a) + f32(b)), floats=F32),
    "dual_swap": Case("v_mov_b32 v9, v2\n  v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8",
                      lambda a, b, c, d: (a, d)),
    "dual_x_reads_y": Case(
        "v_mov_b32 v9, v2\n  v_dual_mov_b32 v8, v9 :: v_dual_add_nc_u32 v9, v2, v5",
        lambda a, b, c, d: a,
    ),
    "dual_y_reads_x": Case("v_dual_mov_b32 v8, v2 :: v_dual_lshlrev_b32 v9, 3, v8",
                           lambda a, b, c, d: (a, d << U32(3))),
    "dual_cndmask_and": Case("v_dual_cndmask_b32 v8, v2, v4 :: v_dual_and_b32 v9, v3, v5",
                             lambda a, b, c, d: np.where(PICKED, b, a)),
    "dual_masked": Case(
        "v_mov_b32 v9, v2\n  s_mov_b32 exec_lo, 0xff\n"
        "  v_dual_mov_b32 v8, v9 :: v_dual_mov_b32 v9, v8",
        lambda a, b, c, d: (np.where(LANE < 8, a, d), np.where(LANE < 8, d, a)),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return build(CASES)


@pytest.mark.parametrize(("arch", "name"), selected(CASES))
def test_operation(modules: dict[str, Module], arch: str, name: str) -> None:
    check(modules[arch], name, CASES[name])
