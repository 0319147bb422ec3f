// SPDX-License-Identifier: MIT
#include "checks/stretch.h"

#include <algorithm>

#include "checks/barriers.h"
#include "checks/global_access.h"
#include "checks/global_races.h"
#include "core/immortal.h"
#include "decode/decode.h"

namespace ckemu {

namespace {

constexpr u32 kLongest = 512;  // instructions

/// Parts of the names of scalar operations that wait, send, or change the flow of control or who executes.
constexpr const char* kOwn[] = {"branch",   "setpc", "swappc",  "call",    "rfe",         "subvector",
                                "setvskip", "wait",  "sendmsg", "barrier", "set_gpr_idx", "setreg"};

struct OwnOps {
  bool of[static_cast<size_t>(Op::kCount)] = {};
  OwnOps() {
    for (size_t n = 0; n < static_cast<size_t>(Op::kCount); ++n) {
      const char* name = mnemonic(static_cast<Op>(n));
      of[n] = std::any_of(std::begin(kOwn), std::end(kOwn),
                          [name](const char* part) { return std::strstr(name, part) != nullptr; });
    }
  }
};

bool computes(const Inst& inst) {
  switch (inst.enc) {
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPC:
    case Encoding::SOPK: return !immortal<OwnOps>().of[static_cast<size_t>(inst.op)];
    case Encoding::SOPP:
      return inst.op == Op::s_nop || inst.op == Op::s_setprio || inst.op == Op::s_delay_alu || inst.op == Op::s_clause;
    case Encoding::SMEM:
    case Encoding::DS:
    case Encoding::MUBUF:
    case Encoding::MTBUF:
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH: return false;
    default: return inst.row != nullptr;
  }
}

void add(RegisterSet& set, Kind kind, u32 first, u32 dwords) {
  if (kind == Kind::None || kind == Kind::Constant || kind == Kind::Special) return;
  const bool scalar = kind == Kind::Sgpr;
  const u32 end =
      std::min(first + std::max<u32>(1, dwords), 64 * (scalar ? RegisterSet::kScalarWords : RegisterSet::kRowWords));
  for (u32 n = first; n < end; ++n) set.add(scalar, n);
}

bool covers_exec(Kind kind, u32 first, u32 dwords) {
  return kind == Kind::Sgpr && first <= kExec + 1 && first + std::max<u32>(1, dwords) > kExec;
}

/// Operations that write exec without naming it.
struct ExecOps {
  bool of[static_cast<size_t>(Op::kCount)] = {};
  ExecOps() {
    for (size_t n = 0; n < static_cast<size_t>(Op::kCount); ++n) {
      const char* name = mnemonic(static_cast<Op>(n));
      for (const char* part : {"saveexec", "wrexec", "v_cmpx"}) of[n] |= std::strstr(name, part) != nullptr;
    }
  }
};

/// What matters of an instruction that does not just compute.
u8 concerns_of(const Inst& inst, const InFlight::Counting& counting, Family family) {
  u32 concerns = kRegisters | kAnyMemory | kRecording;
  if (counting.barrier || counting.waits || counting.counts.counters != 0) concerns |= kOrdering;
  if (inst.enc == Encoding::DS || inst.enc == Encoding::FLAT || inst.lds || global_op(inst.op).to_local)
    concerns |= kLocalMemory;
  if (accesses_global(inst)) concerns |= kGlobalMemory;
  if (GlobalRaces::fences(inst, family)) concerns |= kFences;
  if (concerns_barriers(inst.op)) concerns |= kBarriers;
  return static_cast<u8>(concerns);
}

}  // namespace

bool writes_exec(const Code& code) {
  return covers_exec(code.dst_kind, code.dst, code.dst_dwords) ||
         covers_exec(code.inst->dst[1].kind, code.dst2, code.inst->dst[1].dwords) ||
         immortal<ExecOps>().of[static_cast<size_t>(code.inst->op)];
}

u32 Stretches::length_of(const Code& code) {
  u32 count = 0;
  while (count < kLongest && code.inst != nullptr && (&code)[count].inst != nullptr && computes(*(&code)[count].inst)) {
    if (writes_exec((&code)[count++])) break;
  }
  return std::max<u32>(1, count);
}

const Stretch& Stretches::add(const Code& code, u32 count) {
  auto stretch = std::make_unique<Stretch>();
  stretch->first = &code;
  stretch->count = count;
  stretch->number = static_cast<u32>(all_.size());
  stretch->plain = computes(*code.inst);
  if (!stretch->plain) {
    stretch->counting = InFlight::counting_of(code, family_);
    stretch->concerns = concerns_of(*code.inst, stretch->counting, family_);
  }
  for (u32 n = 0; n < count; ++n) {
    const Code& c = (&code)[n];
    for (const Source& source : c.src) ckemu::add(stretch->registers, source.kind, source.index, source.dwords);
    ckemu::add(stretch->registers, c.dst_kind, c.dst, c.dst_dwords);
    ckemu::add(stretch->registers, c.inst->dst[1].kind, c.dst2, c.inst->dst[1].dwords);
    if (c.inst->op == Op::s_cbranch_vccz || c.inst->op == Op::s_cbranch_vccnz)
      ckemu::add(stretch->registers, Kind::Sgpr, kVcc, 2);
  }
  all_.push_back(static_cast<std::unique_ptr<Stretch>&&>(stretch));
  return *all_.back();
}

const Stretch& Stretches::part(const Code& code, u32 count) {
  if (const Stretch& longest = from(code); longest.count == count) return longest;
  const Guard guard(lock_);
  return add(code, count);
}

const Stretch& Stretches::find(Places& places, const Code& code, u32 count) {
  const Stretch*& place = places[code.slot];
  if (const Stretch* known = __atomic_load_n(&place, __ATOMIC_ACQUIRE)) return *known;
  const Guard guard(lock_);
  if (place == nullptr) __atomic_store_n(&place, &add(code, count), __ATOMIC_RELEASE);
  return *place;
}

}  // namespace ckemu
