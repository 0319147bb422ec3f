// SPDX-License-Identifier: MIT
//
// Operands to panels, for any width of vectors. Like matrix_kernels.h this is compiled for the CPUs that have
// vectors of that width: it has templates of the width alone, so that no function is compiled for two CPUs.
#pragma once

#include "ops/matrix_unpack.h"

namespace ckemu {

template <class T, int width>
using Lanes = T __attribute__((ext_vector_type(width)));

template <class V>
CKEMU_INLINE V lanes_at(const u32* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Element `n` of the dword in `width` lanes, as bits of f32 or i32.
template <Type type, int n, int width>
CKEMU_INLINE Lanes<u32, width> element(Lanes<u32, width> dword) {
  using Signed = Lanes<i32, width>;
  using Bits = Lanes<u32, width>;
  if constexpr (type == Type::F32) return dword;
  if constexpr (type == Type::XF32) return dword & 0xffffe000;  // ten bits of mantissa
  if constexpr (type == Type::F16) return u(n != 0 ? high_f16(dword) : low_f16(dword));
  if constexpr (type == Type::BF16) return n != 0 ? dword & 0xffff0000 : dword << 16;
  if constexpr (type == Type::I8) return Bits(Signed(dword << (24 - 8 * n)) >> 24);
  if constexpr (type == Type::U8) return dword >> (8 * n) & 0xff;
  if constexpr (type == Type::I4) return Bits(Signed(dword << (28 - 4 * n)) >> 28);
  if constexpr (type == Type::U4) return dword >> (4 * n) & 0xf;
}

template <Type type, int size, int width, int n>
CKEMU_INLINE void unpack_element(const u32* row, int chunk, u32* to) {
  if constexpr (n < kPerDword<type>) {
    if constexpr (size >= width) {
      for (int v = 0; v < size; v += width) {
        const auto values = element<type, n, width>(lanes_at<Lanes<u32, width>>(row + chunk * size + v));
        std::memcpy(to + n * size + v, &values, sizeof values);
      }
    } else {  // four lanes a block: half a vector
      const auto values = element<type, n, width>(lanes_at<Lanes<u32, width>>(row + chunk / 2 * width));
      std::memcpy(to + n * size, reinterpret_cast<const u32*>(&values) + chunk % 2 * size, 4 * size);
    }
    unpack_element<type, size, width, n + 1>(row, chunk, to);
  }
}

template <int size>
CKEMU_INLINE void unpack_wide_halves(const u32* row, u32* to) {
  alignas(64) constexpr u16 split[32] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                         1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
  for (int v = 0; v < size; v += 16) {
    const __m512i halves = _mm512_permutexvar_epi16(_mm512_load_si512(split), _mm512_loadu_si512(row + v));
    _mm512_storeu_ps(to + v, _mm512_cvtph_ps(_mm512_castsi512_si256(halves)));
    _mm512_storeu_ps(to + size + v, _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1)));
  }
}

template <Type type, int size, int width>
CKEMU_INLINE void unpack_sized(const u32* rows, const PanelShape& shape, Panel& panel) {
  const int dwords = shape.per_lane() / kPerDword<type>;
  for (int chunk = 0; chunk < kLanes / size; ++chunk) {
    u32* to = chunk_place(panel, shape, chunk);
    for (int d = 0; d < dwords; ++d) {
      const u32* row = rows + d * kLanes;
      u32* place = to + d * kPerDword<type> * size;
      if constexpr (type == Type::F16 && width == 16) unpack_wide_halves<size>(row + chunk * size, place);
      else unpack_element<type, size, width, 0>(row, chunk, place);
    }
  }
}

template <Type type, int width>
void unpack(const u32* rows, const PanelShape& shape, Panel& panel) {
  if (shape.size == 32) return unpack_sized<type, 32, width>(rows, shape, panel);
  if (shape.size == 16) return unpack_sized<type, 16, width>(rows, shape, panel);
  if constexpr (width <= 8) return unpack_sized<type, 4, width>(rows, shape, panel);
}

/// The upper halves of the values of 32 codes, each in 16 bits.
template <int>
CKEMU_INLINE __m512i upper_halves(__m512i codes, const __m512i (&table)[8]) {
  __m512i found[4];
  for (int n = 0; n < 4; ++n) found[n] = _mm512_permutex2var_epi16(table[2 * n], codes, table[2 * n + 1]);
  const __mmask32 second = _mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x40));
  const __m512i low = _mm512_mask_blend_epi16(second, found[0], found[1]),
                high = _mm512_mask_blend_epi16(second, found[2], found[3]);
  return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(codes, _mm512_set1_epi16(0x80)), low, high);
}

/// 8-bit floats of 16 lanes at a time.
template <int width>
void unpack_wide_fp8(const u32* rows, const PanelShape& shape, const Fp8Table& values, Panel& panel) {
  __m512i table[8];
  for (int n = 0; n < 8; ++n) table[n] = _mm512_load_si512(values.upper + 32 * n);
  const __m512i bytes = _mm512_set1_epi32(0x00ff00ff), upper = _mm512_set1_epi32(static_cast<i32>(0xffff0000));
  for (int lane = 0; lane < kLanes; lane += width) {
    u32* to = chunk_place(panel, shape, lane / shape.size) + lane % shape.size;
    for (int d = 0; d < shape.per_lane() / 4; ++d) {
      const __m512i codes = _mm512_loadu_si512(rows + d * kLanes + lane);
      const __m512i even = upper_halves<width>(_mm512_and_si512(codes, bytes), table);
      const __m512i odd = upper_halves<width>(_mm512_and_si512(_mm512_srli_epi32(codes, 8), bytes), table);
      u32* place = to + 4 * d * shape.size;
      _mm512_storeu_si512(place, _mm512_slli_epi32(even, 16));
      _mm512_storeu_si512(place + shape.size, _mm512_slli_epi32(odd, 16));
      _mm512_storeu_si512(place + 2 * shape.size, _mm512_and_si512(even, upper));
      _mm512_storeu_si512(place + 3 * shape.size, _mm512_and_si512(odd, upper));
    }
  }
}

}  // namespace ckemu
