// SPDX-License-Identifier: MIT
#include "core/schedule.h"

#include "core/environment.h"

namespace ckemu {

namespace {

u64& chosen_schedule() {
  static u64 number = environment().schedule;
  return number;
}

}  // namespace

u64 schedule() { return __atomic_load_n(&chosen_schedule(), __ATOMIC_RELAXED); }
void set_schedule(u64 number) { __atomic_store_n(&chosen_schedule(), number, __ATOMIC_RELAXED); }

}  // namespace ckemu
