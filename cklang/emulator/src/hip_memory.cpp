// SPDX-License-Identifier: MIT
//
// HIP: memory: giving and taking, copying, setting, and what is known of an address.
#include "memory.h"

namespace ckemu {

namespace {

enum CopyKind : int { kCopyDefault = 4, kCopyNoCu = 1024 };

hipError_t copy(void* to, const void* from, size_t size, int kind) {
  if ((kind < 0 || kind > kCopyDefault) && kind != kCopyNoCu) return hipErrorInvalidMemcpyDirection;
  if (size == 0) return current_device().sticky;
  if (!accessible(to, size) || !accessible(from, size)) {
    return hipErrorInvalidValue;
  }
  if (current_device().sticky != hipSuccess) return current_device().sticky;
  std::memmove(to, from, size);
  return hipSuccess;
}

template <class T>
hipError_t set(void* to, T value, size_t count) {
  if (count == 0) return current_device().sticky;
  if (!accessible(to, count * sizeof(T))) return hipErrorInvalidValue;
  if (current_device().sticky != hipSuccess) return current_device().sticky;
  u8* bytes = static_cast<u8*>(to);
  for (size_t n = 0; n < count; ++n) std::memcpy(bytes + n * sizeof(T), &value, sizeof(T));
  return hipSuccess;
}

}  // namespace

CKEMU_EXPORT hipError_t hipMalloc(void** pointer, size_t size) { return finish(allocate(pointer, size, MemoryType::Device)); }
CKEMU_EXPORT hipError_t hipExtMallocWithFlags(void** pointer, size_t size, u32) { return hipMalloc(pointer, size); }
CKEMU_EXPORT hipError_t hipMallocAsync(void** pointer, size_t size, void*) { return hipMalloc(pointer, size); }
CKEMU_EXPORT hipError_t hipMallocManaged(void** pointer, size_t size, u32) {
  return finish(allocate(pointer, size, MemoryType::Managed)); }
CKEMU_EXPORT hipError_t hipHostMalloc(void** pointer, size_t size, u32) {
  return finish(allocate(pointer, size, MemoryType::Host)); }
CKEMU_EXPORT hipError_t hipHostAlloc(void** pointer, size_t size, u32) {
  return finish(allocate(pointer, size, MemoryType::Host)); }
CKEMU_EXPORT hipError_t hipMallocHost(void** pointer, size_t size) { return finish(allocate(pointer, size, MemoryType::Host)); }
CKEMU_EXPORT hipError_t hipFree(void* pointer) { return finish(release(pointer)); }
CKEMU_EXPORT hipError_t hipFreeAsync(void* pointer, void*) { return finish(release(pointer)); }
CKEMU_EXPORT hipError_t hipHostFree(void* pointer) { return finish(release(pointer)); }
CKEMU_EXPORT hipError_t hipFreeHost(void* pointer) { return finish(release(pointer)); }

CKEMU_EXPORT hipError_t hipHostRegister(void* pointer, size_t size, u32 flags) {
  return finish(register_host(pointer, size, flags));
}
CKEMU_EXPORT hipError_t hipHostUnregister(void* pointer) { return finish(unregister_host(pointer)); }
CKEMU_EXPORT hipError_t hipHostGetDevicePointer(void** device_pointer, void* pointer, u32) {
  if (device_pointer == nullptr || pointer == nullptr) return finish(hipErrorInvalidValue);
  *device_pointer = pointer;
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipMemcpy(void* to, const void* from, size_t size, int kind) { return finish(copy(to, from, size, kind)); }
CKEMU_EXPORT hipError_t hipMemcpyWithStream(void* to, const void* from, size_t size, int kind, void*) { return finish(copy(to, from, size, kind)); }
CKEMU_EXPORT hipError_t hipMemcpyAsync(void* to, const void* from, size_t size, int kind, void*) { return finish(copy(to, from, size, kind)); }
CKEMU_EXPORT hipError_t hipMemcpyHtoD(void* to, const void* from, size_t size) { return finish(copy(to, from, size, kCopyDefault)); }
CKEMU_EXPORT hipError_t hipMemcpyDtoH(void* to, const void* from, size_t size) { return finish(copy(to, from, size, kCopyDefault)); }
CKEMU_EXPORT hipError_t hipMemcpyDtoD(void* to, const void* from, size_t size) { return finish(copy(to, from, size, kCopyDefault)); }
CKEMU_EXPORT hipError_t hipMemcpyHtoDAsync(void* to, const void* from, size_t size, void*) { return finish(copy(to, from, size, kCopyDefault)); }
CKEMU_EXPORT hipError_t hipMemcpyDtoHAsync(void* to, const void* from, size_t size, void*) { return finish(copy(to, from, size, kCopyDefault)); }
CKEMU_EXPORT hipError_t hipMemcpyDtoDAsync(void* to, const void* from, size_t size, void*) { return finish(copy(to, from, size, kCopyDefault)); }
CKEMU_EXPORT hipError_t hipMemset(void* to, int value, size_t size) { return finish(set(to, static_cast<u8>(value), size)); }
CKEMU_EXPORT hipError_t hipMemsetAsync(void* to, int value, size_t size, void*) { return finish(set(to, static_cast<u8>(value), size)); }
CKEMU_EXPORT hipError_t hipMemsetD8(void* to, u8 value, size_t count) { return finish(set(to, value, count)); }
CKEMU_EXPORT hipError_t hipMemsetD16(void* to, u16 value, size_t count) { return finish(set(to, value, count)); }
CKEMU_EXPORT hipError_t hipMemsetD32(void* to, int value, size_t count) { return finish(set(to, value, count)); }
CKEMU_EXPORT hipError_t hipMemsetD32Async(void* to, int value, size_t count, void*) { return finish(set(to, value, count)); }

CKEMU_EXPORT hipError_t hipMemGetInfo(size_t* free, size_t* total) {
  if (free == nullptr || total == nullptr) return finish(hipErrorInvalidValue);
  *total = current_device().spec->memory_bytes;
  *free = *total - allocated_bytes(current_device());
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipMemGetAddressRange(void** base, size_t* size, void* pointer) {
  Allocation found;
  if (!find_allocation(pointer, found)) return finish(hipErrorNotFound);
  if (base != nullptr) *base = reinterpret_cast<void*>(found.base);
  if (size != nullptr) *size = found.size;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr || pointer == nullptr) return finish(hipErrorInvalidValue);
  Allocation found;
  *attributes = hipPointerAttributes{};
  if (!find_allocation(pointer, found)) return hipSuccess;  // type 0: unregistered host memory
  void* address = const_cast<void*>(pointer);
  attributes->type = static_cast<int>(found.type);
  attributes->device = found.device;
  attributes->devicePointer = address;
  attributes->hostPointer = found.type == MemoryType::Device ? nullptr : address;
  attributes->isManaged = found.type == MemoryType::Managed;
  attributes->allocationFlags = found.flags;
  return hipSuccess;
}

}  // namespace ckemu
