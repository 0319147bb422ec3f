// SPDX-License-Identifier: MIT
#include "debug/debugger.h"

#include <immintrin.h>

namespace ckemu {

namespace {

constexpr u64 kAskEach = 1 << 14;        // instructions between questions whether to go on
constexpr u64 kPatience = u64{1} << 26;  // instructions without a change of memory
constexpr u32 kUsualMxcsr = 0x1f80;
constexpr u32 kNowhere = ~u32{0};

bool is_call(const Code* code) {
  return code != nullptr && code->inst != nullptr &&
         (code->inst->op == Op::s_swappc_b64 || code->inst->op == Op::s_call_b64);
}

}  // namespace

Debugger::Debugger(const Launch& launch, std::function<bool()> interrupted)
    : conditions(launch.program->dwords()), execution(launch), interrupted_(interrupted) {
  install_signal_handlers();
}

/// How many instructions the wave has executed that the goal is about.
u64 Debugger::executed() const {
  const LiveGroup* group = execution.live(goal_.group);
  return group != nullptr && goal_.wave < group->executed.size() ? group->executed[goal_.wave] : 0;
}

Reason Debugger::loop(const Condition& holds) {
  u64 progress = execution.progress(), silent = 0;
  for (u64 count = 1;; ++count) {
    Wave* wave = execution.next();
    if (wave == nullptr) return Reason::Ended;
    fault_frame()->wave = wave;
    if (const Reason reason = holds(*wave); reason != Reason::None) return reason;
    if (count % kAskEach == 0 && interrupted_()) return Reason::Interrupt;
    const bool focus = is_focus(*wave);
    execution.step();
    if (focus && wave->state == WaveState::Ended && goal_.until == Until::Line) return Reason::WaveEnded;
    silent = execution.progress() == progress ? silent + 1 : 0;
    progress = execution.progress();
    if (silent > kPatience) return Reason::Stuck;
  }
}

/// Runs until `holds` gives a reason before an instruction.
Stop Debugger::forward(const Condition& holds) {
  FaultFrame frame;
  FaultFrame* const outer = fault_frame();
  const u32 before = _mm_getcsr();
  fault_frame() = &frame;
  _mm_setcsr(kUsualMxcsr);
  Stop stop;
  if (sigsetjmp(frame.landing, 0) == 0) {
    stop.reason = loop(holds);
    if (stop.reason == Reason::Ended && execution.fault().kind != FaultKind::None) stop.reason = Reason::Fault;
  } else {
    execution.fail(frame.fault);
    stop.reason = Reason::Fault;
  }
  _mm_setcsr(before);
  fault_frame() = outer;
  if (stop.reason == Reason::Breakpoint) stop.breakpoint = hit_;
  return stop;
}

Reason Debugger::at_breakpoint(Wave& wave) {
  const Breakpoint* breakpoint = conditions.at(wave, execution.turn().number);
  if (breakpoint == nullptr) return Reason::None;
  hit_ = breakpoint->number;
  return Reason::Breakpoint;
}

Stop Debugger::to_breakpoint() {
  const u64 origin = has_run_ ? execution.steps() : kAny;  // where it has stopped it does not stop again
  return forward([this, origin](Wave& w) { return execution.steps() == origin ? Reason::None : at_breakpoint(w); });
}

Stop Debugger::to_count(u64 count) {
  const LiveGroup* group = execution.live(goal_.group);
  if (group == nullptr || execution.fault().kind != FaultKind::None || executed() > count) execution.restart();
  return forward([this, count](Wave& w) { return is_focus(w) && executed() >= count ? Reason::Step : Reason::None; });
}

Stop Debugger::to_step(u64 step) {
  if (step < execution.steps() || execution.fault().kind != FaultKind::None) execution.restart();
  return forward([this, step](Wave&) { return execution.steps() >= step ? Reason::Step : Reason::None; });
}

Stop Debugger::to_line() {
  const LiveGroup* group = execution.live(goal_.group);
  if (group == nullptr || goal_.wave >= group->group.waves.size()) return {Reason::WaveEnded};
  const Wave& focus = group->group.waves[goal_.wave];
  if (focus.state == WaveState::Ended) return {Reason::WaveEnded};
  const u64 origin = executed();
  const u32 line = conditions.line_at(focus.next->slot);
  u32 behind = kNowhere;  // of the call that is run over
  return forward([this, origin, line, &behind](Wave& w) {
    if (!is_focus(w) || executed() == origin) return Reason::None;
    if (const Reason reason = at_breakpoint(w); reason != Reason::None) return reason;
    if (goal_.count != 0 && behind == kNowhere && is_call(w.current))
      behind = w.current->slot + w.current->inst->bytes / 4;
    if (behind != kNowhere && w.next->slot != behind) return Reason::None;
    behind = kNowhere;
    const u32 now = conditions.line_at(w.next->slot);
    return now != 0 && now != line ? Reason::Step : Reason::None;
  });
}

Stop Debugger::back_to_line() {
  const u64 origin = executed();
  u64 last = kAny;
  execution.restart();
  forward([this, origin, &last](Wave& w) {
    if (!is_focus(w)) return Reason::None;
    if (executed() >= origin) return Reason::Step;
    if (conditions.line_at(w.next->slot) != 0 && conditions.arrives(w)) last = executed();
    return Reason::None;
  });
  const Stop stop = to_count(last == kAny ? 0 : last);
  return last == kAny && stop.reason == Reason::Step ? Stop{Reason::Start} : stop;
}

Stop Debugger::back_to_breakpoint() {
  const u64 origin = execution.steps();
  u64 last = kAny, hit = 0;
  execution.restart();
  forward([this, origin, &last, &hit](Wave& w) {
    if (execution.steps() >= origin) return Reason::Step;
    if (at_breakpoint(w) == Reason::Breakpoint) {
      last = execution.steps();
      hit = hit_;
    }
    return Reason::None;
  });
  const Stop stop = to_step(last == kAny ? 0 : last);
  if (stop.reason != Reason::Step) return stop;
  return last == kAny ? Stop{Reason::Start} : Stop{Reason::Breakpoint, hit};
}

const Stop& Debugger::run(const Goal& goal) {
  goal_ = goal;
  stop_ = towards(goal);
  has_run_ = true;
  return stop_;
}

Stop Debugger::towards(const Goal& goal) {
  switch (goal.until) {
    case Until::Breakpoint: return to_breakpoint();
    case Until::Count: return to_count(goal.count);
    case Until::Line: return to_line();
    case Until::LineBefore: return back_to_line();
    case Until::BreakpointBefore: return back_to_breakpoint();
    case Until::Step: return to_step(goal.count);
    case Until::End: return forward([](Wave&) { return Reason::None; });
  }
  return {};
}

}  // namespace ckemu
