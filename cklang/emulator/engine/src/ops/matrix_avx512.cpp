// SPDX-License-Identifier: MIT
//
// The kernels of matrix products for CPUs with AVX-512, whatever the rest is compiled for.
#include "ops/matrix_multiply.h"

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#include "ops/matrix_kernels.h"

namespace ckemu {

const MatrixKernels& wide_matrix_kernels() {
  static constexpr MatrixKernels kernels = kernels_of<16>();
  return kernels;
}

}  // namespace ckemu
#pragma clang attribute pop
