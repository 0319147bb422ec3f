// SPDX-License-Identifier: MIT
//
// The second half of the decoder: modifiers, the second words of DPP and SDWA, memory modes and
// immediates. Only decode.cpp includes this.
#pragma once

#include "decode/decoder.h"

namespace ckemu {
namespace {

bool Decoder::mask_allowed(Field field, u32 allowed, u8& mask) {
  if (!has_field(field)) return true;
  const u32 bits = use(field);
  if (bits & ~allowed) return fail("%s 0x%x on an operand that does not take it", name_of(field), bits);
  mask = static_cast<u8>(bits);
  return true;
}

/// VOP3P sets op_sel_hi where an operand does not take it.
bool Decoder::fill_op_sel_hi() {
  if (!has_field(Field::op_sel_hi)) return true;
  const u32 bits = use(Field::op_sel_hi), allowed = row_->allowed.op_sel_hi;
  const u32 rest = is(Encoding::VOP3P) ? 7u & ~allowed : 0;
  if ((bits & ~allowed) != rest) return fail("op_sel_hi 0x%x, not allowed here", bits);
  inst_.op_sel_hi = static_cast<u8>(bits & allowed);
  return true;
}

bool Decoder::fill_modifiers() {
  const Allowed& allowed = row_->allowed;
  // The index sets of SWMMAC: half as many with 32 lanes, each of which holds twice as much.
  const bool sparse = rdna() && inst_.matrix && inst_.matrix->sparse;
  const u32 op_sel = sparse && !wave64_ ? allowed.op_sel >> 1u : allowed.op_sel;
  if (has(kFlagBitop3)) inst_.bitop3 = static_cast<u8>(use(Field::neg) | use(Field::abs) << 3 | use(Field::omod) << 6);
  else if (!mask_allowed(Field::neg, allowed.neg, inst_.neg) || !mask_allowed(Field::abs, allowed.abs, inst_.abs))
    return false;
  if (!mask_allowed(Field::neg_hi, allowed.neg_hi, inst_.neg_hi) ||
      !mask_allowed(Field::op_sel, op_sel, inst_.op_sel) || !fill_op_sel_hi())
    return false;
  struct Plain {
    Field field;
    bool allowed;
    u8* into;
  };
  u8 clamp = 0;
  if (dpp() && !fill_dpp()) return false;
  if (dpp() && spec_->dwords == 1) return true;
  if (inst_.form == Form::Sdwa) return fill_sdwa();
  const Plain plain[] = {{Field::clamp, allowed.clamp, &clamp},
                         {Field::omod, allowed.omod, &inst_.omod},
                         {Field::cbsz, allowed.cbsz, &inst_.cbsz},
                         {Field::abid, allowed.abid, &inst_.abid},
                         {Field::blgp, allowed.blgp, &inst_.blgp}};
  for (const Plain& p : plain) {
    if (!p.allowed || !has_field(p.field)) continue;
    *p.into = static_cast<u8>(use(p.field));
  }
  inst_.clamp = clamp;
  if (is(Encoding::MAI) && allowed.neg) inst_.neg = static_cast<u8>(use(Field::blgp));
  if (has(kFlagMix)) {
    inst_.abs = inst_.neg_hi;
    inst_.neg_hi = 0;
  }
  return true;
}

bool Decoder::fill_dpp() {
  if (inst_.form == Form::Dpp8) {
    inst_.dpp8 = use(Field::lanes);
    return true;
  }
  inst_.dpp_ctrl = static_cast<u16>(use(Field::dpp_ctrl));
  if (has_field(Field::fi)) inst_.fetch_inactive = use(Field::fi);
  inst_.bound_ctrl = use(Field::bound_ctrl);
  inst_.row_mask = static_cast<u8>(use(Field::row_mask));
  inst_.bank_mask = static_cast<u8>(use(Field::bank_mask));
  if (!has_field(Field::neg0)) return fill_dpp_control();
  const u32 neg = use(Field::neg0) | use(Field::neg1) << 1;
  const u32 abs = use(Field::abs0) | use(Field::abs1) << 1;
  if ((neg & ~row_->allowed.neg) || (abs & ~row_->allowed.abs))
    return fail("neg or abs on an operand that does not take it");
  inst_.neg = static_cast<u8>(neg);
  inst_.abs = static_cast<u8>(abs);
  return fill_dpp_control();
}

bool Decoder::fill_dpp_control() {
  bool known = false;
  auto check = [&](const DppRange& range) {
    known = known || (inst_.dpp_ctrl >= range.first && inst_.dpp_ctrl <= range.last);
  };
  if (rdna())
    for (const DppRange& range : kRdnaDppControls) check(range);
  else
    for (const DppRange& range : kDppControls) check(range);
  if (!known) return fail("dpp_ctrl 0x%x is reserved", inst_.dpp_ctrl);
  if (rdna()) return true;
  const bool wide = inst_.dst[0].dwords == 2 || inst_.src[0].dwords == 2;
  if (wide && inst_.dpp_ctrl < kRowNewBroadcast)
    return fail("64-bit DPP takes row_newbcast only, not dpp_ctrl 0x%x", inst_.dpp_ctrl);
  return true;
}

bool Decoder::fill_sdwa() {
  const bool two = inst_.src[1].kind != Kind::None;
  inst_.src_sel[0] = static_cast<u8>(use(Field::src0_sel));
  if (two) inst_.src_sel[1] = static_cast<u8>(use(Field::src1_sel));
  if (has_field(Field::dst_sel)) {
    inst_.dst_sel = static_cast<u8>(use(Field::dst_sel));
    inst_.dst_unused = static_cast<u8>(use(Field::dst_unused));
  }
  if (has_field(Field::clamp)) {
    inst_.clamp = use(Field::clamp);
    inst_.omod = static_cast<u8>(use(Field::omod));
    if (inst_.omod && (!row_->allowed.omod || is_integer(inst_.dst[0].type))) return fail("omod on an integer result");
  }
  if (has(kFlagNodstsel) && (inst_.dst_sel != 6 || inst_.dst_unused != 0))
    return fail("SDWA cannot select the destination");
  if (inst_.dst_sel > 6 || inst_.src_sel[0] > 6 || inst_.src_sel[1] > 6 || inst_.dst_unused > 2)
    return fail("reserved SDWA selector");
  const u32 neg = use(Field::neg0) | use(Field::neg1) << 1;
  const u32 abs = use(Field::abs0) | use(Field::abs1) << 1;
  const u32 sext = use(Field::sext0) | use(Field::sext1) << 1;
  if ((neg & ~row_->allowed.neg) || (abs & ~row_->allowed.abs))
    return fail("neg or abs on an operand that does not take it");
  for (u32 i = 0; i < 2; ++i)
    if ((sext >> i & 1) && ((row_->allowed.neg >> i & 1) || !is_integer(inst_.src[i].type)))
      return fail("sext on an operand that does not take it");
  inst_.neg = static_cast<u8>(neg);
  inst_.abs = static_cast<u8>(abs);
  inst_.sext = static_cast<u8>(sext);
  return true;
}

bool Decoder::fill_memory() {
  struct Flag {
    Field field;
    bool* into;
  };
  const Flag flags[] = {{Field::sc0, &inst_.sc0}, {Field::sc1, &inst_.sc1},     {Field::nt, &inst_.nt},
                        {Field::gds, &inst_.gds}, {Field::offen, &inst_.offen}, {Field::idxen, &inst_.idxen},
                        {Field::lds, &inst_.lds}};
  for (const Flag& flag : flags)
    if (has_field(flag.field)) *flag.into = use(flag.field);
  if (inst_.gds != has(kFlagGds)) return fail(inst_.gds ? "takes no gds" : "needs gds");
  if (inst_.lds && !has(kFlagLds)) return fail("cannot load to LDS");
  // Clang 22 sets bits of gfx90a's buffer_wbl2, which has none, and does not print them.
  if (has(kFlagNocache) && inst_.op == Op::buffer_wbl2) inst_.sc0 = inst_.sc1 = false;
  if (has(kFlagNocache) && (inst_.sc0 || inst_.nt || inst_.sc1)) return fail("takes no cache bits");
  if (has(kFlagScope) && inst_.nt) return fail("takes no nt bit");
  if (has_field(Field::th)) {
    inst_.th = static_cast<u8>(use(Field::th));
    inst_.scope = static_cast<u8>(use(Field::scope));
    const bool loads = !has(kFlagAtomic) && inst_.dst[0].kind != Kind::None;
    if ((has(kFlagAtomic) && (inst_.th == 5 || inst_.th == 7)) || (loads && inst_.th == 7))
      return fail("temporal hint %u is reserved", inst_.th);
    if (has(kFlagNocache) && (inst_.th || inst_.scope)) return fail("takes no cache bits");
    if (has(kFlagScope) && inst_.th) return fail("takes no temporal hint");
  }
  if (has_field(Field::format)) inst_.dfmt = static_cast<u8>(use(Field::format));
  if (has_field(Field::dfmt)) {
    inst_.dfmt = static_cast<u8>(use(Field::dfmt));
    inst_.nfmt = static_cast<u8>(use(Field::nfmt));
  }
  if (is(Encoding::DS)) {
    const u32 low = use(Field::offset0), high = use(Field::offset1);
    inst_.offset = static_cast<i32>(has(kFlagOffset2) ? low : low | high << 8);
    inst_.offset1 = static_cast<u8>(has(kFlagOffset2) ? high : 0);
  } else if (is_flat() || (is(Encoding::FLAT) && family_.gfx == 12)) {
    inst_.offset = sign_extend(use(Field::offset), family_.gfx == 12 ? 24 : 13);
  } else if (!is(Encoding::SMEM) && has_field(Field::offset)) {
    inst_.offset = static_cast<i32>(use(Field::offset));
  }
  if (has(kFlagNooffset) && inst_.src[1].kind != Kind::None && is(Encoding::GLOBAL)) return fail("takes no address");
  if (has(kFlagNooffset) && (inst_.offset || inst_.offen || inst_.idxen)) return fail("takes no offset");
  return true;
}

bool Decoder::fill_immediate() {
  if (!has_field(Field::simm16) || row_->immediate == Immediate::None) return true;
  const u32 bits = use(Field::simm16);
  const bool is_signed = row_->immediate == Immediate::Simm16 || row_->immediate == Immediate::Label;
  if (row_->immediate == Immediate::Uimm4 && bits > 15) return fail("immediate %u is above 15", bits);
  inst_.simm = is_signed ? sign_extend(bits, 16) : static_cast<i32>(bits);
  return true;
}

}  // namespace
}  // namespace ckemu
