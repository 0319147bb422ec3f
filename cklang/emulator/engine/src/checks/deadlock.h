// SPDX-License-Identifier: MIT
//
// Telling a kernel that waits for ever from one that works. Only workgroups that change memory or
// end can let a waiting one go on, so a launch is stuck when, since the last such progress of any
// workgroup, every resident one has used up its time slices without any and no other can start. A
// workgroup that computes silently has new register contents after each slice, one that polls
// returns to old ones: slices of the latter kind count, others count a 64th.
#pragma once

#include <vector>

#include "core/base.h"
#include "core/fault.h"

namespace ckemu {

struct Workgroup;

/// Time slices, over all resident workgroups, and milliseconds that may pass without progress before a
/// launch counts as stuck. The time is for those outside who may still do what it waits for.
u64 patience();
void set_patience(u64 slices);

/// What is known about one workgroup since the launch's last progress.
class Silence {
 public:
  /// Notes that a slice of `group` has changed nothing; `epoch` is the number of the last progress.
  void note(const Workgroup& group, u64 epoch);
  /// Whether the workgroup has waited for `slices` slices since progress number `epoch`.
  bool stuck(u64 epoch, u64 slices) const;

 private:
  u64 epoch_ = 0, since_ = 0, silent_ = 0, repeated_ = 0;
  std::vector<u64> seen_;
};

/// Writes where each wave of `groups` is after `limit` milliseconds.
void describe_timeout(const std::vector<Workgroup*>& groups, u64 limit, Message& out);
/// Writes where each wave of `groups` waits; `unstarted` workgroups have had no room.
void describe_deadlock(const std::vector<Workgroup*>& groups, u64 unstarted, Message& out);

}  // namespace ckemu
