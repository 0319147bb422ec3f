// SPDX-License-Identifier: MIT
//
// HIP: arrays, and one- and two-dimensional copies to and from them.
#include "hip/array.h"
#include "hip/device.h"

namespace ckemu {

namespace {

/// hipArray_Format: the kinds and sizes of channels, in the driver's words.
struct DriverFormat {
  int number;
  ChannelKind kind;
  u8 bytes;
};
constexpr DriverFormat kDriverFormats[] = {
    {0x01, ChannelKind::Unsigned, 1}, {0x02, ChannelKind::Unsigned, 2}, {0x03, ChannelKind::Unsigned, 4},
    {0x08, ChannelKind::Signed, 1},   {0x09, ChannelKind::Signed, 2},   {0x0a, ChannelKind::Signed, 4},
    {0x10, ChannelKind::Float, 2},    {0x20, ChannelKind::Float, 4},
};

/// HIP_ARRAY3D_DESCRIPTOR; HIP_ARRAY_DESCRIPTOR lacks depth and flags.
struct Description2D {
  size_t width, height;
  int format;
  u32 channels;
};
struct Description3D {
  size_t width, height, depth;
  int format;
  u32 channels, flags;
};

hipError_t create_described(void** handle, const Description3D* wanted) {
  if (handle == nullptr || wanted == nullptr) return hipErrorInvalidValue;
  if (wanted->channels != 1 && wanted->channels != 2 && wanted->channels != 4) return hipErrorInvalidValue;
  for (const DriverFormat& row : kDriverFormats) {
    if (row.number != wanted->format) continue;
    const ElementFormat format{row.kind, row.bytes, static_cast<u8>(wanted->channels)};
    return create_array(handle, format, {wanted->width, wanted->height, wanted->depth}, wanted->flags);
  }
  return hipErrorInvalidValue;
}

hipError_t describe(Description3D* description, const void* handle) {
  const Array* array = find_array(handle);
  if (description == nullptr) return hipErrorInvalidValue;
  if (array == nullptr) return hipErrorInvalidHandle;
  const ElementFormat& f = array->format;
  const auto same = [&](const DriverFormat& row) { return row.kind == f.kind && row.bytes == f.bytes; };
  const int number = std::find_if(std::begin(kDriverFormats), std::end(kDriverFormats), same)->number;
  *description = {array->extent.width, array->extent.height, array->extent.depth, number, f.channels, array->flags};
  return hipSuccess;
}

hipError_t create(void** handle, const ChannelFormat* channels, const HipExtent& extent, u32 flags) {
  ElementFormat format;
  if (handle == nullptr || channels == nullptr) return hipErrorInvalidValue;
  return read_format(*channels, format) ? create_array(handle, format, extent, flags) : hipErrorInvalidValue;
}

hipError_t ask(ChannelFormat* channels, HipExtent* extent, u32* flags, const void* handle) {
  const Array* array = find_array(handle);
  if (array == nullptr) return hipErrorInvalidHandle;
  if (channels != nullptr) *channels = description_of(array->format);
  if (extent != nullptr) *extent = array->extent;
  if (flags != nullptr) *flags = array->flags;
  return hipSuccess;
}

/// Rows of memory and where they lie in an array: byte `x` of row `y`.
struct Rows {
  void* memory;
  size_t pitch, width, height;
  void* array;
  size_t x, y;
};
enum class Direction { ToArray, FromArray };

hipError_t copy_rows(const Rows& rows, Direction direction, int kind, void* stream, When when) {
  if (!is_copy_kind(kind)) return hipErrorInvalidMemcpyDirection;
  if (rows.height > 1 && rows.width > rows.pitch) return hipErrorInvalidPitchValue;
  const Extent extent{rows.width, rows.height};
  Block inside;
  const Block memory{static_cast<u8*>(rows.memory), rows.pitch};
  if (const hipError_t error = window_of(rows.array, rows.x, rows.y, 0, extent, inside); error != hipSuccess)
    return error;
  return direction == Direction::ToArray ? transfer(inside, memory, extent, stream, when)
                                         : transfer(memory, inside, extent, stream, when);
}

/// `size` bytes of an array from byte `x` of row `y` on, where rows follow each other.
hipError_t run_of(const void* handle, size_t x, size_t y, size_t size, Block& block) {
  const Array* array = find_array(handle);
  if (array == nullptr) return hipErrorInvalidHandle;
  const size_t all = array->slice() * array->planes(), begin = y * array->pitch() + x;
  if (x >= array->pitch() || begin > all || size > all - begin) return hipErrorInvalidValue;
  block = {array->data + begin};
  return hipSuccess;
}

hipError_t copy_run(void* array, size_t x, size_t y, void* memory, size_t size, Direction direction, int kind) {
  if (!is_copy_kind(kind)) return hipErrorInvalidMemcpyDirection;
  Block inside;
  if (const hipError_t error = run_of(array, x, y, size, inside); error != hipSuccess) return error;
  const Block outside{static_cast<u8*>(memory)};
  return direction == Direction::ToArray ? transfer(inside, outside, {size}, nullptr, When::Now)
                                         : transfer(outside, inside, {size}, nullptr, When::Now);
}

hipError_t copy_between(void* to, size_t to_x, size_t to_y, void* from, size_t from_x, size_t from_y, size_t width,
                        size_t height) {
  const Extent extent{width, height};
  Block target, source;
  if (const hipError_t error = window_of(to, to_x, to_y, 0, extent, target); error != hipSuccess) return error;
  if (const hipError_t error = window_of(from, from_x, from_y, 0, extent, source); error != hipSuccess) return error;
  return transfer(target, source, extent, nullptr, When::Now);
}

void* plain(const void* pointer) { return const_cast<void*>(pointer); }

}  // namespace

CKEMU_EXPORT hipError_t hipMallocArray(void** array, const ChannelFormat* channels, size_t width, size_t height,
                                       u32 flags) {
  return finish(create(array, channels, {width, height, 0}, flags));
}
CKEMU_EXPORT hipError_t hipMalloc3DArray(void** array, const ChannelFormat* channels, HipExtent extent, u32 flags) {
  return finish(create(array, channels, extent, flags));
}
CKEMU_EXPORT hipError_t hipFreeArray(void* array) { return finish(destroy_array(array)); }
CKEMU_EXPORT hipError_t hipArrayCreate(void** array, const Description2D* wanted) {
  if (wanted == nullptr) return finish(hipErrorInvalidValue);
  const Description3D all{wanted->width, wanted->height, 0, wanted->format, wanted->channels, 0};
  return finish(create_described(array, &all));
}
CKEMU_EXPORT hipError_t hipArray3DCreate(void** array, const Description3D* wanted) {
  return finish(create_described(array, wanted));
}
CKEMU_EXPORT hipError_t hipArrayDestroy(void* array) { return finish(destroy_array(array)); }
CKEMU_EXPORT hipError_t hipArrayGetInfo(ChannelFormat* channels, HipExtent* extent, u32* flags, void* array) {
  return finish(ask(channels, extent, flags, array));
}
CKEMU_EXPORT hipError_t hipGetChannelDesc(ChannelFormat* channels, const void* array) {
  return finish(channels != nullptr ? ask(channels, nullptr, nullptr, array) : hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipArrayGetDescriptor(Description2D* description, void* array) {
  Description3D all{};
  const hipError_t error = describe(&all, array);
  if (error == hipSuccess && description != nullptr) *description = {all.width, all.height, all.format, all.channels};
  return finish(description != nullptr ? error : hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipArray3DGetDescriptor(Description3D* description, void* array) {
  return finish(describe(description, array));
}

CKEMU_EXPORT hipError_t hipMemcpy2DToArray(void* array, size_t x, size_t y, const void* from, size_t pitch,
                                           size_t width, size_t height, int kind) {
  return finish(
      copy_rows({plain(from), pitch, width, height, array, x, y}, Direction::ToArray, kind, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemcpy2DToArrayAsync(void* array, size_t x, size_t y, const void* from, size_t pitch,
                                                size_t width, size_t height, int kind, void* stream) {
  return finish(
      copy_rows({plain(from), pitch, width, height, array, x, y}, Direction::ToArray, kind, stream, When::InOrder));
}
CKEMU_EXPORT hipError_t hipMemcpy2DFromArray(void* to, size_t pitch, const void* array, size_t x, size_t y,
                                             size_t width, size_t height, int kind) {
  return finish(
      copy_rows({to, pitch, width, height, plain(array), x, y}, Direction::FromArray, kind, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemcpy2DFromArrayAsync(void* to, size_t pitch, const void* array, size_t x, size_t y,
                                                  size_t width, size_t height, int kind, void* stream) {
  return finish(
      copy_rows({to, pitch, width, height, plain(array), x, y}, Direction::FromArray, kind, stream, When::InOrder));
}
CKEMU_EXPORT hipError_t hipMemcpy2DArrayToArray(void* to, size_t to_x, size_t to_y, const void* from, size_t from_x,
                                                size_t from_y, size_t width, size_t height, int kind) {
  if (!is_copy_kind(kind)) return finish(hipErrorInvalidMemcpyDirection);
  return finish(copy_between(to, to_x, to_y, plain(from), from_x, from_y, width, height));
}
CKEMU_EXPORT hipError_t hipMemcpyToArray(void* array, size_t x, size_t y, const void* from, size_t size, int kind) {
  return finish(copy_run(array, x, y, plain(from), size, Direction::ToArray, kind));
}
CKEMU_EXPORT hipError_t hipMemcpyFromArray(void* to, const void* array, size_t x, size_t y, size_t size, int kind) {
  return finish(copy_run(plain(array), x, y, to, size, Direction::FromArray, kind));
}
CKEMU_EXPORT hipError_t hipMemcpyHtoA(void* array, size_t offset, const void* from, size_t size) {
  return finish(copy_run(array, offset, 0, plain(from), size, Direction::ToArray, kCopyDefault));
}
CKEMU_EXPORT hipError_t hipMemcpyAtoH(void* to, void* array, size_t offset, size_t size) {
  return finish(copy_run(array, offset, 0, to, size, Direction::FromArray, kCopyDefault));
}

}  // namespace ckemu
