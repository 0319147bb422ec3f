// SPDX-License-Identifier: MIT
#include "translate/section.h"

#include <algorithm>
#include <cstddef>

#include "ops/float_ops.h"
#include "ops/modifiers.h"

namespace ckemu::translate {

using namespace x86;

namespace {

static_assert(offsetof(Wave, s) == 0);
constexpr u8 kSpare = 1;  // the mask that anything may use
constexpr u8 kSpare2 = 2;
constexpr Evex kSpread{2, 2, 0x38, 0}, kGather{2, 2, 0x39, 0};  // vpermd; between masks and vectors
constexpr u8 kOrdered = 7;
constexpr u32 kSign = 0x80000000u;

void default_nan(Assembler& a, const u8* r) {
  a.note_nan(kSpare, kEnabled);
  for (int n = 1; n < 4; ++n) a.vector_immediate(kComparePs, kSpare, r[n], r[n], kOrdered, kSpare);
  a.vector(kBroadcast, r[0], 0, Mem{.constant = a.constant(kQuietNan)}, kSpare);
}

}  // namespace

u8 Lanes::fresh() {
  const u8 none = a.registers();
  u8 best = none;
  for (u8 n = 0; n < none; ++n) {
    const Holding& held = held_[n];
    if (held.pins != 0) continue;
    if (held.kind == Holding::Kind::Nothing) {
      best = n;
      break;
    }
    if (best == none || held.stamp < held_[best].stamp) best = n;
  }
  if (best == none) {  // nothing of this is executed; the next attempt calls the handler
    code_->crowded = too_few_ = true;
    best = 0;
  }
  if (held_[best].dirty) write_back(best);
  held_[best] = {Holding::Kind::Temporary, false, 1, 0, ++clock_};
  return best;
}

u8 Lanes::hold(Holding::Kind kind, u32 key) {
  for (u8 n = 0; n < a.registers(); ++n) {
    if (held_[n].kind != kind || held_[n].key != key) continue;
    ++held_[n].pins;
    held_[n].stamp = ++clock_;
    return n;
  }
  const u8 to = fresh();
  if (kind == Holding::Kind::Row) a.vector_load(to, row_at(key));
  if (kind == Holding::Kind::Scalar) a.vector(kBroadcast, to, 0, scalar_at(key));
  if (kind == Holding::Kind::Constant) a.vector(kBroadcast, to, 0, Mem{.constant = a.constant(key)});
  held_[to].kind = kind;
  held_[to].key = key;
  return to;
}

u8 Lanes::plain_source(int slot, u32 part) {
  const Source& source = code_->src[slot];
  if (slot == 0 && code_->inst->form == Form::Dpp) return moved(row(source.index + part));
  if (source.kind == Kind::Vgpr) return row(source.index + part);
  if (source.kind == Kind::Constant) return constant(source.row[part * kLanes]);
  return hold(Holding::Kind::Scalar, source.index + part);
}

u8 Lanes::source(int slot, u32 part) {
  u8 value = plain_source(slot, part);
  const Inst& inst = *code_->inst;
  const auto change = [&](Evex op, u32 bits) {
    const u8 with = constant(bits), changed = fresh();
    a.vector(op, changed, value, with);
    value = changed;
  };
  if (inst.form == Form::Sdwa && inst.src_sel[slot] != 6)
    value = part_of(value, inst.src_sel[slot], (inst.sext >> slot & 1) != 0);
  if ((inst.abs >> slot & 1) != 0) change(kAnd, ~kSign);
  if ((inst.neg >> slot & 1) != 0) change(kXor, kSign);
  return value;
}

bool moves_in_rows(const Inst& inst) {
  if (inst.form != Form::Dpp || inst.row_mask != 15) return false;
  for (int l = 0; l < kLanes; ++l) {
    const int from = dpp_source(inst.dpp_ctrl, l), first = dpp_source(inst.dpp_ctrl, l % 16);
    if (from < 0 ? first >= 0 : from / 16 != l / 16 || from % 16 != first) return false;
  }
  return true;
}

/// The values of the lanes that DPP picks, which are a row. Which lanes the instruction is executed for is kept in the
/// frame: not those whose source is no lane of the row, or disabled, unless they read 0.
u8 Lanes::moved(u8 value) {
  const Inst& inst = *code_->inst;
  if (inst.fetch_inactive && !all_enabled_ && held_[value].dirty) write_back(value);  // disabled lanes are read too
  u32 from[16], valid = 0, banks = 0;
  for (int l = 0; l < 16; ++l) {
    const int source = dpp_source(inst.dpp_ctrl, l);
    from[l] = static_cast<u32>(std::max(source, 0));
    valid |= u32{source >= 0} << l;
    banks |= (inst.bank_mask >> l / 4 & 1u) << l;
  }
  const u8 order = fresh(), r = fresh(), enabled = fresh();
  a.vector_load_anywhere(order, Mem{.constant = a.table(from)});
  a.vector(kPermute, r, order, value);
  a.move(rax, valid);
  a.mask_from(kSpare, rax);
  if (!inst.fetch_inactive) {
    a.vector(kSpread, enabled, 0, kEnabled);
    a.vector(kPermute, enabled, order, enabled);
    a.vector(kGather, kSpare2, 0, enabled);
    a.mask_and(kSpare, kSpare, kSpare2);
  }
  a.move(rax, banks);
  a.mask_from(kSpare2, rax);
  if (inst.bound_ctrl) {
    a.vector(kXor, enabled, enabled, enabled);
    a.vector(kBlendD, r, enabled, r, kSpare);
    a.mask_store(scratch_at(3), kSpare2);
  } else {
    a.mask_and(kSpare, kSpare, kSpare2);
    a.mask_store(scratch_at(3), kSpare);
  }
  return r;
}

/// A byte or a half of each lane, as SDWA's selector says.
u8 Lanes::part_of(u8 value, u8 select, bool sign) {
  const u8 bits = select < 4 ? 8 : 16, low = static_cast<u8>(select < 4 ? 8 * select : 16 * (select - 4));
  const u8 r = fresh();
  a.vector_shift(6, r, value, static_cast<u8>(32 - bits - low));
  a.vector_shift(sign ? 4 : 2, r, r, static_cast<u8>(32 - bits));
  return r;
}

void Lanes::result(u8 value, u32 part) {
  const u32 key = code_->dst + part;
  if (code_->inst->form == Form::Dpp) {
    const u8 kept = old(part), chosen = fresh();
    a.mask_load(kSpare, scratch_at(3));
    a.vector(kBlendD, chosen, kept, value, kSpare);
    value = chosen;
  }
  if (held_[value].kind != Holding::Kind::Temporary) {
    const u8 copy = fresh();
    a.vector(kMove, copy, 0, value);
    value = copy;
  }
  for (Holding& held : held_) {
    if (held.kind == Holding::Kind::Row && held.key == key) held.kind = Holding::Kind::Temporary, held.dirty = false;
  }
  held_[value].kind = Holding::Kind::Row;
  held_[value].key = key;
  held_[value].dirty = true;
}

void Lanes::float_result(u8 value, u32 part) {
  const Inst& inst = *code_->inst;
  if (inst.omod != 0) {
    constexpr u32 factor[4] = {0x3f800000, 0x40000000, 0x40800000, 0x3f000000};
    a.vector(kMulPs, value, value, constant(factor[inst.omod]));
  }
  if (inst.clamp) {  // the second operand is the result where the first is NaN
    a.vector(kMaxPs, value, value, constant(0));
    a.vector(kMinPs, value, value, constant(0x3f800000));
  }
  result(value, part);
}

void Lanes::settle_source(int slot, u32 part) {
  for (u8 n = 0; n < a.registers(); ++n) {
    if (held_[n].dirty && held_[n].key == code_->src[slot].index + part) write_back(n);
  }
}

void Lanes::mask(u8 k, int slot) { a.mask_load(k, mask_at(code_->src[slot].index)); }

void Lanes::mask_result(u8 k, u16 scalar) {
  a.mask_and(k, k, kEnabled);
  a.mask_store(mask_at(scalar), k);
}

void Lanes::rarely(u8 k, void (*emit)(Assembler&, const u8*), u8 r0, u8 r1, u8 r2, u8 r3, u8 r4) {
  const Rare rare{emit, {r0, r1, r2, r3, r4}, a.label(), a.label()};
  a.jump_if_any(k, rare.enter);
  a.bind(rare.back);
  rare_.push_back(rare);
}

void Lanes::instead(u8 k, void (*emit)(Assembler&, const u8*), const u8 (&registers)[5], Label back) {
  Rare rare{emit, {}, a.label(), back};
  std::memcpy(rare.registers, registers, sizeof registers);
  a.jump_if_any(k, rare.enter);
  rare_.push_back(rare);
}

void Lanes::settle(u8 value, u8 s0, u8 s1, u8 s2) {
  const Rare rare{default_nan, {value, s0, s1, s2}, a.label(), a.label()};
  a.jump_if_nan(value, kSpare, kEnabled, rare.enter);
  a.bind(rare.back);
  rare_.push_back(rare);
}

void Lanes::write_back(u8 number) {
  Holding& held = held_[number];
  if (!all_enabled_) a.vector(kBlendD, number, number, row_at(held.key), kDisabled);
  a.vector_store(row_at(held.key), number);
  held.dirty = false;
}

void Lanes::end() {
  for (Holding& held : held_) {
    held.pins = 0;
    if (held.kind == Holding::Kind::Temporary) held.kind = Holding::Kind::Nothing;
  }
}

void Lanes::write_all() {
  for (u8 n = 0; n < a.registers(); ++n) {
    if (held_[n].dirty) write_back(n);
  }
}

// ---------------------------------------------------------------------------------------------------

void Section::add(const Code& code, const VectorRow& row) {
  ScalarSet reads, masks, results;
  const u32 width = wave_lanes_ / 32;
  for (int slot = 0; slot < 3; ++slot) {
    const Source& source = code.src[slot];
    if (source.kind != Kind::Sgpr) continue;
    if (slot == row.mask_source) masks.add(source.index, width);
    else reads.add(source.index, std::max<u32>(source.dwords, 1));
  }
  if (row.reads_vcc) masks.add(kVcc, 2);
  if (row.mask_result != 0) results.add(row.mask_result == 1 ? code.dst : code.dst2, width);
  // A mask is read and written 16 lanes at a time, so in the order of the instructions.
  ScalarSet both = scalars_;
  both.join(reads);
  if (reads.meets(results_) || results.meets(both)) flush();
  // Lanes at hand must not see what later ones of an earlier instruction are still to write or to read.
  if (conflicts(row.local, local_) || conflicts(row.global, global_)) flush();
  local_ |= row.local;
  global_ |= row.global;
  (row.global == 2 ? stored_ : loaded_) += row.bytes;
  items_.push_back({&code, row.emit, &row});
  scalars_.join(reads);
  masks_.join(masks);
  results_.join(results);
  if (row.then == nullptr) return;
  flush();
  local_ = row.local;
  scalars_.join(reads);
  items_.push_back({&code, row.then, &row});
}

bool Section::waits(const ScalarSet& reads, const ScalarSet& writes) const {
  if (items_.empty()) return false;
  ScalarSet exec;
  exec.add(kExec, 2);
  return reads.meets(results_) || writes.meets(scalars_) || writes.meets(masks_) || writes.meets(results_) ||
         writes.meets(exec);
}

void Section::count_bytes() {
  a_.store({kWave, kNoIndex, offsetof(Wave, lanes_from)}, kNoLanes, false);
  a_.load(rdx, {kWave, kNoIndex, offsetof(Wave, counters)}, true);
  a_.count_ones(rax, scalar_at(kExec));
  const auto add = [&](u32 bytes, size_t where) {
    if (bytes == 0) return;
    a_.move(rcx, bytes);
    a_.multiply(rcx, rax, true);
    a_.add_to({rdx, kNoIndex, static_cast<i32>(where)}, rcx);
  };
  add(loaded_, offsetof(Counters, bytes_loaded));
  add(stored_, offsetof(Counters, bytes_stored));
  if (stored_ != 0) a_.increment({rdx, kNoIndex, offsetof(Counters, progress)});
}

/// Goes to where handlers do it all, unless everything is as the translation takes it.
void Section::write_guards(Label done) {
  Unusual unusual{{}, a_.label(), done};
  bool guarded = false;
  for (const Item& item : items_) {
    unusual.codes.push_back(item.code);
    if (item.row->guard == nullptr) continue;
    item.row->guard(a_, *item.code, family_, unusual.enter);
    guarded = true;
  }
  if (guarded) unusual_.push_back(unusual);
}

void Section::flush() {
  if (items_.empty()) return;
  const Label done = a_.label();
  write_guards(done);
  const bool wide_waves = wave_lanes_ == kLanes;
  const Label some = a_.label(), computed = a_.label();
  a_.alu(7, scalar_at(kExec), -1, wide_waves);
  a_.jump_if(kNonZero, some);
  write_loop(true);
  a_.jump(computed);
  a_.bind(some);
  write_loop(false);
  a_.bind(computed);
  if (global_ != 0) count_bytes();
  a_.bind(done);
  items_.clear();
  scalars_ = masks_ = results_ = ScalarSet{};
  local_ = global_ = 0;
  loaded_ = stored_ = 0;
}

/// Where no lane is enabled nothing is computed, and masks of the lanes at hand are 0, as kEnabled is.
void Section::write_no_masks() {
  for (const Item& item : items_) {
    const u8 which = item.row->mask_result;
    if (which != 0) a_.mask_store(mask_at(which == 1 ? item.code->dst : item.code->dst2), kEnabled);
  }
}

/// Writes the loop over the lanes, for waves all of whose lanes are enabled or for others.
void Section::write_loop(bool all_enabled) {
  const Label repeat = a_.label(), none = a_.label(), next = a_.label();
  a_.alu(6, kLaneBytes, kLaneBytes, false);
  a_.alu(6, kMaskBytes, kMaskBytes, false);
  a_.bind(repeat);
  a_.mask_load(kEnabled, mask_at(kExec));
  if (!all_enabled) {
    a_.jump_if_none(kEnabled, none);
    a_.mask_not(kDisabled, kEnabled);
  }
  Lanes lanes(a_, rare_, family_, all_enabled);
  for (const Item& item : items_) {
    lanes.begin(*item.code);
    item.emit(lanes, item.row->detail);
    lanes.end();
  }
  lanes.write_all();
  too_few_ |= lanes.too_few();
  if (!all_enabled) {
    a_.jump(next);
    a_.bind(none);
    write_no_masks();
  }
  a_.bind(next);
  a_.alu(0, kLaneBytes, static_cast<i32>(4 * a_.lanes()), false);
  a_.alu(0, kMaskBytes, static_cast<i32>(a_.lanes() / 8), false);
  a_.alu(7, kLaneBytes, static_cast<i32>(4 * wave_lanes_), false);
  a_.jump_if(kNonZero, repeat);
}

}  // namespace ckemu::translate
