// SPDX-License-Identifier: MIT
#include "checks/hazard_kinds.h"

#include "checks/names.h"
#include "core/immortal.h"
#include "decode/decode.h"

namespace ckemu {

namespace {

bool begins(const char* name, const char* start) { return std::strncmp(name, start, std::strlen(start)) == 0; }

struct NamedKind {
  const char* start;  // of the operation's name
  u32 kinds;
};
/// Kinds that follow from the name alone.
constexpr NamedKind kNamed[] = {
    {"v_exp", kHazardTrans},
    {"v_log", kHazardTrans},
    {"v_rcp", kHazardTrans},
    {"v_rsq", kHazardTrans},
    {"v_sqrt", kHazardTrans},
    {"v_sin", kHazardTrans},
    {"v_cos", kHazardTrans},
    {"v_s_", kHazardTrans},
    {"v_dot", kHazardDot},
    {"v_readlane", kHazardLane | kHazardReadLane | kHazardAnyLane},
    {"v_writelane", kHazardLane | kHazardAnyLane},
    {"v_readfirstlane", kHazardReadLane | kHazardAnyLane},
    {"v_permlane", kHazardPermlane},
    {"v_permlane16_swap", kHazardSwapLanes},
    {"v_permlane32_swap", kHazardSwapLanes},
    {"v_cmpx", kHazardCompareExec},
    {"v_div_fmas", kHazardDivFmas},
    {"v_fma_f64", kHazardFma64},
    {"v_fmac_f64", kHazardFma64},
    {"s_sendmsg", kHazardReadsM0},
    {"s_setreg", kHazardSetReg},
    {"s_getreg", kHazardGetReg},
};

/// Of each operation.
struct NamedKinds {
  u32 of[static_cast<size_t>(Op::kCount)] = {};
  NamedKinds() {
    for (size_t n = 0; n < static_cast<size_t>(Op::kCount); ++n) {
      const char* name = mnemonic(static_cast<Op>(n));
      for (const NamedKind& row : kNamed) {
        if (begins(name, row.start)) of[n] |= row.kinds;
      }
      if (has(name, "addtid") || has(name, "load_lds")) of[n] |= kHazardReadsM0;
    }
  }
};

u32 named_kinds(Op op) { return immortal<NamedKinds>().of[static_cast<size_t>(op)]; }

u32 matrix_kind(const MatrixShape& matrix, Family family) {
  if (matrix.d == Type::F64) return matrix.m == 4 ? kHazardF64Small : kHazardF64Large;
  const u32 kind = matrix.a == Type::F32 && family != Family::Cdna2 ? kHazardF32Matrix : kHazardXdl;
  return matrix.passes == 2 ? kind | kHazardTwoPasses : kind;
}

/// Whether the result is moved to other bits than the low ones.
bool shifts_result(const Inst& inst) {
  if (inst.form == Form::Sdwa) return inst.dst_sel != 6 && inst.enc != Encoding::VOPC;
  const bool bytes = inst.row != nullptr && (inst.row->flags & kFlagBytesel) != 0;
  return (inst.op_sel & 8) != 0 || (bytes && (inst.op_sel & 12) != 0);
}

u32 alu_kinds(const Inst& inst) {
  const u32 named = named_kinds(inst.op);
  u32 kinds = kHazardValu | named;
  if ((named & kHazardTrans) == 0) kinds |= kHazardPlain;
  if ((named & kHazardDot) == 0) kinds |= kHazardNoDot;
  if (inst.form == Form::Dpp || inst.form == Form::Dpp8) kinds |= kHazardDpp;
  return shifts_result(inst) ? kinds | kHazardShifted : kinds;
}

u32 memory_kinds(const Inst& inst) {
  const bool buffer = inst.enc == Encoding::MUBUF || inst.enc == Encoding::MTBUF;
  const Operand& data = inst.src[buffer ? 3 : 2];
  const bool wide = data.kind != Kind::None && data.dwords > 2 && !(buffer && inst.src[2].kind == Kind::Sgpr);
  return kHazardMemory | named_kinds(inst.op) | (wide ? kHazardWideStore : 0) | (inst.lds ? kHazardReadsM0 : 0);
}

void add(RegisterSpans& spans, const Source& source) {
  if (source.kind == Kind::Sgpr || source.kind == Kind::Vgpr)
    spans.add(source.kind == Kind::Sgpr, source.index, source.dwords);
}

bool is_inout(const Inst& inst) { return inst.row != nullptr && (inst.row->flags & kFlagInout) != 0; }

void add_result(RegisterSpans& spans, const Code& c) {
  if (c.dst_kind == Kind::Sgpr || c.dst_kind == Kind::Vgpr) spans.add(c.dst_kind == Kind::Sgpr, c.dst, c.dst_dwords);
}

}  // namespace

u32 hazard_kinds(const Inst& inst, Family family) {
  if (inst.matrix != nullptr) return matrix_kind(*inst.matrix, family);
  switch (inst.enc) {
    case Encoding::SOP1:
    case Encoding::SOP2:
    case Encoding::SOPC:
    case Encoding::SOPK:
    case Encoding::SOPP: return kHazardSalu | named_kinds(inst.op);
    case Encoding::SMEM: return 0;
    case Encoding::DS: return kHazardLocal | named_kinds(inst.op) | (inst.gds ? kHazardReadsM0 : 0);
    case Encoding::MUBUF:
    case Encoding::MTBUF:
    case Encoding::FLAT:
    case Encoding::GLOBAL:
    case Encoding::SCRATCH: return memory_kinds(inst);
    default: return alu_kinds(inst);
  }
}

/// Those of gfx950 of which its manual says nothing: twice the elements in the time of gfx942's instruction
/// of the same tile, four times as many 8-bit ones in twice the time, as AMD's peak rates imply; f64 has half
/// of gfx942's rate.
u32 passes_of(const MatrixShape& matrix, const Inst& inst) {
  if (matrix.passes != 0) return matrix.passes;
  if (matrix.d == Type::F64) return matrix.m == 4 ? 4 : 16;
  const u32 tile = matrix.m == 32 ? 8 : 4;
  constexpr u32 narrow = 2;  // cbsz and blgp from here on: 6 and 4 bits
  const bool mixed = matrix.a == Type::F8F6F4;
  return mixed && (inst.cbsz < narrow || inst.blgp < narrow) ? 2 * tile : tile;
}

RegisterSpans written_registers(const Code& c) {
  RegisterSpans spans;
  const Inst& inst = *c.inst;
  add_result(spans, c);
  if (inst.dst[1].kind != Kind::None) spans.add(inst.dst[1].kind == Kind::Sgpr, c.dst2, inst.dst[1].dwords);
  const u32 named = named_kinds(inst.op);
  if ((named & kHazardCompareExec) != 0) spans.add(true, kExec, 2);
  if ((named & kHazardSetReg) != 0) spans.add(true, kHardwareRegisters + (static_cast<u32>(inst.simm) & 63), 1);
  if ((named & kHazardSwapLanes) != 0 || inst.op == Op::v_swap_b32) add(spans, c.src[0]);
  return spans;
}

RegisterSpans read_registers(const Code& c, bool scalar) {
  RegisterSpans spans;
  for (const Source& source : c.src) {
    if ((source.kind != Kind::Vgpr) == scalar) add(spans, source);
  }
  if (is_inout(*c.inst) && !scalar) add_result(spans, c);
  return spans;
}

RegisterSpans flagged_registers(const Code& c) {
  RegisterSpans spans;
  for (const Source& source : c.src) {
    if (source.kind != Kind::Special) continue;
    if (source.index == kVccz) spans.add(true, kVcc, 2);
    if (source.index == kExecz) spans.add(true, kExec, 2);
  }
  return spans;
}

RegisterSpans source_register(const Code& c, u32 slot) {
  RegisterSpans spans;
  add(spans, c.src[slot]);
  return spans;
}

RegisterSpans stored_registers(const Code& c) {
  const bool buffer = c.inst->enc == Encoding::MUBUF || c.inst->enc == Encoding::MTBUF;
  return source_register(c, buffer ? 3 : 2);
}

RegisterSpans addend_registers(const Code& c) {
  if (!c.inst->matrix->sparse) return source_register(c, 2);
  RegisterSpans spans;
  add_result(spans, c);
  return spans;
}

RegisterSpans factor_registers(const Code& c) {
  RegisterSpans spans;
  add(spans, c.src[0]);
  add(spans, c.src[1]);
  if (c.inst->matrix->sparse) add(spans, c.src[2]);
  add(spans, c.src[3]);
  add(spans, c.src[4]);
  return spans;
}

}  // namespace ckemu
