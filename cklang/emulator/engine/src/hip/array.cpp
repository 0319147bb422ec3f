// SPDX-License-Identifier: MIT
#include "hip/array.h"

#include "core/immortal.h"
#include "hip/device.h"
#include "hip/handles.h"
#include "hip/memory.h"
#include "hip/module.h"

namespace ckemu {

namespace {

Handles<Array>& arrays() { return immortal<Handles<Array>>(); }

/// Whether the axes go together: no planes without rows, except that layers of rows alone have depth.
bool possible(const HipExtent& extent, u32 flags) {
  const bool layered = (flags & kLayered) != 0;
  if (extent.width == 0 || (layered && extent.depth == 0)) return false;
  if (!layered && extent.depth != 0 && extent.height == 0) return false;
  return extent.width <= kMostElements && extent.height <= kMostElements && extent.depth <= kMostPlanes;
}

}  // namespace

bool read_format(const ChannelFormat& description, ElementFormat& format) {
  const auto& bits = description.bits;
  u8 channels = 0;
  while (channels < 4 && bits[channels] != 0) ++channels;
  const bool alike =
      std::all_of(bits, bits + 4, [&](const int& one) { return one == (&one - bits < channels ? bits[0] : 0); });
  const bool sized = bits[0] == 8 || bits[0] == 16 || bits[0] == 32;
  if (!alike || !sized || channels == 3 || description.kind < 0 || description.kind > 2) return false;
  format = {static_cast<ChannelKind>(description.kind), static_cast<u8>(bits[0] / 8), channels};
  return format.kind != ChannelKind::Float || format.bytes != 1;
}

ChannelFormat description_of(const ElementFormat& format) {
  ChannelFormat description{{}, static_cast<int>(format.kind)};
  std::fill_n(description.bits, format.channels, format.bytes * 8);
  return description;
}

hipError_t require_images() {
  const DeviceSpec& spec = *current_device().spec;
  if (spec.images) return hipSuccess;
  last_message().clear();
  last_message().add("%s has no image instructions, so there are no arrays, textures and surfaces on it", spec.arch);
  return hipErrorNotSupported;
}

hipError_t create_array(void** handle, const ElementFormat& format, const HipExtent& extent, u32 flags) {
  if (handle == nullptr || !possible(extent, flags)) return hipErrorInvalidValue;
  if (const hipError_t error = require_images(); error != hipSuccess) return error;
  if ((flags & ~(kLayered | kForSurfaces | kForGather)) != 0) return hipErrorNotSupported;
  auto array = std::make_unique<Array>();
  *array = {format, extent, flags, nullptr, current_device_number()};
  void* memory = nullptr;
  if (const hipError_t error = allocate(&memory, array->slice() * array->planes(), MemoryType::Array);
      error != hipSuccess)
    return error;
  array->data = static_cast<u8*>(memory);
  *handle = arrays().add(static_cast<std::unique_ptr<Array>&&>(array));
  return hipSuccess;
}

hipError_t destroy_array(void* handle) {
  if (handle == nullptr) return hipErrorInvalidValue;
  const std::unique_ptr<Array> array = arrays().remove(handle);
  if (array == nullptr) return hipErrorInvalidHandle;
  await_device(*device(array->device));
  return release(array->data);
}

const Array* find_array(const void* handle) { return arrays().find(handle); }

hipError_t window_of(const void* handle, size_t x, size_t y, size_t z, const Extent& extent, Block& block) {
  const Array* array = find_array(handle);
  if (array == nullptr) return hipErrorInvalidHandle;
  const auto fits = [](size_t begin, size_t count, size_t size) { return begin <= size && count <= size - begin; };
  const bool inside = fits(x, extent.width, array->pitch()) && fits(y, extent.height, array->rows()) &&
                      fits(z, extent.depth, array->planes());
  if (!inside) return hipErrorInvalidValue;
  block = {array->data + z * array->slice() + y * array->pitch() + x, array->pitch(), array->slice()};
  return hipSuccess;
}

}  // namespace ckemu
