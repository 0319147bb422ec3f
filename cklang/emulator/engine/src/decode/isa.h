// SPDX-License-Identifier: MIT
//
// What a decoded AMD instruction is. The opcode enum and the rows come from the JSON tables in
// ../../isa through isa_tables.h, which cklang/emulator/engine/isa/tables.py generates.
#pragma once

#include <cstdint>

#include "isa_tables.h"

namespace ckemu {

// gfx90a, gfx942, gfx950, gfx1100, gfx1201
enum class Family : uint8_t { Cdna2, Cdna3, Cdna4, Rdna3, Rdna4 };

constexpr bool is_rdna(Family family) { return family >= Family::Rdna3; }

// Op       every mnemonic of every family, without encoding suffix: Op::v_add_f32
// Encoding SOP1 SOP2 SOPC SOPK SOPP SMEM, VOP1 VOP2 VOPC (each Plain, Dpp or Sdwa, see Form), VOP3,
//          VOP3B (a second, scalar destination in place of abs and op_sel), VOP3P (packed), MAI
//          (MFMA, SMFMAC), MAI_SCALED (128 bits, with block scales), DS FLAT GLOBAL SCRATCH MUBUF
//          MTBUF, VOPD and VOPDY (the two halves of a dual instruction of RDNA); SDWA SDWAB DPP
//          DPP3 DPP8 DPP83 are the second words. VOP3P holds the WMMA and SWMMAC of RDNA
// Type     of one element of an operand (packed f16 is F16 with elements == 2): F16 BF16 F32 I32 U8
//          FP8 ... MASK (one bit per lane) RSRC
// All four, with Field, Class and Immediate, are in isa_tables.h.

/// What replaces src0 of a VOP1/VOP2/VOPC: nothing, a DPP word, an SDWA word, or (RDNA, also in the
/// 64-bit encodings) a DPP8 word.
enum class Form : uint8_t { Plain, Dpp, Sdwa, Dpp8 };

enum class Kind : uint8_t {
  None,      // absent: `off`, an unused slot
  Sgpr,      // index 0..127 in the scalar register space, see ScalarReg
  Vgpr,      // index 0..255
  Agpr,      // index 0..255, accumulation registers
  Constant,  // `bits` holds the value, already widened to the operand's type
  Special,   // a read-only scalar source that is no register, index is a SpecialReg
};

/// Named places in the scalar register space (indices of Kind::Sgpr; 64-bit ones are the low half).
enum ScalarReg : uint16_t {
  kFlatScratch = 102,
  kXnackMask = 104,
  kVcc = 106,
  kTtmp0 = 108,
  kM0 = 124,
  kExec = 126,
  kNull = 125,  // RDNA: reads 0, drops writes. Its codes of m0 and null are the other way round
};

/// Source codes of Kind::Special.
enum SpecialReg : uint16_t {
  kSharedBase = 235,
  kSharedLimit = 236,
  kPrivateBase = 237,
  kPrivateLimit = 238,
  kPopsExitingWaveId = 239,
  kVccz = 251,
  kExecz = 252,
  kScc = 253,
  kLdsDirect = 254,  // never decoded: these families refuse it
};

/// How a Constant was written.
enum class Literal : uint8_t { InlineInt, InlineFloat, Literal32 };

struct Operand {
  Kind kind = Kind::None;
  Type type = Type::None;
  Literal literal = Literal::InlineInt;  // Constants only
  uint8_t elements = 1;                  // packed operands hold several of `type`
  uint8_t dwords = 0;                    // register span in dwords; 1 for 8- and 16-bit ones
  bool half = false;                     // RDNA: 16 bits of a VGPR, Inst.op_sel says which
  uint16_t index = 0;                    // register number; Constants: the source code
  // Constants only. Exactly the bits that the operand's type sees: an inline float has the
  // encoding of the operand (f16, f32 or f64), an inline integer is sign-extended to 64 bits, a
  // literal is zero-extended (for F64 operands it is the high dword, and already shifted there).
  uint64_t bits = 0;
};

/// A matrix instruction: D[blocks][M][N] = A[blocks][M][K] * B[blocks][K][N] + C.
struct MatrixShape {
  uint16_t m, n, k;
  uint8_t blocks;
  Type a, b, d;    // element types; F8F6F4: cbsz names A's format, blgp B's
  uint8_t passes;  // 4-cycle passes; 0 if the manual does not state them
  bool sparse;     // SMFMAC: A is 4:2 sparse, src2 holds the indices
  bool scaled;     // takes the E8M0 block scales src[3] (A) and src[4] (B)
};

/// Modifiers that an instruction allows. Masks: bit i for src[i], bit 3 for the destination.
struct Allowed {
  uint8_t neg, abs, neg_hi, op_sel, op_sel_hi;
  bool clamp, omod, cbsz, abid, blgp;
};

/// One row of a family's table: an instruction in one of its encodings.
struct Row {
  Op op;
  Encoding enc;
  uint16_t opcode;
  uint16_t first_operand;  // into the family's operand array
  uint8_t operands;
  Immediate immediate;  // what `simm` means
  uint32_t flags;       // kFlagInout, kFlagAtomic, ...
  Allowed allowed;
  int16_t matrix;  // index into the family's matrix array, or -1
};

/// One decoded instruction. Slots that an instruction lacks have Kind::None. Which slot is what:
///
///   scalar and vector ALU  dst[0], dst[1] and src[0..] in the order of the assembly text. Implicit
///                          vcc operands of VOP2/VOPC are filled in, so e32 and e64 look alike:
///                          a compare has its mask in dst[0]; add-with-carry has the carry-out in
///                          dst[1] and the carry-in in src[2]; cndmask has its mask in src[2].
///                          v_mac/v_fmac/v_dot*c read dst[0] too. s_*k instructions keep the
///                          immediate in `simm`.
///   SMEM                   dst[0] loaded data; src[0] base, src[1] offset register, src[2] data
///   DS                     dst[0] result; src[0] address, src[1] data0, src[2] data1
///   FLAT GLOBAL SCRATCH    dst[0] result; src[0] vaddr, src[1] saddr (None = off), src[2] data
///   MUBUF MTBUF            dst[0] result; src[0] vaddr (None unless offen or idxen; 2 dwords, index
///                          first, if both), src[1] resource, src[2] soffset, src[3] data
///   VOPD                   two instructions: `op`, dst[0], src[0..2] and `op_y`, dst[1], src[3..5];
///                          both read before either writes
///   MAI, WMMA, SWMMAC      dst[0] D; src[0] A, src[1] B, src[2] C (or indices of SMFMAC, which
///                          reads dst[0]); scaled: src[3], src[4] the scales of A and B
struct Inst {
  Op op = Op::none;
  Encoding enc = Encoding::SOP1;
  Form form = Form::Plain;
  uint8_t bytes = 0;  // 4, 8, 12 or 16
  const Row* row = nullptr;
  const MatrixShape* matrix = nullptr;  // MFMA, SMFMAC, WMMA and SWMMAC only
  Op op_y = Op::none;                   // VOPD: the second instruction
  const Row* row_y = nullptr;

