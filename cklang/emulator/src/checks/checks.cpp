// SPDX-License-Identifier: MIT
#include "checks/checks.h"

namespace ckemu {

namespace {

u32 asked = 0;

}  // namespace

u32 checks_asked() { return __atomic_load_n(&asked, __ATOMIC_RELAXED); }
void ask_checks(u32 checks) { __atomic_store_n(&asked, checks, __ATOMIC_RELAXED); }

}  // namespace ckemu
