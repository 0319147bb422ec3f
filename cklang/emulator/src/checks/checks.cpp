// SPDX-License-Identifier: MIT
#include "checks/checks.h"

#include <cstring>

#include "checks/reports.h"
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

void Checks::check(Wave& w, const Code& c) const {
  const char*& name = fault_frame()->check;
  if (order != nullptr) order->before(w, c);
  const auto run = [&](const char* check, auto& each) {
    name = check;
    each.before(w, c);
  };
  if (waits) run("waits", *waits);
  if (local != nullptr) run("races", *local);
  if (global) run("memory", *global);
  if (hazards) run("hazards", *hazards);
  if (between != nullptr) run("global_races", *between);
  if (numeric) run("numeric", *numeric);
  name = "range";
  if (range) check_range(w, c);
  name = "uninitialized";
  if (written) check_written(w, c);
  name = "";
  if (record != nullptr) record->before(w, c);
  if (journal != nullptr) note_writes(*journal, w, c);
}

void Checks::before(Wave& w, const Code& c) const {
  if (!reports_may_pass()) [[likely]] return check(w, c);
  FaultFrame& frame = *fault_frame();
  sigjmp_buf outer;
  std::memcpy(&outer, &frame.landing, sizeof outer);
  if (sigsetjmp(frame.landing, 0) == 0) {
    check(w, c);
    std::memcpy(&frame.landing, &outer, sizeof outer);
    return;
  }
  std::memcpy(&frame.landing, &outer, sizeof outer);
  if (!passes(frame.fault, w, c)) siglongjmp(frame.landing, 1);
  frame.fault = Fault{};
  frame.check = "";
  frame.wave = &w;
  w.lane = -1;
}

}  // namespace ckemu
