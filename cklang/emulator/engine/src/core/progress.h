// SPDX-License-Identifier: MIT
//
// What happens in the process. A kernel that waits for something may still get it as long as a count of
// that grows; who waits for launches is told how many of their workgroups have ended.
#pragma once

#include "core/base.h"

namespace ckemu {

inline u64 g_own_progress = 0;
inline u64* g_progress = &g_own_progress;  // or where other processes see it
inline u64* progress_place() { return __atomic_load_n(&g_progress, __ATOMIC_ACQUIRE); }
inline void note_progress() { __atomic_add_fetch(progress_place(), 1, __ATOMIC_RELAXED); }
inline u64 progress() { return __atomic_load_n(progress_place(), __ATOMIC_RELAXED); }
/// From now on the count is in `place`, or in this process alone.
inline void count_progress_in(u64* place) {
  if (place == nullptr) place = &g_own_progress;
  if (place == g_progress) return;
  *place = progress();
  __atomic_store_n(&g_progress, place, __ATOMIC_RELEASE);
}

/// Workgroups of the launches that run now: those that have ended, and all.
inline u64 g_groups_ended = 0, g_groups = 0;

/// The part of one launch in these, while it runs.
class CountedGroups {
 public:
  explicit CountedGroups(u64 total) : total_(total) { __atomic_add_fetch(&g_groups, total_, __ATOMIC_RELAXED); }
  ~CountedGroups() {
    __atomic_sub_fetch(&g_groups, total_, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&g_groups_ended, ended_, __ATOMIC_RELAXED);
  }
  CountedGroups(const CountedGroups&) = delete;
  CountedGroups& operator=(const CountedGroups&) = delete;
  void note_end() {
    __atomic_add_fetch(&ended_, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&g_groups_ended, 1, __ATOMIC_RELAXED);
  }

 private:
  const u64 total_;
  u64 ended_ = 0;
};

}  // namespace ckemu
