// SPDX-License-Identifier: MIT
//
// RDNA's matrix instructions, 16 x 16 products spread over 32 or 64 lanes: WMMA, and SWMMAC with a
// 4:2 sparse A. Where an element lies follows from two facts of the GPU and the number of lanes; the
// product itself is that of MFMA, on blocks that are brought into MFMA's order of rows.
#include "core/fault.h"
#include "ops/matrix.h"
#include "ops/matrix_multiply.h"

namespace ckemu {

namespace {

constexpr int kSize = 16;      // rows of A and D, columns of B and D; lanes that hold a row
constexpr int kBlockRows = 4;  // registers of 64 lanes that a block of D has in MFMA's order
constexpr u32 kSign = 0x80000000;

/// How a GPU spreads matrices over groups of 16 lanes; lane l of a group has row (A) or column l.
struct WaveLayout {
  bool copied;       // A, B: every group holds all of K; else each its share, in order
  bool interleaved;  // D: neighbouring rows lie in neighbouring groups; else in the same
  bool packed;       // 16-bit D: two rows in a register; else one, in the half that op_sel names
};
constexpr WaveLayout kGfx11{.copied = true, .interleaved = true, .packed = false};
constexpr WaveLayout kGfx12{.copied = false, .interleaved = false, .packed = true};

struct Geometry {
  WaveLayout layout;
  int groups;

