// SPDX-License-Identifier: MIT
#include "checks/hazards.h"

#include <algorithm>

#include "core/fault.h"
#include "decode/decode.h"

namespace ckemu {

namespace {

u32 states_of(const HazardRule& rule, const Inst& earlier) {
  if (!rule.passes) return static_cast<u32>(rule.states);
  const u32 passes = passes_of(*earlier.matrix, earlier);
  return static_cast<u32>(static_cast<i32>(passes) + rule.states) + (passes != 2 ? rule.long_ones : 0u);
}

RegisterSpans earlier_registers(const Code& c, EarlierPart part) {
  switch (part) {
    case EarlierPart::Written: return written_registers(c);
    case EarlierPart::Stored: return stored_registers(c);
    case EarlierPart::Addend: return addend_registers(c);
    case EarlierPart::None: break;
  }
  return {};
}

RegisterSpans scalar_span(u32 first, u32 dwords) {
  RegisterSpans spans;
  spans.add(true, first, dwords);
  return spans;
}

RegisterSpans later_registers(const Code& c, LaterPart part) {
  switch (part) {
    case LaterPart::Read: return read_registers(c, false);
    case LaterPart::ReadScalar: return read_registers(c, true);
    case LaterPart::Written: return written_registers(c);
    case LaterPart::Lane: return source_register(c, 1);
    case LaterPart::FirstSource: return source_register(c, 0);
    case LaterPart::SameAddend:
    case LaterPart::OtherAddend: return addend_registers(c);
    case LaterPart::Factors: return factor_registers(c);
    case LaterPart::ZeroFlags: return flagged_registers(c);
    case LaterPart::Exec: return scalar_span(kExec, 2);
    case LaterPart::Vcc: return scalar_span(kVcc, 2);
    case LaterPart::M0: return scalar_span(kM0, 1);
    case LaterPart::Hardware: return scalar_span(kHardwareRegisters + (static_cast<u32>(c.inst->simm) & 63), 1);
    case LaterPart::None: break;
  }
  return {};
}

bool meet(const RegisterSpan& earlier, const RegisterSpan& later, LaterPart part) {
  if (part == LaterPart::SameAddend) return earlier == later;
  if (part == LaterPart::OtherAddend && earlier == later) return false;
  return earlier.overlaps(later);
}

bool depend(const HazardRule& rule, const Code& earlier, const Code& later) {
  if (rule.earlier_part == EarlierPart::None) return true;
  const RegisterSpans first = earlier_registers(earlier, rule.earlier_part);
  const RegisterSpans second = later_registers(later, rule.later_part);
  for (const RegisterSpan& one : first) {
    for (const RegisterSpan& other : second) {
      if (meet(one, other, rule.later_part)) return true;
    }
  }
  return false;
}

}  // namespace

void raise_hazard(Wave& w, const Code& c, const Code& earlier, const Message& rule) {
  Text<768> place;
  describe_code(*w.program, earlier, place);
  raise(w, FaultKind::Instruction, "hazard: %s at %s and %s after it: %s", mnemonic(earlier.inst->op), place.c_str(),
        mnemonic(c.inst->op), rule.c_str());
}

Hazards::Hazards(Family family, u32 rows, u32 lanes) : family_(family), rules_(hazard_rules(family)) {
  if (is_rdna(family)) dependencies_ = std::make_unique<DependencyHazards>(family, rows, lanes == kLanes);
}

namespace {

/// Whether a later instruction takes part in a rule by vector registers alone, or by scalar ones alone.
bool by_vector(LaterPart part) {
  return part == LaterPart::SameAddend || part == LaterPart::OtherAddend || part == LaterPart::Read;
}
bool by_scalar(LaterPart part) {
  return part == LaterPart::ReadScalar || part == LaterPart::Exec || part == LaterPart::Vcc || part == LaterPart::ZeroFlags ||
         part == LaterPart::M0 || part == LaterPart::Hardware;
}

bool may_matter(const HazardRule& rule, const RegisterSpans& registers) {
  if (rule.earlier_part == EarlierPart::None) return true;
  const bool vector_only = by_vector(rule.later_part), scalar_only = by_scalar(rule.later_part);
  return std::any_of(registers.begin(), registers.end(), [&](const RegisterSpan& span) {
    return span.scalar ? !vector_only : !scalar_only;
  });
}

}  // namespace

/// What the rules say about `c` as the earlier instruction: nothing where it has no registers that they name.
Hazards::Earlier Hazards::note_of(const Code& c, u32 kinds) const {
  Earlier note{&c, kinds, now_, 0, 0};
  RegisterSpans registers;
  EarlierPart part = EarlierPart::None;  // of which they are
  for (const HazardRule& rule : rules_) {
    if ((rule.earlier & kinds) == 0) continue;
    if (rule.earlier_part != part) registers = earlier_registers(c, part = rule.earlier_part);
    if (!may_matter(rule, registers)) continue;
    note.reach = std::max(note.reach, states_of(rule, *c.inst));
    note.later |= rule.later;
  }
  return note;
}

void Hazards::check(Wave& w, const Code& c, u32 kinds, const Earlier& earlier) const {
  const u32 between = static_cast<u32>(now_ - earlier.next);
  for (const HazardRule& rule : rules_) {
    if ((rule.earlier & earlier.kinds) == 0 || (rule.later & kinds) == 0) continue;
    const u32 needed = states_of(rule, *earlier.code->inst);
    if (between >= needed || !depend(rule, *earlier.code, c)) continue;
    Message text;
    text.add("%s: %u wait states between them, and %u are needed (s_nop %u is missing)", rule.text, between, needed,
             needed - between - 1);
    raise_hazard(w, c, *earlier.code, text);
  }
}

void Hazards::before(Wave& w, const Code& c) {
  const u32 kinds = hazard_kinds(*c.inst, family_);
  if (dependencies_) return dependencies_->before(w, c, kinds);
  const auto over = [this](const Earlier& earlier) { return now_ - earlier.next >= earlier.reach; };
  earlier_.erase(std::remove_if(earlier_.begin(), earlier_.end(), over), earlier_.end());
  for (size_t n = earlier_.size(); n-- > 0;) {
    if ((earlier_[n].later & kinds) != 0) check(w, c, kinds, earlier_[n]);
  }
  now_ += c.inst->op == Op::s_nop ? (static_cast<u32>(c.inst->simm) & 15) + 1 : 1;
  if (kinds == 0) return;
  const Earlier note = note_of(c, kinds);
  if (note.reach != 0) earlier_.push_back(note);
}

}  // namespace ckemu
