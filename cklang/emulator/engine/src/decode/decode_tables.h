// SPDX-License-Identifier: MIT
//
// What decode.cpp works from: the shapes of the generated rows, the rows, and the facts that no
// family changes. Only the decoder includes this.
#pragma once

#include "core/base.h"
#include "decode/isa.h"

namespace ckemu {
namespace {

/// Bits [low, low + width) of the instruction, extended by [low2, low2 + width2).
struct FieldSpec {
  Field field;
  Class operand_class;
  u8 low, width, low2, width2;
};

struct EncodingSpec {
  Encoding enc;
  u8 dwords;
  bool literal;
  Encoding sdwa, dpp, dpp8;  // the second word's encoding, or `enc` if there is none
  u8 opcode_low, opcode_width;
  u16 first_field;
  u8 fields;
  u32 mask[4], match[4];
  u32 ignored[4];  // bits that the hardware does not read
};

struct OperandSpec {
  u8 slot;  // 0, 1: dst; 2 and up: src
  Field field;
  Class operand_class;
  Type type;
  u16 bits;
  u8 elements;
  u8 dwords;
};

struct FamilySpec {
  const char* arch;
  u8 gfx;  // 9, 11, 12
  const char *sc0, *nt, *sc1;
  const EncodingSpec* encodings;
  u8 encoding_count;
  const FieldSpec* fields;
  const OperandSpec* operands;
  const MatrixShape* matrices;
  const Row* rows;
  u16 row_count;

  const EncodingSpec* encoding(Encoding enc) const {
    for (u8 i = 0; i < encoding_count; ++i)
      if (encodings[i].enc == enc) return &encodings[i];
    return nullptr;
  }
  const Row* row(Encoding enc, u32 opcode) const {
    for (u16 i = 0; i < row_count; ++i)
      if (rows[i].enc == enc && rows[i].opcode == opcode) return &rows[i];
    return nullptr;
  }
};

#include "isa_tables.inc"

const char* encoding_name(Encoding enc) { return kEncodingNames[static_cast<size_t>(enc)]; }

constexpr u32 kZeroCode = 128, kSdwaCode = 249, kDppCode = 250, kLiteralCode = 255;
constexpr u32 kDpp8Code = 233, kDpp8FiCode = 234;
constexpr u32 kNullCode = 124, kM0Code = 125;  // RDNA

/// Groups of the scalar register space that an operand must not straddle: [first, end).
struct ScalarGroup {
  u16 first, end;
};
constexpr ScalarGroup kScalarGroups[] = {{0, 102},   {102, 104}, {104, 106}, {106, 108},
                                         {108, 124}, {124, 125}, {126, 128}};

constexpr ScalarGroup kRdnaScalarGroups[] = {{0, 106}, {106, 108}, {108, 124}, {125, 126}, {126, 128}};

/// Inline floats, source codes 240..248, as f16, f32 and f64.
struct InlineFloat {
  u16 half, bfloat;
  u32 single;
  u64 dual;
};
constexpr InlineFloat kInlineFloats[] = {
    {0x3800, 0x3f00, 0x3f000000, 0x3fe0000000000000},                                                    // 0.5
    {0xb800, 0xbf00, 0xbf000000, 0xbfe0000000000000}, {0x3c00, 0x3f80, 0x3f800000, 0x3ff0000000000000},  // 1.0
    {0xbc00, 0xbf80, 0xbf800000, 0xbff0000000000000}, {0x4000, 0x4000, 0x40000000, 0x4000000000000000},  // 2.0
    {0xc000, 0xc000, 0xc0000000, 0xc000000000000000}, {0x4400, 0x4080, 0x40800000, 0x4010000000000000},  // 4.0
    {0xc400, 0xc080, 0xc0800000, 0xc010000000000000}, {0x3118, 0x3e23, 0x3e22f983, 0x3fc45f306dc9c882},  // 1 / (2 pi)
};

/// The DPP controls that exist: [first, last].
struct DppRange {
  u16 first, last;
};
constexpr u16 kRowNewBroadcast = 0x150;
constexpr DppRange kDppControls[] = {
    {0x000, 0x0ff},  // quad_perm
    {0x101, 0x10f},
    {0x111, 0x11f},
    {0x121, 0x12f},  // row_shl, row_shr, row_ror
    {0x130, 0x130},
    {0x134, 0x134},
    {0x138, 0x138},
    {0x13c, 0x13c},  // wave shifts and rotates
    {0x140, 0x143},  // row_mirror, row_half_mirror, row_bcast:15, row_bcast:31
    {kRowNewBroadcast, 0x15f},
};

constexpr DppRange kRdnaDppControls[] = {
    {0x000, 0x0ff}, {0x101, 0x10f}, {0x111, 0x11f}, {0x121, 0x12f}, {0x140, 0x141},  // row_mirror, row_half_mirror
    {0x150, 0x15f}, {0x160, 0x16f},                                                  // row_share, row_xmask
};

/// Registers of an F8F6F4 matrix operand by its format: fp8, bf8, fp6, bf6, fp4.
constexpr u8 kF8F6F4Dwords[] = {8, 8, 6, 6, 4};

u32 bits_at(const u32* words, u32 low, u32 width) {
  return width ? words[low / 32] >> low % 32 & (0xffffffffu >> (32 - width)) : 0;
}

i32 sign_extend(u32 value, int width) { return static_cast<i32>(value << (32 - width)) >> (32 - width); }

bool is_vector_alu(Encoding enc) {
  switch (enc) {
    case Encoding::VOP1:
    case Encoding::VOP2:
    case Encoding::VOPC:
    case Encoding::VOP3:
    case Encoding::VOP3B:
    case Encoding::VOP3P:
    case Encoding::MAI:
    case Encoding::MAI_SCALED:
    case Encoding::VOPD: return true;
    default: return false;
  }
}

bool is_integer(Type type) {
  switch (type) {
    case Type::I8:
    case Type::U8:
    case Type::I16:
    case Type::U16:
    case Type::I24:
    case Type::U24:
    case Type::I32:
    case Type::U32:
    case Type::B8:
    case Type::B16:
    case Type::B32: return true;
    default: return false;
  }
}

}  // namespace
}  // namespace ckemu
