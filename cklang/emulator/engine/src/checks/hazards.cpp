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

bool is_addend(LaterPart part) { return part == LaterPart::SameAddend || part == LaterPart::OtherAddend; }

/// Whether a matrix product's result is the whole addend of a later one, which so reads nothing from before it.
bool makes_addend(const Code& earlier, const Code& later) {
  if (earlier.inst->matrix == nullptr || later.inst->matrix == nullptr) return false;
  const RegisterSpans results = written_registers(earlier);
  const RegisterSpans addends = addend_registers(later);
  return std::all_of(addends.begin(), addends.end(), [&](const RegisterSpan& addend) {
    return std::any_of(results.begin(), results.end(), [&](const RegisterSpan& result) { return result == addend; });
  });
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

namespace {

/// Whether a later instruction takes part in a rule by vector registers alone, or by scalar ones alone.
bool by_vector(LaterPart part) { return is_addend(part) || part == LaterPart::Read; }
bool by_scalar(LaterPart part) {
  return part == LaterPart::ReadScalar || part == LaterPart::Exec || part == LaterPart::Vcc ||
         part == LaterPart::ZeroFlags || part == LaterPart::M0 || part == LaterPart::Hardware;
}

bool may_matter(const HazardRule& rule, const RegisterSpans& registers) {
  if (rule.earlier_part == EarlierPart::None) return true;
  const bool vector_only = by_vector(rule.later_part), scalar_only = by_scalar(rule.later_part);
  return std::any_of(registers.begin(), registers.end(),
                     [&](const RegisterSpan& span) { return span.scalar ? !vector_only : !scalar_only; });
}

}  // namespace

void HazardHistory::drop_old() {
  const auto over = [this](const Earlier& earlier) { return now_ - earlier.next >= earlier.reach; };
  earlier_.erase(std::remove_if(earlier_.begin(), earlier_.end(), over), earlier_.end());
}

HazardHistory::Broken HazardHistory::check(const Code& c, u32 kinds, const std::vector<HazardRule>& rules) {
  drop_old();
  bool addend_made = false;  // by a product after those that are still to come
  for (size_t n = earlier_.size(); n-- > 0;) {
    const Earlier& earlier = earlier_[n];
    const u32 between = static_cast<u32>(now_ - earlier.next);
    if ((earlier.later & kinds) == 0) continue;
    for (const HazardRule& rule : rules) {
      if ((rule.earlier & earlier.kinds) == 0 || (rule.later & kinds) == 0) continue;
      if (addend_made && is_addend(rule.later_part)) continue;
      if (between < states_of(rule, *earlier.code->inst) && depend(rule, *earlier.code, c))
        return {&rule, earlier.code, between};
    }
    addend_made = addend_made || makes_addend(*earlier.code, c);
  }
  return {};
}

/// Nothing is noted of an instruction without registers that the rules name.
void HazardHistory::add(const Code& c, u32 kinds, const std::vector<HazardRule>& rules) {
  now_ += c.inst->op == Op::s_nop ? (static_cast<u32>(c.inst->simm) & 15) + 1 : 1;
  Earlier note{&c, kinds, now_, 0, 0};
  RegisterSpans registers;
  EarlierPart part = EarlierPart::None;  // of which they are
  for (const HazardRule& rule : rules) {
    if ((rule.earlier & kinds) == 0) continue;
    if (rule.earlier_part != part) registers = earlier_registers(c, part = rule.earlier_part);
    if (!may_matter(rule, registers)) continue;
    note.reach = std::max(note.reach, states_of(rule, *c.inst));
    note.later |= rule.later;
  }
  if (note.reach != 0) earlier_.push_back(note);
  drop_old();
}

std::vector<u64> HazardHistory::key() const {
  std::vector<u64> key;
  for (const Earlier& earlier : earlier_) {
    key.push_back(reinterpret_cast<u64>(earlier.code));
    key.push_back(now_ - earlier.next);
  }
  return key;
}

HazardHistory HazardHistories::at(u32 number) {
  const Guard guard(lock_);
  return all_[number];
}

u32 HazardHistories::number_of(const HazardHistory& history) {
  const Guard guard(lock_);
  const auto [place, fresh] = numbers_.try_emplace(history.key(), static_cast<u32>(all_.size()));
  if (fresh) all_.push_back(history);
  return place->second;
}

Hazards::Hazards(Program& program, u32 rows, u32 lanes)
    : family_(program.family()), rules_(hazard_rules(family_)), histories_(program.hazard_histories()) {
  if (is_rdna(family_)) dependencies_ = std::make_unique<DependencyHazards>(family_, rows, lanes == kLanes);
}

namespace {

constexpr u32 kBroken = ~u32{0};

}  // namespace

/// The number of the history after a stretch; kBroken if some rule is.
u32 Hazards::after(const Stretch& stretch) {
  HazardHistory history = histories_.at(history_);
  for (u32 n = 0; n < stretch.count; ++n) {
    const Code& c = stretch.first[n];
    const u32 kinds = hazard_kinds(*c.inst, family_);
    if (history.check(c, kinds, rules_).rule != nullptr) return kBroken;
    history.add(c, kinds, rules_);
  }
  return histories_.number_of(history);
}

bool Hazards::pass(const Stretch& stretch) {
  if (dependencies_) return false;
  u64& place = stretch.hazards.at[history_ % HazardSteps::kCount];  // who comes before, plus 1, and what comes after
  u64 step = __atomic_load_n(&place, __ATOMIC_RELAXED);
  if (step >> 32 != history_ + u64{1}) {
    step = (history_ + u64{1}) << 32 | after(stretch);
    __atomic_store_n(&place, step, __ATOMIC_RELAXED);
  }
  if (static_cast<u32>(step) == kBroken) return false;
  history_ = static_cast<u32>(step);
  return true;
}

void Hazards::before(Wave& w, const Code& c) {
  const u32 kinds = hazard_kinds(*c.inst, family_);
  if (dependencies_) return dependencies_->before(w, c, kinds);
  HazardHistory::Broken broken;
  {  // raising jumps over destructors
    HazardHistory history = histories_.at(history_);
    broken = history.check(c, kinds, rules_);
    history.add(c, kinds, rules_);
    if (broken.rule == nullptr) history_ = histories_.number_of(history);
  }
  if (broken.rule == nullptr) return;
  const u32 needed = states_of(*broken.rule, *broken.earlier->inst);
  Message text;
  text.add("%s: %u wait states between them, and %u are needed (s_nop %u is missing)", broken.rule->text,
           broken.between, needed, needed - broken.between - 1);
  raise_hazard(w, c, *broken.earlier, text);
}

}  // namespace ckemu
