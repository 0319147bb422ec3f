// SPDX-License-Identifier: MIT
//
// One decode in progress: the class whose parts decode.cpp and decode_modifiers.h define. Only
// decode.cpp includes this.
#pragma once

#include "decode/decode.h"
#include "decode/decode_tables.h"

namespace ckemu {
namespace {

/// One decode in progress.
class Decoder {
 public:
  Decoder(const FamilySpec& family, const u32* words, size_t count, Inst& inst, DecodeError& error, bool wave64)
      : family_(family), words_(words), count_(count), inst_(inst), error_(error), wave64_(wave64) {}

  bool run() {
    inst_ = Inst{};
    return find_row() && take_second_word() && claim_all_bits() && resolve_operands() && check_scalar_values() &&
           check_banks() && fill_modifiers() && fill_memory() && fill_immediate() && check_unused_fields();
  }

 private:
  bool fail(const char* format, ...) __attribute__((format(printf, 2, 3)));

  // Words and fields
  bool find_row();
  void take_fields(const EncodingSpec& spec);
  bool take_second_word();
  bool take_literal();
  bool claim_all_bits();
  bool has_field(Field field) const { return present_[static_cast<size_t>(field)]; }
  u32 value(Field field) const { return values_[static_cast<size_t>(field)]; }
  u32 use(Field field) {
    used_[static_cast<size_t>(field)] = true;
    return value(field);
  }
  const char* name_of(Field field) const { return kFieldNames[static_cast<size_t>(field)]; }
  bool check_unused_fields();
  bool placeholder(Field field) const;

  // Operands
  bool resolve_operands();
  bool resolve_half(const Row& row, Operand* dst, Operand* src);
  void resize(const OperandSpec& spec, Operand& operand) const;
  void half_register(const OperandSpec& spec, u32& index, Operand& operand);
  bool resolve(const OperandSpec& spec, Operand& operand);
  bool resolve_code(const OperandSpec& spec, u32 code, Operand& operand);
  bool vector_register(u32 index, bool accumulator, Operand& operand);
  bool scalar_register(u32 code, Operand& operand);
  bool constant(const OperandSpec& spec, u32 code, Operand& operand);
  bool accumulator_bit(const OperandSpec& spec);
  bool absent(const OperandSpec& spec, Operand& operand, bool& skip);
  bool smem_offset(const OperandSpec& spec, Operand& operand);
  bool sdwa_source(const OperandSpec& spec, Operand& operand);
  bool check_scalar_values();
  bool check_banks();

  // Everything else
  bool fill_modifiers();
  bool mask_allowed(Field field, u32 allowed, u8& mask);
  bool fill_op_sel_hi();
  bool fill_dpp();
  bool fill_dpp_control();
  bool fill_sdwa();
  bool fill_memory();
  bool fill_immediate();

  bool has(u32 flag) const { return row_->flags & flag; }
  bool is(Encoding enc) const { return spec_->enc == enc; }
  bool is_flat() const { return is(Encoding::GLOBAL) || is(Encoding::SCRATCH); }
  bool rdna() const { return family_.gfx >= 11; }
  bool dpp() const { return inst_.form == Form::Dpp || inst_.form == Form::Dpp8; }
  bool no_saddr() const { return value(Field::saddr) == (rdna() ? kNullCode : 0x7f); }

  static constexpr size_t kFieldCount = static_cast<size_t>(Field::kCount);

  const FamilySpec& family_;
  const u32* words_;
  size_t count_;
  Inst& inst_;
  DecodeError& error_;
  const bool wave64_;
  const EncodingSpec* spec_ = nullptr;
  const Row* row_ = nullptr;
  u32 dwords_ = 0;
  u32 values_[kFieldCount] = {};
  bool present_[kFieldCount] = {};
  bool used_[kFieldCount] = {};
  u32 claimed_[4] = {};
  bool literal_taken_ = false;
  u32 literal_ = 0;
};

}  // namespace
}  // namespace ckemu
