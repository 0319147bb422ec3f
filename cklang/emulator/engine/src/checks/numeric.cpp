// SPDX-License-Identifier: MIT
#include "checks/numeric.h"

#include <algorithm>

#include "core/fault.h"
#include "decode/decode.h"

namespace ckemu {

namespace {

/// Where a format has its exponent, all ones of which mean infinity or NaN.
struct Format {
  u32 bits = 0;
  u64 exponent = 0, fraction = 0;
};

Format format_of(Type type) {
  switch (type) {
    case Type::F16: return {16, 0x7c00, 0x3ff};
    case Type::BF16: return {16, 0x7f80, 0x7f};
    case Type::F32: return {32, 0x7f800000, 0x7fffff};
    case Type::F64: return {64, u64{0x7ff} << 52, (u64{1} << 52) - 1};
    default: return {};
  }
}

u64 row_bits(const Wave& w, Kind kind, u32 row, u32 lane) { return kind == Kind::Vgpr ? w.v[row][lane] : w.s[row]; }

/// Products of matrices have a result in a lane of operands in others.
constexpr u64 kEverywhere = ~u64{0};

/// The half of a register that a 16-bit operand is: that of a source, or (slot 3) of the destination.
u32 shift_of(const Inst& inst, const Operand& operand, u32 slot) {
  const bool single = operand.elements == 1 && format_of(operand.type).bits == 16;
  return single && (inst.op_sel >> slot & 1) != 0 ? 16 : 0;
}

/// Steps of quotients, whose infinities are the operation's own.
bool is_step(Op op) {
  const char* name = mnemonic(op);
  return std::strstr(name, "div_") != nullptr || std::strstr(name, "rcp_iflag") != nullptr;
}

}  // namespace

Numeric::Lanes Numeric::look(const Wave& w, Kind kind, u32 index, const Operand& operand, u32 shift) {
  const Format format = format_of(operand.type);
  Lanes lanes;
  if (format.bits != 0 && kind == Kind::Constant && (operand.bits & format.exponent) == format.exponent) {
    return {(operand.bits & format.fraction) != 0 ? kEverywhere : 0, kEverywhere};
  }
  if (format.bits == 0 || (kind != Kind::Vgpr && kind != Kind::Sgpr)) return lanes;
  const u32 rows = std::max<u32>(1, operand.dwords), units = format.bits == 16 && operand.elements > 1 ? 2 : 1;
  const u32 step = format.bits == 64 ? 2 : 1;
  for (u32 lane = 0; lane < w.lanes; ++lane) {
    for (u32 row = index; row + step <= index + rows; row += step) {
      u64 word = row_bits(w, kind, row, lane);
      if (step == 2) word |= row_bits(w, kind, row + 1, lane) << 32;
      for (u32 unit = 0; unit < units; ++unit) {
        const u64 value = word >> (shift + 16 * unit);
        if ((value & format.exponent) != format.exponent) continue;
        lanes.infinite |= u64{1} << lane;
        if ((value & format.fraction) != 0) lanes.nan |= u64{1} << lane;
      }
    }
  }
  return lanes;
}

void Numeric::check(Wave& w) const {
  const Lanes now =
      look(w, last_->dst_kind, last_->dst, last_->inst->dst[0], shift_of(*last_->inst, last_->inst->dst[0], 3));
  const u64 nan = now.nan & exec_ & ~before_.nan, infinite = now.infinite & exec_ & ~before_.infinite;
  if ((nan | infinite) == 0) return;
  w.lane = __builtin_ctzll(nan != 0 ? nan : infinite);
  w.current = last_;
  raise(w, FaultKind::Instruction, "%s is born: of %s in lane %d no operand is one, and the result is",
        nan != 0 ? "a NaN" : "an infinity", mnemonic(last_->inst->op), w.lane);
}

void Numeric::before(Wave& w, const Code& c) {
  if (last_ != nullptr) check(w);
  last_ = nullptr;
  const Inst& inst = *c.inst;
  const bool computes = inst.enc != Encoding::DS && inst.enc != Encoding::SMEM && inst.row != nullptr;
  if (!computes || c.dst_kind != Kind::Vgpr || format_of(inst.dst[0].type).bits == 0 || is_step(inst.op)) return;
  before_ = {};
  for (u32 slot = 0; slot < 6; ++slot) {
    const Lanes lanes =
        look(w, c.src[slot].kind, c.src[slot].index, inst.src[slot], shift_of(inst, inst.src[slot], slot));
    before_.nan |= inst.matrix != nullptr && lanes.nan != 0 ? kEverywhere : lanes.nan;
    before_.infinite |= inst.matrix != nullptr && lanes.infinite != 0 ? kEverywhere : lanes.infinite;
  }
  exec_ = inst.matrix != nullptr ? kEverywhere : w.exec();
  last_ = &c;
}

}  // namespace ckemu
