// SPDX-License-Identifier: MIT
//
// The decoder: match the encoding, find the row, take the fields apart, resolve the operands. Every
// bit of an instruction is claimed by the encoding's identity, its opcode or a field; a field that
// the row does not use must be zero.
#include "decode/decode.h"

#include "core/base.h"
#include "decode/decode_modifiers.h"
#include "decode/decode_tables.h"
#include "decode/decoder.h"

namespace ckemu {
namespace {

struct Gpu {
  const char* name;
  Family family;
  u32 machine;  // EF_AMDGPU_MACH
};
constexpr Gpu kGpus[] = {
#include "gpus.inc"
};

bool Decoder::fail(const char* format, ...) {
  error_.word_count = count_ < 4 ? static_cast<u32>(count_) : 4;
  for (u32 i = 0; i < error_.word_count; ++i) error_.words[i] = words_[i];
  va_list arguments;
  va_start(arguments, format);
  const int used = row_ ? std::snprintf(error_.reason, sizeof error_.reason, "%s: ", mnemonic(row_->op)) : 0;
  std::vsnprintf(error_.reason + used, sizeof error_.reason - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  return false;
}

bool Decoder::find_row() {
  if (count_ == 0) return fail("no words");
  const EncodingSpec* closest = nullptr;  // the most specific encoding that matches
  u32 closest_opcode = 0;
  for (u8 i = 0; i < family_.encoding_count; ++i) {
    const EncodingSpec& spec = family_.encodings[i];
    // Second words have no opcode; the second half of a dual instruction has no identity.
    if (spec.opcode_width == 0 || spec.mask[0] == 0) continue;
    if ((words_[0] & spec.mask[0]) != spec.match[0]) continue;
    bool matches = true;
    for (u32 w = 1; w < spec.dwords; ++w)
      matches = matches && (spec.mask[w] == 0 || (w < count_ && (words_[w] & spec.mask[w]) == spec.match[w]));
    if (!matches || spec.opcode_low / 32 >= count_) continue;
    const u32 opcode = bits_at(words_, spec.opcode_low, spec.opcode_width);
    const Row* row = family_.row(spec.enc, opcode);
    if (!row) {
      const bool closer = !closest || __builtin_popcount(spec.mask[0]) > __builtin_popcount(closest->mask[0]);
      closest = closer ? &spec : closest;
      closest_opcode = closer ? opcode : closest_opcode;
      continue;
    }
    row_ = row;
    spec_ = &spec;
    if (count_ < spec.dwords) return fail("needs %d words, %zu are left", spec.dwords, count_);
    dwords_ = spec.dwords;
    take_fields(spec);
    inst_.op = row->op;
    inst_.enc = spec.enc;
    inst_.row = row;
    inst_.matrix = row->matrix < 0 ? nullptr : &family_.matrices[row->matrix];
    if (!is(Encoding::VOPD)) return true;
    if (wave64_) return fail("dual instructions need waves of 32 lanes");
    inst_.row_y = family_.row(Encoding::VOPDY, use(Field::opy));
    if (!inst_.row_y) return fail("%s has no VOPDY opcode %u", family_.arch, value(Field::opy));
    inst_.op_y = inst_.row_y->op;
    return true;
  }
  if (closest) return fail("%s has no %s opcode %u", family_.arch, encoding_name(closest->enc), closest_opcode);
  return fail("no encoding of %s starts with 0x%08x", family_.arch, words_[0]);
}

void Decoder::take_fields(const EncodingSpec& spec) {
  for (u32 w = 0; w < 4; ++w) claimed_[w] |= spec.mask[w] | spec.ignored[w];
  auto claim = [&](u32 low, u32 width) {
    if (width) claimed_[low / 32] |= (0xffffffffu >> (32 - width)) << low % 32;
  };
  claim(spec.opcode_low, spec.opcode_width);
  for (u8 i = 0; i < spec.fields; ++i) {
    const FieldSpec& field = family_.fields[spec.first_field + i];
    claim(field.low, field.width);
    claim(field.low2, field.width2);
    values_[static_cast<size_t>(field.field)] =
        bits_at(words_, field.low, field.width) | bits_at(words_, field.low2, field.width2) << field.width;
    present_[static_cast<size_t>(field.field)] = true;
  }
}

bool Decoder::take_second_word() {
  const u32 code = value(Field::src0);
  const bool sdwa = code == kSdwaCode && spec_->sdwa != spec_->enc;
  const bool dpp = code == kDppCode && spec_->dpp != spec_->enc;
  const bool dpp8 = (code == kDpp8Code || code == kDpp8FiCode) && spec_->dpp8 != spec_->enc;
  if (!sdwa && !dpp && !dpp8) return true;
  if (!has(sdwa ? kFlagSdwa : spec_->dwords > 1 ? kFlagDpp3 : kFlagDpp))
    return fail("has no %s form", sdwa ? "SDWA" : "DPP");
  inst_.form = sdwa ? Form::Sdwa : dpp ? Form::Dpp : Form::Dpp8;
  inst_.fetch_inactive = code == kDpp8FiCode;
  const EncodingSpec& word = *family_.encoding(sdwa ? spec_->sdwa : dpp ? spec_->dpp : spec_->dpp8);
  if (count_ < word.dwords)
    return word.dwords == 2 ? fail("needs 2 words, 1 is left")
                            : fail("needs %d words, %zu are left", word.dwords, count_);
  dwords_ = word.dwords;
  take_fields(word);
  return true;
}

bool Decoder::claim_all_bits() {
  for (u32 w = 0; w < dwords_; ++w)
    if (const u32 reserved = words_[w] & ~claimed_[w])
      return fail("reserved bit %d is set", static_cast<int>(w * 32) + __builtin_ctz(reserved));
  return true;
}

bool Decoder::take_literal() {
  if (literal_taken_) return true;
  if (count_ <= dwords_) return fail("the literal constant is missing");
  literal_ = words_[dwords_++];
  return literal_taken_ = true;
}

/// RDNA: new assemblers put the constant 0 into a source that an instruction does not have, so that
/// it does not seem to read s0.
bool Decoder::placeholder(Field field) const {
  const bool source = field == Field::src0 || field == Field::src1 || field == Field::src2;
  return rdna() && source && value(field) == kZeroCode;
}

bool Decoder::check_unused_fields() {
  inst_.bytes = static_cast<u8>(dwords_ * 4);
  for (size_t f = 0; f < kFieldCount; ++f)
    if (present_[f] && !used_[f] && values_[f] != 0 && !placeholder(static_cast<Field>(f)))
      return fail("field %s is %u, but this instruction does not use it", kFieldNames[f], values_[f]);
  return true;
}

bool Decoder::resolve_operands() {
  return resolve_half(*row_, inst_.dst, inst_.src) &&
         (!inst_.row_y || resolve_half(*inst_.row_y, inst_.dst + 1, inst_.src + 3));
}

bool Decoder::resolve_half(const Row& row, Operand* dst, Operand* src) {
  const bool returns = !has(kFlagAtomic) || (has_field(Field::th) ? value(Field::th) & 1 : value(Field::sc0));
  for (u8 i = 0; i < row.operands; ++i) {
    const OperandSpec& spec = family_.operands[row.first_operand + i];
    Operand& operand = spec.slot < 2 ? dst[spec.slot] : src[spec.slot - 2];
    if (spec.slot == 0 && (!returns || value(Field::lds))) continue;
    operand.type = spec.type;
    operand.elements = spec.elements;
    operand.dwords = spec.dwords;
    resize(spec, operand);
    if (!resolve(spec, operand)) return false;
  }
  return true;
}

/// RDNA: the tables are for 32 lanes; with 64 a mask doubles, and a matrix operand, of which each
/// lane holds a share, halves (gfx11 gives each half of the wave a copy of A and B).
void Decoder::resize(const OperandSpec& spec, Operand& operand) const {
  if (!rdna()) return;
  if (spec.type == Type::MASK) operand.dwords = wave64_ ? 2 : 1;
  if (!inst_.matrix || !wave64_ || operand.dwords == 1) return;
  const bool copied = family_.gfx == 11 && (spec.field == Field::src0 || spec.field == Field::src1);
  if (copied) return;
  operand.dwords /= 2;
  operand.elements /= 2;
}

/// Address operands that mode bits switch off or resize. `skip` is set if nothing is left to do.
bool Decoder::absent(const OperandSpec& spec, Operand& operand, bool& skip) {
  skip = false;
  switch (spec.field) {
    case Field::vaddr: {
      const u32 parts = use(Field::offen) + use(Field::idxen);
      operand.dwords = static_cast<u8>(parts);
      skip = parts == 0;
      break;
    }
    case Field::saddr:
      use(Field::saddr);
      skip = is_flat() && no_saddr();
      break;
    case Field::addr:
      if (is(Encoding::GLOBAL)) operand.dwords = no_saddr() ? 2 : 1;
      if (is(Encoding::SCRATCH)) skip = has_field(Field::sve) ? !use(Field::sve) : !no_saddr();
      break;
    case Field::soffset: return is(Encoding::SMEM) ? smem_offset(spec, operand) && (skip = true) : true;
    default: break;
  }
  if (skip) operand = Operand{};
  return true;
}

/// An SMEM offset is an immediate, a register, or both; alone the register sits in the immediate.
/// On RDNA there is always an immediate, and the register may be null.
bool Decoder::smem_offset(const OperandSpec& spec, Operand& operand) {
  if (rdna()) {
    inst_.offset = sign_extend(use(Field::offset), family_.gfx == 11 ? 21 : 24);
    if (use(Field::soffset) != kNullCode) return resolve_code(spec, value(Field::soffset), operand);
    operand = Operand{};
    return true;
  }
  const bool immediate = use(Field::imm), both = use(Field::soffset_en);
  const u32 offset = use(Field::offset);
  if (!immediate && both) return fail("soffset_en without imm");
  inst_.offset = immediate ? sign_extend(offset, 21) : 0;
  if (both) return resolve_code(spec, use(Field::soffset), operand);
  if (!immediate) {
    if (offset > 127) return fail("offset register %u", offset);
    return resolve_code(spec, offset, operand);
  }
  operand = Operand{};
  return true;
}

bool Decoder::resolve(const OperandSpec& spec, Operand& operand) {
  bool skip = false;
  if (!absent(spec, operand, skip)) return false;
  if (skip) return true;
  if (spec.operand_class == Class::Vcc) {
    if (inst_.form == Form::Sdwa && spec.slot == 0 && use(Field::sdst_en))
      return scalar_register(use(Field::sdst), operand);
    return scalar_register(kVcc, operand);
  }
  if (spec.operand_class == Class::Exec) {
    if (has_field(Field::vdst) && use(Field::vdst) != kExec) return fail("the result must be exec");
    return scalar_register(kExec, operand);
  }
  if (spec.operand_class == Class::Literal) {
    if (!take_literal()) return false;
    return constant(spec, kLiteralCode, operand);
  }
  if (inst_.form == Form::Sdwa && spec.slot >= 2) return sdwa_source(spec, operand);
  u32 code = use(spec.field);
  if (dpp() && spec.field == Field::src0) {
    half_register(spec, code, operand);
    return vector_register(code, false, operand);
  }
  if (dpp() && spec.field == Field::src1 && family_.gfx == 11 && spec_->dwords > 1 && code < 256)
    return fail("src1 must be a vector register with DPP");
  if (spec.field == Field::y_vdst) code = code << 1 | (~value(Field::vdst) & 1);
  if (spec.field == Field::sdata && spec.operand_class != Class::Imm &&
      (code == (rdna() ? kM0Code : +kM0) || code >= kExec))
    return fail("data cannot be m0 or exec");
  if (spec.field == Field::saddr && (is(Encoding::GLOBAL) || rdna()) && code >= kExec)
    return fail("saddr cannot be exec");
  const bool base = spec.field == Field::sbase || spec.field == Field::srsrc;
  if (spec.field == Field::sbase) code *= 2;
  if (spec.field == Field::srsrc && family_.gfx < 12) code *= 4;
  if (base && rdna() && code == kNullCode) return fail("%s cannot be null", name_of(spec.field));
  return resolve_code(spec, code, operand);
}

bool Decoder::sdwa_source(const OperandSpec& spec, Operand& operand) {
  const bool first = spec.field == Field::src0;
  const u32 scalar = use(first ? Field::scalar0 : Field::scalar1), code = use(spec.field);
  if (!scalar) return vector_register(code, false, operand);
  OperandSpec source = spec;
  source.operand_class = Class::Scalar;
  if (code == kLiteralCode) return fail("SDWA takes no literal constant");
  return resolve_code(source, code, operand);
}

/// Whether a data operand lives in the accumulation registers.
bool Decoder::accumulator_bit(const OperandSpec& spec) {
  if (!has_field(Field::acc_cd)) return use(Field::acc);
  if (spec.field == Field::src0) return use(Field::acc) & 1;
  if (spec.field == Field::src1) return use(Field::acc) & 2;
  return use(Field::acc_cd);
}

bool Decoder::resolve_code(const OperandSpec& spec, u32 code, Operand& operand) {
  if (spec.type == Type::F8F6F4) {
    const u32 format = use(spec.field == Field::src0 ? Field::cbsz : Field::blgp);
    if (format >= sizeof kF8F6F4Dwords) return fail("matrix format %u", format);
    operand.dwords = kF8F6F4Dwords[format];
  }
  // Scalar fields have at most 8 bits; in the 9-bit ones 256 and up are vector registers.
  u32 width = 0;
  for (u8 i = 0; i < spec_->fields; ++i) {
    const FieldSpec& field = family_.fields[spec_->first_field + i];
    if (field.field == spec.field) width = field.width;
  }
  const bool vector_code = width < 9 || code >= 256;
  u32 index = width < 9 ? code : code - 256;
  switch (spec.operand_class) {
    case Class::Vgpr:
    case Class::Agpr:
    case Class::Data:
      if (!vector_code) return fail("%s must be a vector register", name_of(spec.field));
      half_register(spec, index, operand);
      return vector_register(
          index, spec.operand_class == Class::Agpr || (spec.operand_class == Class::Data && accumulator_bit(spec)),
          operand);
    case Class::Any:
    case Class::Acc:
      if (width == 9 && code >= 256) {
        half_register(spec, index, operand);
        return vector_register(index, spec.operand_class == Class::Acc && accumulator_bit(spec), operand);
      }
      if (spec.operand_class == Class::Acc && has_field(Field::acc_cd)) use(Field::acc_cd);
      if (spec.operand_class == Class::Acc && code < 128)
        return fail("%s must be a vector register or a constant", name_of(spec.field));
      break;
    case Class::Sreg:
      if (code >= 128) return fail("%s must be a scalar register", name_of(spec.field));
      return scalar_register(code, operand);
    case Class::Lane:
      if (code >= 209) return fail("%s must be a scalar register or an integer", name_of(spec.field));
      break;
    case Class::Null:
      if (code != kNullCode) return fail("%s must be null", name_of(spec.field));
      break;
    case Class::Barrier:
      if (code != kM0Code && (code < 128 || code > 208))
        return fail("%s must be m0 or an integer", name_of(spec.field));
      break;
    case Class::Imm:
      if (spec.field == Field::sdata && code > 31) return fail("immediate %u is above 31", code);
      if (spec.field == Field::ssrc1 && code > 15) return fail("immediate %u is above 15", code);
      operand.kind = Kind::Constant;
      operand.bits = code;
      return true;
    default: break;
  }
  if (code < 128) return scalar_register(code, operand);
  return constant(spec, code, operand);
}

/// RDNA: in a 32-bit encoding a 16-bit operand has its half in bit 7 of the register number, so it
/// reaches registers 0 to 127. The half goes where the 64-bit encodings have it: into op_sel.
void Decoder::half_register(const OperandSpec& spec, u32& index, Operand& operand) {
  operand.half = rdna() && spec.bits * spec.elements == 16 && is_vector_alu(spec_->enc) && !is(Encoding::VOP3P);
  if (!operand.half || spec_->dwords > 1) return;
  const u32 bit = spec.slot < 2 ? 3 : spec.slot - 2u;
  inst_.op_sel |= static_cast<u8>((index >> 7) << bit);
  index &= 127;
}

bool Decoder::vector_register(u32 index, bool accumulator, Operand& operand) {
  operand.kind = accumulator ? Kind::Agpr : Kind::Vgpr;
  operand.index = static_cast<u16>(index);
  const char file = accumulator ? 'a' : 'v';
  if (index + operand.dwords > 256)
    return fail("%c[%u:%u] is beyond register 255", file, index, index + operand.dwords - 1);
  if (!rdna() && operand.dwords > 1 && index % 2)
    return fail("%c[%u:%u] must start at an even register", file, index, index + operand.dwords - 1);
  return true;
}

bool Decoder::scalar_register(u32 code, Operand& operand) {
  operand.kind = Kind::Sgpr;
  operand.index = static_cast<u16>(code);
  if (rdna() && code == kNullCode) {
    operand.index = kNull;
    return true;
  }
  if (rdna() && code == kM0Code) operand.index = kM0;
  const ScalarGroup* groups = rdna() ? kRdnaScalarGroups : kScalarGroups;
  const size_t count =
      rdna() ? sizeof kRdnaScalarGroups / sizeof *kRdnaScalarGroups : sizeof kScalarGroups / sizeof *kScalarGroups;
  for (size_t i = 0; i < count; ++i) {
    const ScalarGroup& group = groups[i];
    if (code < group.first || code >= group.end) continue;
    if (code + operand.dwords > group.end)
      return fail("scalar registers %u..%u are not one group", code, code + operand.dwords - 1);
    const u32 alignment = operand.dwords > 2 ? 4 : operand.dwords;
    if (alignment > 1 && code % alignment) return fail("scalar register %u is not aligned to %u", code, alignment);
    return true;
  }
  return fail("scalar register code %u is reserved", code);
}

bool Decoder::constant(const OperandSpec& spec, u32 code, Operand& operand) {
  operand.kind = Kind::Constant;
  operand.index = static_cast<u16>(code);
  const bool wide = spec.bits == 64;
  if (code <= 208) {
    operand.literal = Literal::InlineInt;
    operand.bits = static_cast<u64>(code <= 192 ? static_cast<i64>(code) - 128 : 192 - static_cast<i64>(code));
    return true;
  }
  if (code >= 240 && code <= 248) {
    const InlineFloat& number = kInlineFloats[code - 240];
    operand.literal = Literal::InlineFloat;
    const bool packed_integer = spec.elements > 1 && is_integer(spec.type);
    operand.bits = wide                                 ? number.dual
                   : spec.type == Type::BF16            ? number.bfloat
                   : spec.bits == 16 && !packed_integer ? number.half
                                                        : number.single;
    return true;
  }
  if (code == kLiteralCode) {
    if ((!spec_->literal || dpp()) && spec.operand_class != Class::Literal)
      return fail("%s cannot be a literal constant", name_of(spec.field));
    if (!take_literal()) return false;
    operand.literal = Literal::Literal32;
    operand.bits = spec.type == Type::F64   ? static_cast<u64>(literal_) << 32
                   : spec.type == Type::I64 ? static_cast<u64>(static_cast<i64>(static_cast<i32>(literal_)))
                                            : literal_;
    return true;
  }
  const bool special = rdna() ? (code >= kSharedBase && code <= kPrivateLimit) || code == kScc
                              : (code >= kSharedBase && code <= kPopsExitingWaveId) || (code >= kVccz && code <= kScc);
  if (!special) return fail("source code %u is reserved", code);
  operand.kind = Kind::Special;
  operand.index = static_cast<u16>(code);
  return true;
}

/// A vector instruction reads one scalar value: a register, special source or literal. On RDNA it
/// reads two, but for 64-bit shifts.
bool Decoder::check_scalar_values() {
  if (!is_vector_alu(spec_->enc)) return true;
  const u32 limit = rdna() && !has(kFlagOnescalar) ? 2 : 1;
  const Operand* read[2] = {};
  u32 count = 0;
  for (const Operand& o : inst_.src) {
    const bool literal = o.kind == Kind::Constant && o.literal == Literal::Literal32;
    if (o.kind != Kind::Sgpr && o.kind != Kind::Special && !literal) continue;
    if (o.kind == Kind::Sgpr && o.index == kNull && rdna()) continue;
    // The lane of v_writelane, if it is m0, comes another way (LLVM's SIFixSGPRCopies relies on it).
    if (row_->op == Op::v_writelane_b32 && &o == &inst_.src[1] && o.kind == Kind::Sgpr && o.index == kM0) continue;
    bool again = false;
    for (u32 i = 0; i < count; ++i)
      again = again || (read[i]->kind == o.kind && read[i]->index == o.index && read[i]->dwords == o.dwords);
    if (again) continue;
    if (count == limit)
      return fail(limit == 1 ? "reads two scalar values, only one is possible"
                             : "reads three scalar values, only two are possible");
    read[count++] = &o;
  }
  return true;
}

/// The two halves of a dual instruction must read from different banks of vector registers. From
/// RDNA4 on the second of two moves reads through the port of the addends, so that it need not.
bool Decoder::check_banks() {
  if (!inst_.row_y) return true;
  const bool moves = row_->op == Op::v_dual_mov_b32 && inst_.op_y == Op::v_dual_mov_b32;
  if (moves && family_.gfx == 12) return true;
  for (u32 i = 0; i < 2; ++i) {
    const Operand &x = inst_.src[i], &y = inst_.src[i + 3];
    const bool same = family_.gfx == 12 && x.index == y.index;  // read once
    if (x.kind == Kind::Vgpr && y.kind == Kind::Vgpr && x.index % 4 == y.index % 4 && !same)
      return fail("v%u and v%u are in one register bank", x.index, y.index);
  }
  const Operand& x = row_->flags & kFlagInout ? inst_.dst[0] : inst_.src[2];
  const Operand& y = inst_.row_y->flags & kFlagInout ? inst_.dst[1] : inst_.src[5];
  if (x.kind == Kind::Vgpr && y.kind == Kind::Vgpr && x.index % 2 == y.index % 2)
    return fail("the addends v%u and v%u are in one register bank", x.index, y.index);
  return true;
}

}  // namespace

bool family_of(const char* arch, Family& family) {
  for (const Gpu& gpu : kGpus) {
    if (std::strcmp(gpu.name, arch) != 0) continue;
    family = gpu.family;
    return true;
  }
  return false;
}

const char* gpu_of(uint32_t machine) {
  for (const Gpu& gpu : kGpus) {
    if (gpu.machine == machine) return gpu.name;
  }
  return nullptr;
}

bool decode(Family family, const uint32_t* words, size_t count, Inst& inst, DecodeError& error, bool wave64) {
  return Decoder(kFamilies[static_cast<size_t>(family)], words, count, inst, error, wave64).run();
}

const char* mnemonic(Op op) { return kMnemonics[static_cast<size_t>(op)]; }

CacheNames cache_names(Family family) {
  const FamilySpec& spec = kFamilies[static_cast<size_t>(family)];
  return {spec.sc0, spec.nt, spec.sc1};
}

}  // namespace ckemu
