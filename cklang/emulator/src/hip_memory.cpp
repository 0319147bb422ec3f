// SPDX-License-Identifier: MIT
//
// HIP: memory. Host memory is device memory; allocations are recorded so that sizes can be asked
// for and wrong pointers refused, and end before a page that faults, so that overruns are seen.
#include <sys/mman.h>

#include <map>

#include "device.h"
#include "hip_types.h"

namespace ckemu {

namespace {

constexpr size_t kPage = 4096;
enum MemoryType : int { kUnregistered = 0, kHost = 1, kDevice = 2, kManaged = 3 };
enum CopyKind : int { kCopyDefault = 4, kCopyNoCu = 1024 };

struct Allocation {
  size_t size = 0, mapped = 0;  // mapped is 0 for registered memory, which is not ours
  int type = kDevice, device = 0;
};

struct Registry {
  Mutex lock;
  std::map<u64, Allocation> blocks;

  /// The allocation that holds `address`; end() if none does.
  std::map<u64, Allocation>::iterator find(u64 address) {
    auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return blocks.end();
    --next;
    return address < next->first + next->second.size || address == next->first ? next : blocks.end();
  }
};
Registry& registry() {
  static Registry all;
  return all;
}

hipError_t allocate(void** pointer, size_t size, int type) {
  if (pointer == nullptr) return hipErrorInvalidValue;
  *pointer = nullptr;
  if (size == 0) return hipSuccess;
  Device& gpu = current_device();
  if (size > gpu.spec->memory_bytes) return hipErrorOutOfMemory;
  const size_t body = (size + kPage - 1) / kPage * kPage;
  void* memory = mmap(nullptr, body + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return hipErrorOutOfMemory;
  mprotect(static_cast<u8*>(memory) + body, kPage, PROT_NONE);
  const Guard guard(registry().lock);
  if (gpu.allocated + size > gpu.spec->memory_bytes) {
    munmap(memory, body + kPage);
    return hipErrorOutOfMemory;
  }
  gpu.allocated += size;
  registry().blocks[reinterpret_cast<u64>(memory)] = {size, body + kPage, type, current_device_number()};
  *pointer = memory;
  return hipSuccess;
}

hipError_t release(void* pointer) {
  if (pointer == nullptr) return hipSuccess;
  const Guard guard(registry().lock);
  const auto found = registry().blocks.find(reinterpret_cast<u64>(pointer));
  if (found == registry().blocks.end() || found->second.mapped == 0) return hipErrorInvalidValue;
  device(found->second.device)->allocated -= found->second.size;
  munmap(pointer, found->second.mapped);
  registry().blocks.erase(found);
  return hipSuccess;
}

/// Whether [pointer, pointer + size) leaves the allocation it starts in.
bool overruns(const void* pointer, size_t size) {
  const Guard guard(registry().lock);
  const u64 address = reinterpret_cast<u64>(pointer);
  const auto found = registry().find(address);
  return found != registry().blocks.end() && address + size > found->first + found->second.size;
}

hipError_t copy(void* to, const void* from, size_t size, int kind) {
  if ((kind < 0 || kind > kCopyDefault) && kind != kCopyNoCu) return hipErrorInvalidMemcpyDirection;
  if (size == 0) return current_device().sticky;
  if (to == nullptr || from == nullptr || overruns(to, size) || overruns(from, size)) {
    return hipErrorInvalidValue;
  }
  if (current_device().sticky != hipSuccess) return current_device().sticky;
  std::memmove(to, from, size);
  return hipSuccess;
}

template <class T>
hipError_t set(void* to, T value, size_t count) {
  if (count == 0) return current_device().sticky;
  if (to == nullptr || overruns(to, count * sizeof(T))) return hipErrorInvalidValue;
  if (current_device().sticky != hipSuccess) return current_device().sticky;
  u8* bytes = static_cast<u8*>(to);
  for (size_t n = 0; n < count; ++n) std::memcpy(bytes + n * sizeof(T), &value, sizeof(T));
  return hipSuccess;
}

}  // namespace

CKEMU_EXPORT hipError_t hipMalloc(void** pointer, size_t size) { return finish(allocate(pointer, size, kDevice)); }
CKEMU_EXPORT hipError_t hipExtMallocWithFlags(void** pointer, size_t size, u32) { return hipMalloc(pointer, size); }
CKEMU_EXPORT hipError_t hipMallocAsync(void** pointer, size_t size, void*) { return hipMalloc(pointer, size); }
CKEMU_EXPORT hipError_t hipMallocManaged(void** pointer, size_t size, u32) {
  return finish(allocate(pointer, size, kManaged)); }
CKEMU_EXPORT hipError_t hipHostMalloc(void** pointer, size_t size, u32) {
  return finish(allocate(pointer, size, kHost)); }
CKEMU_EXPORT hipError_t hipHostAlloc(void** pointer, size_t size, u32) {
  return finish(allocate(pointer, size, kHost)); }
CKEMU_EXPORT hipError_t hipMallocHost(void** pointer, size_t size) { return finish(allocate(pointer, size, kHost)); }
CKEMU_EXPORT hipError_t hipFree(void* pointer) { return finish(release(pointer)); }
CKEMU_EXPORT hipError_t hipFreeAsync(void* pointer, void*) { return finish(release(pointer)); }
CKEMU_EXPORT hipError_t hipHostFree(void* pointer) { return finish(release(pointer)); }
CKEMU_EXPORT hipError_t hipFreeHost(void* pointer) { return finish(release(pointer)); }

CKEMU_EXPORT hipError_t hipHostRegister(void* pointer, size_t size, u32) {
  if (pointer == nullptr || size == 0) return finish(hipErrorInvalidValue);
  const Guard guard(registry().lock);
  const u64 address = reinterpret_cast<u64>(pointer);
  if (registry().find(address) != registry().blocks.end()) return finish(hipErrorHostMemoryAlreadyRegistered);
  registry().blocks[address] = {size, 0, kHost, current_device_number()};
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipHostUnregister(void* pointer) {
  const Guard guard(registry().lock);
  const auto found = registry().blocks.find(reinterpret_cast<u64>(pointer));
  if (found == registry().blocks.end() || found->second.mapped != 0) return finish(hipErrorHostMemoryNotRegistered);
  registry().blocks.erase(found);
  return hipSuccess;
}
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
  const Guard guard(registry().lock);
  *total = current_device().spec->memory_bytes;
  *free = *total - current_device().allocated;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipMemGetAddressRange(void** base, size_t* size, void* pointer) {
  const Guard guard(registry().lock);
  const auto found = registry().find(reinterpret_cast<u64>(pointer));
  if (found == registry().blocks.end()) return finish(hipErrorNotFound);
  if (base != nullptr) *base = reinterpret_cast<void*>(found->first);
  if (size != nullptr) *size = found->second.size;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr || pointer == nullptr) return finish(hipErrorInvalidValue);
  const Guard guard(registry().lock);
  const auto found = registry().find(reinterpret_cast<u64>(pointer));
  *attributes = hipPointerAttributes{};
  if (found == registry().blocks.end()) return hipSuccess;  // type 0: unregistered host memory
  void* address = const_cast<void*>(pointer);
  attributes->type = found->second.type;
  attributes->device = found->second.device;
  attributes->devicePointer = address;
  attributes->hostPointer = found->second.type == kDevice ? nullptr : address;
  attributes->isManaged = found->second.type == kManaged;
  return hipSuccess;
}

}  // namespace ckemu
