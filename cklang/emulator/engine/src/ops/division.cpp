// SPDX-License-Identifier: MIT
//
// The three helpers of IEEE division: scale the operands away from overflow and denormals, finish
// the quotient with the inverse scale, and repair the special cases.
#include <cmath>

#include "ops/division.h"
#include "ops/double_lanes.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = u32;
  static constexpr int mantissa = 23, far = 96, tiny = 23, underflow = -150;
};
template <>
struct Format<double> {
  using Bits = u64;
  static constexpr int mantissa = 52, far = 768, tiny = 53, underflow = -1075;
};

template <class T>
typename Format<T>::Bits raw(T value) {
  return bits_as<typename Format<T>::Bits>(value);
}
template <class T>
constexpr int kTop = sizeof(T) == 4 ? 255 : 2047;
template <class T>
int exponent(T value) {
  return static_cast<int>(raw(value) >> Format<T>::mantissa) & kTop<T>;
}
template <class T>
bool denormal(T value) {
  return value != 0 && exponent(value) == 0;
}
template <class T>
T default_nan() {
  return static_cast<T>(__builtin_nan(""));
}
template <class T>
T quiet(T value) {
  return value + value;
}

/// What a format is scaled by, up or down. A product with a power of two is rounded once, as the C library's scalbn is.
template <class T>
constexpr T kUp = static_cast<T>(sizeof(T) == 4 ? 0x1p64 : 0x1p128);
template <class T>
constexpr T kDown = T(1) / kUp<T>;

template <class T>
struct Scaled {
  T value;
  bool flag;
};

template <class T>
Scaled<T> div_scale(T value, T denominator, T numerator) {
  using F = Format<T>;
  const bool is_denominator = raw(value) == raw(denominator);
  const bool is_numerator = raw(value) == raw(numerator);
  if (numerator == 0 || denominator == 0) return {default_nan<T>(), false};
  if (exponent(numerator) - exponent(denominator) >= F::far) { return {is_denominator ? value * kUp<T> : value, true}; }
  if (denormal(denominator)) return {value * kUp<T>, false};
  const bool small_inverse = denormal(T(1) / denominator);
  const bool small_quotient = denormal(numerator / denominator) || numerator / denominator == 0;
  if (small_inverse && small_quotient) { return {is_denominator ? value * kDown<T> : value, true}; }
  if (small_inverse) return {value * kDown<T>, false};
  if (small_quotient) return {is_numerator ? value * kUp<T> : value, true};
  if (exponent(numerator) <= F::tiny) return {value * kUp<T>, false};
  return {value, false};
}

template <class T>
T div_fmas(T a, T b, T c, bool scaled) {
  const T result = std::fma(a, b, c);
  if (!scaled) return result;
  // A quotient above one was scaled down, one below was scaled up.
  return result * (exponent(c) > kTop<T> / 2 ? kUp<T> : kDown<T>);
}

template <class T>
T div_fixup(T quotient, T denominator, T numerator) {
  const bool negative = std::signbit(denominator) != std::signbit(numerator);
  const T infinity = static_cast<T>(__builtin_inf());
  const auto with_sign = [negative](T value) { return negative ? -value : value; };
  if (numerator != numerator) return quiet(numerator);
  if (denominator != denominator) return quiet(denominator);
  const bool both_zero = denominator == 0 && numerator == 0;
  const bool both_infinite = std::isinf(denominator) && std::isinf(numerator);
  if (both_zero || both_infinite) return -default_nan<T>();
  if (denominator == 0 || std::isinf(numerator)) return with_sign(infinity);
  if (std::isinf(denominator) || numerator == 0) return with_sign(T(0));
  if (exponent(numerator) - exponent(denominator) < Format<T>::underflow) return with_sign(T(0));
  // The steps before make NaN of a quotient that overflows.
  return with_sign(quotient == quotient ? std::fabs(quotient) : infinity);
}

// Eight quotients of f32 at a time, where nothing special happens in any lane.

CKEMU_INLINE I8v exponents(U8v x) { return i(x >> 23 & 255); }

