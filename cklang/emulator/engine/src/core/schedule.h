// SPDX-License-Identifier: MIT
//
// Orders in which a GPU may execute a kernel, other than the usual one here: the waves of a workgroup take
// turns in another order and of other lengths, and memory operations take effect later than they are issued,
// at the latest at the wait that covers them. Each number is one such order, the same in each run; 0 is the
// usual one.
#pragma once

#include "core/base.h"

namespace ckemu {

/// The order of launches from now on.
u64 schedule();
void set_schedule(u64 number);

/// Under this order every memory operation takes effect as late as it may; under others some do.
constexpr u64 kLatest = 1;

/// Random numbers that depend on the order and a workgroup alone.
class Dice {
 public:
  Dice() = default;
  Dice(u64 schedule, u64 workgroup) : state_(mixed(schedule) + mixed(~workgroup)) {}
  /// A number below `limit`.
  u32 below(u32 limit) {
    state_ += 0x9e3779b97f4a7c15;
    return static_cast<u32>(mixed(state_) >> 32) % limit;
  }

 private:
  static u64 mixed(u64 bits) {
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return bits ^ bits >> 31;
  }
  u64 state_ = 0;
};

/// Instructions until another workgroup gets its turn.
inline i64 next_slice(u64 schedule, Dice& dice) {
  constexpr i64 usual = 1 << 18;
  constexpr u32 longest = 1 << 12;  // under another order
  return schedule == 0 ? usual : i64{1} + dice.below(longest);
}

}  // namespace ckemu
