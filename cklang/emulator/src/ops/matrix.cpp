// SPDX-License-Identifier: MIT
//
// Dense MFMA: D = A * B + C with the numerics "fma": products are added to the accumulator one by
// one in the order of K, each with one rounding; denormals are kept. A row of D lies in
// neighbouring lanes of one register, so that the inner loop is a vector FMA with a broadcast of A.
#include "ops/matrix.h"

#include <type_traits>

#include "core/fault.h"
#include "core/lanes.h"
#include "ops/matrix_multiply.h"

namespace ckemu {

namespace {

template <class Vector, int M>
CKEMU_INLINE Vector get(const Accumulator& acc, int block, int i, int column) {
  const RowPlace at = row_place(M, block, i);
  Vector value;
  std::memcpy(&value, acc.c + at.reg * acc.c_stride + at.lane + column, sizeof value);
  return value;
}
template <int M, class Vector>
CKEMU_INLINE void put(const Accumulator& acc, int block, int i, int column, Vector value) {
  const RowPlace at = row_place(M, block, i);
  std::memcpy(acc.d + at.reg * kLanes + at.lane + column, &value, sizeof value);
}

using F4v = float __attribute__((ext_vector_type(4)));
using U4v = u32 __attribute__((ext_vector_type(4)));

template <class V>
CKEMU_INLINE V step(V a, V b, V c) {
  if constexpr (__is_same(V, F8v) || __is_same(V, F4v)) return __builtin_elementwise_fma(a, b, c);
  // Integers: wrap around as unsigned ones do.
  else return a * b + c;
}

/// Rows [i, i + rows) of D, all columns, in registers: `columns` vectors a row.
template <class Vector, class Element, int M, int N, int rows>
CKEMU_INLINE void multiply_rows(const Element* a, const Element* b, int depth, int block, int i,
                                const Accumulator& acc) {
  constexpr int width = sizeof(Vector) / 4, columns = N / width;
  Vector sum[rows][columns];
  for (int r = 0; r < rows; ++r) {
    for (int n = 0; n < columns; ++n) sum[r][n] = get<Vector, M>(acc, block, i + r, n * width);
  }
  for (int k = 0; k < depth; ++k) {
    Vector right[columns];
    std::memcpy(right, b + k * N, sizeof right);
    for (int r = 0; r < rows; ++r) {
      const Vector left = Vector(a[k * M + i + r]);
      for (int n = 0; n < columns; ++n) sum[r][n] = step(left, right[n], sum[r][n]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int n = 0; n < columns; ++n) put<M>(acc, block, i + r, n * width, sum[r][n]);
  }
}

template <class Vector, class Element, int M, int N>
void multiply(const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc) {
  constexpr int rows = N == 32 ? 2 : 4;  // eight accumulators hide the latency of FMA
  for (int block = 0; block < blocks; ++block) {
    const auto* left = reinterpret_cast<const Element*>(a.element) + block * depth * M;
    const auto* right = reinterpret_cast<const Element*>(b.element) + block * depth * N;
    for (int i = 0; i < M; i += rows) {
      multiply_rows<Vector, Element, M, N, rows>(left, right, depth, block, i, acc);
    }
  }
}

using Multiply = void (*)(const Panel&, const Panel&, int, int, const Accumulator&);

template <bool integer>
Multiply multiply_for(int m) {
  using Element = std::conditional_t<integer, u32, float>;
  using V8 = std::conditional_t<integer, U8v, F8v>;
  using V4 = std::conditional_t<integer, U4v, F4v>;
  if (m == 32) return multiply<V8, Element, 32, 32>;
  if (m == 16) return multiply<V8, Element, 16, 16>;
  return multiply<V4, Element, 4, 4>;
}

/// The 256 values of each 8-bit float format.
struct Fp8Values {
  alignas(64) float value[2][2][256];  // [ocp][wide exponent]
  Fp8Values() {
    for (int ocp = 0; ocp < 2; ++ocp) {
      for (int wide = 0; wide < 2; ++wide) {
        const Fp8Kind kind{.wide_exponent = wide != 0, .ocp = ocp != 0, .saturate = false};
        for (u32 code = 0; code < 256; ++code) value[ocp][wide][code] = from_fp8(code, kind);
      }
    }
  }
};

}  // namespace

void unpack_operand(const Wave& w, Type type, const u32* rows, const PanelShape& shape, Panel& panel) {
  switch (type) {
    case Type::F32: return unpack<Type::F32>(rows, shape, panel);
    case Type::XF32: return unpack<Type::XF32>(rows, shape, panel);
    case Type::F16: return unpack<Type::F16>(rows, shape, panel);
    case Type::BF16: return unpack<Type::BF16>(rows, shape, panel);
    case Type::I8: return unpack<Type::I8>(rows, shape, panel);
    case Type::U8: return unpack<Type::U8>(rows, shape, panel);
    case Type::I4: return unpack<Type::I4>(rows, shape, panel);
    case Type::U4: return unpack<Type::U4>(rows, shape, panel);
    default: break;
  }
  static const Fp8Values values;
  const bool ocp = w.program->family() >= Family::Cdna4;
  unpack_fp8(rows, shape, values.value[ocp][type == Type::BF8], panel);
}

namespace {

/// A's blocks under CBSZ and ABID: groups of 2^CBSZ blocks all use the group's block ABID.
void broadcast_blocks(Panel& panel, const PanelShape& shape, int cbsz, int abid) {
  const int group = 1 << cbsz, words = shape.depth * shape.size;
  Panel old = panel;
  for (int block = 0; block < shape.blocks; ++block) {
    const int from = block / group * group + abid;
    std::memcpy(panel.element + block * words, old.element + from * words, 4u * words);
  }
}

/// The lane that lane `l` of B is taken from under BLGP.
int permuted_lane(int blgp, int l) {
  if (blgp == 1) return l % 32;
  if (blgp == 2) return 32 + l % 32;
  if (blgp == 3) return (l + 16) % kLanes;
  return blgp == 0 ? l : 16 * (blgp - 4) + l % 16;
}
void permute_lanes(const u32* rows, int count, int blgp, u32* out) {
  for (int row = 0; row < count; ++row) {
    for (int l = 0; l < kLanes; ++l) out[row * kLanes + l] = rows[row * kLanes + permuted_lane(blgp, l)];
  }
}

template <bool integer>
void mfma(Wave& w, const Code& c) {
  const MatrixShape& shape = *c.inst->matrix;
  const PanelShape left{shape.m, shape.k, shape.blocks}, right{shape.n, shape.k, shape.blocks};
  Panel a, b;
  unpack_operand(w, shape.a, source_row(w, c, 0), left, a);
  const u32* b_rows = source_row(w, c, 1);
  alignas(64) u32 permuted[8 * kLanes];
  if (c.inst->blgp != 0) {
    permute_lanes(b_rows, c.src[1].dwords, c.inst->blgp, permuted);
    b_rows = permuted;
  }
  unpack_operand(w, shape.b, b_rows, right, b);
  if (c.inst->cbsz != 0) broadcast_blocks(a, left, c.inst->cbsz, c.inst->abid);
  const bool constant = c.src[2].kind == Kind::Constant;
  const Accumulator acc{w.v[c.dst], source_row(w, c, 2), constant ? size_t{0} : size_t{kLanes}};
  if (!integer && numerics_of(w) != Numerics::Fma) [[unlikely]] {
    return multiply_otherwise(w, *c.inst, a, b, shape.k, nullptr, acc);
  }
  multiply_for<integer>(shape.m)(a, b, shape.k, shape.blocks, acc);
}

bool known_input(Type type) {
  return type == Type::F32 || type == Type::XF32 || type == Type::F16 || type == Type::BF16 ||
         type == Type::FP8 || type == Type::BF8;
}

}  // namespace

void multiply_f32(int m, const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc) {
  multiply_for<false>(m)(a, b, depth, blocks, acc);
}
void multiply_i32(int m, const Panel& a, const Panel& b, int depth, int blocks, const Accumulator& acc) {
  multiply_for<true>(m)(a, b, depth, blocks, acc);
}

Handler matrix_handler(const Inst& inst) {
  const MatrixShape& shape = *inst.matrix;
  if (inst.enc == Encoding::VOP3P) return wave_matrix_handler(inst);
  if (shape.a == Type::F8F6F4) return mini_matrix_handler(inst);
  if (shape.m != shape.n || (shape.m != 32 && shape.m != 16 && shape.m != 4)) return nullptr;
  if (shape.a == Type::F64) return double_matrix_handler(inst);
  if (shape.sparse) return sparse_matrix_handler(inst);
  if (shape.a == Type::I8 && shape.b == Type::I8) return mfma<true>;
  return known_input(shape.a) && known_input(shape.b) && shape.d == Type::F32 ? mfma<false> : nullptr;
}

}  // namespace ckemu
