// SPDX-License-Identifier: MIT
#include "checks/in_flight.h"

#include "decode/decode.h"

namespace ckemu {

namespace {

constexpr u32 field(u32 word, u32 low, u32 bits) { return word >> low & ((1u << bits) - 1); }

}  // namespace

InFlight::Counts InFlight::counts_of(const Inst& inst, Family family) {
  const bool split = family == Family::Rdna4;
  const u32 local = 1u << kLocal, scalar = 1u << (split ? kScalar : kLocal);
  // RDNA counts stores, and what else returns nothing, by themselves.
  const bool loads = !is_rdna(family) || inst.dst[0].kind != Kind::None || inst.op == Op::global_inv;
  const u32 memory = 1u << (loads ? kMemory : kStore);
  switch (inst.enc) {
    case Encoding::DS: return {local};
    case Encoding::SMEM: return {scalar, false};
    case Encoding::FLAT: return {memory | local, is_rdna(family)};
    case Encoding::MUBUF:
    case Encoding::MTBUF:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH:
      if ((inst.row->flags & kFlagNocache) != 0) return {};
      return {memory};
    default: break;
  }
  switch (inst.op) {
    case Op::s_sendmsg:
    case Op::s_sendmsg_rtn_b32:
    case Op::s_sendmsg_rtn_b64: return {scalar, false};
    default: return {};
  }
}

InFlight::Counting InFlight::counting_of(const Code& c, Family family) {
  Counting counting{counts_of(*c.inst, family), limits_of(c, family)};
  counting.barrier = std::strstr(mnemonic(c.inst->op), "barrier") != nullptr;
  for (const u32 left : counting.limits.left) counting.waits |= left != kAny;
  return counting;
}

const char* InFlight::name_of(Counter counter, Family family) {
  static constexpr const char* names[kCounters] = {"s_wait_loadcnt", "s_wait_dscnt", "s_wait_kmcnt", "s_wait_storecnt"};
  if (family == Family::Rdna4) return names[counter];
  if (counter == kStore) return "s_waitcnt_vscnt";
  return counter == kMemory ? "s_waitcnt vmcnt" : "s_waitcnt lgkmcnt";
}

bool InFlight::under_way(u64 number) const {
  for (const Queue& queue : queues_) {
    for (size_t n = queue.first; n < queue.operations.size(); ++n) {
      if (queue.operations[n].number == number) return true;
    }
  }
  return false;
}

/// The fields of the wait instructions, by family.
InFlight::Limits InFlight::limits_of(const Code& c, Family family) {
  const u32 simm = static_cast<u32>(c.offset);
  switch (c.inst->op) {
    case Op::s_waitcnt:
      if (family == Family::Rdna4) return {};  // assembled, but no manual says what it waits for
      if (family == Family::Rdna3) return {{field(simm, 10, 6), field(simm, 4, 6), kAny, kAny}};
      return {{field(simm, 0, 4) | field(simm, 14, 2) << 4, field(simm, 8, 4), kAny, kAny}};
    case Op::s_waitcnt_vmcnt:
    case Op::s_wait_loadcnt: return {{simm, kAny, kAny, kAny}};
    case Op::s_waitcnt_lgkmcnt:
    case Op::s_wait_dscnt: return {{kAny, simm, kAny, kAny}};
    case Op::s_wait_kmcnt: return {{kAny, kAny, simm, kAny}};
    case Op::s_waitcnt_vscnt:
    case Op::s_wait_storecnt: return {{kAny, kAny, kAny, simm}};
    case Op::s_wait_loadcnt_dscnt: return {{field(simm, 8, 6), field(simm, 0, 6), kAny, kAny}};
    case Op::s_wait_storecnt_dscnt: return {{kAny, field(simm, 0, 6), kAny, field(simm, 8, 6)}};
    case Op::s_wait_idle: return {{0, 0, 0, 0}};
    default: return {};
  }
}

}  // namespace ckemu
