// SPDX-License-Identifier: MIT
//
// HIP: copying and setting in two and three dimensions.
#include "hip/array.h"
#include "hip/copy_3d.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

constexpr size_t kPitchStep = 256;  // bytes; the alignment that pitched memory has on GPUs

/// hip_Memcpy2D: one side.
struct Side2D {
  size_t x, y;
  int type;
  void *host, *device, *array;
  size_t pitch;
};
struct Copy2D {
  Side2D from, to;
  size_t width, height;
};
/// HIP_MEMCPY3D: one side.
struct Side3D {
  size_t x, y, z, level;
  int type;
  void *host, *device, *array;
  size_t pitch, height;
};
struct DriverCopy3D {
  Side3D from, to;
  size_t width, height, depth;
};

hipError_t copy_2d(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                   int kind, void* stream, When when) {
  if (!is_copy_kind(kind)) return hipErrorInvalidMemcpyDirection;
  check_copy_kind(kind, to, from);
  if (width > to_pitch || width > from_pitch) return hipErrorInvalidPitchValue;
  u8* source = const_cast<u8*>(static_cast<const u8*>(from));
  return transfer({static_cast<u8*>(to), to_pitch}, {source, from_pitch}, {width, height}, stream, when);
}

Block at(const PitchedPointer& pointer, const Position& position) {
  const size_t slice = pointer.pitch * pointer.height;
  u8* base = static_cast<u8*>(pointer.data);
  if (base == nullptr) return {};
  return {base + position.z * slice + position.y * pointer.pitch + position.x, pointer.pitch, slice};
}

hipError_t copy_3d(const Copy3D* copy, void* stream, When when) {
  CopiedBlocks blocks;
  const hipError_t error = blocks_of(copy, blocks);
  return error == hipSuccess ? transfer(blocks.to, blocks.from, blocks.extent, stream, when) : error;
}

/// Bytes of an element of the arrays in a copy; 1 if there are none, 0 if they differ.
size_t element_of(const Copy3D& copy) {
  size_t size = 0;
  for (const void* handle : {copy.from_array, copy.to_array}) {
    const Array* array = find_array(handle);
    if (array == nullptr) continue;
    if (size != 0 && size != array->format.size()) return 0;
    size = array->format.size();
  }
  return std::max<size_t>(size, 1);
}

template <class Side>
u8* base_of(const Side& side) {
  return static_cast<u8*>(side.type == static_cast<int>(MemoryType::Host) ? side.host : side.device);
}
size_t plane_of(const Side2D&) { return 0; }
size_t plane_of(const Side3D& side) { return side.z; }
size_t rows_of(const Side2D&, const Extent& extent) { return extent.height; }
size_t rows_of(const Side3D& side, const Extent& extent) { return side.height != 0 ? side.height : extent.height; }

/// One side of a copy of the driver's: where its bytes are.
template <class Side>
hipError_t block_of(const Side& side, const Extent& extent, Block& block) {
  if (side.type == static_cast<int>(MemoryType::Array))
    return window_of(side.array, side.x, side.y, plane_of(side), extent, block);
  if (base_of(side) == nullptr) return hipErrorInvalidValue;
  const size_t pitch = side.pitch != 0 ? side.pitch : extent.width, slice = pitch * rows_of(side, extent);
  block = {base_of(side) + plane_of(side) * slice + side.y * pitch + side.x, pitch, slice};
  return hipSuccess;
}

template <class Copy>
hipError_t copy_sides(const Copy& copy, const Extent& extent, void* stream, When when) {
  Block to, from;
  if (const hipError_t error = block_of(copy.to, extent, to); error != hipSuccess) return error;
  if (const hipError_t error = block_of(copy.from, extent, from); error != hipSuccess) return error;
  return transfer(to, from, extent, stream, when);
}

hipError_t copy_param_2d(const Copy2D* copy, void* stream, When when) {
  return copy != nullptr ? copy_sides(*copy, {copy->width, copy->height}, stream, when) : hipErrorInvalidValue;
}
hipError_t copy_driver_3d(const DriverCopy3D* copy, void* stream, When when) {
  return copy != nullptr ? copy_sides(*copy, {copy->width, copy->height, copy->depth}, stream, when)
                         : hipErrorInvalidValue;
}

hipError_t set_2d(void* to, size_t pitch, u32 value, u32 size, size_t width, size_t height, void* stream, When when) {
  if (width > pitch) return hipErrorInvalidPitchValue;
  return fill({static_cast<u8*>(to), pitch}, value, size, {width, height}, stream, when);
}

