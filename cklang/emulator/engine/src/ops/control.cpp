// SPDX-License-Identifier: MIT
//
// Branches, calls, waits, barriers, hardware registers and the end of a program. Memory operations
// complete at once, so waits have nothing to wait for.
#include "core/clock.h"
#include "core/fault.h"
#include "hip/hostcall.h"
#include "ops/control.h"
#include "ops/handlers.h"
#include "ops/rdna_registers.h"
#include "ops/scalar_access.h"

namespace ckemu {

void jump_to(Wave& w, u64 address) {
  const Code* target = w.program->at_address(address);
  if (target == nullptr) {
    raise(w, FaultKind::Address, "jump to 0x%llx, which is not in the code object's code",
          static_cast<unsigned long long>(address));
  }
  w.next = target;
}

void branch(Wave& w, const Code& c) {
  const Code* target = __atomic_load_n(&c.link, __ATOMIC_ACQUIRE);
  if (target == nullptr) {
    const i64 offset = i64{c.pc} + 4 + i64{4} * c.offset;
    target = w.program->at_address(w.program->image() + static_cast<u64>(offset));
    if (target == nullptr)
      raise(w, FaultKind::Instruction, "branch out of the code, to 0x%llx", static_cast<long long>(offset));
    __atomic_store_n(&c.link, target, __ATOMIC_RELEASE);
  }
  w.next = target;
}

namespace {

template <auto condition>
void branch_if(Wave& w, const Code& c) {
  if (condition(w)) branch(w, c);
}
constexpr auto scc0 = [](const Wave& w) { return !w.scc; };
constexpr auto scc1 = [](const Wave& w) { return w.scc; };
constexpr auto vccz = [](const Wave& w) { return w.vcc() == 0; };
constexpr auto vccnz = [](const Wave& w) { return w.vcc() != 0; };
constexpr auto execz = [](const Wave& w) { return w.exec() == 0; };
constexpr auto execnz = [](const Wave& w) { return w.exec() != 0; };

void getpc(Wave& w, const Code& c) { w.set_sgpr64(c.dst, return_address(w, c)); }
void setpc(Wave& w, const Code& c) { jump_to(w, scalar64(w, c.src[0])); }
void swappc(Wave& w, const Code& c) {
  const u64 target = scalar64(w, c.src[0]);
  w.set_sgpr64(c.dst, return_address(w, c));
  jump_to(w, target);
}
void call(Wave& w, const Code& c) {
  w.set_sgpr64(c.dst, return_address(w, c));
  branch(w, c);
}

void barrier(Wave& w, const Code&) {
  w.state = WaveState::Barrier;
  w.stop();
}
void end_program(Wave& w, const Code&) {
  w.state = WaveState::Ended;
  w.counters->progress++;
  w.stop();
}
void sleep(Wave& w, const Code&) {
  w.yielded = true;
  w.stop();
}
void no_operation(Wave&, const Code&) {}

/// The one message that means something here interrupts the host: m0 has the number of an event.
void send_message(Wave& w, const Code& c) {
  if ((c.offset & 0xf) == 1) interrupt_host(w.s[kM0] & 0xffffff);
}

void trap(Wave& w, const Code& c) {
  const int id = c.offset & 0xff;
  if (id == 3) return;  // the debugger's trap; there is no debugger
  raise(w, FaultKind::Abort, id == 2 ? "the kernel aborted (s_trap 2: assert or trap)" : "s_trap %d has no handler",
        id);
}

/// The hardware registers that a kernel may ask for.
enum HardwareRegister : u32 {
  kRegMode = 1,
  kRegStatus = 2,
  kRegTrapStatus = 3,
  kRegHardwareId = 4,
  kRegCounters = 7,
  kRegMemoryBases = 15,
  kRegTrapBase = 16,
  kRegTrapMemoryEnd = 19,
  kRegXccId = 20,
};

u32 read_register(Wave& w, u32 id) {
  if (is_rdna(w.program->family()) && id != kRegMode) return rdna_register(w, id);
  switch (id) {
    case kRegMode: return w.mode;
    case kRegStatus: return u32{w.scc} | u32{w.exec() == 0} << 9 | u32{w.vcc() == 0} << 10;
    case kRegTrapStatus:
    case kRegHardwareId:
    case kRegCounters:
    case kRegXccId: return 0;  // one shader engine, one die, no exceptions, nothing under way
    case kRegMemoryBases: return static_cast<u32>(kSharedAperture >> 48 << 16 | kPrivateAperture >> 48);
    default: break;
  }
  if (id >= kRegTrapBase && id <= kRegTrapMemoryEnd) return 0;  // there is no trap handler
  raise(w, FaultKind::Instruction, "hardware register %u is not emulated", id);
}
struct RegisterField {
  u32 id, low, mask;
  explicit RegisterField(i32 simm)
      : id(simm & 63), low(simm >> 6 & 31), mask(static_cast<u32>((u64{2} << (simm >> 11 & 31)) - 1)) {}
};
void getreg(Wave& w, const Code& c) {
  const RegisterField field(c.offset);
  w.s[c.dst] = read_register(w, field.id) >> field.low & field.mask;
}
void write_register(Wave& w, const Code& c, u32 value) {
  const RegisterField field(c.offset);
  if (field.id == kRegTrapStatus) return;  // exceptions are not recorded, so there is nothing to clear
  if (field.id != kRegMode) raise(w, FaultKind::Instruction, "writing hardware register %u is not emulated", field.id);
  w.mode = (w.mode & ~(field.mask << field.low)) | (value & field.mask) << field.low;
  if (is_rdna(w.program->family())) w.mode &= ~(kModeIndexed | kModeSkip);  // other bits there
  w.stop();                                                                 // the loop looks at the mode again
}
void setreg(Wave& w, const Code& c) { write_register(w, c, scalar32(w, c.src[0])); }

// Indexed registers: m0 holds the index and which operands it is added to; MODE bit 27 turns it on.
void index_on(Wave& w, const Code& c) {
  const u32 operands = c.src[1].kind == Kind::None ? static_cast<u32>(c.offset) : scalar32(w, c.src[1]);
  w.s[kM0] = (w.s[kM0] & 0xffff0f00) | (scalar32(w, c.src[0]) & 0xff) | (operands & 15) << 12;
  w.mode |= kModeIndexed;
  w.stop();
}
void index_off(Wave& w, const Code&) {
  w.mode &= ~kModeIndexed;
  w.stop();
}
void index_mode(Wave& w, const Code& c) {
  w.s[kM0] = (w.s[kM0] & 0xffff0fff) | (static_cast<u32>(c.offset) & 15) << 12;
}
void index_value(Wave& w, const Code& c) { w.s[kM0] = (w.s[kM0] & 0xffffff00) | (scalar32(w, c.src[0]) & 0xff); }

/// Turns skipping of vector instructions on or off by the bit of src0 that src1 numbers.
void set_skip(Wave& w, const Code& c) {
  const u32 bit = scalar32(w, c.src[0]) >> (scalar32(w, c.src[1]) & 31) & 1;
  w.mode = bit != 0 ? w.mode | kModeSkip : w.mode & ~kModeSkip;
  w.stop();
}

template <u64 divisor>
void clock(Wave& w, const Code& c) {
  w.set_sgpr64(c.dst, nanoseconds(w) / divisor);
}

constexpr HandlerRow kControlRows[] = {
    {Op::s_nop, no_operation},
    {Op::s_branch, branch},
    {Op::s_cbranch_scc0, branch_if<scc0>},
    {Op::s_cbranch_scc1, branch_if<scc1>},
    {Op::s_cbranch_vccz, branch_if<vccz>},
    {Op::s_cbranch_vccnz, branch_if<vccnz>},
    {Op::s_cbranch_execz, branch_if<execz>},
    {Op::s_cbranch_execnz, branch_if<execnz>},
    {Op::s_getpc_b64, getpc},
    {Op::s_setpc_b64, setpc},
    {Op::s_swappc_b64, swappc},
    {Op::s_call_b64, call},
    {Op::s_barrier, barrier},
    {Op::s_endpgm, end_program},
    {Op::s_sleep, sleep},
    {Op::s_waitcnt, no_operation},
    {Op::s_setprio, no_operation},
    {Op::s_wakeup, no_operation},
    {Op::s_icache_inv, no_operation},
    {Op::s_dcache_inv, no_operation},
    {Op::s_dcache_wb, no_operation},
    {Op::s_dcache_inv_vol, no_operation},
    {Op::s_dcache_wb_vol, no_operation},
    {Op::s_incperflevel, no_operation},
    {Op::s_decperflevel, no_operation},
    {Op::s_ttracedata, no_operation},
    {Op::s_sendmsg, send_message},
    {Op::s_trap, trap},
    {Op::v_clrexcp, no_operation},  // no exception is ever recorded
    {Op::s_getreg_b32, getreg},
    {Op::s_setreg_b32, setreg},
    {Op::s_setreg_imm32_b32, setreg},
    {Op::s_set_gpr_idx_on, index_on},
    {Op::s_set_gpr_idx_off, index_off},
    {Op::s_set_gpr_idx_mode, index_mode},
    {Op::s_set_gpr_idx_idx, index_value},
    {Op::s_setvskip, set_skip},
    {Op::s_memtime, clock<1>},
    {Op::s_memrealtime, clock<10>},
};

}  // namespace

u64 nanoseconds(const Wave& w) {
  if (w.counters->ticks != nullptr) return *w.counters->ticks;
  return nanoseconds();
}

HandlerRows control_handlers() { return kControlRows; }

}  // namespace ckemu
