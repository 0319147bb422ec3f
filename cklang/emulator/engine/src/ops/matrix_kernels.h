// SPDX-License-Identifier: MIT
//
// The loops that matrix products spend their time in, for any width of vectors: operands to panels, and
// panels to sums. Products are added to the accumulator one by one in the order of K, each with one rounding,
// so that the width changes no result. A row of D lies in neighbouring lanes of one register: the inner loop
// is a vector FMA with a broadcast of A.
#pragma once

#include <type_traits>

#include "ops/matrix_multiply.h"
#include "ops/matrix_unpack_lanes.h"

namespace ckemu {

/// a * b + c. Of several NaNs that of A wins, then that of B: a compiler would interchange the factors, and not
/// for all widths alike.
template <class T, int width>
CKEMU_INLINE Lanes<T, width> step(Lanes<T, width> a, Lanes<T, width> b, Lanes<T, width> c) {
  if constexpr (std::is_same_v<T, float>) {
    asm("vfmadd231ps %2, %1, %0" : "+v"(c) : "v"(a), "v"(b));
    return c;
  } else {
    return a * b + c;  // wraps around
  }
}

/// Rows [i, i + rows) of D, all N columns, in registers.
template <class T, int width, int M, int N, int rows>
CKEMU_INLINE void multiply_rows(const Step* steps, int count, int depth, int block, int i, const Accumulator& acc) {
  using Vector = Lanes<T, width>;
  constexpr int columns = N / width;
  Vector sum[rows][columns];
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const RowPlace at = row_place(M, block, i + r);
    std::memcpy(sum[r], acc.c + at.reg * acc.c_stride + at.lane, sizeof sum[r]);
  }
#pragma clang loop unroll(disable)
  for (const Step* step_at = steps; step_at != steps + count; ++step_at) {
    const auto* a = reinterpret_cast<const T*>(step_at->a) + block * depth * M + i;
    const auto* b = reinterpret_cast<const T*>(step_at->b) + block * depth * N;
#pragma clang loop unroll(disable)
    for (int k = 0; k < depth; ++k) {
      Vector right[columns];
      std::memcpy(right, b + k * N, sizeof right);
#pragma clang loop unroll(full)
      for (int r = 0; r < rows; ++r) {
        const Vector left = Vector(a[k * M + r]);
#pragma clang loop unroll(full)
        for (int n = 0; n < columns; ++n) sum[r][n] = step<T, width>(left, right[n], sum[r][n]);
      }
    }
  }
#pragma clang loop unroll(full)
  for (int r = 0; r < rows; ++r) {
    const RowPlace at = row_place(M, block, i + r);
    std::memcpy(acc.d + at.reg * kLanes + at.lane, sum[r], sizeof sum[r]);
  }
}

/// Sixteen accumulators of the widest vectors, or eight of others, hide the latency of FMA.
template <class T, int width, int M>
void multiply(const Step* steps, int count, int depth, int blocks, const Accumulator& acc) {
  constexpr int sums = width == 16 ? 16 : 8, each = sums / (M / width), rows = each < M ? each : M;
  for (int block = 0; block < blocks; ++block) {
    for (int i = 0; i < M; i += rows) multiply_rows<T, width, M, M, rows>(steps, count, depth, block, i, acc);
  }
}

template <int width>
void unpack_type(Type type, const u32* rows, const PanelShape& shape, Panel& panel) {
  switch (type) {
    case Type::F32: return unpack<Type::F32, width>(rows, shape, panel);
    case Type::XF32: return unpack<Type::XF32, width>(rows, shape, panel);
    case Type::F16: return unpack<Type::F16, width>(rows, shape, panel);
    case Type::BF16: return unpack<Type::BF16, width>(rows, shape, panel);
    case Type::I8: return unpack<Type::I8, width>(rows, shape, panel);
    case Type::U8: return unpack<Type::U8, width>(rows, shape, panel);
    case Type::I4: return unpack<Type::I4, width>(rows, shape, panel);
    default: return unpack<Type::U4, width>(rows, shape, panel);
  }
}

/// The kernels of blocks of 16 and 32 at one width.
template <int width>
constexpr MatrixKernels kernels_of() {
  MatrixKernels kernels{unpack_type<width>,
                        {multiply<float, width, 16>, multiply<float, width, 32>},
                        {multiply<u32, width, 16>, multiply<u32, width, 32>},
                        unpack_fp8};
  if constexpr (width == 16) kernels.unpack_fp8 = unpack_wide_fp8<width>;
  return kernels;
}

}  // namespace ckemu
