// SPDX-License-Identifier: MIT
//
// HIP: giving and taking memory, and what is known of an address.
#include "hip/memory.h"

#include "checks/checks.h"
#include "core/environment.h"
#include "hip/stream.h"

namespace ckemu {

namespace {

/// Frees once nothing enqueued so far can use the memory.
hipError_t release_idle(void* pointer) {
  if (pointer == nullptr) return hipSuccess;
  Allocation found;
  if (!find_beginning(pointer, found)) return hipErrorInvalidValue;
  await_device(*device(found.device));
  return release(pointer);
}

hipError_t release_in_order(void* pointer, void* stream) {
  Allocation found;
  if (pointer == nullptr) return hipSuccess;
  if (!find_beginning(pointer, found)) return hipErrorInvalidValue;
  return submit(stream, {NodeKind::MemFree, [pointer] { release(pointer); }, true});
}

/// When the process ends, behind the program's own destructors, which may give back what it has.
__attribute__((destructor)) void report_at_end() {
  if (embedded() || (checks_asked() & kCheckMemory) == 0) return;
  report_leaks();
  report_streams();
}

hipError_t allocate_for(void** pointer, size_t size, void* stream) {
  if (!queue_of(stream)) return hipErrorInvalidHandle;
  return allocate(pointer, size, MemoryType::Device);
}

hipError_t describe(hipPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr || pointer == nullptr) return hipErrorInvalidValue;
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

hipError_t host_address(void** device_pointer, void* pointer) {
  Allocation found;
  if (device_pointer == nullptr || pointer == nullptr) return hipErrorInvalidValue;
  if (!find_allocation(pointer, found) || found.type == MemoryType::Device) return hipErrorInvalidValue;
  *device_pointer = pointer;
  return hipSuccess;
}

/// hipPointer_attribute, those with an answer here.
enum PointerQuestion : int {
  kContext = 1,
  kType = 2,
  kDevicePointer = 3,
  kHostPointer = 4,
  kManaged = 8,
  kOrdinal = 9,
  kStart = 11,
  kSize = 12,
  kMapped = 13
};

hipError_t answer(void* data, int question, const void* pointer) {
  Allocation found;
  if (data == nullptr || !find_allocation(pointer, found)) return hipErrorInvalidValue;
  const auto put = [&](auto value) { std::memcpy(data, &value, sizeof value); };
  switch (question) {
    case kContext: put(device(found.device)); return hipSuccess;
    case kType: put(static_cast<u32>(found.type)); return hipSuccess;
    case kDevicePointer:
    case kHostPointer: put(pointer); return hipSuccess;
    case kManaged: put(static_cast<u32>(found.type == MemoryType::Managed)); return hipSuccess;
    case kOrdinal: put(found.device); return hipSuccess;
    case kStart: put(found.base); return hipSuccess;
    case kSize: put(found.size); return hipSuccess;
    case kMapped: put(1u); return hipSuccess;
    default: return hipErrorNotSupported;
  }
}

hipError_t within_allocation(const void* pointer, size_t size) {
  Allocation found;
  const bool inside =
      find_allocation(pointer, found) && reinterpret_cast<u64>(pointer) + size <= found.base + found.size;
  return inside && size != 0 ? hipSuccess : hipErrorInvalidValue;
}

}  // namespace

CKEMU_EXPORT hipError_t hipMalloc(void** pointer, size_t size) {
  return finish(allocate(pointer, size, MemoryType::Device));
}
CKEMU_EXPORT hipError_t hipExtMallocWithFlags(void** pointer, size_t size, u32 flags) {
  return finish(allocate(pointer, size, MemoryType::Device, flags));
}
CKEMU_EXPORT hipError_t hipMallocAsync(void** pointer, size_t size, void* stream) {
  return finish(allocate_for(pointer, size, stream));
}
CKEMU_EXPORT hipError_t hipMallocManaged(void** pointer, size_t size, u32 flags) {
  return finish(allocate(pointer, size, MemoryType::Managed, flags));
}
CKEMU_EXPORT hipError_t hipHostMalloc(void** pointer, size_t size, u32 flags) {
  return finish(allocate(pointer, size, MemoryType::Host, flags));
}
CKEMU_EXPORT hipError_t hipHostAlloc(void** pointer, size_t size, u32 flags) {
  return finish(allocate(pointer, size, MemoryType::Host, flags));
}
CKEMU_EXPORT hipError_t hipMemAllocHost(void** pointer, size_t size) {
  return finish(allocate(pointer, size, MemoryType::Host));
}
CKEMU_EXPORT hipError_t hipMallocHost(void** pointer, size_t size) {
  return finish(allocate(pointer, size, MemoryType::Host));
}
CKEMU_EXPORT hipError_t hipFree(void* pointer) { return finish(release_idle(pointer)); }
CKEMU_EXPORT hipError_t hipHostFree(void* pointer) { return finish(release_idle(pointer)); }
CKEMU_EXPORT hipError_t hipFreeHost(void* pointer) { return finish(release_idle(pointer)); }
CKEMU_EXPORT hipError_t hipFreeAsync(void* pointer, void* stream) { return finish(release_in_order(pointer, stream)); }

CKEMU_EXPORT hipError_t hipHostRegister(void* pointer, size_t size, u32 flags) {
  return finish(register_host(pointer, size, flags));
}
CKEMU_EXPORT hipError_t hipHostUnregister(void* pointer) { return finish(unregister_host(pointer)); }
CKEMU_EXPORT hipError_t hipHostGetDevicePointer(void** device_pointer, void* pointer, u32) {
  return finish(host_address(device_pointer, pointer));
}
CKEMU_EXPORT hipError_t hipHostGetFlags(u32* flags, void* pointer) {
  Allocation found;
  if (flags == nullptr || !find_allocation(pointer, found) || found.type != MemoryType::Host)
    return finish(hipErrorInvalidValue);
  *flags = found.flags;
  return hipSuccess;
}

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
CKEMU_EXPORT hipError_t hipMemPtrGetInfo(void* pointer, size_t* size) {
  Allocation found;
  if (size == nullptr || !find_allocation(pointer, found)) return finish(hipErrorInvalidValue);
  *size = found.size;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipPointerGetAttribute(void* data, int question, void* pointer) {
  return finish(answer(data, question, pointer));
}
/// Where memory should lie is the host's affair: advice is checked and has no effect.
CKEMU_EXPORT hipError_t hipMemAdvise(const void* pointer, size_t size, int, int) {
  return finish(within_allocation(pointer, size));
}
CKEMU_EXPORT hipError_t hipMemPrefetchAsync(const void* pointer, size_t size, int, void* stream) {
  if (!queue_of(stream)) return finish(hipErrorInvalidHandle);
  return finish(within_allocation(pointer, size));
}
CKEMU_EXPORT hipError_t hipStreamAttachMemAsync(void* stream, void* pointer, size_t, u32) {
  Allocation found;
  if (!queue_of(stream)) return finish(hipErrorInvalidHandle);
  return finish(find_allocation(pointer, found) ? hipSuccess : hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttributes* attributes, const void* pointer) {
  return finish(describe(attributes, pointer));
}

}  // namespace ckemu
