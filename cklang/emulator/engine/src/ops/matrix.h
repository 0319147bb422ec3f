// SPDX-License-Identifier: MIT
//
// Matrix instructions, chosen by the shape and the types of their data row.
#pragma once

#include "core/program.h"

namespace ckemu {

/// The handler of a matrix instruction; null if the emulator lacks its shape, types or modifiers.
Handler matrix_handler(const Inst& inst);

/// The same for instructions whose modifiers name the operands' formats (f8f6f4).
Handler mini_matrix_handler(const Inst& inst);

/// The same for products of f64, and for those whose A is 4:2 sparse.
Handler double_matrix_handler(const Inst& inst);
Handler sparse_matrix_handler(const Inst& inst);

/// The same for RDNA's WMMA and SWMMAC.
Handler wave_matrix_handler(const Inst& inst);

/// Multiplications and additions that one execution does.
inline u64 matrix_flops(const MatrixShape& shape) { return u64{2} * shape.m * shape.n * shape.k * shape.blocks; }

}  // namespace ckemu
