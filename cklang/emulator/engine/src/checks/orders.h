// SPDX-License-Identifier: MIT
//
// Finds kernels whose results depend on the order in which waves, workgroups and memory operations happen to
// come: a launch runs in several orders (core/schedule.h) on the same memory, and the bytes that it has
// written are compared. The memory is left as the usual order has it.
#pragma once

#include <map>

#include "core/launch.h"
#include "core/mutex.h"

namespace ckemu {

/// What a launch writes: the dwords, what they were, and who wrote them last.
class Journal {
 public:
  struct Entry {
    u32 before = 0;
    u32 pc = 0;
  };
  using Entries = std::map<u64, Entry>;

  /// Notes what `code` is about to write.
  void before(Wave& wave, const Code& code);
  /// Writes back what memory held.
  void restore() const;
  const Entries& entries() const { return entries_; }

 private:
  Mutex mutex_;
  Entries entries_;  // by address
};

/// Runs a launch in the usual order and in others; a fault says how results differ.
void run_in_orders(const Launch& launch, LaunchResult& result);

}  // namespace ckemu
