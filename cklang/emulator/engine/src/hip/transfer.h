// SPDX-License-Identifier: MIT
//
// Copies and fills, one- to three-dimensional, as work for a stream. Addresses that no allocation holds
// are the host's own memory; touching what is not there is an error and no crash.
#pragma once

#include "hip/stream.h"

namespace ckemu {

/// hipMemcpyKind.
enum CopyKind : int {
  kHostToHost = 0,
  kHostToDevice = 1,
  kDeviceToHost = 2,
  kDeviceToDevice = 3,
  kCopyDefault = 4,
  kCopyNoCu = 1024
};
bool is_copy_kind(int kind);
/// Reports a direction that is not that of the addresses: ROCm copies all the same, others refuse it.
void check_copy_kind(int kind, const void* to, const void* from);

/// Rows of bytes at regular distances: `pitch` from row to row, `slice` from plane to plane.
struct Block {
  u8* data = nullptr;
  size_t pitch = 0, slice = 0;
};
struct Extent {
  size_t width = 0, height = 1, depth = 1;  // bytes, rows, planes
  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

/// Whether a call returns when the work is done.
enum class When { Now, InOrder };

hipError_t transfer(const Block& to, const Block& from, const Extent& extent, void* stream, When when);
/// Fills with `value`, an element of `size` (1, 2 or 4) bytes; the width is a multiple of it.
hipError_t fill(const Block& to, u32 value, u32 size, const Extent& extent, void* stream, When when);

/// The work of a copy or fill of checked blocks, for a graph.
Action transfer_action(const Block& to, const Block& from, const Extent& extent, Device& gpu);
Action fill_action(const Block& to, u32 value, u32 size, const Extent& extent, Device& gpu);
/// Whether all bytes of a block may be touched, as far as is known beforehand.
hipError_t check_block(const Block& block, const Extent& extent);

}  // namespace ckemu
