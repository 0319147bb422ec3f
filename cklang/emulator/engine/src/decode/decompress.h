// SPDX-License-Identifier: MIT
//
// What clang and ROCm's compilers do to offload bundles with --offload-compress: zlib (RFC 1950, 1951)
// and Zstandard (RFC 8878). Neither decoder owns memory or allocates: both may be left in the middle.
#pragma once

#include "core/base.h"

namespace ckemu {

/// Bytes to read, of which at least the first `size` may be looked at.
struct Input {
  const u8* data;
  size_t size;
};

/// Writes exactly `size` bytes to `out`; false if the input is damaged, too short, or makes another number.
bool inflate(Input in, u8* out, size_t size);
bool unzstd(Input in, u8* out, size_t size);

}  // namespace ckemu
