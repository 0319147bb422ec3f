// SPDX-License-Identifier: MIT
//
// SMFMAC: A is sparse, two elements of each four neighbours in K are stored, and 2-bit indices say which
// two. D is also the addend. A's stored elements lie in order of K, as those of a dense A of half the
// depth. B is dense; where it takes eight registers, they hold two runs of K, one in each half of K.
// An index picks a row of B, so that rows that are not picked do not matter, whatever they hold.
#include "core/fault.h"
#include "ops/matrix.h"
#include "ops/matrix_multiply.h"

namespace ckemu {

namespace {

constexpr int kSplitRegisters = 8;
constexpr int kMaxStored = kMaxOperand / 2;

/// Which row of B each stored element of A multiplies, at [k * size + i].
struct Picks {
  u8 row[kMaxStored];
};

/// The index register holds one, two or four sets of indices; CBSZ 0 lets ABID choose, else it is the first.
void read_picks(const u32* indices, const Inst& inst, Picks& picks) {
  const MatrixShape& shape = *inst.matrix;
  const int size = shape.m, stored = shape.k / 2 * size / kLanes;  // elements of A a lane
  const u32 sets = 32 / (2 * static_cast<u32>(stored)), set = inst.cbsz == 0 ? inst.abid % sets : 0;
  for (int l = 0; l < kLanes; ++l) {
    const u32 fields = indices[l] >> (2 * static_cast<u32>(stored) * set);
    for (int j = 0; j < stored; ++j) {
      const int k = l / size * stored + j;
      picks.row[k * size + l % size] = static_cast<u8>(k / 2 * 4 + static_cast<int>(fields >> (2 * j) & 3));
    }
  }
}

/// Rows of B from the order of lanes and registers to that of K.
void join_halves(Panel& panel, const PanelShape& shape) {
  const Panel old = panel;
  const int run = shape.per_lane() / 2;
  for (int row = 0; row < shape.depth; ++row) {
    const int group = row / (2 * run), half = row / run % 2;
    const int k = half * shape.depth / 2 + group * run + row % run;
    std::memcpy(panel.element + k * shape.size, old.element + row * shape.size, 4u * static_cast<u32>(shape.size));
  }
}

template <bool integer>
u32 multiply_add(u32 a, u32 b, u32 c) {
  if constexpr (integer) return a * b + c;
  return bits_as<u32>(__builtin_fmaf(bits_as<float>(a), bits_as<float>(b), bits_as<float>(c)));
}

template <bool integer>
void multiply(const Panel& a, const Panel& b, const u8* picks, int size, int stored, const Accumulator& acc) {
  for (int i = 0; i < size; ++i) {
    const RowPlace place = row_place(size, 0, i);
    u32* d = acc.d + place.reg * kLanes + place.lane;
    for (int k = 0; k < stored; ++k) {
      const u32 left = a.element[k * size + i];
      const u32* right = b.element + picks[k * size + i] * size;
      for (int j = 0; j < size; ++j) d[j] = multiply_add<integer>(left, right[j], d[j]);
    }
  }
}

template <bool integer>
void smfmac(Wave& w, const Code& c) {
  const MatrixShape& shape = *c.inst->matrix;
  const PanelShape left{shape.m, shape.k / 2, 1}, right{shape.n, shape.k, 1};
  Panel a, b;
  unpack_operand(w, shape.a, source_row(w, c, 0), left, a);
  unpack_operand(w, shape.b, source_row(w, c, 1), right, b);
  if (c.src[1].dwords == kSplitRegisters) join_halves(b, right);
  Picks picks;
  read_picks(source_row(w, c, 2), *c.inst, picks);
  const Accumulator acc{w.v[c.dst], w.v[c.dst], kLanes};
  if (!integer && numerics_of(w) != Numerics::Fma) {
    return multiply_otherwise(w, *c.inst, a, b, left.depth, picks.row, acc);
  }
  multiply<integer>(a, b, picks.row, shape.m, left.depth, acc);
}

}  // namespace

void multiply_picked(bool integer, const Panel& a, const Panel& b, const u8* picks, int size, int stored,
                     const Accumulator& acc) {
  return integer ? multiply<true>(a, b, picks, size, stored, acc) : multiply<false>(a, b, picks, size, stored, acc);
}

Handler sparse_matrix_handler(const Inst& inst) { return inst.matrix->d == Type::I32 ? smfmac<true> : smfmac<false>; }

}  // namespace ckemu
