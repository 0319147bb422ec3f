// SPDX-License-Identifier: MIT
#include "ops/half_flush.h"

#include "core/fault.h"
#include "core/lanes.h"
#include "decode/decode.h"
#include "ops/modifiers.h"

namespace ckemu {

namespace {

enum Halves : u32 { kLow = 1, kHigh = 2, kBoth = 3 };

u32 flushed(u32 word, u32 halves) {
  u32 keep = ~0u;
  if ((halves & kLow) != 0 && (word & 0x7c00) == 0) keep &= ~0x3ffu;
  if ((halves & kHigh) != 0 && (word & 0x7c000000) == 0) keep &= ~0x3ff0000u;
  return word & keep;
}

bool mixed(const Inst& inst) { return (inst.row->flags & kFlagMix) != 0; }

/// Whether source `slot` is read as f16: mixed-precision operations say so themselves.
bool reads_half(const Inst& inst, int slot) {
  if (inst.src[slot].kind == Kind::None) return false;
  return mixed(inst) ? (inst.op_sel_hi >> slot & 1) != 0 : inst.src[slot].type == Type::F16;
}

/// Which halves of the destination are f16 results.
u32 written_halves(Wave& w, const Inst& inst) {
  if (inst.dst[0].type != Type::F16 || inst.dst[0].kind != Kind::Vgpr) return 0;
  if (inst.op == Op::v_fma_mixhi_f16) return kHigh;
  if (inst.dst[0].elements == 2) return kBoth;
  if (inst.form == Form::Sdwa && inst.dst_sel < 4) {
    raise(w, FaultKind::Instruction, "a byte of an f16 result with flushed denormals is not emulated");
  }
  const bool high = inst.form == Form::Sdwa ? inst.dst_sel == 5 : (inst.op_sel & 8) != 0;
  return high ? kHigh : kLow;
}

}  // namespace

bool computes_halves(const Inst& inst) {
  switch (inst.enc) {
    case Encoding::VOP1:
    case Encoding::VOP2:
    case Encoding::VOPC:
    case Encoding::VOP3:
    case Encoding::VOP3P: break;
    default: return false;  // neither memory nor matrix operations flush
  }
  if (std::strstr(mnemonic(inst.op), "_class_") != nullptr) return false;  // they tell denormals apart
  for (int slot = 0; slot < 3; ++slot) {
    if (reads_half(inst, slot)) return true;
  }
  return inst.dst[0].type == Type::F16;
}

void run_flushing(Wave& w, const Code& c, u32 denormals) {
  const Inst& inst = *c.inst;
  alignas(64) u32 rows[3][kLanes];
  Code outer = c, plain;
  if (c.link != nullptr) outer.link = &(plain = *c.link);
  const auto* plan = c.link != nullptr ? static_cast<const ModifierPlan*>(c.detail) : nullptr;
  for (int slot = 0; (denormals & 1) == 0 && slot < 3; ++slot) {
    if (!reads_half(inst, slot)) continue;
    const u32* row = source_row(w, c, slot);
    for (int l = 0; l < kLanes; ++l) rows[slot][l] = flushed(row[l], kBoth);
    const Source source{.kind = Kind::Constant, .dwords = 1, .row = rows[slot]};
    outer.src[slot] = source;
    if (plan != nullptr && (plan->prepared >> slot & 1) == 0) plain.src[slot] = source;
  }
  const u32 halves = written_halves(w, inst);
  const auto flush = [&] { each_lane(w, [&](int l) { w.v[c.dst][l] = flushed(w.v[c.dst][l], halves); }); };
  if ((denormals & 1) == 0 && (inst.row->flags & kFlagInout) != 0) flush();
  c.fn(w, outer);
  if ((denormals & 2) == 0) flush();
}

}  // namespace ckemu
