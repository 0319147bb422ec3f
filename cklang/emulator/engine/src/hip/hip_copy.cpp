// SPDX-License-Identifier: MIT
//
// HIP: copying and setting in one dimension.
#include "hip/device.h"
#include "hip/transfer.h"

namespace ckemu {

namespace {

hipError_t copy(void* to, const void* from, size_t size, int kind, void* stream, When when) {
  if (!is_copy_kind(kind)) return hipErrorInvalidMemcpyDirection;
  check_copy_kind(kind, to, from);
  u8* source = const_cast<u8*>(static_cast<const u8*>(from));
  return transfer({static_cast<u8*>(to)}, {source}, {size}, stream, when);
}

template <class T>
hipError_t set(void* to, T value, size_t count, void* stream, When when) {
  if (count > SIZE_MAX / sizeof(T)) return hipErrorInvalidValue;
  return fill({static_cast<u8*>(to)}, static_cast<u32>(value), sizeof(T), {count * sizeof(T)}, stream, when);
}

}  // namespace

CKEMU_EXPORT hipError_t hipMemcpy(void* to, const void* from, size_t size, int kind) {
  return finish(copy(to, from, size, kind, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemcpyWithStream(void* to, const void* from, size_t size, int kind, void* stream) {
  return finish(copy(to, from, size, kind, stream, When::Now));
}
CKEMU_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, int kind, void* stream) {
  return finish(copy(to, from, size, kind, stream, When::InOrder));
}
CKEMU_EXPORT hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t size) {
  if (!is_device(to_device) || !is_device(from_device)) return finish(hipErrorInvalidDevice);
  return finish(copy(to, from, size, kCopyDefault, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t size,
                                           void* stream) {
  if (!is_device(to_device) || !is_device(from_device)) return finish(hipErrorInvalidDevice);
  return finish(copy(to, from, size, kCopyDefault, stream, When::InOrder));
}

/// The driver's names say where the addresses lie; here that is the same memory.
#define CKEMU_COPY(name)                                                                       \
  CKEMU_EXPORT hipError_t name(void* to, const void* from, size_t size) {                      \
    return finish(copy(to, from, size, kCopyDefault, nullptr, When::Now));                     \
  }                                                                                            \
  CKEMU_EXPORT hipError_t name##Async(void* to, const void* from, size_t size, void* stream) { \
    return finish(copy(to, from, size, kCopyDefault, stream, When::InOrder));                  \
  }
CKEMU_COPY(hipMemcpyHtoD)
CKEMU_COPY(hipMemcpyDtoH)
CKEMU_COPY(hipMemcpyDtoD)
#undef CKEMU_COPY

CKEMU_EXPORT hipError_t hipMemset(void* to, int value, size_t size) {
  return finish(set(to, static_cast<u8>(value), size, nullptr, When::Now));
}
CKEMU_EXPORT hipError_t hipMemsetAsync(void* to, int value, size_t size, void* stream) {
  return finish(set(to, static_cast<u8>(value), size, stream, When::InOrder));
}
#define CKEMU_SET(name, type)                                                             \
  CKEMU_EXPORT hipError_t name(void* to, type value, size_t count) {                      \
    return finish(set(to, value, count, nullptr, When::Now));                             \
  }                                                                                       \
  CKEMU_EXPORT hipError_t name##Async(void* to, type value, size_t count, void* stream) { \
    return finish(set(to, value, count, stream, When::InOrder));                          \
  }
CKEMU_SET(hipMemsetD8, u8)
CKEMU_SET(hipMemsetD16, u16)
CKEMU_SET(hipMemsetD32, int)
#undef CKEMU_SET

}  // namespace ckemu
