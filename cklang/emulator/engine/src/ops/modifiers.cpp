// SPDX-License-Identifier: MIT
#include "ops/modifiers.h"

#include "decode/decode.h"
#include "ops/float_ops.h"
#include "ops/handlers.h"
#include "ops/rounding.h"

namespace ckemu {

namespace {

bool is_vop(const Inst& inst) {
  switch (inst.enc) {
    case Encoding::VOP1:
    case Encoding::VOP2:
    case Encoding::VOPC:
    case Encoding::VOP3:
    case Encoding::VOP3B: return true;
    default: return false;
  }
}
bool is_float(Type type) { return type == Type::F16 || type == Type::F32 || type == Type::F64 || type == Type::BF16; }
bool is_half(const Operand& operand) {
  const Type type = operand.type;
  return operand.elements == 1 &&
         (type == Type::F16 || type == Type::BF16 || type == Type::I16 || type == Type::U16 || type == Type::B16);
}

/// 16-bit operations that keep the other half of their destination.
constexpr Op kKeepHalf[] = {
    Op::v_fma_f16,        Op::v_mad_f16,        Op::v_mad_u16,         Op::v_mad_i16,  Op::v_div_fixup_f16,
    Op::v_min3_f16,       Op::v_max3_f16,       Op::v_med3_f16,        Op::v_min3_u16, Op::v_max3_u16,
    Op::v_med3_u16,       Op::v_min3_i16,       Op::v_max3_i16,        Op::v_med3_i16, Op::v_ashr_pk_i8_i32,
    Op::v_ashr_pk_u8_i32, Op::v_cvt_sr_f16_f32, Op::v_cvt_sr_bf16_f32,
};
bool keeps_half(Op op) {
  for (const Op kept : kKeepHalf) {
    if (kept == op) return true;
  }
  return false;
}

/// RDNA's operations for which op_sel says how inactive lanes are read, or which halves they swap.
bool own_lane_control(Op op) {
  return op == Op::v_permlane16_b32 || op == Op::v_permlanex16_b32 || op == Op::v_permlane16_var_b32 ||
         op == Op::v_permlanex16_var_b32 || op == Op::v_swap_b16;
}

/// Operations that use op_sel (or other modifier bits) in their own way.
constexpr Op kOwnSelect[] = {
    Op::v_cvt_f32_fp8,    Op::v_cvt_f32_bf8,    Op::v_cvt_pk_f32_fp8, Op::v_cvt_pk_f32_bf8,
    Op::v_cvt_pk_fp8_f32, Op::v_cvt_pk_bf8_f32, Op::v_cvt_sr_fp8_f32, Op::v_cvt_sr_bf8_f32,
};
bool scaled_conversion(Op op) { return std::strncmp(mnemonic(op), "v_cvt_scalef32_", 15) == 0; }
bool selects_itself(Op op) {
  if (scaled_conversion(op) || own_lane_control(op)) return true;
  for (const Op own : kOwnSelect) {
    if (own == op) return true;
  }
  return false;
}

bool dpp_known(u32 ctrl) {
  return ctrl < 0x100 || (ctrl > 0x100 && ctrl <= 0x12f && (ctrl & 15) != 0) || ctrl == 0x130 || ctrl == 0x134 ||
         ctrl == 0x138 || ctrl == 0x13c || (ctrl >= 0x140 && ctrl <= 0x143) || (ctrl >= 0x150 && ctrl <= 0x16f);
}
bool moves_lanes(const Inst& inst) { return inst.form == Form::Dpp || inst.form == Form::Dpp8; }

/// Moves src0 between lanes; the lanes that the instruction then runs for.
u64 apply_dpp(const Wave& w, const Inst& inst, u32* row, int dwords) {
  u32 old[2][kLanes];
  std::memcpy(old, row, sizeof(u32) * kLanes * static_cast<size_t>(dwords));
  const u64 exec = w.exec();
  u64 enabled = 0;
  for (int l = 0; l < kLanes; ++l) {
    const bool masked = (inst.row_mask >> (l / 16) & 1) == 0 || (inst.bank_mask >> (l / 4 % 4) & 1) == 0;
    const bool of8 = inst.form == Form::Dpp8;
    const int in8 = l & 7,
              from = of8 ? (l & ~7) | static_cast<int>(inst.dpp8 >> 3 * in8 & 7) : dpp_source(inst.dpp_ctrl, l);
    const bool valid = from >= 0 && (inst.fetch_inactive || (exec >> from & 1) != 0);
    if (masked || (!valid && !inst.bound_ctrl && !of8)) continue;
    enabled |= u64{1} << l;
    for (int n = 0; n < dwords; ++n) row[n * kLanes + l] = valid ? old[n][from] : 0;
  }
  return exec & enabled;
}

u32 select_part(u32 value, u32 select, bool sign) {
  if (select == 6) return value;
  const int bits = select < 4 ? 8 : 16;
  const int low = select < 4 ? 8 * static_cast<int>(select) : 16 * static_cast<int>(select - 4);
  const u32 up = value << (32 - bits - low);
  return sign ? static_cast<u32>(static_cast<i32>(up) >> (32 - bits)) : up >> (32 - bits);
}

/// Brings source `slot` into its spare row with everything but DPP applied.
void prepare(Wave& w, const Code& c, int slot, u32* row) {
  const Inst& inst = *c.inst;
  const int dwords = c.src[slot].dwords == 2 ? 2 : 1;
  std::memcpy(row, source_row(w, c, slot), sizeof(u32) * kLanes * static_cast<size_t>(dwords));
  if (inst.enc == Encoding::VOP3P) return;
  const u32 bit = 1u << slot;
  if (inst.form == Form::Sdwa && slot < 2) {
    const u32 select = inst.src_sel[slot];
    for (int l = 0; l < kLanes; ++l) row[l] = select_part(row[l], select, (inst.sext & bit) != 0);
  } else if ((inst.op_sel & bit) != 0) {
    for (int l = 0; l < kLanes; ++l) row[l] >>= 16;
  }
  u32* top = row + (dwords - 1) * kLanes;
  const u32 sign = is_half(inst.src[slot]) ? 0x8000u : 0x80000000u;
  if ((inst.abs & bit) != 0) {
    for (int l = 0; l < kLanes; ++l) top[l] &= ~sign;
  }
  if ((inst.neg & bit) != 0) {
    for (int l = 0; l < kLanes; ++l) top[l] ^= sign;
  }
}

template <class T>
T scale_and_clamp(T value, const Inst& inst) {
  constexpr T factor[4] = {1, 2, 4, T(0.5)};
  value *= factor[inst.omod];
  if (inst.clamp) value = value > 0 ? (value < 1 ? value : T(1)) : T(0);  // NaN becomes 0
  return value;
}

u16 finish_half(u16 half, const Inst& inst) { return to_f16(scale_and_clamp(from_f16(half), inst)); }
void finish_floats(const Wave& w, const Inst& inst, u32* row) {
  const bool pair = inst.dst[0].elements == 2;
  each_lane(w, [&](int l) {
    if (inst.dst[0].type == Type::F16) {
      const u32 low = finish_half(static_cast<u16>(row[l]), inst);
      const u16 high = static_cast<u16>(row[l] >> 16);
      row[l] = low | u32{pair ? finish_half(high, inst) : high} << 16;
    } else if (inst.dst[0].type == Type::F64) {
      set_lane(row, l, scale_and_clamp(get_lane<double>(row, l), inst));
    } else {
      set_lane(row, l, scale_and_clamp(get_lane<float>(row, l), inst));
      if (pair) set_lane(row + kLanes, l, scale_and_clamp(get_lane<float>(row + kLanes, l), inst));
    }
  });
}

/// Puts the result's part into the destination as SDWA or op_sel say.
void deliver(const Wave& w, const Inst& inst, const u32* result, u32* row) {
  u32 select = 4 + (inst.op_sel >> 3 & 1), unused = 2;  // a half of the register, the other kept
  if (inst.form == Form::Sdwa) {
    select = inst.dst_sel;
    unused = inst.dst_unused;
  }
  const int bits = select == 6 ? 32 : select < 4 ? 8 : 16;
  const int low = select == 6 ? 0 : select < 4 ? 8 * static_cast<int>(select) : 16 * static_cast<int>(select - 4);
  const u32 mask = bits == 32 ? ~0u : ((1u << bits) - 1) << low;
  each_lane(w, [&](int l) {
    const u32 value = (result[l] << low) & mask;
    u32 rest = unused == 2 ? row[l] & ~mask : 0;
    if (unused == 1 && bits < 32 && (value >> (low + bits - 1) & 1) != 0) {
      rest = low + bits < 32 ? ~0u << (low + bits) : 0;
    }
    row[l] = value | rest;
  });
}

}  // namespace

int dpp_source(u32 ctrl, int l) {
  const int row = l & ~15, in_row = l & 15, n = static_cast<int>(ctrl & 15);
  if (ctrl < 0x100) return (l & ~3) | (ctrl >> (2 * (l & 3)) & 3);
  if (ctrl <= 0x10f) return in_row + n < 16 ? l + n : -1;
  if (ctrl <= 0x11f) return in_row >= n ? l - n : -1;
  if (ctrl <= 0x12f) return row | ((in_row - n) & 15);
  switch (ctrl) {
    case 0x130: return l + 1 < kLanes ? l + 1 : -1;
    case 0x134: return (l + 1) % kLanes;
    case 0x138: return l - 1;
    case 0x13c: return (l + kLanes - 1) % kLanes;
    case 0x140: return row | (15 - in_row);
    case 0x141: return (l & ~7) | (7 - (l & 7));
    case 0x142: return row - 1;
    case 0x143: return l >= 32 ? 31 : -1;
    default: return row | (ctrl < 0x160 ? n : in_row ^ n);  // row_newbcast or row_share; row_xmask
  }
}

ModifierPlan plan_modifiers(const Inst& inst) {
  ModifierPlan plan;
  const bool compare = inst.dst[0].kind == Kind::Sgpr;
  if (inst.enc == Encoding::VOP3P) {
    const bool mixed = (inst.row->flags & kFlagMix) != 0;
    const bool own = inst.matrix != nullptr || inst.op == Op::v_dot4_i32_iu8 || inst.op == Op::v_dot8_i32_iu4;
    const bool negates = (inst.neg | inst.neg_hi) != 0 && !mixed && !own;
    if (negates && !is_float(inst.src[0].type)) plan.refusal = "neg of packed integers";
    if (!moves_lanes(inst)) return plan;
    plan.prepared = 1;  // moved between lanes, and nothing else: halves and signs are the operation's
    if (inst.clamp) plan.refusal = "DPP with clamp";
    return plan;
  }
  if (!is_vop(inst) || inst.op == Op::v_bitop3_b32 || inst.op == Op::v_bitop3_b16) return plan;
  if ((inst.op == Op::v_permlane16_swap_b32 || inst.op == Op::v_permlane32_swap_b32) && inst.op_sel != 0) {
    plan.refusal = "fetch_inactive or bound_ctrl";
    return plan;
  }
  const bool own = selects_itself(inst.op) && inst.form != Form::Sdwa;
  plan.prepared = inst.neg | inst.abs;
  if (scaled_conversion(inst.op) && (plan.prepared & 1) != 0 && inst.src[0].dwords != inst.src[0].elements) {
    plan.refusal = "neg or abs of a narrow operand";
  }
  if (!own) plan.prepared |= inst.op_sel & 7;
  if (inst.form == Form::Sdwa) {
    for (int slot = 0; slot < 2; ++slot) {
      if (inst.src[slot].kind != Kind::None && inst.src_sel[slot] != 6) plan.prepared |= 1 << slot;
    }
    plan.redirected = !compare && (inst.dst_sel != 6);
  } else if (!compare && !own) {
    plan.redirected = keeps_half(inst.op) || (inst.op_sel & 8) != 0 || inst.dst[0].half;
  }
  if (moves_lanes(inst)) {
    plan.prepared |= 1;
    if (inst.form == Form::Dpp && !dpp_known(inst.dpp_ctrl)) plan.refusal = "this DPP control";
  }
  return plan;
}

void modified(Wave& w, const Code& c) {
  const Inst& inst = *c.inst;
  const ModifierPlan& plan = *static_cast<const ModifierPlan*>(c.detail);
  const u64 exec = w.exec();
  for (int slot = 0; slot < 3; ++slot) {
    if ((plan.prepared >> slot & 1) == 0) continue;
    prepare(w, c, slot, w.v[w.rows + kSpareSource + 2 * static_cast<u32>(slot)]);
  }
  u64 running = exec;
  if (moves_lanes(inst)) {
    running = apply_dpp(w, inst, w.v[w.rows + kSpareSource], c.src[0].dwords == 2 ? 2 : 1);
    w.set_exec(running);
  }
  u32* result = plan.redirected ? w.v[w.rows + kSpareResult] : w.v[c.dst];
  if (plan.redirected) {
    const int half = inst.dst[0].half && (inst.op_sel & 8) != 0 ? 16 : 0;  // the operand of v_fmac_f16
    for (int l = 0; l < kLanes; ++l) result[l] = w.v[c.dst][l] >> half;
  }
  c.link->fn(w, *c.link);
  if (c.dst_kind == Kind::Vgpr && is_float(inst.dst[0].type) && (inst.omod != 0 || inst.clamp)) {
    finish_floats(w, inst, result);
  }
  if (plan.redirected) deliver(w, inst, result, w.v[c.dst]);
  if (running != exec && w.exec() == running) w.set_exec(exec);
}

}  // namespace ckemu
