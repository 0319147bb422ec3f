// SPDX-License-Identifier: MIT
//
// Addresses of buffer accesses through a 128-bit resource descriptor.
#pragma once

#include "core/fault.h"
#include "core/lanes.h"

namespace ckemu {

/// What is out of range: CDNA's rule, or on RDNA that of the descriptor's OOB_SELECT, by its number.
enum class Bounds : u8 { Structure, Index, Empty, Bytes, Cdna };

/// A resource descriptor's fields that addresses depend on.
struct Resource {
  u64 base;
  u32 stride, records;
  bool swizzle, add_lane;
  u32 index_stride, element;
  Bounds bounds;
};

inline Resource resource_of(const Wave& w, const Code& c) {
  const u32* word = &w.s[c.src[1].index];
  constexpr u32 strides[4] = {8, 16, 32, 64};
  constexpr u32 elements[4] = {2, 4, 8, 16};
  if (is_rdna(w.program->family())) [[unlikely]] {
    return {.base = word[0] | u64{word[1] & 0xffff} << 32,
            .stride = word[1] >> 16 & 0x3fff,
            .records = word[2],
            .swizzle = word[1] >> 30 != 0,
            .add_lane = (word[3] >> 23 & 1) != 0,
            .index_stride = strides[word[3] >> 21 & 3],
            .element = elements[word[1] >> 30],
            .bounds = static_cast<Bounds>(word[3] >> 28 & 3)};
  }
  return {.base = word[0] | u64{word[1] & 0xffff} << 32,
          .stride = word[1] >> 16 & 0x3fff,
          .records = word[2],
          .swizzle = (word[1] >> 31) != 0,
          .add_lane = (word[3] >> 23 & 1) != 0,
          .index_stride = strides[word[3] >> 21 & 3],
          .element = elements[word[3] >> 19 & 3],
          .bounds = Bounds::Cdna};
}

/// Everything about one buffer instruction that is the same for all lanes.
struct Buffer {
  Resource resource;
  const u32 *index = nullptr, *offset = nullptr;
  u64 immediate;
  u64 scalar;

  CKEMU_INLINE u64 lane_offset(int l) const { return immediate + (offset != nullptr ? offset[l] : 0); }
  CKEMU_INLINE u64 lane_index(int l) const {
    return (index != nullptr ? index[l] : 0) + (resource.add_lane ? static_cast<u32>(l) : 0);
  }
  bool raw() const {
    return resource.stride == 0 && !resource.swizzle && !resource.add_lane && resource.bounds >= Bounds::Bytes;
  }

  /// Whether `bytes` at `at` of element `number` are out of range.
  bool outside(u64 number, u64 at, u32 bytes) const {
    const Resource& r = resource;
    switch (r.bounds) {
      case Bounds::Structure: return number >= r.records || at + bytes > r.stride;
      case Bounds::Index: return number >= r.records;
      case Bounds::Empty: return r.records == 0;
      case Bounds::Bytes: break;
      case Bounds::Cdna:
        if (r.stride == 0 || (index == nullptr && !r.add_lane)) break;
        return number >= r.records || (r.swizzle && at + bytes > r.stride && !r.add_lane);
    }
    return number * r.stride + at + scalar + bytes > r.records;
  }

  /// Whether `bytes` (4 of a longer access) may lie in two elements of a swizzled buffer, which are apart.
  bool split(int l, u32 bytes) const {
    const u32 whole = resource.element < 4 ? resource.element : 4;
    return resource.swizzle && lane_offset(l) % whole + bytes > whole;
  }

  /// The address of `bytes` at `skip` behind the lane's offset; null if out of range.
  [[gnu::noinline]] u8* place(int l, u32 skip, u32 bytes) const {
    const u64 at = lane_offset(l) + skip, number = lane_index(l);
    const Resource& r = resource;
    if (outside(number, at, bytes)) return nullptr;
    u64 linear = number * r.stride + at;
    if (r.swizzle) {
      linear = (number / r.index_stride * r.stride + at / r.element * r.element) * r.index_stride +
               number % r.index_stride * r.element + at % r.element;
    }
    return reinterpret_cast<u8*>(r.base + scalar + linear);
  }
};

inline Buffer buffer_of(Wave& w, const Code& c) {
  Buffer buffer{.resource = resource_of(w, c),
                .immediate = static_cast<u32>(c.offset),
                .scalar = c.src[2].kind == Kind::None ? 0 : scalar32(w, c.src[2])};
  const u32* address = c.src[0].kind == Kind::None ? nullptr : source_row(w, c, 0);
  if (buffer.resource.bounds == Bounds::Structure && buffer.resource.stride == 0) {
    raise(w, FaultKind::Instruction, "a buffer of structures (OOB_SELECT 0) without a stride is not emulated");
  }
  if (c.inst->idxen) buffer.index = address;
  if (c.inst->offen) buffer.offset = c.inst->idxen ? address + kLanes : address;
  return buffer;
}

}  // namespace ckemu
