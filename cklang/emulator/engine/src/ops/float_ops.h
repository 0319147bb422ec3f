// SPDX-License-Identifier: MIT
//
// Floating-point rules in which the GPU differs from SSE: the default NaN is positive, minimum and
// maximum prefer numbers and order the zeros, signalling NaNs become quiet.
#pragma once

#include "core/lanes.h"

namespace ckemu {

constexpr u32 kQuietNan = 0x7fc00000;

CKEMU_INLINE I8v is_nan(U8v x) { return f(x) != f(x); }
CKEMU_INLINE I8v is_signalling(U8v x) { return is_nan(x) & ((x & 0x00400000) == 0); }
CKEMU_INLINE U8v quiet(U8v x) { return x | (__builtin_bit_cast(U8v, is_nan(x)) & 0x00400000); }

/// A result whose NaN did not come from an operand is the GPU's default NaN.
CKEMU_INLINE U8v settle(F8v result, U8v a, U8v b) {
  const I8v made = (result != result) & (f(a) == f(a)) & (f(b) == f(b));
  return choose(made, U8v(kQuietNan), u(result));
}
CKEMU_INLINE U8v settle(F8v result, U8v a, U8v b, U8v c) {
  const I8v made = (result != result) & (f(a) == f(a)) & (f(b) == f(b)) & (f(c) == f(c));
  return choose(made, U8v(kQuietNan), u(result));
}

/// Keeps the compiler from fusing a product with the addition that follows.
CKEMU_INLINE F8v separate(F8v product) {
  asm("" : "+x"(product));
  return product;
}

struct MinNumber {
  CKEMU_INLINE U8v operator()(U8v a, U8v b) const {
    const I8v first = (f(a) < f(b)) | ((f(a) == f(b)) & (i(a) < 0)) | is_nan(b);
    return finish(a, b, choose(first & ~is_nan(a), a, b));
  }
  static CKEMU_INLINE U8v finish(U8v a, U8v b, U8v result) {
    result = choose(is_signalling(b) & ~is_signalling(a), b, result);
    result = choose(is_signalling(a), a, result);
    return quiet(result);
  }
};
struct MaxNumber {
  CKEMU_INLINE U8v operator()(U8v a, U8v b) const {
    const I8v first = (f(a) > f(b)) | ((f(a) == f(b)) & (i(a) >= 0)) | is_nan(b);
    return MinNumber::finish(a, b, choose(first & ~is_nan(a), a, b));
  }
};
constexpr MinNumber min_number{};
constexpr MaxNumber max_number{};

/// gfx12: a number wins over a NaN, signalling or not.
constexpr auto min_num = [](U8v a, U8v b) {
  const I8v first = (f(a) < f(b)) | ((f(a) == f(b)) & (i(a) < 0)) | is_nan(b);
  return quiet(choose((first & ~is_nan(a)) | (is_nan(a) & is_nan(b)), a, b));
};
constexpr auto max_num = [](U8v a, U8v b) {
  const I8v first = (f(a) > f(b)) | ((f(a) == f(b)) & (i(a) >= 0)) | is_nan(b);
  return quiet(choose((first & ~is_nan(a)) | (is_nan(a) & is_nan(b)), a, b));
};

struct MinNan {
  CKEMU_INLINE U8v operator()(U8v a, U8v b) const {
    return choose(is_nan(a), quiet(a), choose(is_nan(b), quiet(b), min_number(a, b)));
  }
};
struct MaxNan {
  CKEMU_INLINE U8v operator()(U8v a, U8v b) const {
    return choose(is_nan(a), quiet(a), choose(is_nan(b), quiet(b), max_number(a, b)));
  }
};
constexpr MinNan min_nan{};
constexpr MaxNan max_nan{};

}  // namespace ckemu
