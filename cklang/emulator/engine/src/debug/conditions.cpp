// SPDX-License-Identifier: MIT
#include "debug/conditions.h"

#include <algorithm>

#include "checks/global_access.h"

namespace ckemu {

namespace {

bool is_watch(const Breakpoint& each) { return each.where == Where::Write || each.where == Where::Access; }

bool touches(const Breakpoint& watch, Wave& wave, const Code& code) {
  if (code.inst == nullptr || (watch.where == Where::Write && !changes_memory(*code.inst))) return false;
  bool inside = false;
  each_global_piece(wave, code, [&](const GlobalPiece& piece) {
    const bool lane = watch.lane == kAny || piece.lane < 0 || static_cast<u64>(piece.lane) == watch.lane;
    inside |= lane && piece.at < watch.to && piece.at + piece.bytes > watch.from;
  });
  return inside;
}

}  // namespace

void Conditions::set_breakpoints(const std::vector<Breakpoint>& breakpoints) {
  breakpoints_ = breakpoints;
  mark();
}

void Conditions::set_lines(const std::vector<u32>& lines) {
  std::copy_n(lines.begin(), std::min(lines.size(), lines_.size()), lines_.begin());
  mark();
}

void Conditions::mark() {
  std::fill(stops_.begin(), stops_.end(), u8{0});
  watches_ = std::any_of(breakpoints_.begin(), breakpoints_.end(), is_watch);
  for (const Breakpoint& each : breakpoints_) {
    if (each.where == Where::Code && each.from < stops_.size()) stops_[each.from] = 1;
    for (size_t slot = 0; slot < stops_.size() && each.where == Where::Line; ++slot) {
      if (lines_[slot] == each.from) stops_[slot] = 1;
    }
  }
}

bool Conditions::arrives(const Wave& wave) const {
  const u32 slot = wave.next->slot;
  const Code* before = wave.current;
  return before == nullptr || lines_[before->slot] != lines_[slot] || before->slot >= slot;
}

bool Conditions::holds(const Breakpoint& each, Wave& wave, u64 group) const {
  if (each.group != kAny && each.group != group) return false;
  if (each.wave != kAny && each.wave != wave.id) return false;
  if (each.lane != kAny && (wave.exec() >> (each.lane % kLanes) & 1) == 0) return false;
  const Code& code = *wave.next;
  switch (each.where) {
    case Where::Code: return code.slot == each.from;
    case Where::Line: return lines_[code.slot] == each.from && arrives(wave);
    case Where::Write:
    case Where::Access: return touches(each, wave, code);
  }
  return false;
}

const Breakpoint* Conditions::at(Wave& wave, u64 group) const {
  if (stops_[wave.next->slot] == 0 && !watches_) [[likely]]
    return nullptr;
  for (const Breakpoint& each : breakpoints_) {
    if (holds(each, wave, group)) return &each;
  }
  return nullptr;
}

}  // namespace ckemu
