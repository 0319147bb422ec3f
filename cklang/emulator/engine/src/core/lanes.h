// SPDX-License-Identifier: MIT
//
// Operand access and the loops over lanes that vector handlers are made of. A handler body is a
// function over 8 lanes at a time (`V8`) or over one lane; the templates here add operand fetch,
// the exec mask and the loop.
#pragma once

#include <immintrin.h>

#include "core/program.h"
#include "core/wave.h"

namespace ckemu {

using U8v = u32 __attribute__((ext_vector_type(8)));
using I8v = i32 __attribute__((ext_vector_type(8)));
using F8v = float __attribute__((ext_vector_type(8)));
using U16x16 = u16 __attribute__((ext_vector_type(16)));
using I16x16 = i16 __attribute__((ext_vector_type(16)));

#define CKEMU_INLINE inline __attribute__((always_inline))

CKEMU_INLINE F8v f(U8v bits) { return __builtin_bit_cast(F8v, bits); }
CKEMU_INLINE I8v i(U8v bits) { return __builtin_bit_cast(I8v, bits); }
CKEMU_INLINE U8v u(F8v value) { return __builtin_bit_cast(U8v, value); }
CKEMU_INLINE U8v u(I8v value) { return __builtin_bit_cast(U8v, value); }

CKEMU_INLINE U8v load8(const u32* row, int group) { return *reinterpret_cast<const U8v*>(row + 8 * group); }
CKEMU_INLINE void store8(u32* row, int group, U8v value) { *reinterpret_cast<U8v*>(row + 8 * group) = value; }
/// All ones in the lanes whose bit of `byte` is set.
CKEMU_INLINE I8v spread_mask(u32 byte) {
  const I8v bit = {1, 2, 4, 8, 16, 32, 64, 128};
  return (I8v(static_cast<i32>(byte)) & bit) != 0;
}
CKEMU_INLINE U8v choose(I8v mask, U8v yes, U8v no) {
  return __builtin_bit_cast(U8v, _mm256_blendv_epi8(__builtin_bit_cast(__m256i, no), __builtin_bit_cast(__m256i, yes),
                                                    __builtin_bit_cast(__m256i, mask)));
}
CKEMU_INLINE u32 mask_bits(I8v mask) { return static_cast<u32>(_mm256_movemask_ps(__builtin_bit_cast(__m256, mask))); }

/// The value of a read-only scalar source.
u64 special_value(const Wave& wave, u16 which);

CKEMU_INLINE u32 scalar32(const Wave& w, const Source& source) {
  if (source.kind == Kind::Sgpr) return w.s[source.index];
  if (source.kind == Kind::Constant) return source.row[0];
  return static_cast<u32>(special_value(w, source.index));
}
CKEMU_INLINE u64 scalar64(const Wave& w, const Source& source) {
  if (source.kind == Kind::Sgpr) return w.sgpr64(source.index);
  if (source.kind == Kind::Constant) return source.row[0] | u64{source.row[kLanes]} << 32;
  return special_value(w, source.index);
}

/// Spreads a scalar source over lanes, `dwords` rows one after the other.
const u32* spread_scalar(Wave& wave, const Source& source, int slot);

/// The lanes of source `slot`: row after row for wide operands.
CKEMU_INLINE const u32* source_row(Wave& w, const Code& c, int slot) {
  const Source& source = c.src[slot];
  if (source.kind == Kind::Vgpr) [[likely]]
    return w.v[source.index];
  if (source.kind == Kind::Constant) return source.row;
  return spread_scalar(w, source, slot);
}

/// Calls `body(group) -> U8v` for 8 lanes at a time and writes the lanes that exec enables.
template <class Body>
CKEMU_INLINE void write_lanes(Wave& w, u32* row, Body body) {
  const u64 exec = w.exec();
  if (exec == ~u64{0}) [[likely]] {
    for (int g = 0; g < 8; ++g) store8(row, g, body(g));
    return;
  }
#pragma clang loop unroll(disable)
  for (int g = 0; g < 8; ++g) {
    const u32 byte = exec >> (8 * g) & 0xff;
    if (byte == 0) continue;
    store8(row, g, choose(spread_mask(byte), body(g), load8(row, g)));
  }
}

/// Calls `body(lane)` for each lane that exec enables.
template <class Body>
CKEMU_INLINE void each_lane(const Wave& w, Body body) {
  const u64 exec = w.exec();
  if (exec == ~u64{0}) [[likely]] {
    for (int lane = 0; lane < kLanes; ++lane) body(lane);
    return;
  }
  for (u64 left = exec; left != 0; left &= left - 1) body(__builtin_ctzll(left));
}

/// The same with the body once in the code, not twice and unrolled: for bodies that take longer than the loop.
template <class Body>
CKEMU_INLINE void each_lane_once(const Wave& w, Body body) {
#pragma clang loop unroll(disable)
  for (u64 left = w.exec(); left != 0; left &= left - 1) body(__builtin_ctzll(left));
}

// Handlers over 8 lanes of 32-bit registers. `op` is a captureless lambda.

template <auto op>
void map1(Wave& w, const Code& c) {
  const u32* a = source_row(w, c, 0);
  write_lanes(w, w.v[c.dst], [&](int g) { return op(load8(a, g)); });
}
template <auto op>
void map2(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  write_lanes(w, w.v[c.dst], [&](int g) { return op(load8(a, g), load8(b, g)); });
}
template <auto op>
void map3(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *d = source_row(w, c, 2);
  write_lanes(w, w.v[c.dst], [&](int g) { return op(load8(a, g), load8(b, g), load8(d, g)); });
}
/// The third operand is the destination's old value (v_fmac_f32).
template <auto op>
void map2_into(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  u32* d = w.v[c.dst];
  write_lanes(w, d, [&](int g) { return op(load8(a, g), load8(b, g), load8(d, g)); });
}

// The same with the destination's other operands in reverse order are plain lambdas in the tables.

// Handlers over single lanes, for what does not vectorise. Words of 32 or 64 bits by type.

template <class T>
CKEMU_INLINE T get_lane(const u32* row, int lane) {
  if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(T, row[lane] | u64{row[kLanes + lane]} << 32);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, row[lane]);
  } else {
    return __builtin_bit_cast(T, static_cast<u16>(row[lane]));
  }
}
template <class T>
CKEMU_INLINE void set_lane(u32* row, int lane, T value) {
  if constexpr (sizeof(T) == 8) {
    const u64 bits = __builtin_bit_cast(u64, value);
    row[lane] = static_cast<u32>(bits);
    row[kLanes + lane] = static_cast<u32>(bits >> 32);
  } else if constexpr (sizeof(T) == 4) {
    row[lane] = __builtin_bit_cast(u32, value);
  } else {
    row[lane] = __builtin_bit_cast(u16, value);  // the high half becomes zero
  }
}

template <class R, class A, auto op>
void lane1(Wave& w, const Code& c) {
  const u32* a = source_row(w, c, 0);
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) { set_lane<R>(d, l, op(get_lane<A>(a, l))); });
}
template <class R, class A, class B, auto op>
void lane2(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) { set_lane<R>(d, l, op(get_lane<A>(a, l), get_lane<B>(b, l))); });
}
template <class R, class A, class B, class C, auto op>
void lane3(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) { set_lane<R>(d, l, op(get_lane<A>(a, l), get_lane<B>(b, l), get_lane<C>(e, l))); });
}
template <class R, class A, class B, auto op>
void lane2_into(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) { set_lane<R>(d, l, op(get_lane<A>(a, l), get_lane<B>(b, l), get_lane<R>(d, l))); });
}

}  // namespace ckemu
