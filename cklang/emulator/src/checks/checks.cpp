// SPDX-License-Identifier: MIT
#include "checks/checks.h"

#include "core/environment.h"

namespace ckemu {

namespace {

u32& asked() {
  static u32 checks = environment().checks;
  return checks;
}

}  // namespace

u32 checks_asked() {
  return __atomic_load_n(&asked(), __ATOMIC_RELAXED) | (recording() ? u32{kCheckTiming} : 0);
}
void ask_checks(u32 checks) { __atomic_store_n(&asked(), checks, __ATOMIC_RELAXED); }

}  // namespace ckemu
