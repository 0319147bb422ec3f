// SPDX-License-Identifier: MIT
//
// What barriers order among the waves of a workgroup. A barrier orders what a wave did before it arrived
// with what another does once it has passed, but of stores only those that had ended: the first wave must
// have waited for them before it arrived. Reads may still be under way, as they are in kernels of CK Tile:
// local memory takes them in the order in which waves issue them.
#pragma once

#include <vector>

#include "checks/in_flight.h"

namespace ckemu {

/// A memory operation of a wave: its barriers before it, and its number among those of its counter.
struct WaveMoment {
  u32 arrived = 0;
  u32 number = 0;
  u8 wave = 0;
  u8 counter = 0;  // an InFlight::Counter
};

class WaveOrder {
 public:
  WaveOrder(u32 waves, Family family) : waves_(waves), family_(family) {}

  /// Notes the barrier, the wait or the memory operation of a wave. Called before each of them.
  void before(const Wave& wave, const Code& code, const InFlight::Counting& counting);

  /// The current instruction of a wave and its number in a counter: the one that reports name, unless another is asked
  /// for.
  WaveMoment now(const Wave& wave, InFlight::Counter counter = InFlight::kCounters) const;

  enum class Order : u8 {
    Before,     // the earlier operation comes first
    NoBarrier,  // no barrier is between
    NotWaited,  // a barrier is, but the wave arrived there without having waited for the operation
  };
  /// What is between an earlier operation and what `wave` does now.
  Order order(const WaveMoment& earlier, u8 wave) const;
  /// How many barriers all waves have passed.
  u32 passed_by_all() const { return passed_by_all_; }
  /// Whether an operation comes before whatever any other wave does from now on.
  bool over(const WaveMoment& earlier) const;
  /// How a report ends: what is missing between the two.
  void describe(Order order, const WaveMoment& earlier, Text<128>& out) const;

 private:
  struct One {
    u32 passed = 0;                         // barriers
    std::vector<InFlight::Tally> arrivals;  // what had ended, at each barrier
    InFlight under_way;
    u8 counter = 0;  // of the last operation
  };

  void arrive(const Wave& wave, Op barrier);
  void pass(One& one);

  std::vector<One> waves_;
  u32 passed_by_all_ = 0;
  const Family family_;
};

}  // namespace ckemu
