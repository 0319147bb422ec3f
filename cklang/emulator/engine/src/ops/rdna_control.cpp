// SPDX-License-Identifier: MIT
//
// What RDNA adds to waits, barriers, modes and hardware registers. Memory operations complete at
// once, so the waits by counter, clauses and hints about delays have nothing to do.
#include <ctime>

#include "core/fault.h"
#include "core/workgroup.h"
#include "ops/control.h"
#include "ops/handlers.h"
#include "ops/rdna_registers.h"
#include "ops/scalar_access.h"

namespace ckemu {

namespace {

constexpr i32 kWorkgroupBarrier = -1, kTrapBarrier = -2;

void no_operation(Wave&, const Code&) {}

/// The split barrier: a wave signals that it has come, and later waits for the others.
void check_barrier(Wave& w, i32 number) {
  if (number != kWorkgroupBarrier) {
    raise(w, FaultKind::Instruction, "barrier %d is not emulated; only the workgroup's, %d, is", number,
          kWorkgroupBarrier);
  }
}
i32 barrier_number(const Wave& w, const Source& source) {
  const i32 number = static_cast<i32>(scalar32(w, source));
  return source.kind == Kind::Sgpr ? number & 31 : number;  // m0
}
template <bool wants_first>
void barrier_signal(Wave& w, const Code& c) {
  const i32 number = barrier_number(w, c.src[0]);
  bool first = false;
  // Number 0 is no barrier; the trap handler's takes no signal from others.
  if (number != 0 && number != kTrapBarrier) {
    check_barrier(w, number);
    if (w.signalled == w.group->phase) {
      raise(w, FaultKind::Instruction, "the wave signals a barrier twice without waiting for it");
    }
    first = w.group->signal(w);
  }
  if constexpr (wants_first) w.scc = first;
}
/// Whether there is a barrier, in bit 0; its members from bit 4 on; how many have signalled from bit 16 on.
void barrier_state(Wave& w, const Code& c) {
  check_barrier(w, barrier_number(w, c.src[0]));
  w.s[c.dst] = w.group->arrived << 16 | w.group->living() << 4 | 1;
}
void barrier_wait(Wave& w, const Code& c) {
  check_barrier(w, static_cast<i16>(c.offset));
  if (w.signalled == kNoPhase) {
    raise(w, FaultKind::Instruction, "the wave waits at a barrier that it has not signalled");
  }
  const bool complete = w.group->phase != w.signalled;
  w.signalled = complete ? kNoPhase : w.signalled;
  if (complete) return;
  w.next = &c;  // looks again when the others have come
  w.state = WaveState::Barrier;
  w.stop();
}

// A loop that runs its body once for the lower 32 lanes of 64 and once for the upper ones, of which a pass
// is left out if it has no lane; the mask of the other half waits in the register.
void half_loop_begin(Wave& w, const Code& c) {
  u32 &low = w.s[kExec], &high = w.s[kExec + 1];
  if (w.exec() == 0) return branch(w, c);
  w.s[c.dst] = low == 0 ? 0 : high;
  if (low != 0) high = 0;
}
void half_loop_end(Wave& w, const Code& c) {
  u32 &low = w.s[kExec], &high = w.s[kExec + 1], &kept = w.s[c.dst];
  if (high != 0) {  // after the upper pass
    low = kept;
  } else if (kept != 0) {
    high = kept;
    kept = low;
    low = 0;
    branch(w, c);
  }
}

void round_mode(Wave& w, const Code& c) {
  w.mode = (w.mode & ~u32{0x0f}) | (static_cast<u32>(c.offset) & 15);
  w.stop();  // the loop looks at the mode again
}
void denorm_mode(Wave& w, const Code& c) {
  w.mode = (w.mode & ~u32{0xf0}) | (static_cast<u32>(c.offset) & 15) << 4;
  w.stop();
}
void sleep(Wave& w, const Code&) {
  w.yielded = true;
  w.stop();
}

/// Messages with an answer: the one kernels send asks for the time, in steps of 10 ns.
template <class T>
void send_and_receive(Wave& w, const Code& c) {
  constexpr u32 real_time = 0x83;
  const u32 message = scalar32(w, c.src[0]);
  if (message != real_time) raise(w, FaultKind::Instruction, "message 0x%x is not emulated", message);
  scalar_set<T>(w, c.dst, static_cast<T>(nanoseconds(w) / 10));
}

constexpr HandlerRow kRdnaControlRows[] = {
    {Op::s_clause, no_operation},
    {Op::s_delay_alu, no_operation},
    {Op::s_set_inst_prefetch_distance, no_operation},
    {Op::s_version, no_operation},
    {Op::s_ttracedata_imm, no_operation},
    {Op::s_wait_event, no_operation},
    {Op::s_wait_idle, no_operation},
    {Op::s_waitcnt_depctr, no_operation},
    {Op::s_waitcnt_vmcnt, no_operation},
    {Op::s_waitcnt_vscnt, no_operation},
    {Op::s_waitcnt_expcnt, no_operation},
    {Op::s_waitcnt_lgkmcnt, no_operation},
    {Op::s_wait_alu, no_operation},
    {Op::s_wait_loadcnt, no_operation},
    {Op::s_wait_storecnt, no_operation},
    {Op::s_wait_samplecnt, no_operation},
    {Op::s_wait_bvhcnt, no_operation},
    {Op::s_wait_expcnt, no_operation},
    {Op::s_wait_dscnt, no_operation},
    {Op::s_wait_kmcnt, no_operation},
    {Op::s_wait_loadcnt_dscnt, no_operation},
    {Op::s_wait_storecnt_dscnt, no_operation},
    {Op::s_gl1_inv, no_operation},
    {Op::global_inv, no_operation},
    {Op::global_wb, no_operation},
    {Op::global_wbinv, no_operation},
    {Op::s_prefetch_data, no_operation},
    {Op::s_prefetch_data_pc_rel, no_operation},
    {Op::s_prefetch_inst, no_operation},
    {Op::s_prefetch_inst_pc_rel, no_operation},
    {Op::s_buffer_prefetch_data, no_operation},
    {Op::s_barrier_signal, barrier_signal<false>},
    {Op::s_barrier_signal_isfirst, barrier_signal<true>},
    {Op::s_barrier_wait, barrier_wait},
    {Op::s_get_barrier_state, barrier_state},
    {Op::s_subvector_loop_begin, half_loop_begin},
    {Op::s_subvector_loop_end, half_loop_end},
    {Op::s_round_mode, round_mode},
    {Op::s_denorm_mode, denorm_mode},
    {Op::s_sleep_var, sleep},
    {Op::s_sendmsg_rtn_b32, send_and_receive<u32>},
    {Op::s_sendmsg_rtn_b64, send_and_receive<u64>},
};

/// Numbers of hardware registers.
enum Register : u32 {
  kStatus = 2,
  kTrapStatus = 3,
  kMemoryBases = 15,
  kHardwareId1 = 23,
  kHardwareId2 = 24,
  kCycles = 29,
  kCyclesHigh = 30,
};

}  // namespace

u32 rdna_register(Wave& w, u32 id) {
  const bool gfx11 = w.program->family() == Family::Rdna3;
  switch (id) {
    case kStatus:
      if (gfx11) return u32{w.scc} | u32{w.exec() == 0} << 9 | u32{w.vcc() == 0} << 10;
      break;
    case kTrapStatus:
      if (gfx11) return 0;  // no exceptions
      break;
    case kMemoryBases: return static_cast<u32>(kSharedAperture >> 48 << 16 | kPrivateAperture >> 48);
    case kHardwareId1:
    case kHardwareId2: return 0;  // one shader engine
    case kCycles: return static_cast<u32>(nanoseconds(w)) & (gfx11 ? 0xfffff : ~u32{0});
    case kCyclesHigh:
      if (!gfx11) return static_cast<u32>(nanoseconds(w) >> 32);
      break;
    default: break;
  }
  raise(w, FaultKind::Instruction, "hardware register %u is not emulated", id);
}

HandlerRows rdna_control_handlers() { return kRdnaControlRows; }

}  // namespace ckemu