/// Where neither operand, inverse nor quotient is zero, denormal, infinite, NaN or far from the other.
CKEMU_INLINE I8v unscaled(U8v denominator, U8v numerator) {
  const I8v d = exponents(denominator), n = exponents(numerator), between = n - d;
  return (d >= 1) & (d <= 252) & (n > 23) & (n <= 254) & (between < 96) & (between >= -125);
}
CKEMU_INLINE I8v ordinary(U8v quotient, U8v denominator, U8v numerator) {
  const I8v d = exponents(denominator), n = exponents(numerator);
  return (d >= 1) & (d <= 254) & (n >= 1) & (n <= 254) & (n - d >= -150) & (f(quotient) == f(quotient));
}

/// Calls `usual(group)`, which says whether it has done 8 lanes at once; else `lane` for those enabled.
template <class Usual, class Lane>
CKEMU_INLINE void each_usual(const Wave& w, Usual usual, Lane lane) {
  const u64 exec = w.exec();
  for (int group = 0; group < kLanes / 8; ++group) {
    const u32 byte = exec >> (8 * group) & 0xff;
    if (byte == 0xff && usual(group)) continue;
    for (u32 left = byte; left != 0; left &= left - 1) lane(8 * group + __builtin_ctz(left));
  }
}

void scale_f32(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  u64 flags = 0;
  const auto usual = [&](int g) {
    if (mask_bits(unscaled(load8(b, g), load8(e, g))) != 0xff) return false;
    store8(d, g, load8(a, g));
    return true;
  };
  each_usual(w, usual, [&](int l) {
    const Scaled<float> scaled = div_scale(get_lane<float>(a, l), get_lane<float>(b, l), get_lane<float>(e, l));
    set_lane<float>(d, l, scaled.value);
    flags |= u64{scaled.flag} << l;
  });
  w.set_mask(c.dst2, flags);
}
void fmas_f32(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  const u64 vcc = w.sgpr64(kVcc);
  u32* d = w.v[c.dst];
  const auto usual = [&](int g) {
    const F8v result = __builtin_elementwise_fma(f(load8(a, g)), f(load8(b, g)), f(load8(e, g)));
    if ((vcc >> (8 * g) & 0xff) != 0 || mask_bits(result == result) != 0xff) return false;
    store8(d, g, u(result));
    return true;
  };
  each_usual(w, usual, [&](int l) {
    set_lane<float>(d, l,
                    div_fmas(get_lane<float>(a, l), get_lane<float>(b, l), get_lane<float>(e, l), (vcc >> l & 1) != 0));
  });
}
void fixup_f32(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  const auto usual = [&](int g) {
    const U8v quotient = load8(a, g), denominator = load8(b, g), numerator = load8(e, g);
    if (mask_bits(ordinary(quotient, denominator, numerator)) != 0xff) return false;
    store8(d, g, (quotient & 0x7fffffff) | ((denominator ^ numerator) & 0x80000000));
    return true;
  };
  each_usual(w, usual, [&](int l) {
    set_lane<float>(d, l, div_fixup(get_lane<float>(a, l), get_lane<float>(b, l), get_lane<float>(e, l)));
  });
}

/// `what` of each enabled lane; which lanes are flagged.
template <class What>
u32 by_lane(u32 enabled, What what) {
  u32 flags = 0;
  for (; enabled != 0; enabled &= enabled - 1) {
    const u32 lane = static_cast<u32>(__builtin_ctz(enabled));
    flags |= u32{what(lane)} << lane;
  }
  return flags;
}
float number(const u32* row, u32 lane) { return bits_as<float>(row[lane]); }

// The same of f64. What is not as usual is NaN to `each_eight`.

CKEMU_INLINE I8w exponents(D8v x) { return __builtin_bit_cast(I8w, x) >> 52 & 2047; }
CKEMU_INLINE D8v where(I8w usual, D8v value) {
  return __builtin_bit_cast(D8v, __builtin_bit_cast(I8w, value) | ~usual);
}

