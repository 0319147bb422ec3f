# SPDX-License-Identifier: MIT
"""Vector ALU semantics: one assembled instruction against one line of NumPy."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from tests.support.assembly import Module, assembled

pytestmark = pytest.mark.usefixtures("emulator")

U32, I32, F32, F64 = np.uint32, np.int32, np.float32, np.float64
Oracle = Callable[..., np.ndarray]

# a in v[2:3], b in v[4:5], c in v[6:7]; the result, and its old value, in v[8:9].
_BODY = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 5, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[2:5], v1, s[4:5]
  global_load_dwordx4 v[6:9], v1, s[4:5] offset:16
  s_waitcnt vmcnt(0)
  s_mov_b32 vcc_lo, 0x0f0f3355
  s_mov_b32 vcc_hi, 0x00ff00ff
  s_mov_b64 exec, {exec}
  {text}
  s_mov_b64 exec, -1
  v_mov_b32_e32 v10, vcc_lo
  v_mov_b32_e32 v11, vcc_hi
  v_lshlrev_b32_e32 v1, 4, v0
  global_store_dwordx4 v1, v[8:11], s[6:7]
"""
VCC = 0x00FF00FF0F0F3355
VCC_LANES = np.array([VCC >> lane & 1 for lane in range(64)], bool)


@dataclass(frozen=True, slots=True)
class Case:
    """An instruction, its oracle over arrays of `dtype`, and the result's dtype."""

    text: str
    oracle: Oracle
    dtype: type = U32
    result: type | None = None
    mask: bool = False
    """The result is a lane mask in vcc."""
    exec: str = "-1"
    halves: bool = False
    """The result holds f16 values, whose NaNs have no fixed bits."""


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.uint64)


def half(values: np.ndarray) -> np.ndarray:
    return (values & 0xFFFF).astype(np.uint16).view(np.float16)


def from_half(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float16).view(np.uint16).astype(U32)


def perm(a: np.ndarray, b: np.ndarray, s: np.ndarray) -> np.ndarray:
    data = wide(a) << np.uint64(32) | wide(b)
    result = np.zeros(64, U32)
    for n in range(4):
        pick = wide(s >> (8 * n) & 0xFF)
        byte = np.where(pick < 8, data >> (8 * (pick & 7)) & 0xFF, 0)
        sign = (data >> (16 * ((pick - 8) & 3) + 15) & 1) * 0xFF
        byte = np.where((pick >= 8) & (pick < 12), sign, byte)
        result |= np.where(pick > 12, 0xFF, byte).astype(U32) << U32(8 * n)
    return result


def chosen(first: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.where(first, x, y)


def clamp01(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), F32(0), np.clip(x, 0, 1)).astype(F32) + F32(0)