  explicit Geometry(const Wave& w)
      : layout(w.program->family() == Family::Rdna3 ? kGfx11 : kGfx12), groups(static_cast<int>(w.lanes) / kSize) {}
  /// A panel of an operand with `depth` elements a row. It is laid out for 64 lanes: with fewer or with
  /// copies, what lies behind the first `depth` rows is not used.
  PanelShape panel(int depth) const {
    const int per_lane = layout.copied ? depth : depth / groups;
    return {kSize, per_lane * (kLanes / kSize), 1};
  }
  /// Place of row i of D: number of the element in the lane, and first lane.
  RowPlace row(int i) const {
    const int per_lane = kSize / groups;
    if (layout.interleaved) return {i / groups, kSize * (i % groups)};
    return {i % per_lane, kSize * (i / per_lane)};
  }
};

bool is_half(Type type) { return type == Type::F16 || type == Type::BF16; }

float widen(Type type, u32 half) {
  return type == Type::F16 ? from_f16(static_cast<u16>(half)) : from_bf16(static_cast<u16>(half));
}
u32 narrow(Type type, float value) { return type == Type::F16 ? to_f16(value) : to_bf16(value); }

/// Register and lowest bit of element `n` of a lane of a 16-bit D.
struct HalfPlace {
  int reg;
  u32 shift;
};
HalfPlace half_place(const Geometry& geometry, const Inst& inst, int n) {
  if (geometry.layout.packed) return {n / 2, 16 * (static_cast<u32>(n) & 1)};
  return {n, 16 * (static_cast<u32>(inst.op_sel) >> 2 & 1)};
}

/// C, or D of a sparse product, as a block in MFMA's order with its modifiers applied.
void read_addend(const Geometry& geometry, const Inst& inst, const u32* rows, size_t stride, u32* block) {
  const Type type = inst.matrix->d;
  const bool absolute = (inst.neg_hi >> 2 & 1) != 0, negated = (inst.neg >> 2 & 1) != 0;
  for (int i = 0; i < kSize; ++i) {
    const RowPlace from = geometry.row(i), to = row_place(kSize, 0, i);
    u32* out = block + to.reg * kLanes + to.lane;
    for (int j = 0; j < kSize; ++j) {
      if (is_half(type)) {
        const HalfPlace half = half_place(geometry, inst, from.reg);
        const bool constant = stride == 0;
        const u32 word = rows[static_cast<size_t>(half.reg) * stride + static_cast<size_t>(from.lane + j)];
        out[j] = bits_as<u32>(widen(type, (constant ? word : word >> half.shift) & 0xffff));
      } else {
        out[j] = rows[static_cast<size_t>(from.reg) * stride + static_cast<size_t>(from.lane + j)];
      }
      if (type == Type::I32) continue;
      if (absolute) out[j] &= ~kSign;
      if (negated) out[j] ^= kSign;
    }
  }
}

void write_result(const Geometry& geometry, const Inst& inst, const u32* block, u32* rows) {
  const Type type = inst.matrix->d;
  for (int i = 0; i < kSize; ++i) {
    const RowPlace from = row_place(kSize, 0, i), to = geometry.row(i);
    const u32* in = block + from.reg * kLanes + from.lane;
    if (!is_half(type)) {
      std::memcpy(rows + to.reg * kLanes + to.lane, in, kSize * sizeof(u32));
      continue;
    }
    const HalfPlace half = half_place(geometry, inst, to.reg);
    for (int j = 0; j < kSize; ++j) {
      u32& word = rows[half.reg * kLanes + to.lane + j];
      word = (word & ~(u32{0xffff} << half.shift)) | narrow(type, bits_as<float>(in[j])) << half.shift;
    }
  }
}

/// Integer operands are signed where neg says so.
Type element_type(Type type, bool is_signed) {
  if (type == Type::I8) return is_signed ? Type::I8 : Type::U8;
  if (type == Type::I4) return is_signed ? Type::I4 : Type::U4;
  return type;
}

/// Nibbles of which a lane has fewer than eight: they fill the low part of one register.
void unpack_nibbles(bool is_signed, const u32* row, const PanelShape& shape, Panel& panel) {
  for (int l = 0; l < kLanes; ++l) {
    for (int n = 0; n < shape.per_lane(); ++n) {
      const i32 raised = static_cast<i32>(row[l] << (28 - 4 * n));
      const u32 value = is_signed ? static_cast<u32>(raised >> 28) : static_cast<u32>(raised) >> 28;
      panel.element[(shape.per_lane() * (l / kSize) + n) * kSize + l % kSize] = value;
    }
  }
}

/// Operand `slot`, with its elements negated where neg (those with even K) and neg_hi (odd) say so.
void read_operand(Wave& w, const Code& c, int slot, Type type, const PanelShape& shape, Panel& panel) {
  const u32 low = c.inst->neg >> slot & 1, high = c.inst->neg_hi >> slot & 1;
  if (type == Type::I4 && shape.per_lane() < kPerDword<Type::I4>) {
    return unpack_nibbles(low != 0, source_row(w, c, slot), shape, panel);
  }
  unpack_operand(w, element_type(type, low != 0), source_row(w, c, slot), shape, panel);
  if (c.inst->matrix->d == Type::I32 || (low | high) == 0) return;
  for (int k = 0; k < shape.depth; ++k) {
    if ((k % 2 != 0 ? high : low) == 0) continue;
    for (int i = 0; i < kSize; ++i) panel.element[k * kSize + i] ^= kSign;
  }
}

/// Adds the integer product to C, saturating if asked to; the product itself always fits.
void add_integers(const Inst& inst, const u32* addend, u32* block) {
  for (int n = 0; n < kBlockRows * kLanes; ++n) {
    const i32 a = static_cast<i32>(addend[n]), b = static_cast<i32>(block[n]);
    block[n] = static_cast<u32>(inst.clamp ? __builtin_elementwise_add_sat(a, b) : a + b);
  }
}

void multiply(Wave& w, const Inst& inst, const Panel& a, const Panel& b, int depth, const u8* picks, u32* block) {
  alignas(64) u32 addend[kBlockRows * kLanes];
  const Accumulator acc{block, block, kLanes};
  if (inst.matrix->d != Type::I32 && numerics_of(w) != Numerics::Fma) {
    return multiply_otherwise(w, inst, a, b, depth, picks, acc);
  }
  const bool integer = inst.matrix->d == Type::I32;
  if (integer) {
    std::memcpy(addend, block, sizeof addend);
    std::memset(block, 0, sizeof addend);
  }
  if (picks != nullptr) {
    multiply_picked(integer, a, b, picks, kSize, depth, acc);
  } else {
    (integer ? multiply_i32 : multiply_f32)(kSize, a, b, depth, 1, acc);
  }
  if (integer) add_integers(inst, addend, block);
}

void wmma(Wave& w, const Code& c) {
  const MatrixShape& shape = *c.inst->matrix;
  const Geometry geometry(w);
  const PanelShape panel = geometry.panel(shape.k);
  Panel a, b;
  read_operand(w, c, 0, shape.a, panel, a);
  read_operand(w, c, 1, shape.b, panel, b);
  alignas(64) u32 block[kBlockRows * kLanes];
  const bool constant = c.src[2].kind == Kind::Constant;
  read_addend(geometry, *c.inst, source_row(w, c, 2), constant ? 0 : kLanes, block);
  multiply(w, *c.inst, a, b, shape.k, nullptr, block);
  write_result(geometry, *c.inst, block, w.v[c.dst]);
}

/// A row of A stores half of its K. The index register holds two bits for each element that the lane
/// stores, in as many sets as fit; op_sel names the set.
void swmmac(Wave& w, const Code& c) {
  const MatrixShape& shape = *c.inst->matrix;
  const Geometry geometry(w);
  const int stored = shape.k / 2, per_lane = stored / geometry.groups;
  // The assembler counts these sets otherwise than their size tells, and no manual decides.
  if (shape.a == Type::I4 && per_lane < kPerDword<Type::I4> && c.inst->op_sel != 0) {
    raise(w, FaultKind::Instruction, "index_key of %d nibbles a lane is not emulated", per_lane);
  }
  Panel a, b;
  read_operand(w, c, 0, shape.a, geometry.panel(stored), a);
  read_operand(w, c, 1, shape.b, geometry.panel(shape.k), b);
  const u32 *indices = source_row(w, c, 2), set = 2 * static_cast<u32>(per_lane) * c.inst->op_sel;
  u8 picks[kMaxOperand];
  for (int l = 0; l < static_cast<int>(w.lanes); ++l) {
    for (int n = 0; n < per_lane; ++n) {
      const int k = per_lane * (l / kSize) + n;
      const u32 index = indices[l] >> set >> (2 * n) & 3;
      picks[k * kSize + l % kSize] = static_cast<u8>(k / 2 * 4 + static_cast<int>(index));
    }
  }
  alignas(64) u32 block[kBlockRows * kLanes];
  read_addend(geometry, *c.inst, w.v[c.dst], kLanes, block);
  multiply(w, *c.inst, a, b, stored, picks, block);
  write_result(geometry, *c.inst, block, w.v[c.dst]);
}

}  // namespace

Handler wave_matrix_handler(const Inst& inst) { return inst.matrix->sparse ? swmmac : wmma; }

}  // namespace ckemu
