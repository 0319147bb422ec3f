// SPDX-License-Identifier: MIT
//
// Arrays: elements of one, two or four channels along up to three axes, or in layers, which textures and
// surfaces read. Rows and planes follow each other without gaps.
#pragma once

#include <algorithm>

#include "hip/transfer.h"

namespace ckemu {

/// The largest arrays and textures: elements along an axis, planes or layers, elements of linear memory.
constexpr size_t kMostElements = 16384, kMostPlanes = 8192, kMostLinear = size_t{1} << 27, kMostElementBytes = 16;
/// What the memory of linear and pitched textures is aligned to, and their pitches are multiples of.
constexpr size_t kImageAlignment = 256;

/// hipChannelFormatKind.
enum class ChannelKind : u8 { Signed = 0, Unsigned = 1, Float = 2 };

/// hipChannelFormatDesc: the bits of each channel.
struct ChannelFormat {
  int bits[4];
  int kind;
};

/// `channels` numbers of `bytes` each.
struct ElementFormat {
  ChannelKind kind = ChannelKind::Unsigned;
  u8 bytes = 0, channels = 0;
  size_t size() const { return size_t{bytes} * channels; }
};
/// Reads a description; false if there is no such element.
bool read_format(const ChannelFormat& description, ElementFormat& format);
ChannelFormat description_of(const ElementFormat& format);

/// Flags of arrays: hipArrayLayered and so on.
enum ArrayFlag : u32 { kLayered = 1, kForSurfaces = 2, kCubemap = 4, kForGather = 8 };

/// What a hipArray_t points to.
struct Array {
  ElementFormat format;
  HipExtent extent;  // as asked for: 0 for an axis that it lacks; layers are its depth
  u32 flags = 0;
  u8* data = nullptr;
  int device = 0;

  size_t pitch() const { return extent.width * format.size(); }
  size_t rows() const { return std::max<size_t>(extent.height, 1); }
  size_t planes() const { return std::max<size_t>(extent.depth, 1); }
  size_t slice() const { return pitch() * rows(); }
};

/// An array of the current device.
hipError_t create_array(void** handle, const ElementFormat& format, const HipExtent& extent, u32 flags);
/// Frees an array once no work enqueued before can use it.
hipError_t destroy_array(void* handle);
/// The array behind a handle; null if there is none.
const Array* find_array(const void* handle);

/// Where an array has `extent` bytes, rows and planes from byte `x` of row `y` of plane `z` on.
hipError_t window_of(const void* handle, size_t x, size_t y, size_t z, const Extent& extent, Block& block);

/// Refuses what needs image instructions on a device that has none; says so in the last message.
hipError_t require_images();

}  // namespace ckemu
