// SPDX-License-Identifier: MIT
//
// What one instruction accesses in global memory, for the checks that look at addresses: collected once for all.
#pragma once

#include <algorithm>
#include <span>

#include "core/wave.h"

namespace ckemu {

/// A piece of what one lane accesses: `skip` bytes of the access are before it.
struct GlobalPiece {
  int lane;  // -1: of a scalar instruction
  u64 at;
  u32 bytes;
  u32 skip;
};

/// The most pieces that an instruction has: of buffers a lane's dwords are one each.
constexpr u32 kMostPieces = 4 * kLanes;

/// What one instruction accesses in global memory: its pieces, in the order of lanes, and where they lie.
class GlobalAccesses {
 public:
  void collect(Wave& wave, const Code& code);

  bool empty() const { return ranges_ == 0; }
  /// What the pieces cover, those of neighbouring lanes together as far as they lie side by side.
  std::span<const AddressRange> ranges() const { return {range_, ranges_}; }
  /// Whether lanes access whole dwords, each behind the one before: of all of them there is one range.
  bool in_a_row() const {
    if (apart_ != 0 || ranges_ != 1 || (bytes_ | range_[0].begin) % 4 != 0) return false;
    return range_[0].end - range_[0].begin == u64{bytes_} * static_cast<u32>(__builtin_popcountll(lanes_));
  }
  u64 lanes() const { return lanes_; }
  /// Of each lane.
  u32 bytes() const { return bytes_; }
  /// Calls `visit(piece)` with each piece until it returns false.
  template <class Visit>
  void each(Visit visit) const {
    for (u32 n = 0; n < apart_; ++n) {
      if (!visit(piece_[n])) return;
    }
    for (u64 left = lanes_; left != 0; left &= left - 1) {
      const int lane = __builtin_ctzll(left);
      for (u32 skip = 0; skip < bytes_; skip += unit_) {
        if (!visit(GlobalPiece{lane, at_[lane] + skip, std::min(unit_, bytes_ - skip), skip})) return;
      }
    }
  }

 private:
  void add_range(u64 at, u32 bytes);
  bool collect_buffer(Wave& wave, const Code& code, u32 bytes);
  void collect_lanes(Wave& wave, const Code& code);
  u32 all_in_a_row() const;

  // As a rule each lane has an address and accesses as many bytes there; what is more complicated is apart.
  u64 lanes_ = 0;
  u64 at_[kLanes];
  u32 bytes_ = 0, unit_ = 0;
  GlobalPiece piece_[kMostPieces];
  u32 apart_ = 0;
  AddressRange range_[kMostPieces];
  u32 ranges_ = 0;
};

}  // namespace ckemu
