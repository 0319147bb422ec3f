// SPDX-License-Identifier: MIT
#include "checks/checks.h"

#include <cstring>

#include "checks/global_access.h"
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

namespace {

/// Calls `look`, which may raise; where reports do not end a launch, the wave goes on behind it.
template <class Look>
void guarded(Wave& w, const Code& c, Look look) {
  if (!reports_may_pass()) [[likely]] return look();
  FaultFrame& frame = *fault_frame();
  sigjmp_buf outer;
  std::memcpy(&outer, &frame.landing, sizeof outer);
  if (sigsetjmp(frame.landing, 0) == 0) {
    look();
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

}  // namespace

/// Instructions that only compute: waits and hazards are known by their registers.
void Checks::check_plain(Wave& w, const Stretch& stretch) {
  const bool waiting = waits && waits->concern(stretch.registers);
  if (!waiting && (!hazards || hazards->pass(stretch))) [[likely]] return;
  for (u32 n = 0; n < stretch.count; ++n) {
    const Code& c = stretch.first[n];
    w.current = &c;
    guarded(w, c, [&] { check_one(w, w.program->stretches().alone(c)); });
  }
  w.current = stretch.first;
}

/// Waits and hazards of one instruction.
void Checks::check_one(Wave& w, const Stretch& one) {
  const char*& name = fault_frame()->check;
  name = "waits";
  if (waits) waits->before(w, *one.first, one.registers);
  name = "hazards";
  if (hazards && !hazards->pass(one)) hazards->before(w, *one.first);
  name = "";
}

/// One instruction that may access memory.
void Checks::check(Wave& w, const Stretch& one) {
  const Code& c = *one.first;
  const char*& name = fault_frame()->check;
  if (order != nullptr) order->before(w, c);
  const bool global_access = accesses != nullptr && accesses_global(*c.inst);
  name = "waits";
  if (waits) waits->before(w, c, one.registers);
  name = "races";
  if (local != nullptr) local->before(w, c);
  name = "memory";
  if (global_access) accesses->collect(w, c);
  if (global) global->before(w, c, global_access ? accesses : nullptr);
  name = "hazards";
  if (hazards && !hazards->pass(one)) hazards->before(w, c);
  name = "global_races";
  if (between != nullptr) between->before(w, c, global_access ? accesses : nullptr);
  name = "range";
  if (range) check_range(w, c);
  name = "uninitialized";
  if (written && global_access) check_written(w, c, *accesses);
  name = "";
  if (journal != nullptr) note_writes(*journal, w, c);
}

void Checks::check_values(Wave& w, const Code& c) {
  fault_frame()->check = "numeric";
  guarded(w, c, [&] { numeric->before(w, c); });
  fault_frame()->check = "";
}

void Checks::before(Wave& w, const Stretch& stretch) {
  if (record != nullptr) record->before(w, stretch);
  if (stretch.plain && stretch.count > 1) return check_plain(w, stretch);
  guarded(w, *stretch.first, [&] { stretch.plain ? check_one(w, stretch) : check(w, stretch); });
}

void Checks::before(Wave& w, const Code& c) {
  if (covers(c)) {
    ++covered_;
  } else {
    const bool alone = stepwise || (w.mode & kModeSkip) != 0;
    const Stretch& stretch = alone ? w.program->stretches().alone(c) : w.program->stretches().from(c);
    covered_ = &c + 1;
    covered_end_ = &c + stretch.count;
    before(w, stretch);
  }
  if (numeric) check_values(w, c);
}

void check_stretch(Wave* w, const Stretch* stretch) {
  w->current = stretch->first;
  w->checks->before(*w, *stretch);
}

}  // namespace ckemu