def smaller(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The lesser number of each pair; -0 is less than +0, and NaN is no number."""
    zeros = (a == 0) & (b == 0)
    return np.where(zeros, np.where(np.signbit(a), a, b), np.fmin(a, b)).astype(F32)


CASES = {
    "mov": Case("v_mov_b32 v8, v2", lambda a, b, c, d: a),
    "add_u32": Case("v_add_u32 v8, v2, v4", lambda a, b, c, d: a + b),
    "sub_u32": Case("v_sub_u32 v8, v2, v4", lambda a, b, c, d: a - b),
    "add_masked": Case(
        "v_add_u32 v8, v2, v4",
        lambda a, b, c, d: np.where((np.arange(64) < 32) & (np.arange(64) % 2 == 0), a + b, d),
        exec="0x55555555",
    ),
    "add_co": Case("v_add_co_u32 v8, vcc, v2, v4",
                   lambda a, b, c, d: (wide(a) + wide(b)) >> np.uint64(32) != 0, mask=True),
    "addc_co": Case("v_addc_co_u32 v8, vcc, v2, v4, vcc", lambda a, b, c, d: a + b + VCC_LANES),
    "subb_co": Case("v_subb_co_u32 v8, vcc, v2, v4, vcc", lambda a, b, c, d: a - b - VCC_LANES),
    "cndmask": Case("v_cndmask_b32 v8, v2, v4, vcc", lambda a, b, c, d: chosen(VCC_LANES, b, a)),
    "mul_lo": Case("v_mul_lo_u32 v8, v2, v4", lambda a, b, c, d: a * b),
    "mul_hi": Case("v_mul_hi_u32 v8, v2, v4",
                   lambda a, b, c, d: (wide(a) * wide(b) >> np.uint64(32)).astype(U32)),
    "mul_u24": Case("v_mul_u32_u24 v8, v2, v4", lambda a, b, c, d: (a & 0xFFFFFF) * (b & 0xFFFFFF)),
    "lshlrev": Case("v_lshlrev_b32 v8, v2, v4", lambda a, b, c, d: b << (a & 31)),
    "ashrrev": Case("v_ashrrev_i32 v8, v2, v4",
                    lambda a, b, c, d: (b.view(I32) >> (a & 31).view(I32)).view(U32)),
    "lshl_add": Case("v_lshl_add_u32 v8, v2, v4, v6", lambda a, b, c, d: (a << (b & 31)) + c),
    "and_or": Case("v_and_or_b32 v8, v2, v4, v6", lambda a, b, c, d: a & b | c),
    "add3": Case("v_add3_u32 v8, v2, v4, v6", lambda a, b, c, d: a + b + c),
    "bfe_u": Case("v_bfe_u32 v8, v2, v4, v6",
                  lambda a, b, c, d: a >> (b & 31) & ((U32(1) << (c & 31)) - U32(1))),
    "bfi": Case("v_bfi_b32 v8, v2, v4, v6", lambda a, b, c, d: a & b | ~a & c),
    "alignbit": Case(
        "v_alignbit_b32 v8, v2, v4, v6",
        lambda a, b, c, d: ((wide(a) << np.uint64(32) | wide(b)) >> wide(c & 31)).astype(U32),
    ),
    "perm": Case("v_perm_b32 v8, v2, v4, v6", lambda a, b, c, d: perm(a, b, c)),
    "perm_plain": Case("v_and_b32 v6, 0x07070707, v6\n  v_perm_b32 v8, v2, v4, v6",
                       lambda a, b, c, d: perm(a, b, c & 0x07070707)),
    "clamp_add": Case("v_add_u32_e64 v8, v2, v4 clamp",
                      lambda a, b, c, d: np.minimum(wide(a) + wide(b), 0xFFFFFFFF).astype(U32)),
    "cmp_lt_u32": Case("v_cmp_lt_u32 vcc, v2, v4", lambda a, b, c, d: a < b, mask=True),
    "cmp_gt_i16": Case("v_cmp_gt_i16 vcc, v2, v4",
                       lambda a, b, c, d: a.astype(np.int16) > b.astype(np.int16), mask=True),
    "cmp_lt_f32": Case("v_cmp_lt_f32 vcc, v2, v4", lambda a, b, c, d: a < b, dtype=F32, mask=True),
    "cmp_nge_f32": Case("v_cmp_nge_f32 vcc, v2, v4", lambda a, b, c, d: ~(a >= b), dtype=F32,
                        mask=True),
    "cmp_o_f32": Case("v_cmp_o_f32 vcc, v2, v4", lambda a, b, c, d: ~(np.isnan(a) | np.isnan(b)),
                      dtype=F32, mask=True),
    "cmp_class_inf": Case("v_mov_b32 v4, 0x204\n  v_cmp_class_f32 vcc, v2, v4",
                          lambda a, b, c, d: np.isinf(a), dtype=F32, mask=True),
    # cmpx keeps the lanes that pass, and only those, enabled.
    "cmpx": Case("v_cmpx_lt_u32 vcc, v2, v4\n  v_mov_b32 v8, v2",
                 lambda a, b, c, d: chosen(a < b, a, d)),
    "add_f32": Case("v_add_f32 v8, v2, v4", lambda a, b, c, d: a + b, dtype=F32),
    "sub_neg_abs": Case("v_add_f32_e64 v8, -v2, |v4|", lambda a, b, c, d: np.abs(b) - a, dtype=F32),
    "mul_f32": Case("v_mul_f32 v8, v2, v4", lambda a, b, c, d: a * b, dtype=F32),
    "mul_constant": Case("v_mul_f32 v8, 0.5, v2", lambda a, b, c, d: a * F32(0.5), dtype=F32),
    "mul_literal": Case("v_mul_f32 v8, 0x40490fdb, v2", lambda a, b, c, d: a * F32(np.pi),
                        dtype=F32),
    "mul_clamp": Case("v_mul_f32_e64 v8, v2, v4 clamp", lambda a, b, c, d: clamp01(a * b),
                      dtype=F32),
    "min_f32": Case("v_min_f32 v8, v2, v4", lambda a, b, c, d: smaller(a, b), dtype=F32),
    "max_f32": Case("v_max_f32 v8, v2, v4", lambda a, b, c, d: -smaller(-a, -b), dtype=F32),
    "rndne": Case("v_rndne_f32 v8, v2", lambda a, b, c, d: np.rint(a), dtype=F32),
    "floor": Case("v_floor_f32 v8, v2", lambda a, b, c, d: np.floor(a), dtype=F32),
    "rcp": Case("v_rcp_f32 v8, v2", lambda a, b, c, d: F32(1) / a, dtype=F32),
    "sqrt": Case("v_sqrt_f32 v8, v2", lambda a, b, c, d: np.sqrt(a), dtype=F32),
    "exp": Case("v_exp_f32 v8, v2", lambda a, b, c, d: np.exp2(a.astype(F64)).astype(F32),
                dtype=F32),
    "log": Case("v_log_f32 v8, v2", lambda a, b, c, d: np.log2(a.astype(F64)).astype(F32),
                dtype=F32),
    "cvt_f16": Case("v_cvt_f16_f32 v8, v2", lambda a, b, c, d: from_half(a), halves=True, dtype=F32,
                    result=U32),
    "cvt_f32_f16": Case("v_cvt_f32_f16 v8, v2", lambda a, b, c, d: half(a).astype(F32), result=F32),
    "cvt_f32_u32": Case("v_cvt_f32_u32 v8, v2", lambda a, b, c, d: a.astype(F32), result=F32),
    "cvt_i32_f32": Case(
        "v_cvt_i32_f32 v8, v2",
        lambda a, b, c, d: np.clip(
            np.nan_to_num(np.trunc(a.astype(F64)), nan=0), -(2**31), 2**31 - 1
        ).astype(I32),
        dtype=F32,
        result=I32,
    ),
    "add_f16": Case("v_add_f16 v8, v2, v4", lambda a, b, c, d: from_half(half(a) + half(b)),
                    halves=True),
    "pk_add_f16": Case(
        "v_pk_add_f16 v8, v2, v4",
        lambda a, b, c, d: (
            from_half(half(a) + half(b)) | from_half(half(a >> 16) + half(b >> 16)) << 16
        ),
        halves=True,
    ),
    "pk_mul_swapped": Case(
        "v_pk_mul_f16 v8, v2, v4 op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[1,0]",
        lambda a, b, c, d: (
            from_half(-half(a) * half(b >> 16)) | from_half(half(a >> 16) * half(b)) << 16
        ),
        halves=True,
    ),
    "add_f64": Case("v_add_f64 v[8:9], v[2:3], v[4:5]", lambda a, b, c, d: a + b, dtype=F64),
    "mul_f64": Case("v_mul_f64 v[8:9], v[2:3], v[4:5]", lambda a, b, c, d: a * b, dtype=F64),
    "dpp_mirror": Case("v_mov_b32_dpp v8, v2 row_mirror row_mask:0xf bank_mask:0xf",
                       lambda a, b, c, d: a.reshape(4, 16)[:, ::-1].ravel()),
    "dpp_shr": Case("v_mov_b32_dpp v8, v2 row_shr:1 row_mask:0xf bank_mask:0xf",
                    lambda a, b, c, d: np.where(np.arange(64) % 16 == 0, d, np.roll(a, 1))),
    "dpp_shr_zero": Case("v_mov_b32_dpp v8, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:0",
                         lambda a, b, c, d: np.where(np.arange(64) % 16 == 0, 0, np.roll(a, 1))),
    "sdwa": Case(
        "v_add_u32_sdwa v8, v2, v4 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
        "src0_sel:BYTE_1 src1_sel:WORD_1",
        lambda a, b, c, d: d & 0xFFFF | ((a >> 8 & 0xFF) + (b >> 16)) << 16,
    ),
    "bpermute_wraps": Case(
        "v_lshlrev_b32 v3, 2, v2\n  ds_bpermute_b32 v8, v3, v4\n  s_waitcnt lgkmcnt(0)",
        lambda a, b, c, d: b[(a % 64).astype(int)],
    ),
    "readfirstlane": Case(
        "v_readfirstlane_b32 s8, v2\n  v_mov_b32 v8, s8",
        lambda a, b, c, d: np.where((np.arange(64) >= 4) & (np.arange(64) < 8), a[4], d),
        exec="0xf0",
    ),
    "mbcnt": Case("v_mbcnt_lo_u32_b32 v8, -1, 0\n  v_mbcnt_hi_u32_b32 v8, -1, v8",
                  lambda a, b, c, d: np.arange(64, dtype=U32)),
    "agpr": Case("v_accvgpr_write_b32 a3, v2\n  v_mov_b32 v2, 0\n  v_accvgpr_read_b32 v8, a3",
                 lambda a, b, c, d: a),
    "getpc": Case(
        "s_getpc_b64 s[8:9]\n  s_add_u32 s8, s8, 16\n  s_addc_u32 s9, s9, 0\n"
        "  s_setpc_b64 s[8:9]\n  s_trap 2\n  v_mov_b32 v8, v2",
        lambda a, b, c, d: a,
    ),
}  # fmt: skip
CASES["divide"] = Case(
    """v_div_scale_f32 v12, s[8:9], v4, v4, v2
  v_div_scale_f32 v13, vcc, v2, v4, v2
  v_rcp_f32 v14, v12
  v_fma_f32 v15, -v12, v14, 1.0
  v_fma_f32 v14, v15, v14, v14
  v_mul_f32 v15, v13, v14
  v_fma_f32 v16, -v12, v15, v13
  v_fma_f32 v15, v16, v14, v15
  v_fma_f32 v16, -v12, v15, v13
  v_div_fmas_f32 v16, v16, v14, v15
  v_div_fixup_f32 v8, v16, v4, v2""",
    lambda a, b, c, d: a / b,
    dtype=F32,
)

SPECIAL = np.array(
    [0, 1 << 31, 0x7F800000, 0xFF800000, 0x7FC00000, 1, 0x80000001, 0x007FFFFF, 0x7F7FFFFF,
     0x3F800000, 0xBF800000, 0x3F000000, 0x40200000, 0x4F000000, 0xCF000000, 0x33800000,
     0x7C007BFF, 0xFC01, 0x03FF8400, 0xFFFFFFFF],
    U32,
)  # fmt: skip


def inputs(seed: int, dtype: type) -> np.ndarray:
    """64 lanes of a, b, c and the old result, 8 bytes each: special values and random bits."""
    rng = np.random.default_rng(seed)
    if dtype == F64:
        values = rng.normal(size=(64, 4)) * 10.0 ** rng.integers(-300, 300, (64, 4))
        values[:4, 0] = [np.inf, -0.0, np.nan, 5e-324]
        return values.view(U32)
    data = rng.integers(0, 2**32, (64, 8), dtype=U32)
    data[:40, ::2] = rng.choice(SPECIAL, (40, 4))
    if dtype == F32:
        data[32:, ::2] = rng.normal(size=(32, 4)).astype(F32).view(U32)
    return data


@pytest.fixture(scope="module")
def kernels() -> Module:
    bodies = {name: _BODY.format(text=case.text, exec=case.exec) for name, case in CASES.items()}
    return assembled(bodies)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_instruction(kernels: Module, name: str, seed: int) -> None:
    case = CASES[name]
    data = np.ascontiguousarray(inputs(seed, case.dtype))
    output = np.zeros((64, 4), U32)
    assert kernels.launch(name, data, output) == "hipSuccess"
    lanes = data.view(F64).T if case.dtype == F64 else data[:, ::2].T.copy().view(case.dtype)
    with np.errstate(all="ignore"):
        expected = case.oracle(*lanes)
    if case.mask:
        bits = int(output[0, 2]) | int(output[0, 3]) << 32
        np.testing.assert_array_equal([bits >> lane & 1 for lane in range(64)], expected)
        return
    result = case.result or case.dtype
    got = (
        np.ascontiguousarray(output[:, :2]).view(F64)[:, 0]
        if result == F64
        else output[:, 0].copy().view(result)
    )
    if np.dtype(result).kind == "f":
        np.testing.assert_array_equal(got, expected.astype(result))
        fine = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(got[fine]), np.signbit(expected[fine]))
        return
    expected = expected.astype(result)
    if case.halves:
        got, expected = one_nan(got), one_nan(expected)
    np.testing.assert_array_equal(got, expected)


def one_nan(bits: np.ndarray) -> np.ndarray:
    """Both halves of each lane, with every NaN the same."""
    halves = np.stack([bits & 0xFFFF, bits >> 16])
    return np.where(halves & 0x7FFF > 0x7C00, 0x7E00, halves)
