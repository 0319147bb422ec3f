// SPDX-License-Identifier: MIT
#include "checks/barriers.h"

#include "core/fault.h"
#include "core/launch.h"
#include "core/workgroup.h"
#include "decode/decode.h"

namespace ckemu {

namespace {

/// The lanes that a wave has begun with.
u64 first_lanes(const Wave& w) {
  const u32 count = std::min<u32>(w.lanes, w.group->launch->threads() - w.id * w.lanes);
  return count == kLanes ? ~u64{0} : (u64{1} << count) - 1;
}

}  // namespace

bool concerns_barriers(Op op) { return op == Op::s_barrier || op == Op::s_barrier_wait || op == Op::s_endpgm; }

void check_barrier(Wave& w, const Code& c) {
  const bool ends = c.inst->op == Op::s_endpgm;
  const u64 lanes = first_lanes(w), missing = lanes & ~w.exec();
  if (!ends && missing != 0) {
    w.lane = __builtin_ctzll(missing);
    raise(w, FaultKind::Instruction,
          "barrier in divergent code: %d of the wave's %d threads execute %s, and the others do not",
          __builtin_popcountll(w.exec()), __builtin_popcountll(lanes), mnemonic(c.inst->op));
  }
  // A split barrier's wait is executed again once all have arrived; the others may be further on by then.
  if (c.inst->op == Op::s_barrier_wait && w.group->phase != w.signalled) return;
  for (const Wave& other : w.group->waves) {
    const bool waits = other.state == WaveState::Barrier && other.current != nullptr && other.current != &c;
    if (waits) {
      Text<768> where;
      describe_code(*w.program, *other.current, where);
      raise(w, FaultKind::Instruction,
            "barrier in divergent code: the wave %s while wave %u of its workgroup waits at %s",
            ends ? "ends" : "comes to this barrier", u32{other.id}, where.c_str());
    }
    if (!ends && other.state == WaveState::Ended) {
      raise(w, FaultKind::Instruction,
            "barrier in divergent code: wave %u of the workgroup has ended and comes to no barrier", u32{other.id});
    }
  }
}

}  // namespace ckemu
