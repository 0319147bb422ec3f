// SPDX-License-Identifier: MIT
//
// Moving bytes between memory and lanes: what a load or store does with one lane's address, shared
// by LDS, buffer, global, flat and scratch instructions.
#pragma once

#include "core/lanes.h"

namespace ckemu {

/// How a narrow load fills its register: 16-bit halves (D16) keep the other half.
enum class Extend : u8 { Zero, Sign, LowHalf, HighHalf, SignLow, SignHigh };

struct Access {
  u8 bytes;                      // 1, 2, 4, 8, 12, 16
  Extend extend = Extend::Zero;  // stores: HighHalf takes the value from the high half
  constexpr int dwords() const { return (bytes + 3) / 4; }
};

/// Reads one lane's value; consecutive dwords of memory are `stride` bytes apart. Two dwords side by side are one
/// access, as on the GPU: a wave that reads both sees what another has written together.
template <Access access>
CKEMU_INLINE void load_lane(u32* rows, int lane, const u8* from, size_t stride = 4) {
  if constexpr (access.bytes == 8) {
    if (stride == 4)
      return set_lane<u64>(rows, lane, __atomic_load_n(reinterpret_cast<const u64*>(from), __ATOMIC_RELAXED));
  }
  if constexpr (access.bytes >= 4) {
    for (int n = 0; n < access.dwords(); ++n) rows[n * kLanes + lane] = load_as<u32>(from + n * stride);
    return;
  }
  u32 value;
  constexpr bool sign =
      access.extend == Extend::Sign || access.extend == Extend::SignLow || access.extend == Extend::SignHigh;
  if constexpr (access.bytes == 1) {
    value = sign ? static_cast<u32>(static_cast<i32>(load_as<i8>(from))) : *from;
  } else {
    value = sign ? static_cast<u32>(static_cast<i32>(load_as<i16>(from))) : load_as<u16>(from);
  }
  u32& target = rows[lane];
  if constexpr (access.extend == Extend::LowHalf || access.extend == Extend::SignLow) {
    target = (target & 0xffff0000) | (value & 0xffff);
  } else if constexpr (access.extend == Extend::HighHalf || access.extend == Extend::SignHigh) {
    target = (target & 0xffff) | value << 16;
  } else {
    target = value;
  }
}

/// What a load that is out of range delivers.
template <Access access>
CKEMU_INLINE void load_zero(u32* rows, int lane) {
  constexpr u8 zeros[16] = {};
  load_lane<access>(rows, lane, zeros);
}

template <Access access>
CKEMU_INLINE void store_lane(const u32* rows, int lane, u8* to, size_t stride = 4) {
  if constexpr (access.bytes == 8) {
    if (stride == 4) return __atomic_store_n(reinterpret_cast<u64*>(to), get_lane<u64>(rows, lane), __ATOMIC_RELAXED);
  }
  if constexpr (access.bytes >= 4) {
    for (int n = 0; n < access.dwords(); ++n) std::memcpy(to + n * stride, &rows[n * kLanes + lane], 4);
    return;
  }
  const u32 value = access.extend == Extend::HighHalf ? rows[lane] >> 16 : rows[lane];
  std::memcpy(to, &value, access.bytes);
}

/// Four lanes of 16 bytes each into four rows.
CKEMU_INLINE void load_four_b128(u32* rows, int lane, const u8* const from[4]) {
  const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[0]));
  const __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[1]));
  const __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[2]));
  const __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from[3]));
  const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
  const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
  const auto put = [&](int row, __m128i value) {
    _mm_store_si128(reinterpret_cast<__m128i*>(rows + row * kLanes + lane), value);
  };
  put(0, _mm_unpacklo_epi64(ab_low, cd_low));
  put(1, _mm_unpackhi_epi64(ab_low, cd_low));
  put(2, _mm_unpacklo_epi64(ab_high, cd_high));
  put(3, _mm_unpackhi_epi64(ab_high, cd_high));
}
CKEMU_INLINE void store_four_b128(const u32* rows, int lane, u8* const to[4]) {
  const auto get = [&](int row) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(rows + row * kLanes + lane));
  };
  const __m128i a = get(0), b = get(1), c = get(2), d = get(3);
  const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
  const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
  const auto put = [&](int n, __m128i value) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to[n]), value); };
  put(0, _mm_unpacklo_epi64(ab_low, cd_low));
  put(1, _mm_unpackhi_epi64(ab_low, cd_low));
  put(2, _mm_unpacklo_epi64(ab_high, cd_high));
  put(3, _mm_unpackhi_epi64(ab_high, cd_high));
}

