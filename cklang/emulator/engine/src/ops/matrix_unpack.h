// SPDX-License-Identifier: MIT
//
// The operands of matrix instructions: from packed elements in lanes to rows of f32 (or i32). Lane
// i + M (block + blocks * group) holds M-index i and the K-indices of its group, in order.
#pragma once

#include "ops/convert_fp8.h"
#include "ops/rounding.h"

namespace ckemu {

constexpr int kMaxOperand = 2048;  // elements of A or B over all blocks

/// One operand, element (block, k, i) at [(block * depth + k) * size + i].
struct Panel {
  alignas(64) u32 element[kMaxOperand];
};

struct PanelShape {
  int size, depth, blocks;
  constexpr int groups() const { return kLanes / (size * blocks); }
  constexpr int per_lane() const { return depth / groups(); }
};

/// How many elements a dword holds.
template <Type type>
constexpr int kPerDword = type == Type::I4 || type == Type::U4      ? 8
                          : type == Type::I8 || type == Type::U8    ? 4
                          : type == Type::F16 || type == Type::BF16 ? 2
                                                                    : 1;

/// The element of block `block` whose K-index is the first of `group`, M-index 0.
CKEMU_INLINE u32* chunk_place(Panel& panel, const PanelShape& shape, int chunk) {
  const int block = chunk % shape.blocks, group = chunk / shape.blocks;
  return panel.element + (block * shape.depth + shape.per_lane() * group) * shape.size;
}

/// The 256 values of an 8-bit float format, and their upper halves: the lower ones are 0.
struct Fp8Table {
  alignas(64) float value[256];
  alignas(64) u16 upper[256];
};

/// 8-bit floats, through the table of their 256 values.
inline void unpack_fp8(const u32* rows, const PanelShape& shape, const Fp8Table& table, Panel& panel) {
  for (int j = 0; j < shape.per_lane(); ++j) {
    for (int g = 0; g < 8; ++g) {
      const U8v code = load8(rows + j / 4 * kLanes, g) >> (8 * (j % 4)) & 0xff;
      const __m256 found = _mm256_i32gather_ps(table.value, __builtin_bit_cast(__m256i, code), 4);
      const int lane = 8 * g;
      u32* to = chunk_place(panel, shape, lane / shape.size) + j * shape.size + lane % shape.size;
      std::memcpy(to, &found, sizeof found);
    }
  }
}

}  // namespace ckemu
