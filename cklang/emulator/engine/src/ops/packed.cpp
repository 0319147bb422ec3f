// SPDX-License-Identifier: MIT
//
// VOP3P: two 16-bit (or two 32-bit) operations in a lane, mixed-precision multiply-add, and dot
// products. Each half of the result picks its half of each operand (op_sel, op_sel_hi) and may
// negate it (neg, neg_hi).
#include <type_traits>

#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/rounding.h"
#include "ops/saturate.h"

namespace ckemu {

namespace {

/// Source `slot` with its halves where the result's halves want them. Some dot products have no bits
/// for that: their halves stay in place.
CKEMU_INLINE U8v pick_halves(const Code& c, int slot, U8v x) {
  const bool picks = (c.inst->row->allowed.op_sel_hi >> slot & 1) != 0;
  const bool low_from_high = (c.inst->op_sel >> slot & 1) != 0;
  const bool high_from_high = !picks || (c.inst->op_sel_hi >> slot & 1) != 0;
  const U8v low = low_from_high ? x >> 16 : x & 0xffff;
  const U8v high = high_from_high ? x & 0xffff0000 : x << 16;
  const u32 flip = (c.inst->neg >> slot & 1) << 15 | u32(c.inst->neg_hi >> slot & 1) << 31;
  return (low | high) ^ flip;
}

CKEMU_INLINE U8v join(U8v low, U8v high) { return (low & 0xffff) | high << 16; }

/// Lift a function of low halves to both halves.
template <auto op>
void halves2(Wave& w, const Code& c) {
  const u32 *x = source_row(w, c, 0), *y = source_row(w, c, 1);
  write_lanes(w, w.v[c.dst], [&](int g) {
    const U8v a = pick_halves(c, 0, load8(x, g)), b = pick_halves(c, 1, load8(y, g));
    return join(op(a, b), op(a >> 16, b >> 16));
  });
}
template <auto op>
void halves3(Wave& w, const Code& c) {
  const u32 *x = source_row(w, c, 0), *y = source_row(w, c, 1), *z = source_row(w, c, 2);
  write_lanes(w, w.v[c.dst], [&](int g) {
    const U8v a = pick_halves(c, 0, load8(x, g)), b = pick_halves(c, 1, load8(y, g));
    const U8v e = pick_halves(c, 2, load8(z, g));
    return join(op(a, b, e), op(a >> 16, b >> 16, e >> 16));
  });
}

using D4v = double __attribute__((ext_vector_type(4)));
using F4v = float __attribute__((ext_vector_type(4)));
using I4l = i64 __attribute__((ext_vector_type(4)));

/// f16 multiply-add with one rounding: exact in double, then rounded to odd, then to f16.
CKEMU_INLINE F4v fused_odd(F4v a, F4v b, F4v c) {
  const D4v sum = __builtin_convertvector(a, D4v) * __builtin_convertvector(b, D4v) + __builtin_convertvector(c, D4v);
  F4v result;
  for (int n = 0; n < 4; ++n) result[n] = to_f32_odd(sum[n]);
  return result;
}
constexpr auto fma_f = [](U8v a, U8v b, U8v c) {
  const F8v x = low_f16(a), y = low_f16(b), z = low_f16(c);
  const F4v low = fused_odd(x.lo, y.lo, z.lo), high = fused_odd(x.hi, y.hi, z.hi);
  return pack_low_f16(__builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7));
};
constexpr auto add_f = [](U8v a, U8v b) { return pack_low_f16(low_f16(a) + low_f16(b)); };
constexpr auto mul_f = [](U8v a, U8v b) { return pack_low_f16(low_f16(a) * low_f16(b)); };
constexpr auto min_f = [](U8v a, U8v b) { return pack_low_f16(f(min_number(low_f16_bits(a), low_f16_bits(b)))); };
constexpr auto max_f = [](U8v a, U8v b) { return pack_low_f16(f(max_number(low_f16_bits(a), low_f16_bits(b)))); };
constexpr auto min_f_num = [](U8v a, U8v b) { return pack_low_f16(f(min_num(u(low_f16(a)), u(low_f16(b))))); };
constexpr auto max_f_num = [](U8v a, U8v b) { return pack_low_f16(f(max_num(u(low_f16(a)), u(low_f16(b))))); };
constexpr auto minimum3 = [](U8v a, U8v b, U8v c) {
  return pack_low_f16(f(min_nan(min_nan(u(low_f16(a)), u(low_f16(b))), u(low_f16(c)))));
};
constexpr auto maximum3 = [](U8v a, U8v b, U8v c) {
  return pack_low_f16(f(max_nan(max_nan(u(low_f16(a)), u(low_f16(b))), u(low_f16(c)))));
};
constexpr auto min_f_nan = [](U8v a, U8v b) { return pack_low_f16(f(min_nan(u(low_f16(a)), u(low_f16(b))))); };
constexpr auto max_f_nan = [](U8v a, U8v b) { return pack_low_f16(f(max_nan(u(low_f16(a)), u(low_f16(b))))); };
constexpr auto low_i = [](U8v a) { return i(a << 16) >> 16; };
constexpr auto low_u = [](U8v a) { return a & 0xffff; };
constexpr auto add_i = [](U8v a, U8v b) { return a + b; };
constexpr auto sub_i = [](U8v a, U8v b) { return a - b; };
constexpr auto mul_lo = [](U8v a, U8v b) { return a * b; };
constexpr auto mad_i = [](U8v a, U8v b, U8v c) { return a * b + c; };
constexpr auto lshlrev = [](U8v a, U8v b) { return b << (a & 15); };
constexpr auto lshrrev = [](U8v a, U8v b) { return low_u(b) >> (a & 15); };
constexpr auto ashrrev = [](U8v a, U8v b) { return u(low_i(b) >> i(a & 15)); };
constexpr auto min_u = [](U8v a, U8v b) { return __builtin_elementwise_min(low_u(a), low_u(b)); };
constexpr auto max_u = [](U8v a, U8v b) { return __builtin_elementwise_max(low_u(a), low_u(b)); };
constexpr auto min_i = [](U8v a, U8v b) { return u(__builtin_elementwise_min(low_i(a), low_i(b))); };
constexpr auto max_i = [](U8v a, U8v b) { return u(__builtin_elementwise_max(low_i(a), low_i(b))); };

/// Pairs of f32: each result dword picks a dword of each operand pair.
template <int sources, auto op>
void pair_f32(Wave& w, const Code& c) {
  const u32* rows[3] = {};
  for (int n = 0; n < sources; ++n) rows[n] = source_row(w, c, n);
  const auto operand = [&](int slot, bool high, int g) {
    const u8 select = high ? c.inst->op_sel_hi : c.inst->op_sel;
    const u8 negate = high ? c.inst->neg_hi : c.inst->neg;
    const U8v x = load8(rows[slot] + kLanes * (select >> slot & 1), g);
    return x ^ u32(negate >> slot & 1) << 31;
  };
  // Both results are computed before either is written: a result may overlay an operand.
  for (int g = 0; g < 8; ++g) {
    const u32 byte = w.exec() >> (8 * g) & 0xff;
    const I8v mask = spread_mask(byte);
    U8v results[2];
    for (int high = 0; high < 2; ++high) {
      const U8v a = operand(0, high, g), b = operand(1, high, g);
      if constexpr (sources == 2) results[high] = op(a, b);
      if constexpr (sources == 3) results[high] = op(a, b, operand(2, high, g));
    }
    for (int high = 0; high < 2; ++high) {
      u32* d = w.v[c.dst + high];
      store8(d, g, choose(mask, results[high], load8(d, g)));
    }
  }
}
constexpr auto add_f32 = [](U8v a, U8v b) { return settle(f(a) + f(b), a, b); };
constexpr auto mul_f32 = [](U8v a, U8v b) { return settle(f(a) * f(b), a, b); };
constexpr auto fma_f32 = [](U8v a, U8v b, U8v c) {
  return settle(__builtin_elementwise_fma(f(a), f(b), f(c)), a, b, c);
};

/// v_pk_mov_b32: the low result from src0, the high one from src1.
void pk_mov(Wave& w, const Code& c) {
  const u32* low = source_row(w, c, 0) + kLanes * (c.inst->op_sel & 1);
  const u32* high = source_row(w, c, 1) + kLanes * (c.inst->op_sel >> 1 & 1);
  u32 *d0 = w.v[c.dst], *d1 = w.v[c.dst + 1];
  each_lane(w, [&](int l) {
    const u32 first = low[l], second = high[l];
    d0[l] = first;
    d1[l] = second;
  });
}

enum class MixResult : u8 { F32, Low, High };

/// Mixed multiply-add: op_sel_hi says an operand is f16, op_sel which half. An inline float has the
/// encoding of the operand that it stands for.
template <MixResult result>
void fma_mix(Wave& w, const Code& c) {
  const u32* rows[3];
  for (int n = 0; n < 3; ++n) rows[n] = source_row(w, c, n);
  u32* d = w.v[c.dst];
  const Inst& inst = *c.inst;
  const auto inline_float = [&](int n) {
    return inst.src[n].kind == Kind::Constant && inst.src[n].literal == Literal::InlineFloat;
  };
  each_lane(w, [&](int l) {
    float x[3];
    for (int n = 0; n < 3; ++n) {
      u32 bits = rows[n][l];
      const bool narrow = (inst.op_sel_hi >> n & 1) != 0, high = (inst.op_sel >> n & 1) != 0;
      if (narrow && inline_float(n)) bits = to_f16(bits_as<float>(bits));
      x[n] = narrow ? from_f16(static_cast<u16>(bits >> (high ? 16 : 0))) : bits_as<float>(bits);
      if ((inst.abs >> n & 1) != 0) x[n] = __builtin_fabsf(x[n]);
      if ((inst.neg >> n & 1) != 0) x[n] = -x[n];
    }
    float value = __builtin_fmaf(x[0], x[1], x[2]);
    if (inst.clamp) value = value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f;
    if constexpr (result == MixResult::F32) d[l] = bits_as<u32>(value);
    if constexpr (result == MixResult::Low) d[l] = (d[l] & 0xffff0000) | to_f16(value);
    if constexpr (result == MixResult::High) d[l] = (d[l] & 0xffff) | u32{to_f16(value)} << 16;
  });
}

/// Dot products of integer fields with an integer accumulator.
template <class Acc, int bits>
Acc field(u32 word, int n) {
  const u32 raw = word << (32 - bits - bits * n);
  if constexpr (std::is_signed_v<Acc>) return static_cast<i32>(raw) >> (32 - bits);
  return raw >> (32 - bits);
}
template <class Acc, int bits>
i64 dot_exact(u32 a, u32 b, Acc c) {
  i64 sum = c;
  for (int n = 0; n < 32 / bits; ++n) sum += i64{field<Acc, bits>(a, n)} * field<Acc, bits>(b, n);
  return sum;
}
template <class Acc, int bits>
constexpr auto dot_int = [](u32 a, u32 b, Acc c) { return static_cast<Acc>(dot_exact<Acc, bits>(a, b, c)); };
template <class Acc, int bits>
constexpr auto dot_sat = [](u32 a, u32 b, Acc c) { return saturated<Acc>(dot_exact<Acc, bits>(a, b, c)); };
constexpr auto dot2_f16 = [](u32 a, u32 b, float c) {
  const float low = from_f16(static_cast<u16>(a)) * from_f16(static_cast<u16>(b));
  return __builtin_fmaf(from_f16(static_cast<u16>(a >> 16)), from_f16(static_cast<u16>(b >> 16)), low + c);
};
constexpr auto dot2_bf16 = [](u32 a, u32 b, float c) {
  const float low = from_bf16(static_cast<u16>(a)) * from_bf16(static_cast<u16>(b));
  return __builtin_fmaf(from_bf16(static_cast<u16>(a >> 16)), from_bf16(static_cast<u16>(b >> 16)), low + c);
};
/// The dot products as VOP3P, whose halves may be picked and negated.
template <class Acc, auto op>
void dot(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  alignas(32) u32 x[8], y[8];
  const bool whole = c.inst->row->allowed.op_sel_hi == 0;  // RDNA's integer forms have no op_sel
#pragma clang loop unroll(disable)
  for (int g = 0; g < 8; ++g) {
    store8(x, 0, whole ? load8(a, g) : pick_halves(c, 0, load8(a, g)));
    store8(y, 0, whole ? load8(b, g) : pick_halves(c, 1, load8(b, g)));
    for (int n = 0; n < 8; ++n) {
      const int l = 8 * g + n;
      if ((w.exec() >> l & 1) != 0) set_lane<Acc>(d, l, op(x[n], y[n], get_lane<Acc>(e, l)));
    }
  }
}

constexpr auto clip_i = [](I8v x) {
  return u(__builtin_elementwise_min(__builtin_elementwise_max(x, I8v(-32768)), I8v(32767)));
};
constexpr auto clip_u = [](I8v x) {
  return u(__builtin_elementwise_min(__builtin_elementwise_max(x, I8v(0)), I8v(65535)));
};
constexpr auto add_i_sat = [](U8v a, U8v b) { return clip_i(low_i(a) + low_i(b)); };
constexpr auto sub_i_sat = [](U8v a, U8v b) { return clip_i(low_i(a) - low_i(b)); };
constexpr auto add_u_sat = [](U8v a, U8v b) { return clip_u(i(low_u(a) + low_u(b))); };
constexpr auto sub_u_sat = [](U8v a, U8v b) { return clip_u(i(low_u(a) - low_u(b))); };
constexpr auto mad_i_sat = [](U8v a, U8v b, U8v c) { return clip_i(low_i(a) * low_i(b) + low_i(c)); };
constexpr auto clip_wide_u = [](U8v x) { return __builtin_elementwise_min(x, U8v(65535)); };
constexpr auto mad_u_sat = [](U8v a, U8v b, U8v c) {  // at most 2^32 - 2^16
  return clip_wide_u(low_u(a) * low_u(b) + low_u(c));
};
constexpr auto mul_u_sat = [](U8v a, U8v b) { return clip_wide_u(low_u(a) * low_u(b)); };

/// The forms that saturate (clamp).
constexpr HandlerRow kSaturating[] = {
    {Op::v_pk_add_i16, halves2<add_i_sat>},
    {Op::v_pk_sub_i16, halves2<sub_i_sat>},
    {Op::v_pk_add_u16, halves2<add_u_sat>},
    {Op::v_pk_sub_u16, halves2<sub_u_sat>},
    {Op::v_pk_mad_i16, halves3<mad_i_sat>},
    {Op::v_pk_mad_u16, halves3<mad_u_sat>},
    {Op::v_pk_mul_lo_u16, halves2<mul_u_sat>},
    {Op::v_dot2_i32_i16, dot<i32, dot_sat<i32, 16>>},
    {Op::v_dot2_u32_u16, dot<u32, dot_sat<u32, 16>>},
    {Op::v_dot4_i32_i8, dot<i32, dot_sat<i32, 8>>},
    {Op::v_dot4_u32_u8, dot<u32, dot_sat<u32, 8>>},
    {Op::v_dot8_i32_i4, dot<i32, dot_sat<i32, 4>>},
    {Op::v_dot8_u32_u4, dot<u32, dot_sat<u32, 4>>},
    {Op::v_dot2c_i32_i16, lane2_into<i32, u32, u32, dot_sat<i32, 16>>},
    {Op::v_dot4c_i32_i8, lane2_into<i32, u32, u32, dot_sat<i32, 8>>},
    {Op::v_dot8c_i32_i4, lane2_into<i32, u32, u32, dot_sat<i32, 4>>},
};

constexpr HandlerRow kPackedRows[] = {
    {Op::v_pk_fma_f16, halves3<fma_f>},
    {Op::v_pk_add_f16, halves2<add_f>},
    {Op::v_pk_mul_f16, halves2<mul_f>},
    {Op::v_pk_min_f16, halves2<min_f>},
    {Op::v_pk_max_f16, halves2<max_f>},
    {Op::v_pk_min_num_f16, halves2<min_f_num>},
    {Op::v_pk_max_num_f16, halves2<max_f_num>},
    {Op::v_pk_minimum3_f16, halves3<minimum3>},
    {Op::v_pk_maximum3_f16, halves3<maximum3>},
    {Op::v_pk_minimum_f16, halves2<min_f_nan>},
    {Op::v_pk_maximum_f16, halves2<max_f_nan>},
    {Op::v_pk_mad_i16, halves3<mad_i>},
    {Op::v_pk_mad_u16, halves3<mad_i>},
    {Op::v_pk_mul_lo_u16, halves2<mul_lo>},
    {Op::v_pk_add_i16, halves2<add_i>},
    {Op::v_pk_add_u16, halves2<add_i>},
    {Op::v_pk_sub_i16, halves2<sub_i>},
    {Op::v_pk_sub_u16, halves2<sub_i>},
    {Op::v_pk_lshlrev_b16, halves2<lshlrev>},
    {Op::v_pk_lshrrev_b16, halves2<lshrrev>},
    {Op::v_pk_ashrrev_i16, halves2<ashrrev>},
    {Op::v_pk_min_u16, halves2<min_u>},
    {Op::v_pk_max_u16, halves2<max_u>},
    {Op::v_pk_min_i16, halves2<min_i>},
    {Op::v_pk_max_i16, halves2<max_i>},
    {Op::v_pk_fma_f32, pair_f32<3, fma_f32>},
    {Op::v_pk_mul_f32, pair_f32<2, mul_f32>},
    {Op::v_pk_add_f32, pair_f32<2, add_f32>},
    {Op::v_pk_mov_b32, pk_mov},
    {Op::v_fma_mix_f32, fma_mix<MixResult::F32>},
    {Op::v_fma_mixlo_f16, fma_mix<MixResult::Low>},
    {Op::v_fma_mixhi_f16, fma_mix<MixResult::High>},
    {Op::v_dot2_f32_f16, dot<float, dot2_f16>},
    {Op::v_dot2_f32_bf16, dot<float, dot2_bf16>},
    {Op::v_dot2_i32_i16, dot<i32, dot_int<i32, 16>>},
    {Op::v_dot2_u32_u16, dot<u32, dot_int<u32, 16>>},
    {Op::v_dot4_i32_i8, dot<i32, dot_int<i32, 8>>},
    {Op::v_dot4_u32_u8, dot<u32, dot_int<u32, 8>>},
    {Op::v_dot8_i32_i4, dot<i32, dot_int<i32, 4>>},
    {Op::v_dot8_u32_u4, dot<u32, dot_int<u32, 4>>},
    {Op::v_dot2c_f32_f16, lane2_into<float, u32, u32, dot2_f16>},
    {Op::v_dot2c_i32_i16, lane2_into<i32, u32, u32, dot_int<i32, 16>>},
    {Op::v_dot4c_i32_i8, lane2_into<i32, u32, u32, dot_int<i32, 8>>},
    {Op::v_dot8c_i32_i4, lane2_into<i32, u32, u32, dot_int<i32, 4>>},
};

}  // namespace

HandlerRows packed_handlers() { return kPackedRows; }
HandlerRows packed_saturating_handlers() { return kSaturating; }

}  // namespace ckemu
