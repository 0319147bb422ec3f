// SPDX-License-Identifier: MIT
//
// Three-dimensional copies as hipMemcpy3D describes them.
#pragma once

#include "hip/transfer.h"

namespace ckemu {

struct PitchedPointer {
  void* data;
  size_t pitch, width, height;  // bytes, bytes, rows
};
struct Position {
  size_t x, y, z;
};
/// hipMemcpy3DParms. Where an array takes part, the extent is in its elements, and so are positions in arrays.
struct Copy3D {
  void* from_array;
  Position from_at;
  PitchedPointer from;
  void* to_array;
  Position to_at;
  PitchedPointer to;
  HipExtent extent;
  int kind;
};

/// The bytes that a copy is about.
struct CopiedBlocks {
  Block to, from;
  Extent extent;
};
hipError_t blocks_of(const Copy3D* copy, CopiedBlocks& blocks);

}  // namespace ckemu
