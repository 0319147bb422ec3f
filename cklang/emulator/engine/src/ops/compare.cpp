// SPDX-License-Identifier: MIT
//
// Vector compares. A compare writes the lanes' bits to an SGPR pair, zero for disabled lanes; cmpx
// also writes them to exec. The sixteen float and eight integer conditions are data below.
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

/// The condition as in the opcode's low four bits: less, equal, greater, unordered.
enum Condition : u32 { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

template <u32 condition, class V, class M>
CKEMU_INLINE M holds(V a, V b) {
  M mask = M(0);
  if constexpr ((condition & kLess) != 0) mask |= a < b;
  if constexpr ((condition & kEqual) != 0) mask |= a == b;
  if constexpr ((condition & kGreater) != 0) mask |= a > b;
  if constexpr ((condition & kUnordered) != 0) mask |= (a != a) | (b != b);
  return mask;
}

/// Lanes that are not enabled are compared too, and left out here.
void deliver(Wave& w, const Code& c, u64 mask, bool into_exec) {
  mask &= w.exec();
  w.set_mask(c.dst, mask);
  if (into_exec) w.set_exec(mask);
}

enum class Lanes : u8 { F16, F32, I16, U16, I32, U32 };

template <Lanes type, u32 condition>
CKEMU_INLINE I8v compare8(U8v a, U8v b) {
  if constexpr (type == Lanes::F32) return holds<condition, F8v, I8v>(f(a), f(b));
  if constexpr (type == Lanes::F16) return holds<condition, F8v, I8v>(low_f16(a), low_f16(b));
  if constexpr (type == Lanes::I32) return holds<condition, I8v, I8v>(i(a), i(b));
  if constexpr (type == Lanes::U32) return holds<condition, U8v, I8v>(a, b);
  if constexpr (type == Lanes::U16) return holds<condition, U8v, I8v>(a & 0xffff, b & 0xffff);
  if constexpr (type == Lanes::I16) return holds<condition, U8v, I8v>(a << 16 ^ 1u << 31, b << 16 ^ 1u << 31);
}

template <Lanes type, u32 condition>
[[gnu::noinline]] u64 compared(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  u64 mask = 0;
  for (int g = 0; g < 8; ++g) {
    mask |= u64{mask_bits(compare8<type, condition>(load8(a, g), load8(b, g)))} << (8 * g);
  }
  return mask;
}
template <Lanes type, u32 condition, bool into_exec>
void compare(Wave& w, const Code& c) {
  deliver(w, c, compared<type, condition>(w, c), into_exec);
}

template <class T, u32 condition>
[[gnu::noinline]] u64 compared_wide(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  u64 mask = 0;
  for (int l = 0; l < kLanes; ++l) {
    const T x = get_lane<T>(a, l), y = get_lane<T>(b, l);
    const bool is = ((condition & kLess) != 0 && x < y) || ((condition & kEqual) != 0 && x == y) ||
                    ((condition & kGreater) != 0 && x > y) || ((condition & kUnordered) != 0 && (x != x || y != y));
    mask |= u64{is} << l;
  }
  return mask;
}
template <class T, u32 condition, bool into_exec>
void compare_wide(Wave& w, const Code& c) {
  deliver(w, c, compared_wide<T, condition>(w, c), into_exec);
}

/// Ten classes: signalling, quiet NaN, -inf, -normal, -denormal, -0, +0, +denormal, +normal, +inf.
u32 class_of(u64 bits, int exponent_bits, int mantissa_bits) {
  const u64 mantissa = bits & ((u64{1} << mantissa_bits) - 1);
  const u64 top = (u64{1} << exponent_bits) - 1;
  const u64 exponent = bits >> mantissa_bits & top;
  const bool negative = (bits >> (mantissa_bits + exponent_bits) & 1) != 0;
  if (exponent == top && mantissa != 0) return 1u << (mantissa >> (mantissa_bits - 1) & 1);
  const int magnitude = exponent == top ? 3 : exponent != 0 ? 2 : mantissa != 0 ? 1 : 0;
  return 1u << (negative ? 5 - magnitude : 6 + magnitude);
}

template <class Bits, int exponent_bits, int mantissa_bits, bool into_exec>
void compare_class(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *wanted = source_row(w, c, 1);
  u64 mask = 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 found = class_of(get_lane<Bits>(a, l), exponent_bits, mantissa_bits);
    mask |= u64{(found & wanted[l]) != 0} << l;
  }
  deliver(w, c, mask, into_exec);
}

// clang-format off
#define FLOAT_CONDITIONS(row, type, x)                                                            \
  row(f, 0, type, x) row(lt, 1, type, x) row(eq, 2, type, x) row(le, 3, type, x)                  \
  row(gt, 4, type, x) row(lg, 5, type, x) row(ge, 6, type, x) row(o, 7, type, x)                  \
  row(u, 8, type, x) row(nge, 9, type, x) row(nlg, 10, type, x) row(ngt, 11, type, x)             \
  row(nle, 12, type, x) row(neq, 13, type, x) row(nlt, 14, type, x) row(tru, 15, type, x)
#define INTEGER_CONDITIONS(row, type, x)                                                          \
  row(f, 0, type, x) row(lt, 1, type, x) row(eq, 2, type, x) row(le, 3, type, x)                  \
  row(gt, 4, type, x) row(ne, 5, type, x) row(ge, 6, type, x) row(t, 7, type, x)
#define NARROW(name, condition, type, lanes)                                                      \
  {Op::v_cmp_##name##_##type, compare<Lanes::lanes, condition, false>},                           \
  {Op::v_cmpx_##name##_##type, compare<Lanes::lanes, condition, true>},
#define WIDE(name, condition, type, element)                                                      \
  {Op::v_cmp_##name##_##type, compare_wide<element, condition, false>},                           \
  {Op::v_cmpx_##name##_##type, compare_wide<element, condition, true>},

constexpr HandlerRow kCompareRows[] = {
    FLOAT_CONDITIONS(NARROW, f16, F16)
    FLOAT_CONDITIONS(NARROW, f32, F32)
    FLOAT_CONDITIONS(WIDE, f64, double)
    INTEGER_CONDITIONS(NARROW, i16, I16)
    INTEGER_CONDITIONS(NARROW, u16, U16)
    INTEGER_CONDITIONS(NARROW, i32, I32)
    INTEGER_CONDITIONS(NARROW, u32, U32)
    INTEGER_CONDITIONS(WIDE, i64, i64)
    INTEGER_CONDITIONS(WIDE, u64, u64)
    {Op::v_cmp_class_f16, compare_class<u16, 5, 10, false>},
    {Op::v_cmpx_class_f16, compare_class<u16, 5, 10, true>},
    {Op::v_cmp_class_f32, compare_class<u32, 8, 23, false>},
    {Op::v_cmpx_class_f32, compare_class<u32, 8, 23, true>},
    {Op::v_cmp_class_f64, compare_class<u64, 11, 52, false>},
    {Op::v_cmpx_class_f64, compare_class<u64, 11, 52, true>},
};
// clang-format on

}  // namespace

HandlerRows compare_handlers() { return kCompareRows; }

}  // namespace ckemu