void scale_f64(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* row = w.v[c.dst];
  u64 flags = 0;
  const auto usual = [&](int g) {
    const I8w d = exponents(load8_double(b, g)), n = exponents(load8_double(e, g)), between = n - d;
    const I8w unscaled = (d >= 1) & (d <= 2044) & (n > 53) & (n <= 2046) & (between < 768) & (between >= -1021);
    return where(unscaled, load8_double(a, g));
  };
  each_eight(w, row, usual, [&](int l) {
    const Scaled<double> scaled = div_scale(get_lane<double>(a, l), get_lane<double>(b, l), get_lane<double>(e, l));
    set_lane<double>(row, l, scaled.value);
    flags |= u64{scaled.flag} << l;
  });
  w.set_mask(c.dst2, flags);
}
void fmas_f64(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  const u64 vcc = w.sgpr64(kVcc);
  u32* d = w.v[c.dst];
  const auto usual = [&](int g) {
    const D8v result = __builtin_elementwise_fma(load8_double(a, g), load8_double(b, g), load8_double(e, g));
    return where(I8w((vcc >> (8 * g) & 0xff) != 0 ? 0 : -1), result);
  };
  each_eight(w, d, usual, [&](int l) {
    const bool scaled = (vcc >> l & 1) != 0;
    set_lane<double>(d, l, div_fmas(get_lane<double>(a, l), get_lane<double>(b, l), get_lane<double>(e, l), scaled));
  });
}
void fixup_f64(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* row = w.v[c.dst];
  const auto usual = [&](int g) {
    const D8v quotient = load8_double(a, g), denominator = load8_double(b, g), numerator = load8_double(e, g);
    const I8w d = exponents(denominator), n = exponents(numerator);
    const I8w finite = (d >= 1) & (d <= 2046) & (n >= 1) & (n <= 2046) & (n - d >= -1075);
    constexpr i64 sign = i64{1} << 63;
    const I8w other = __builtin_bit_cast(I8w, denominator) ^ __builtin_bit_cast(I8w, numerator);
    const I8w bits = (__builtin_bit_cast(I8w, quotient) & ~sign) | (other & sign);
    return where(finite, __builtin_bit_cast(D8v, bits));
  };
  each_eight(w, row, usual, [&](int l) {
    set_lane<double>(row, l, div_fixup(get_lane<double>(a, l), get_lane<double>(b, l), get_lane<double>(e, l)));
  });
}

// No step of a division of halves makes NaN of a quotient that overflows.
constexpr auto fixup16 = [](u16 a, u16 b, u16 c) {
  const float quotient = from_f16(a), denominator = from_f16(b), numerator = from_f16(c);
  const float special = div_fixup(1.0f, denominator, numerator);
  return to_f16(quotient != quotient && std::fabs(special) == 1.0f ? quotient
                                                                   : div_fixup(quotient, denominator, numerator));
};

constexpr HandlerRow kDivisionRows[] = {
    {Op::v_div_scale_f32, scale_f32},
    {Op::v_div_scale_f64, scale_f64},
    {Op::v_div_fmas_f32, fmas_f32},
    {Op::v_div_fmas_f64, fmas_f64},
    {Op::v_div_fixup_f32, fixup_f32},
    {Op::v_div_fixup_f64, fixup_f64},
    {Op::v_div_fixup_f16, lane3<u16, u16, u16, u16, fixup16>},
    {Op::v_div_fixup_legacy_f16, lane3<u16, u16, u16, u16, fixup16>},
};

}  // namespace

u32 scale_lanes(u32* result, const u32* a, const u32* b, const u32* c, u32 enabled, u32) {
  return by_lane(enabled, [&](u32 l) {
    const Scaled<float> scaled = div_scale(number(a, l), number(b, l), number(c, l));
    result[l] = raw(scaled.value);
    return scaled.flag;
  });
}
u32 fuse_lanes(u32* result, const u32* a, const u32* b, const u32* c, u32 enabled, u32 scaled) {
  return by_lane(enabled, [&](u32 l) {
    result[l] = raw(div_fmas(number(a, l), number(b, l), number(c, l), (scaled >> l & 1) != 0));
    return false;
  });
}
u32 fix_lanes(u32* result, const u32* a, const u32* b, const u32* c, u32 enabled, u32) {
  return by_lane(enabled, [&](u32 l) {
    result[l] = raw(div_fixup(number(a, l), number(b, l), number(c, l)));
    return false;
  });
}

HandlerRows division_handlers() { return kDivisionRows; }

}  // namespace ckemu
