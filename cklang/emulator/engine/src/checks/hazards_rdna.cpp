// SPDX-License-Identifier: MIT
//
// RDNA's hardware waits for registers by itself but for the few cases here, as LLVM's GCNHazardRecognizer
// has them. s_delay_alu is a hint and counts for nothing. Not checked: gfx12's scalar registers that a
// vector instruction has read and a scalar one writes, whose end no document tells.
//
//   gfx11           a transcendental result read within 5 vector and 1 transcendental instructions
//   gfx11, 64 lanes sources of which one was written before exec and one after it, close to each other;
//                   a mask that a vector instruction reads, a scalar one writes and a scalar one reads
//   gfx11           v_cmpx, then v_permlane, with no vector instruction between
//   gfx11, gfx12    a matrix product's result that is a factor of the next vector instruction, a product
//
// s_waitcnt_depctr with the right field 0 ends the first and the masks' case; memory instructions the
// first two.
#include <algorithm>

#include "checks/hazards.h"
#include "core/fault.h"
#include "decode/decode.h"

namespace ckemu {

namespace {

constexpr u64 kMostVector = 5, kMostTranscendental = 1;         // between a transcendental result and its use
constexpr u64 kMostAroundExec = 2, kMostBeforeUse = 4;          // vector instructions, of partial forwarding
constexpr u32 kVectorDestination = 12, kScalarDestination = 0;  // fields of s_waitcnt_depctr

/// Whether `code` waits until vector results (4 bits) or scalar ones (1 bit) are in their registers.
bool waits_for(const Code& c, u32 field) {
  if (c.inst->op != Op::s_waitcnt_depctr) return false;
  const u32 mask = field == kVectorDestination ? 15 : 1;
  return (static_cast<u32>(c.inst->simm) >> field & mask) == 0;
}

/// The operand by which a vector instruction takes a mask of lanes; None if it takes none.
const Source* mask_of(const Code& c) {
  for (u32 slot = 0; slot < 3; ++slot) {
    if (c.inst->src[slot].type == Type::MASK && c.src[slot].kind == Kind::Sgpr) return &c.src[slot];
  }
  return nullptr;
}

bool reads_other_scalar(const Code& c, const Source* mask) {
  for (const Source& source : c.src) {
    if (&source == mask) continue;
    if (source.kind == Kind::Sgpr && source.index < kExec) return true;
  }
  for (const Operand& operand : c.inst->src) {
    if (operand.kind == Kind::Constant && operand.literal == Literal::Literal32) return true;
  }
  return false;
}

}  // namespace

DependencyHazards::DependencyHazards(Family family, u32 rows, bool wide)
    : rdna3_(family == Family::Rdna3), wide_(wide), row_(rows) {}

void DependencyHazards::check_transcendental(Wave& w, const Code& c) const {
  for (const Source& source : c.src) {
    if (source.kind != Kind::Vgpr) continue;
    for (u32 n = source.index; n < source.index + std::max<u32>(1, source.dwords) && n < row_.size(); ++n) {
      const Write& write = row_[n];
      if (write.code == nullptr || (hazard_kinds(*write.code->inst, Family::Rdna3) & kHazardTrans) == 0) continue;
      const u64 vectors = vectors_ - write.vector - 1, others = transcendentals_ - write.transcendental - 1;
      if (vectors > kMostVector || others > kMostTranscendental) continue;
      Message text;
      text.add(
          "the transcendental result v%u is read after %llu vector instructions, without s_waitcnt_depctr va_vdst(0)",
          n, static_cast<unsigned long long>(vectors));
      raise_hazard(w, c, *write.code, text);
    }
  }
}

/// One source written before exec changed, another after it, and too few vector instructions between.
void DependencyHazards::check_forwarding(Wave& w, const Code& c) const {
  if (exec_write_ == nullptr) return;
  const Write *before = nullptr, *after = nullptr;
  for (const Source& source : c.src) {
    if (source.kind != Kind::Vgpr) continue;
    for (u32 n = source.index; n < source.index + std::max<u32>(1, source.dwords) && n < row_.size(); ++n) {
      const Write& write = row_[n];
      if (write.code == nullptr) continue;
      const Write*& latest = write.vector < exec_written_ ? before : after;
      if (latest == nullptr || write.vector > latest->vector) latest = &write;
    }
  }
  if (before == nullptr || after == nullptr) return;
  const u64 around = exec_written_ - before->vector - 1 + (after->vector - exec_written_);
  if (around > kMostAroundExec || vectors_ - after->vector - 1 > kMostBeforeUse) return;
  Message text;
  text.add("it reads this result and one from after exec changed, without s_waitcnt_depctr va_vdst(0)");
  raise_hazard(w, c, *before->code, text);
}

void DependencyHazards::check_matrix(Wave& w, const Code& c) const {
  if (matrix_ == nullptr || c.inst->matrix == nullptr) return;
  for (const RegisterSpan& result : written_registers(*matrix_)) {
    for (const RegisterSpan& factor : factor_registers(c)) {
      if (!result.overlaps(factor)) continue;
      Message text;
      text.add(
          "a matrix product's result is a factor of the next: a v_nop or an independent vector instruction is missing");
      raise_hazard(w, c, *matrix_, text);
    }
  }
}

void DependencyHazards::check_permlane(Wave& w, const Code& c) const {
  if (compare_exec_ == nullptr) return;
  Message text;
  text.add("v_cmpx writes exec before v_permlane: a vector instruction other than v_nop is missing");
  raise_hazard(w, c, *compare_exec_, text);
}

void DependencyHazards::check_mask(Wave& w, const Code& c) {
  for (const Source& source : c.src) {
    if (source.kind != Kind::Sgpr) continue;
    for (u32 n = source.index; n < source.index + std::max<u32>(1, source.dwords) && n < kExec; ++n) {
      if (mask_written_[n] == nullptr) continue;
      Message text;
      text.add(
          "s%u is a mask that a vector instruction has read, is then written and now read, without s_waitcnt_depctr "
          "sa_sdst(0)",
          n);
      raise_hazard(w, c, *mask_written_[n], text);
    }
  }
  for (const RegisterSpan& span : written_registers(c)) {
    for (u32 n = span.first; span.scalar && n < span.first + span.count && n < kM0; ++n) {
      if (mask_read_[n] != nullptr) mask_written_[n] = &c;
    }
  }
}

void DependencyHazards::note_masks(Wave&, const Code& c) {
  const Source* mask = mask_of(c);
  if (reads_other_scalar(c, mask)) {
    std::fill(std::begin(mask_read_), std::end(mask_read_), nullptr);
    std::fill(std::begin(mask_written_), std::end(mask_written_), nullptr);
  }
  if (mask == nullptr) return;
  for (u32 n = mask->index; n < mask->index + std::max<u32>(1, mask->dwords) && n < 128; ++n) mask_read_[n] = &c;
}

void DependencyHazards::forget() {
  std::fill(row_.begin(), row_.end(), Write{});
  exec_write_ = nullptr;
}

void DependencyHazards::note(const Wave&, const Code& c, u32 kinds) {
  const bool vector = (kinds & kHazardVector) != 0;
  for (const RegisterSpan& span : written_registers(c)) {
    if (span.scalar && (kinds & kHazardSalu) != 0 && span.first <= kExec && span.first + span.count > kExec) {
      exec_write_ = &c;
      exec_written_ = vectors_;
    }
    for (u32 n = span.first; vector && !span.scalar && n < span.first + span.count && n < row_.size(); ++n) {
      row_[n] = {&c, vectors_, transcendentals_};
    }
  }
  if (!vector) return;
  ++vectors_;
  transcendentals_ += (kinds & kHazardTrans) != 0;
  matrix_ = c.inst->matrix != nullptr ? &c : nullptr;
  if ((kinds & kHazardCompareExec) != 0) {
    compare_exec_ = &c;
  } else if (c.inst->op != Op::v_nop) {
    compare_exec_ = nullptr;
  }
}

void DependencyHazards::before(Wave& w, const Code& c, u32 kinds) {
  const bool vector = (kinds & kHazardVector) != 0;
  if (vector) check_matrix(w, c);
  if (rdna3_ && vector) check_transcendental(w, c);
  if (rdna3_ && (kinds & kHazardPermlane) != 0) check_permlane(w, c);
  if (rdna3_ && wide_ && vector) {
    check_forwarding(w, c);
    note_masks(w, c);
  }
  if (rdna3_ && wide_ && (kinds & kHazardSalu) != 0) check_mask(w, c);
  if ((kinds & kHazardData) != 0 || waits_for(c, kVectorDestination)) forget();
  if (waits_for(c, kScalarDestination)) std::fill(std::begin(mask_written_), std::end(mask_written_), nullptr);
  note(w, c, kinds);
}

}  // namespace ckemu
