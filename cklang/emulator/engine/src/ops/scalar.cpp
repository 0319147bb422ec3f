// SPDX-License-Identifier: MIT
//
// Scalar arithmetic, logic, shifts, compares and moves.
#include <type_traits>

#include "ops/handlers.h"
#include "ops/scalar_access.h"

namespace ckemu {

namespace {

constexpr auto add_u = [](u32 a, u32 b, bool& scc) {
  u32 sum;
  scc = __builtin_add_overflow(a, b, &sum);
  return sum;
};
constexpr auto sub_u = [](u32 a, u32 b, bool& scc) {
  u32 difference;
  scc = __builtin_sub_overflow(a, b, &difference);
  return difference;
};
constexpr auto add_i = [](i32 a, i32 b, bool& scc) {
  i32 sum;
  scc = __builtin_add_overflow(a, b, &sum);
  return sum;
};
constexpr auto sub_i = [](i32 a, i32 b, bool& scc) {
  i32 difference;
  scc = __builtin_sub_overflow(a, b, &difference);
  return difference;
};
constexpr auto addc = [](u32 a, u32 b, bool& scc) {
  const u64 sum = u64{a} + b + scc;
  scc = (sum >> 32) != 0;
  return static_cast<u32>(sum);
};
constexpr auto subb = [](u32 a, u32 b, bool& scc) {
  const u64 taken = u64{b} + scc;
  scc = taken > a;
  return static_cast<u32>(a - taken);
};
constexpr auto minimum = [](auto a, auto b, bool& scc) {
  scc = a < b;
  return scc ? a : b;
};
constexpr auto maximum = [](auto a, auto b, bool& scc) {
  scc = a > b;
  return scc ? a : b;
};
constexpr auto cselect = [](auto a, auto b, bool& scc) { return scc ? a : b; };
constexpr auto mul = [](u32 a, u32 b, bool&) { return a * b; };
constexpr auto mul_hi_u = [](u32 a, u32 b, bool&) { return static_cast<u32>(u64{a} * b >> 32); };
constexpr auto mul_hi_i = [](i32 a, i32 b, bool&) { return static_cast<i32>(i64{a} * b >> 32); };
constexpr auto absdiff = [](u32 a, u32 b, bool& scc) {  // of the difference that wraps
  const u32 difference = a - b, result = static_cast<i32>(difference) < 0 ? 0 - difference : difference;
  scc = result != 0;
  return result;
};
template <int shift>
constexpr auto lshl_add = [](u32 a, u32 b, bool& scc) {
  const u64 sum = (u64{a} << shift) + b;
  scc = (sum >> 32) != 0;
  return static_cast<u32>(sum);
};
constexpr auto pack_ll = [](u32 a, u32 b, bool&) { return (a & 0xffff) | b << 16; };
constexpr auto pack_lh = [](u32 a, u32 b, bool&) { return (a & 0xffff) | (b & 0xffff0000); };
constexpr auto pack_hh = [](u32 a, u32 b, bool&) { return a >> 16 | (b & 0xffff0000); };

/// Makes scc say whether the result is non-zero.
template <auto op>
constexpr auto nonzero = [](auto a, auto b, bool& scc) {
  const auto result = op(a, b);
  scc = result != 0;
  return result;
};
constexpr auto bit_and = [](auto a, auto b) { return a & b; };
constexpr auto bit_or = [](auto a, auto b) { return a | b; };
constexpr auto bit_xor = [](auto a, auto b) { return a ^ b; };
constexpr auto bit_nand = [](auto a, auto b) { return ~(a & b); };
constexpr auto bit_nor = [](auto a, auto b) { return ~(a | b); };
constexpr auto bit_xnor = [](auto a, auto b) { return ~(a ^ b); };
constexpr auto and_not = [](auto a, auto b) { return a & ~b; };
constexpr auto or_not = [](auto a, auto b) { return a | ~b; };
constexpr auto shift_left = [](auto a, u32 b) { return a << (b % (8 * sizeof a)); };
constexpr auto shift_right = [](auto a, u32 b) { return a >> (b % (8 * sizeof a)); };

constexpr auto bfe_u32 = [](u32 a, u32 b) {
  const u32 width = b >> 16 & 0x7f;
  const u32 field = a >> (b & 31);
  return width >= 32 ? field : field & ((1u << width) - 1);
};
constexpr auto bfe_i32 = [](u32 a, u32 b) {
  const u32 width = b >> 16 & 0x7f;
  if (width == 0) return u32{0};
  const u32 field = bfe_u32(a, b), offset = b & 31;
  const u32 bits = width > 32 - offset ? 32 - offset : width;
  if (width > bits) return static_cast<u32>(static_cast<i32>(a) >> offset);
  return static_cast<u32>(static_cast<i32>(field << (32 - bits)) >> (32 - bits));
};
constexpr auto bfe_u64 = [](u64 a, u32 b) {
  const u32 width = b >> 16 & 0x7f;
  const u64 field = a >> (b & 63);
  return width >= 64 ? field : field & ((u64{1} << width) - 1);
};
constexpr auto bfe_i64 = [](u64 a, u32 b) {
  const u32 width = b >> 16 & 0x7f, offset = b & 63;
  if (width == 0) return u64{0};
  if (width >= 64 - offset) return static_cast<u64>(static_cast<i64>(a) >> offset);
  return static_cast<u64>(static_cast<i64>(bfe_u64(a, b) << (64 - width)) >> (64 - width));
};
constexpr auto bfm_b32 = [](u32 a, u32 b, bool&) { return ((1u << (a & 31)) - 1) << (b & 31); };
constexpr auto bfm_b64 = [](u32 a, u32 b, bool&) { return ((u64{1} << (a & 63)) - 1) << (b & 63); };

constexpr auto move = [](auto a, bool&) { return a; };
constexpr auto bit_not = [](auto a, bool& scc) {
  const auto result = ~a;
  scc = result != 0;
  return result;
};
constexpr auto absolute = [](u32 a, bool& scc) {
  const u32 result = static_cast<i32>(a) < 0 ? 0 - a : a;
  scc = result != 0;
  return result;
};

constexpr auto eq = [](auto a, auto b) { return a == b; };
constexpr auto ne = [](auto a, auto b) { return a != b; };
constexpr auto gt = [](auto a, auto b) { return a > b; };
constexpr auto ge = [](auto a, auto b) { return a >= b; };
constexpr auto lt = [](auto a, auto b) { return a < b; };
constexpr auto le = [](auto a, auto b) { return a <= b; };
template <bool wanted>
constexpr auto bit_is = [](auto a, u32 b) { return (a >> (b % (8 * sizeof a)) & 1) == wanted; };

template <class T, auto op>
constexpr Handler logic = scalar2<T, T, T, nonzero<op>>;
template <class T, auto op>
constexpr Handler shift = scalar2<T, T, u32, nonzero<op>>;
template <class T, auto op>
constexpr Handler same2 = scalar2<T, T, T, op>;

/// The immediate of s_*k as the type wants it: signed compares sign-extend, unsigned ones do not.
template <class T>
T immediate(const Code& c) {
  if constexpr (std::is_signed_v<T>) return static_cast<T>(c.offset);
  return static_cast<T>(static_cast<u16>(c.offset));
}
template <class T, auto op>
void compare_k(Wave& w, const Code& c) {
  w.scc = op(static_cast<T>(scalar32(w, c.src[0])), immediate<T>(c));
}
void movk(Wave& w, const Code& c) { w.s[c.dst] = static_cast<u32>(c.offset); }
void cmovk(Wave& w, const Code& c) {
  if (w.scc) w.s[c.dst] = static_cast<u32>(c.offset);
}
void addk(Wave& w, const Code& c) {
  i32 sum;
  w.scc = __builtin_add_overflow(static_cast<i32>(w.s[c.dst]), c.offset, &sum);
  w.s[c.dst] = static_cast<u32>(sum);
}
void mulk(Wave& w, const Code& c) { w.s[c.dst] *= static_cast<u32>(c.offset); }

void cmov_b32(Wave& w, const Code& c) {
  if (w.scc) w.s[c.dst] = scalar32(w, c.src[0]);
}
void cmov_b64(Wave& w, const Code& c) {
  if (w.scc) w.set_sgpr64(c.dst, scalar64(w, c.src[0]));
}

constexpr HandlerRow kScalarRows[] = {
    {Op::s_add_u32, same2<u32, add_u>},
    {Op::s_sub_u32, same2<u32, sub_u>},
    {Op::s_add_i32, same2<i32, add_i>},
    {Op::s_sub_i32, same2<i32, sub_i>},
    {Op::s_addc_u32, same2<u32, addc>},
    {Op::s_subb_u32, same2<u32, subb>},
    {Op::s_min_i32, same2<i32, minimum>},
    {Op::s_min_u32, same2<u32, minimum>},
    {Op::s_max_i32, same2<i32, maximum>},
    {Op::s_max_u32, same2<u32, maximum>},
    {Op::s_cselect_b32, same2<u32, cselect>},
    {Op::s_cselect_b64, same2<u64, cselect>},
    {Op::s_and_b32, logic<u32, bit_and>},
    {Op::s_and_b64, logic<u64, bit_and>},
    {Op::s_or_b32, logic<u32, bit_or>},
    {Op::s_or_b64, logic<u64, bit_or>},
    {Op::s_xor_b32, logic<u32, bit_xor>},
    {Op::s_xor_b64, logic<u64, bit_xor>},
    {Op::s_andn2_b32, logic<u32, and_not>},
    {Op::s_andn2_b64, logic<u64, and_not>},
    {Op::s_orn2_b32, logic<u32, or_not>},
    {Op::s_orn2_b64, logic<u64, or_not>},
    {Op::s_nand_b32, logic<u32, bit_nand>},
    {Op::s_nand_b64, logic<u64, bit_nand>},
    {Op::s_nor_b32, logic<u32, bit_nor>},
    {Op::s_nor_b64, logic<u64, bit_nor>},
    {Op::s_xnor_b32, logic<u32, bit_xnor>},
    {Op::s_xnor_b64, logic<u64, bit_xnor>},
    {Op::s_lshl_b32, shift<u32, shift_left>},
    {Op::s_lshl_b64, shift<u64, shift_left>},
    {Op::s_lshr_b32, shift<u32, shift_right>},
    {Op::s_lshr_b64, shift<u64, shift_right>},
    {Op::s_ashr_i32, shift<i32, shift_right>},
    {Op::s_ashr_i64, shift<i64, shift_right>},
    {Op::s_bfm_b32, scalar2<u32, u32, u32, bfm_b32>},
    {Op::s_bfm_b64, scalar2<u64, u32, u32, bfm_b64>},
    {Op::s_mul_i32, same2<u32, mul>},
    {Op::s_mul_hi_u32, same2<u32, mul_hi_u>},
    {Op::s_mul_hi_i32, same2<i32, mul_hi_i>},
    {Op::s_bfe_u32, scalar2<u32, u32, u32, nonzero<bfe_u32>>},
    {Op::s_bfe_i32, scalar2<u32, u32, u32, nonzero<bfe_i32>>},
    {Op::s_bfe_u64, scalar2<u64, u64, u32, nonzero<bfe_u64>>},
    {Op::s_bfe_i64, scalar2<u64, u64, u32, nonzero<bfe_i64>>},
    {Op::s_absdiff_i32, same2<u32, absdiff>},
    {Op::s_lshl1_add_u32, same2<u32, lshl_add<1>>},
    {Op::s_lshl2_add_u32, same2<u32, lshl_add<2>>},
    {Op::s_lshl3_add_u32, same2<u32, lshl_add<3>>},
    {Op::s_lshl4_add_u32, same2<u32, lshl_add<4>>},
    {Op::s_pack_ll_b32_b16, same2<u32, pack_ll>},
    {Op::s_pack_lh_b32_b16, same2<u32, pack_lh>},
    {Op::s_pack_hh_b32_b16, same2<u32, pack_hh>},
    {Op::s_mov_b32, scalar1<u32, u32, move>},
    {Op::s_mov_b64, scalar1<u64, u64, move>},
    {Op::s_cmov_b32, cmov_b32},
    {Op::s_cmov_b64, cmov_b64},
    {Op::s_not_b32, scalar1<u32, u32, bit_not>},
    {Op::s_not_b64, scalar1<u64, u64, bit_not>},
    {Op::s_abs_i32, scalar1<u32, u32, absolute>},
    {Op::s_cmp_eq_i32, scalar_compare<i32, i32, eq>},
    {Op::s_cmp_lg_i32, scalar_compare<i32, i32, ne>},
    {Op::s_cmp_gt_i32, scalar_compare<i32, i32, gt>},
    {Op::s_cmp_ge_i32, scalar_compare<i32, i32, ge>},
    {Op::s_cmp_lt_i32, scalar_compare<i32, i32, lt>},
    {Op::s_cmp_le_i32, scalar_compare<i32, i32, le>},
    {Op::s_cmp_eq_u32, scalar_compare<u32, u32, eq>},
    {Op::s_cmp_lg_u32, scalar_compare<u32, u32, ne>},
    {Op::s_cmp_gt_u32, scalar_compare<u32, u32, gt>},
    {Op::s_cmp_ge_u32, scalar_compare<u32, u32, ge>},
    {Op::s_cmp_lt_u32, scalar_compare<u32, u32, lt>},
    {Op::s_cmp_le_u32, scalar_compare<u32, u32, le>},
    {Op::s_cmp_eq_u64, scalar_compare<u64, u64, eq>},
    {Op::s_cmp_lg_u64, scalar_compare<u64, u64, ne>},
    {Op::s_bitcmp0_b32, scalar_compare<u32, u32, bit_is<false>>},
    {Op::s_bitcmp1_b32, scalar_compare<u32, u32, bit_is<true>>},
    {Op::s_bitcmp0_b64, scalar_compare<u64, u32, bit_is<false>>},
    {Op::s_bitcmp1_b64, scalar_compare<u64, u32, bit_is<true>>},
    {Op::s_movk_i32, movk},
    {Op::s_cmovk_i32, cmovk},
    {Op::s_addk_i32, addk},
    {Op::s_mulk_i32, mulk},
    {Op::s_cmpk_eq_i32, compare_k<i32, eq>},
    {Op::s_cmpk_lg_i32, compare_k<i32, ne>},
    {Op::s_cmpk_gt_i32, compare_k<i32, gt>},
    {Op::s_cmpk_ge_i32, compare_k<i32, ge>},
    {Op::s_cmpk_lt_i32, compare_k<i32, lt>},
    {Op::s_cmpk_le_i32, compare_k<i32, le>},
    {Op::s_cmpk_eq_u32, compare_k<u32, eq>},
    {Op::s_cmpk_lg_u32, compare_k<u32, ne>},
    {Op::s_cmpk_gt_u32, compare_k<u32, gt>},
    {Op::s_cmpk_ge_u32, compare_k<u32, ge>},
    {Op::s_cmpk_lt_u32, compare_k<u32, lt>},
    {Op::s_cmpk_le_u32, compare_k<u32, le>},
};

}  // namespace

HandlerRows scalar_handlers() { return kScalarRows; }

}  // namespace ckemu
