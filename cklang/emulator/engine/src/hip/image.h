// SPDX-License-Identifier: MIT
//
// Textures and surfaces: what kernels read of them. Kernels sample in software
// (cklang/emulator/hip/programs/hip/device_image.h), from this record in memory.
#pragma once

#include "hip/array.h"

namespace ckemu {

/// hipTextureAddressMode.
enum class AddressMode : u8 { Wrap = 0, Clamp = 1, Mirror = 2, Border = 3 };

/// The layout is that of cklang_hip::Image of the headers.
struct Image {
  const u8* data = nullptr;
  u64 pitch = 0, slice = 0;  // bytes from row to row, and from plane to plane
  int width = 0, height = 1, depth = 1;
  ElementFormat format;
  AddressMode address = AddressMode::Border;
  bool linear = false, normalized = false, as_floats = false;
};
static_assert(sizeof(Image) == 48, "Image has the layout of cklang_hip::Image");

/// What a texture or surface object points to: the descriptors that AMD's library has there, and ours.
struct Record {
  u32 descriptors[16];
  Image image;
};

}  // namespace ckemu