/// Loads every enabled lane from `address(lane)`. Addresses have been checked or are allowed to
/// fault; `w.lane` names the lane while its memory is touched.
template <Access access, class Address>
CKEMU_INLINE void load_lanes(Wave& w, u32* rows, Address address) {
  if (access.bytes == 16 && w.exec() == ~u64{0}) {
    for (int lane = 0; lane < kLanes; lane += 4) {
      const u8* const from[4] = {address(lane), address(lane + 1), address(lane + 2), address(lane + 3)};
      w.lane = lane;
      load_four_b128(rows, lane, from);
    }
  } else {
    // Destination rows may hold the address, so it is read before they are written.
    each_lane(w, [&](int lane) {
      const u8* from = address(lane);
      w.lane = lane;
      load_lane<access>(rows, lane, from);
    });
  }
  w.lane = -1;
}
template <Access access, class Address>
CKEMU_INLINE void store_lanes(Wave& w, const u32* rows, Address address) {
  if (access.bytes == 16 && w.exec() == ~u64{0}) {
    for (int lane = 0; lane < kLanes; lane += 4) {
      u8* const to[4] = {address(lane), address(lane + 1), address(lane + 2), address(lane + 3)};
      w.lane = lane;
      store_four_b128(rows, lane, to);
    }
  } else {
    each_lane(w, [&](int lane) {
      u8* to = address(lane);
      w.lane = lane;
      store_lane<access>(rows, lane, to);
    });
  }
  w.lane = -1;
  w.counters->progress++;
}

/// Where m0 says that loads to LDS go: 16 bits, and 18 on GPUs with more than 64 KB.
CKEMU_INLINE u32 lds_base(const Wave& w) {
  return w.s[kM0] & (w.program->family() == Family::Cdna4 ? 0x3ffff : 0xffff);
}

CKEMU_INLINE void count_load(Wave& w, int bytes) {
  w.counters->bytes_loaded += static_cast<u64>(__builtin_popcountll(w.exec())) * bytes;
}
CKEMU_INLINE void count_store(Wave& w, int bytes) {
  w.counters->bytes_stored += static_cast<u64>(__builtin_popcountll(w.exec())) * bytes;
}

}  // namespace ckemu

// The accesses that buffer, flat, global and scratch instructions all have, as rows of a handler table.
// clang-format off
#define CKEMU_ACCESSES(space, load, store)                               \
  {Op::space##_load_ubyte, load<Access{1}>},                             \
  {Op::space##_load_sbyte, load<Access{1, Extend::Sign}>},               \
  {Op::space##_load_ushort, load<Access{2}>},                            \
  {Op::space##_load_sshort, load<Access{2, Extend::Sign}>},              \
  {Op::space##_load_dword, load<Access{4}>},                             \
  {Op::space##_load_dwordx2, load<Access{8}>},                           \
  {Op::space##_load_dwordx3, load<Access{12}>},                          \
  {Op::space##_load_dwordx4, load<Access{16}>},                          \
  {Op::space##_load_ubyte_d16, load<Access{1, Extend::LowHalf}>},        \
  {Op::space##_load_ubyte_d16_hi, load<Access{1, Extend::HighHalf}>},    \
  {Op::space##_load_sbyte_d16, load<Access{1, Extend::SignLow}>},        \
  {Op::space##_load_sbyte_d16_hi, load<Access{1, Extend::SignHigh}>},    \
  {Op::space##_load_short_d16, load<Access{2, Extend::LowHalf}>},        \
  {Op::space##_load_short_d16_hi, load<Access{2, Extend::HighHalf}>},    \
  {Op::space##_store_byte, store<Access{1}>},                            \
  {Op::space##_store_byte_d16_hi, store<Access{1, Extend::HighHalf}>},   \
  {Op::space##_store_short, store<Access{2}>},                           \
  {Op::space##_store_short_d16_hi, store<Access{2, Extend::HighHalf}>},  \
  {Op::space##_store_dword, store<Access{4}>},                           \
  {Op::space##_store_dwordx2, store<Access{8}>},                         \
  {Op::space##_store_dwordx3, store<Access{12}>},                        \
  {Op::space##_store_dwordx4, store<Access{16}>},
// clang-format on
