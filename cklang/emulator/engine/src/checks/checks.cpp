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

u32 checks_asked() { return __atomic_load_n(&asked(), __ATOMIC_RELAXED) | (recording() ? u32{kCheckTiming} : 0); }
void ask_checks(u32 checks) { __atomic_store_n(&asked(), checks, __ATOMIC_RELAXED); }

namespace {

/// Calls `look`, which may raise; where reports do not end a launch, the wave goes on behind it.
template <class Look>
void guarded(Wave& w, const Code& c, Look look) {
  if (!w.checks->may_pass) [[likely]]
    return look();
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
  if (!waiting && (!hazards || hazards->pass(stretch))) [[likely]]
    return;
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
  if (waits) waits->before(w, one);
  name = "hazards";
  if (hazards && !hazards->pass(one)) hazards->before(w, *one.first);
  name = "";
}

/// One instruction that may access memory.
void Checks::check(Wave& w, const Stretch& one) {
  const Code& c = *one.first;
  const u32 concerns = one.concerns & w.asks;
  const bool global_access = (concerns & kGlobalMemory) != 0;
  const char*& name = fault_frame()->check;
  if ((concerns & kOrdering) != 0) order->before(w, c, one.counting);
  name = "waits";
  if (waits) waits->before(w, one);
  name = "races";
  if ((concerns & kLocalMemory) != 0) local->before(w, c);
  name = "memory";
  if (global_access) accesses->collect(w, c);
  if (global_access && global) global->before(w, c, *accesses);
  name = "hazards";
  if (hazards && !hazards->pass(one)) hazards->before(w, c);
  name = "global_races";
  if ((concerns & kFences) != 0) between->fence(w, c);
  if (global_access && between != nullptr) between->before(w, c, *accesses);
  name = "range";
  if (range) check_range(w, c);
  name = "uninitialized";
  if (global_access && written) check_written(w, c, *accesses);
  if (own) own->before(w, c);
  name = "barriers";
  if ((concerns & kBarriers) != 0) check_barrier(w, c);
  name = "";
  if (journal != nullptr) note_writes(*journal, w, c);
}

u8 Checks::asked() const {
  u32 concerns = 0;
  const auto ask = [&concerns](bool asked, u32 concern) { concerns |= asked ? concern : 0; };
  ask(waits || hazards, kRegisters);
  ask(order != nullptr, kOrdering);
  ask(local != nullptr, kLocalMemory);
  ask(accesses != nullptr, kGlobalMemory);
  ask(between != nullptr, kFences);
  ask(range || journal != nullptr || own != nullptr, kAnyMemory);
  ask(record != nullptr, kRecording);
  ask(barriers, kBarriers);
  return static_cast<u8>(concerns);
}

void Checks::check_values(Wave& w, const Code& c) {
  fault_frame()->check = "numeric";
  guarded(w, c, [&] { numeric->before(w, c); });
  fault_frame()->check = "";
}

void Checks::before(Wave& w, const Stretch& stretch) {
  if ((stretch.concerns & w.asks) == 0) return;
  if (record != nullptr) record->before(w, stretch);
  if ((stretch.concerns & w.asks & ~u32{kRecording}) == 0) return;
  if (stretch.plain && stretch.count > 1) return check_plain(w, stretch);
  if (!may_pass) [[likely]]
    return stretch.plain ? check_one(w, stretch) : check(w, stretch);
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
