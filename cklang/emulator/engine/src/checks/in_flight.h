// SPDX-License-Identifier: MIT
//
// The memory operations of a wave that are under way, by the counters that count them.
//
//   CDNA   vmcnt    buffer, global and scratch loads and stores; flat ones too
//          lgkmcnt  LDS, scalar loads and messages; flat ones too
//   gfx11  vmcnt    buffer, global, scratch and flat loads
//          vscnt    stores, and atomic operations that return nothing
//          lgkmcnt  as on CDNA
//   gfx12  loadcnt, storecnt, dscnt, kmcnt: loads; stores; LDS; scalar loads and messages. Flat
//          operations are in two
//
// Memory and LDS operations finish in the order of issue; scalar loads in any order, on CDNA flat operations too,
// so that while one is under way only a wait for 0 tells anything. On RDNA LLVM waits for one of several flat loads.
#pragma once

#include <vector>

#include "core/program.h"

namespace ckemu {

class InFlight {
  static constexpr u32 kAny = ~0u;

 public:
  enum Counter : u32 { kMemory, kLocal, kScalar, kStore, kCounters };
  /// The counters of an operation, a bit each, and whether it finishes in order in them.
  struct Counts {
    u32 counters = 0;
    bool ordered = true;
  };
  struct Operation {
    const Code* code;
    u64 number;  // in order of issue, from 1
    bool ordered;
    bool twice;  // in two counters
  };

  /// How many operations a wait leaves, by counter.
  struct Limits {
    u32 left[kCounters] = {kAny, kAny, kAny, kAny};
  };
  /// What an instruction does to counters, and whether it is a barrier.
  struct Counting {
    Counts counts;
    Limits limits;
    bool waits = false, barrier = false;
  };
  static Counts counts_of(const Inst& inst, Family family);
  static Counting counting_of(const Code& code, Family family);
  /// The instruction that waits for a counter, for reports.
  static const char* name_of(Counter counter, Family family);
  /// Of several counters the one that a report names.
  static Counter reported(u32 counters) { return static_cast<Counter>(__builtin_ctz(counters)); }

  /// Ends what an instruction waits for; calls `finished(operation)` with what no counter counts any longer.
  template <class Finished>
  void wait_for(const Limits& limits, Finished finished) {
    for (u32 n = 0; n < kCounters; ++n) wait(static_cast<Counter>(n), limits.left[n], finished);
  }
  /// Adds an operation, which may have to wait for the oldest one; its number.
  template <class Finished>
  u64 start(const Code& code, const Counts& counts, Finished finished) {
    const bool twice = (counts.counters & (counts.counters - 1)) != 0;
    const Operation operation{&code, ++issued_, counts.ordered, twice};
    for (u32 left = counts.counters; left != 0; left &= left - 1) {
      const u32 n = static_cast<u32>(__builtin_ctz(left));
      if (n != kLocal && n != kScalar) wait(static_cast<Counter>(n), kMostOperations - 1, finished);
      queues_[n].add(operation);
      ++begun_.count[n];
    }
    return operation.number;
  }
  bool under_way(u64 number) const;

  /// How many operations each counter has counted.
  struct Tally {
    u32 count[kCounters] = {};
  };
  const Tally& begun() const { return begun_; }
  const Tally& ended() const { return ended_; }

 private:
  static constexpr u32 kMostOperations = 63;  // of memory: the counters go no further; issuing waits
  static Limits limits_of(const Code& code, Family family);
  struct Queue {
    std::vector<Operation> operations;
    size_t first = 0;      // of those that are under way
    size_t size = 0;       // of these
    size_t unordered = 0;  // of these

    void add(const Operation& operation) {
      operations.push_back(operation);
      unordered += !operation.ordered;
      ++size;
    }
    Operation take() {
      const Operation operation = operations[first++];
      --size;
      unordered -= !operation.ordered;
      if (first == operations.size() || first > kMostOperations) {
        operations.erase(operations.begin(), operations.begin() + static_cast<i64>(first));
        first = 0;
      }
      return operation;
    }
  };

  template <class Finished>
  void wait(Counter counter, u32 left, Finished finished) {
    Queue& queue = queues_[counter];
    if (queue.size <= left) return;
    if (left != 0 && queue.unordered != 0) return;
    while (queue.size > left) {
      const Operation operation = queue.take();
      ++ended_.count[counter];
      if (!operation.twice || !under_way(operation.number)) finished(operation);
    }
  }

  Queue queues_[kCounters];
  Tally begun_, ended_;
  u64 issued_ = 0;
};

}  // namespace ckemu
