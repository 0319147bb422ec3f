// SPDX-License-Identifier: MIT
//
// Operations of RDNA that do what an operation of CDNA does, under another name.
#include "ops/handlers.h"

namespace ckemu {

namespace {

// clang-format off
#define SAME(name, plain) {Op::name, Op::plain},
#define LOADS_AND_STORES(space)                                  \
  SAME(space##_load_b32, space##_load_dword)                     \
  SAME(space##_load_b64, space##_load_dwordx2)                   \
  SAME(space##_load_b96, space##_load_dwordx3)                   \
  SAME(space##_load_b128, space##_load_dwordx4)                  \
  SAME(space##_load_u8, space##_load_ubyte)                      \
  SAME(space##_load_i8, space##_load_sbyte)                      \
  SAME(space##_load_u16, space##_load_ushort)                    \
  SAME(space##_load_i16, space##_load_sshort)                    \
  SAME(space##_load_d16_u8, space##_load_ubyte_d16)              \
  SAME(space##_load_d16_hi_u8, space##_load_ubyte_d16_hi)        \
  SAME(space##_load_d16_i8, space##_load_sbyte_d16)              \
  SAME(space##_load_d16_hi_i8, space##_load_sbyte_d16_hi)        \
  SAME(space##_load_d16_b16, space##_load_short_d16)             \
  SAME(space##_load_d16_hi_b16, space##_load_short_d16_hi)       \
  SAME(space##_store_b8, space##_store_byte)                     \
  SAME(space##_store_d16_hi_b8, space##_store_byte_d16_hi)       \
  SAME(space##_store_b16, space##_store_short)                   \
  SAME(space##_store_d16_hi_b16, space##_store_short_d16_hi)     \
  SAME(space##_store_b32, space##_store_dword)                   \
  SAME(space##_store_b64, space##_store_dwordx2)                 \
  SAME(space##_store_b96, space##_store_dwordx3)                 \
  SAME(space##_store_b128, space##_store_dwordx4)
#define ATOMIC(space, name, plain, b, w)                         \
  SAME(space##_atomic_##name##_##b##32, space##_atomic_##plain)  \
  SAME(space##_atomic_##name##_##b##64, space##_atomic_##plain##_x2)
#define ATOMICS(space)                                           \
  ATOMIC(space, swap, swap, b, b) ATOMIC(space, cmpswap, cmpswap, b, b)  \
  ATOMIC(space, add, add, u, u) ATOMIC(space, sub, sub, u, u)    \
  ATOMIC(space, min, smin, i, i) ATOMIC(space, min, umin, u, u)  \
  ATOMIC(space, max, smax, i, i) ATOMIC(space, max, umax, u, u)  \
  ATOMIC(space, and, and, b, b) ATOMIC(space, or, or, b, b)      \
  ATOMIC(space, xor, xor, b, b)                                  \
  ATOMIC(space, inc, inc, u, u) ATOMIC(space, dec, dec, u, u)
#define FORMATS(space)                                           \
  SAME(space##_load_d16_format_x, space##_load_format_d16_x)     \
  SAME(space##_load_d16_format_xy, space##_load_format_d16_xy)   \
  SAME(space##_load_d16_format_xyz, space##_load_format_d16_xyz) \
  SAME(space##_load_d16_format_xyzw, space##_load_format_d16_xyzw) \
  SAME(space##_store_d16_format_x, space##_store_format_d16_x)   \
  SAME(space##_store_d16_format_xy, space##_store_format_d16_xy) \
  SAME(space##_store_d16_format_xyz, space##_store_format_d16_xyz) \
  SAME(space##_store_d16_format_xyzw, space##_store_format_d16_xyzw)

constexpr RenamedOp kNames[] = {
    // Scalar
    SAME(s_add_co_u32, s_add_u32) SAME(s_sub_co_u32, s_sub_u32)
    SAME(s_add_co_i32, s_add_i32) SAME(s_sub_co_i32, s_sub_i32)
    SAME(s_add_co_ci_u32, s_addc_u32) SAME(s_sub_co_ci_u32, s_subb_u32)
    SAME(s_addk_co_i32, s_addk_i32)
    SAME(s_and_not1_b32, s_andn2_b32) SAME(s_and_not1_b64, s_andn2_b64)
    SAME(s_or_not1_b32, s_orn2_b32) SAME(s_or_not1_b64, s_orn2_b64)
    SAME(s_and_not1_saveexec_b64, s_andn2_saveexec_b64)
    SAME(s_or_not1_saveexec_b64, s_orn2_saveexec_b64)
    SAME(s_and_not0_saveexec_b64, s_andn1_saveexec_b64)
    SAME(s_or_not0_saveexec_b64, s_orn1_saveexec_b64)
    SAME(s_and_not0_wrexec_b64, s_andn1_wrexec_b64)
    SAME(s_and_not1_wrexec_b64, s_andn2_wrexec_b64)
    SAME(s_clz_i32_u32, s_flbit_i32_b32) SAME(s_clz_i32_u64, s_flbit_i32_b64)
    SAME(s_cls_i32, s_flbit_i32) SAME(s_cls_i32_i64, s_flbit_i32_i64)
    SAME(s_ctz_i32_b32, s_ff1_i32_b32) SAME(s_ctz_i32_b64, s_ff1_i32_b64)
    SAME(s_load_b32, s_load_dword) SAME(s_load_b64, s_load_dwordx2)
    SAME(s_load_b128, s_load_dwordx4) SAME(s_load_b256, s_load_dwordx8)
    SAME(s_load_b512, s_load_dwordx16)
    SAME(s_buffer_load_b32, s_buffer_load_dword) SAME(s_buffer_load_b64, s_buffer_load_dwordx2)
    SAME(s_buffer_load_b128, s_buffer_load_dwordx4) SAME(s_buffer_load_b256, s_buffer_load_dwordx8)
    SAME(s_buffer_load_b512, s_buffer_load_dwordx16)

    // Vector integers
    SAME(v_add_nc_u32, v_add_u32) SAME(v_sub_nc_u32, v_sub_u32) SAME(v_subrev_nc_u32, v_subrev_u32)
    SAME(v_add_nc_i32, v_add_i32) SAME(v_sub_nc_i32, v_sub_i32)
    SAME(v_add_nc_u16, v_add_u16) SAME(v_sub_nc_u16, v_sub_u16)
    SAME(v_add_nc_i16, v_add_i16) SAME(v_sub_nc_i16, v_sub_i16)
    SAME(v_add_co_ci_u32, v_addc_co_u32) SAME(v_sub_co_ci_u32, v_subb_co_u32)
    SAME(v_subrev_co_ci_u32, v_subbrev_co_u32)
    SAME(v_mad_co_u64_u32, v_mad_u64_u32) SAME(v_mad_co_i64_i32, v_mad_i64_i32)
    SAME(v_clz_i32_u32, v_ffbh_u32) SAME(v_cls_i32, v_ffbh_i32) SAME(v_ctz_i32_b32, v_ffbl_b32)
    SAME(v_mov_b16, v_mov_b32) SAME(v_not_b16, v_not_b32) SAME(v_cndmask_b16, v_cndmask_b32)
    SAME(v_and_b16, v_and_b32) SAME(v_or_b16, v_or_b32) SAME(v_xor_b16, v_xor_b32)
    SAME(v_pipeflush, v_nop)

    // Vector floats
    SAME(v_mul_dx9_zero_f32, v_mul_legacy_f32)
    SAME(v_fmaak_f16, v_fma_f16) SAME(v_fmamk_f16, v_fma_f16)
    SAME(v_dot2acc_f32_f16, v_dot2c_f32_f16)
    SAME(v_cvt_floor_i32_f32, v_cvt_flr_i32_f32) SAME(v_cvt_nearest_i32_f32, v_cvt_rpi_i32_f32)
    SAME(v_cvt_pk_rtz_f16_f32, v_cvt_pkrtz_f16_f32)
    SAME(v_cvt_pk_norm_i16_f32, v_cvt_pknorm_i16_f32) SAME(v_cvt_pk_norm_u16_f32, v_cvt_pknorm_u16_f32)
    SAME(v_cvt_pk_norm_i16_f16, v_cvt_pknorm_i16_f16) SAME(v_cvt_pk_norm_u16_f16, v_cvt_pknorm_u16_f16)

    SAME(v_cmp_t_f16, v_cmp_tru_f16) SAME(v_cmp_t_f32, v_cmp_tru_f32) SAME(v_cmp_t_f64, v_cmp_tru_f64)
    SAME(v_cmpx_t_f16, v_cmpx_tru_f16) SAME(v_cmpx_t_f32, v_cmpx_tru_f32) SAME(v_cmpx_t_f64, v_cmpx_tru_f64)

    // The halves of dual instructions
    SAME(v_dual_add_f32, v_add_f32) SAME(v_dual_sub_f32, v_sub_f32)
    SAME(v_dual_subrev_f32, v_subrev_f32) SAME(v_dual_mul_f32, v_mul_f32)
    SAME(v_dual_mul_dx9_zero_f32, v_mul_legacy_f32) SAME(v_dual_fmac_f32, v_fmac_f32)
    SAME(v_dual_fmaak_f32, v_fmaak_f32) SAME(v_dual_fmamk_f32, v_fmamk_f32)
    SAME(v_dual_min_f32, v_min_f32) SAME(v_dual_max_f32, v_max_f32)
    SAME(v_dual_min_num_f32, v_min_num_f32) SAME(v_dual_max_num_f32, v_max_num_f32)
    SAME(v_dual_mov_b32, v_mov_b32) SAME(v_dual_cndmask_b32, v_cndmask_b32)
    SAME(v_dual_add_nc_u32, v_add_u32) SAME(v_dual_and_b32, v_and_b32)
    SAME(v_dual_lshlrev_b32, v_lshlrev_b32) SAME(v_dual_dot2acc_f32_f16, v_dot2c_f32_f16)
    SAME(v_dual_dot2acc_f32_bf16, v_dot2c_f32_bf16)

    // Memory
    LOADS_AND_STORES(global) LOADS_AND_STORES(flat) LOADS_AND_STORES(scratch) LOADS_AND_STORES(buffer)
    ATOMICS(global) ATOMICS(flat) ATOMICS(buffer)
    FORMATS(buffer) FORMATS(tbuffer)
    SAME(buffer_load_d16_hi_format_x, buffer_load_format_d16_hi_x)
    SAME(buffer_store_d16_hi_format_x, buffer_store_format_d16_hi_x)
    SAME(buffer_gl0_inv, buffer_inv) SAME(buffer_gl1_inv, buffer_inv)
    SAME(ds_load_b32, ds_read_b32) SAME(ds_load_b64, ds_read_b64) SAME(ds_load_b96, ds_read_b96)
    SAME(ds_load_b128, ds_read_b128) SAME(ds_load_u8, ds_read_u8) SAME(ds_load_i8, ds_read_i8)
    SAME(ds_load_u16, ds_read_u16) SAME(ds_load_i16, ds_read_i16)
    SAME(ds_load_u8_d16, ds_read_u8_d16) SAME(ds_load_u8_d16_hi, ds_read_u8_d16_hi)
    SAME(ds_load_i8_d16, ds_read_i8_d16) SAME(ds_load_i8_d16_hi, ds_read_i8_d16_hi)
    SAME(ds_load_u16_d16, ds_read_u16_d16) SAME(ds_load_u16_d16_hi, ds_read_u16_d16_hi)
    SAME(ds_load_2addr_b32, ds_read2_b32) SAME(ds_load_2addr_b64, ds_read2_b64)
    SAME(ds_load_2addr_stride64_b32, ds_read2st64_b32) SAME(ds_load_2addr_stride64_b64, ds_read2st64_b64)
    SAME(ds_load_addtid_b32, ds_read_addtid_b32) SAME(ds_store_addtid_b32, ds_write_addtid_b32)
    SAME(ds_store_b8, ds_write_b8) SAME(ds_store_b16, ds_write_b16) SAME(ds_store_b32, ds_write_b32)
    SAME(ds_store_b64, ds_write_b64) SAME(ds_store_b96, ds_write_b96) SAME(ds_store_b128, ds_write_b128)
    SAME(ds_store_b8_d16_hi, ds_write_b8_d16_hi) SAME(ds_store_b16_d16_hi, ds_write_b16_d16_hi)
    SAME(ds_store_2addr_b32, ds_write2_b32) SAME(ds_store_2addr_b64, ds_write2_b64)
    SAME(ds_store_2addr_stride64_b32, ds_write2st64_b32) SAME(ds_store_2addr_stride64_b64, ds_write2st64_b64)
    SAME(ds_storexchg_rtn_b32, ds_wrxchg_rtn_b32) SAME(ds_storexchg_rtn_b64, ds_wrxchg_rtn_b64)
    SAME(ds_storexchg_2addr_rtn_b32, ds_wrxchg2_rtn_b32) SAME(ds_storexchg_2addr_rtn_b64, ds_wrxchg2_rtn_b64)
    SAME(ds_storexchg_2addr_stride64_rtn_b32, ds_wrxchg2st64_rtn_b32)
    SAME(ds_storexchg_2addr_stride64_rtn_b64, ds_wrxchg2st64_rtn_b64)
    SAME(ds_min_num_f32, ds_min_f32) SAME(ds_max_num_f32, ds_max_f32)
    SAME(ds_min_num_f64, ds_min_f64) SAME(ds_max_num_f64, ds_max_f64)
    SAME(ds_min_num_rtn_f32, ds_min_rtn_f32) SAME(ds_max_num_rtn_f32, ds_max_rtn_f32)
    SAME(ds_min_num_rtn_f64, ds_min_rtn_f64) SAME(ds_max_num_rtn_f64, ds_max_rtn_f64)
};
// clang-format on

}  // namespace

std::span<const RenamedOp> rdna_names() { return kNames; }

Op plain_name(Op op) {
  for (const RenamedOp& row : kNames) {
    if (row.name == op) return row.plain;
  }
  return op;
}

}  // namespace ckemu
