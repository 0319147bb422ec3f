// SPDX-License-Identifier: MIT
//
// Where the lanes of flat, global and scratch instructions find their data. Global addresses are host
// addresses; a flat address in the shared or private aperture means local memory or scratch; scratch is
// dword-interleaved by lane.
#pragma once

#include "core/fault.h"
#include "ops/access.h"

namespace ckemu {

/// Per-lane 64-bit addresses of FLAT and GLOBAL instructions.
struct Addresses {
  const u32 *low, *high;  // high is null for a 32-bit offset to `base`
  u64 base;
  CKEMU_INLINE u64 operator()(int l) const { return base + (high != nullptr ? low[l] | u64{high[l]} << 32 : low[l]); }
};
inline Addresses addresses_of(Wave& w, const Code& c) {
  const u64 offset = static_cast<u64>(static_cast<i64>(c.offset));
  const u32* low = source_row(w, c, 0);
  if (c.src[1].kind == Kind::None) return {low, low + kLanes, offset};
  return {low, nullptr, scalar64(w, c.src[1]) + offset};
}

constexpr size_t kScratchStride = kLanes * 4;

/// Where a lane's bytes begin, the distance of its dwords there, and the place of the first byte in its dword.
struct Place {
  u8* at;
  size_t stride = 4;
  u32 skew = 0;

  /// Whether some dword of the access lies in two of memory, which are apart.
  bool split(u32 bytes) const { return stride != 4 && skew + (bytes < 4 ? bytes : 4) > 4; }
  u8* byte(u32 number) const { return at - skew + (skew + number) / 4 * stride + (skew + number) % 4; }
};

template <Access access>
void load_from(u32* rows, int lane, const Place& place) {
  if (!place.split(access.bytes)) [[likely]]
    return load_lane<access>(rows, lane, place.at, place.stride);
  u8 bytes[access.bytes];
  for (u32 n = 0; n < access.bytes; ++n) bytes[n] = *place.byte(n);
  load_lane<access>(rows, lane, bytes);
}
template <Access access>
void store_to(const u32* rows, int lane, const Place& place) {
  if (!place.split(access.bytes)) [[likely]]
    return store_lane<access>(rows, lane, place.at, place.stride);
  u8 bytes[access.bytes];
  store_lane<access>(rows, lane, bytes);
  for (u32 n = 0; n < access.bytes; ++n) *place.byte(n) = bytes[n];
}

inline Place scratch_place(Wave& w, int lane, u64 offset, u32 bytes) {
  w.lane = lane;
  if (offset + bytes > w.scratch_bytes) {
    raise(w, FaultKind::Address, "scratch access at byte %llu of %u per lane", static_cast<unsigned long long>(offset),
          w.scratch_bytes);
  }
  const u32 skew = offset % 4;
  return {w.scratch + (offset / 4 * kLanes + static_cast<u32>(lane)) * 4 + skew, kScratchStride, skew};
}

struct ScratchOffsets {
  const u32* lanes;  // null without a vector offset
  i64 base;
  CKEMU_INLINE u64 operator()(int l) const {
    return static_cast<u64>(base + (lanes != nullptr ? static_cast<i64>(lanes[l]) : 0));
  }
};
inline ScratchOffsets scratch_offsets(Wave& w, const Code& c) {
  i64 base = c.offset;
  if (c.src[1].kind != Kind::None) base += scalar32(w, c.src[1]);
  return {c.src[0].kind == Kind::None ? nullptr : source_row(w, c, 0), base};
}

inline Place flat_place(Wave& w, int lane, u64 address, u32 bytes) {
  w.lane = lane;
  const u64 aperture = address >> 32;
  if (aperture == kSharedAperture >> 32) {
    const u64 offset = static_cast<u32>(address);
    if (offset + bytes > w.lds_bytes) {
      raise(w, FaultKind::Address, "flat access at byte %llu of %u bytes of LDS",
            static_cast<unsigned long long>(offset), w.lds_bytes);
    }
    return {w.lds + offset};
  }
  if (aperture == kPrivateAperture >> 32) { return scratch_place(w, lane, static_cast<u32>(address), bytes); }
  return {reinterpret_cast<u8*>(address)};
}

}  // namespace ckemu