  Operand dst[2];
  Operand src[6];

  int32_t simm = 0;  // SOPP, SOPK: the immediate, zero-extended if Immediate::Uimm16 or Hwreg

  // VOP modifiers. Masks: bit i belongs to src[i].
  uint8_t neg = 0;  // VOP3P: neg_lo; mixed-precision fma: neg
  uint8_t abs = 0;
  uint8_t neg_hi = 0;
  uint8_t op_sel = 0;  // VOP3: bit 3 is the destination's half; v_permlane*_swap: bit 0 is
                       // fetch_inactive, bit 1 bound_ctrl; fp8 conversions: byte selectors;
                       // RDNA: the 16-bit halves also of the 32-bit encodings; SWMMAC: the
                       // index set
  uint8_t op_sel_hi = 0;
  uint8_t omod = 0;  // 0 none, 1 *2, 2 *4, 3 /2
  bool clamp = false;
  uint8_t bitop3 = 0;  // v_bitop3: the truth table, bit (4*a + 2*b + c) for source bits a, b, c

  // DPP
  uint16_t dpp_ctrl = 0;
  uint8_t row_mask = 0xf, bank_mask = 0xf;
  bool bound_ctrl = false;      // the BOUND_CTRL bit: 1 = lanes out of range read 0
  bool fetch_inactive = false;  // RDNA: inactive lanes are read as if they were active
  uint32_t dpp8 = 0;            // DPP8: lane i of 8 reads lane dpp8 >> 3 * i & 7

  // SDWA. Selectors: 0..3 byte, 4 5 word, 6 dword. dst_unused: 0 pad, 1 sext, 2 preserve.
  uint8_t dst_sel = 6, dst_unused = 0;
  uint8_t src_sel[2] = {6, 6};
  uint8_t sext = 0;  // mask

  // Matrix
  uint8_t cbsz = 0, abid = 0, blgp = 0;

  // Memory
  int32_t offset = 0;   // immediate byte offset (DS with two offsets: offset0, not scaled)
  uint8_t offset1 = 0;  // DS with two offsets
  bool gds = false, offen = false, idxen = false, lds = false;
  bool sc0 = false;            // glc before gfx940
  bool sc1 = false;            // scc (gfx90a), dlc (gfx11)
  bool nt = false;             // slc before gfx940 and on gfx11
  uint8_t th = 0, scope = 0;   // gfx12: temporal hint (atomics: bit 0 is return), coherence scope
  uint8_t dfmt = 0, nfmt = 0;  // MTBUF; RDNA: the unified format in dfmt
};

}  // namespace ckemu