hipError_t set_3d(const PitchedPointer& to, int value, const HipExtent& e, void* stream, When when) {
  return fill(at(to, {}), static_cast<u8>(value), 1, {e.width, e.height, e.depth}, stream, when);
}

hipError_t allocate_pitched(void** pointer, size_t* pitch, size_t width, size_t height, size_t depth) {
  if (pointer == nullptr || pitch == nullptr) return hipErrorInvalidValue;
  *pitch = (width + kPitchStep - 1) / kPitchStep * kPitchStep;
  size_t size = 0;
  if (__builtin_mul_overflow(*pitch, height, &size) || __builtin_mul_overflow(size, depth, &size))
    return hipErrorOutOfMemory;
  return allocate(pointer, size, MemoryType::Device);
}

}  // namespace

hipError_t blocks_of(const Copy3D* copy, CopiedBlocks& blocks) {
  if (copy == nullptr) return hipErrorInvalidValue;
  if (!is_copy_kind(copy->kind)) return hipErrorInvalidMemcpyDirection;
  const size_t element = element_of(*copy);
  if (element == 0) return hipErrorInvalidValue;
  blocks.extent = {copy->extent.width * element, copy->extent.height, copy->extent.depth};
  const auto side = [&](const void* array, const Position& position, const PitchedPointer& pointer, Block& block) {
    if (array != nullptr) return window_of(array, position.x * element, position.y, position.z, blocks.extent, block);
    block = at(pointer, position);
    return hipSuccess;
  };
  if (const hipError_t error = side(copy->to_array, copy->to_at, copy->to, blocks.to); error != hipSuccess)
    return error;
  return side(copy->from_array, copy->from_at, copy->from, blocks.from);
}

CKEMU_EXPORT hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return finish(allocate_pitched(pointer, pitch, width, height, 1));
}
CKEMU_EXPORT hipError_t hipMemAllocPitch(void** pointer, size_t* pitch, size_t width, size_t height, u32 element) {
  if (element != 4 && element != 8 && element != 16) return finish(hipErrorInvalidValue);
  return finish(allocate_pitched(pointer, pitch, width, height, 1));
}
CKEMU_EXPORT hipError_t hipMalloc3D(PitchedPointer* pointer, HipExtent extent) {
  if (pointer == nullptr) return finish(hipErrorInvalidValue);
  *pointer = {nullptr, 0, extent.width, extent.height};
  return finish(allocate_pitched(&pointer->data, &pointer->pitch, extent.width, extent.height, extent.depth));
}

CKEMU_EXPORT hipError_t hipMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                    size_t height, int kind) {
  return finish(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                         size_t height, int kind, void* stream) {
  return finish(copy_2d(to, to_pitch, from, from_pitch, width, height, kind, stream, When::InOrder));
}
CKEMU_EXPORT hipError_t hipMemcpyParam2D(const Copy2D* copy) { return finish(copy_param_2d(copy, nullptr, When::Now)); }
CKEMU_EXPORT hipError_t hipMemcpyParam2DAsync(const Copy2D* copy, void* stream) {
  return finish(copy_param_2d(copy, stream, When::InOrder));
}
CKEMU_EXPORT hipError_t hipMemcpy3D(const Copy3D* copy) { return finish(copy_3d(copy, nullptr, When::Now)); }
CKEMU_EXPORT hipError_t hipMemcpy3DAsync(const Copy3D* copy, void* stream) {
  return finish(copy_3d(copy, stream, When::InOrder));
}
CKEMU_EXPORT hipError_t hipDrvMemcpy3D(const DriverCopy3D* copy) {
  return finish(copy_driver_3d(copy, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipDrvMemcpy3DAsync(const DriverCopy3D* copy, void* stream) {
  return finish(copy_driver_3d(copy, stream, When::InOrder));
}

CKEMU_EXPORT hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return finish(set_2d(to, pitch, static_cast<u8>(value), 1, width, height, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, void* stream) {
  return finish(set_2d(to, pitch, static_cast<u8>(value), 1, width, height, stream, When::InOrder));
}
CKEMU_EXPORT hipError_t hipMemset3D(PitchedPointer to, int value, HipExtent extent) {
  return finish(set_3d(to, value, extent, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemset3DAsync(PitchedPointer to, int value, HipExtent extent, void* stream) {
  return finish(set_3d(to, value, extent, stream, When::InOrder));
}

}  // namespace ckemu
