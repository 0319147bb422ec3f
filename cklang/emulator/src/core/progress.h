// SPDX-License-Identifier: MIT
//
// A count of what happens in the process: a kernel that waits for something may still get it as long
// as the count grows.
#pragma once

#include "core/base.h"

namespace ckemu {

inline u64 g_progress = 0;
inline void note_progress() { __atomic_add_fetch(&g_progress, 1, __ATOMIC_RELAXED); }
inline u64 progress() { return __atomic_load_n(&g_progress, __ATOMIC_RELAXED); }

}  // namespace ckemu
