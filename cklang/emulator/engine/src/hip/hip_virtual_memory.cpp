// SPDX-License-Identifier: MIT
//
// HIP: virtual memory management. A reservation is a range of addresses, a handle is memory without one, and
// mapping brings them together; kernels may use it once access is set.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "core/immortal.h"
#include "core/ref.h"
#include "hip/device.h"
#include "hip/handles.h"
#include "hip/memory.h"
#include "hip/peers.h"
#include "hip/queue.h"

namespace ckemu {

namespace {

constexpr size_t kGranularity = size_t{2} << 20;  // bytes, of sizes and addresses
enum Access : int { kNoAccess = 0, kRead = 1, kReadWrite = 3 };

/// hipMemLocation: kind 1 is a device.
struct Location {
  int kind, number;
};
constexpr int kDeviceLocation = 1, kPinned = 1;
constexpr int kFileDescriptor = 1;  // of hipMemAllocationHandleType
// Numbers that no pointer has: ROCm 6 passes the address of a descriptor to import, ROCm 7 the descriptor itself.
constexpr u64 kMostDescriptors = 1 << 16;
/// hipMemAllocationProp.
struct Properties {
  int kind, handles;
  Location location;
  void* security;
  u8 compression, direct;
  u16 usage;
};
static_assert(sizeof(Properties) == 32, "hipMemAllocationProp");
/// hipMemAccessDesc.
struct AccessWanted {
  Location location;
  int access;
};

/// Memory without an address: a file without a name, which ends with the last that holds it.
struct Physical {
  Physical(int descriptor, size_t bytes, const Properties& wanted)
      : file(descriptor), size(bytes), properties(wanted) {}
  Physical(Physical&& other) : file(std::exchange(other.file, -1)), size(other.size), properties(other.properties) {}
  ~Physical() {
    if (file >= 0) close(file);
  }
  int file;
  size_t size;
  Properties properties;
};
/// What a hipMemGenericAllocationHandle_t points to.
struct Handle {
  Ref<Physical> memory;
  u32 owners = 1;
};
struct Mapping {
  size_t size = 0;
  Ref<Physical> memory;
  int access = kNoAccess;
};
struct Reservation {
  size_t size = 0;
  std::map<u64, Mapping> mappings;
  std::vector<u64> runs;  // where mappings without a gap between them begin, as far as they may be accessed
};

struct Space {
  Mutex lock;
  std::map<u64, Reservation> reservations;
};
Space& space() { return immortal<Space>(); }
Handles<Handle>& handles() { return immortal<Handles<Handle>>(); }

u64 address_of(const void* pointer) { return reinterpret_cast<u64>(pointer); }
bool aligned(u64 value) { return value != 0 && value % kGranularity == 0; }

/// The reservation that holds all of a range; null if none does. Called locked.
Reservation* around(u64 begin, size_t size) {
  auto next = space().reservations.upper_bound(begin);
  if (next == space().reservations.begin()) return nullptr;
  --next;
  const u64 offset = begin - next->first;
  return offset < next->second.size && size <= next->second.size - offset ? &next->second : nullptr;
}

/// Makes known as one allocation what copies and kernels may use as one. Called locked.
void publish(Reservation& reservation) {
  for (const u64 begin : reservation.runs) forget_mapped(begin);
  reservation.runs.clear();
  u64 begin = 0, end = 0;
  const auto finish_run = [&](int device) {
    if (end == begin) return;
    know_mapped(begin, end - begin, device);
    reservation.runs.push_back(begin);
  };
  int device = 0;
  for (const auto& [at, mapping] : reservation.mappings) {
    if (mapping.access == kNoAccess) continue;
    if (at != end) {
      finish_run(device);
      begin = at;
    }
    end = at + mapping.size;
    device = mapping.memory->properties.location.number;
  }
  finish_run(device);
}

void* reserve(size_t size, const void* wanted) {
  // Addresses are multiples of the granularity: the excess is given back.
  const size_t excess = size + kGranularity;
  void* ground = mmap(const_cast<void*>(wanted), excess, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ground == MAP_FAILED) return nullptr;
  const u64 from = address_of(ground), begin = (from + kGranularity - 1) / kGranularity * kGranularity;
  if (begin != from) munmap(ground, begin - from);
  if (const u64 end = begin + size; end != from + excess) munmap(reinterpret_cast<void*>(end), from + excess - end);
  return reinterpret_cast<void*>(begin);
}

hipError_t reserve_addresses(void** pointer, size_t size, size_t alignment, void* wanted, u64 flags) {
  if (pointer == nullptr || flags != 0 || !aligned(size) || (alignment & (alignment - 1)) != 0)
    return hipErrorInvalidValue;
  if (alignment > kGranularity) return hipErrorNotSupported;
  *pointer = reserve(size, wanted);
  if (*pointer == nullptr) return hipErrorOutOfMemory;
  const Guard guard(space().lock);
  space().reservations[address_of(*pointer)].size = size;
  return hipSuccess;
}

hipError_t free_addresses(void* pointer, size_t size) {
  const Guard guard(space().lock);
  const auto reservation = space().reservations.find(address_of(pointer));
  if (reservation == space().reservations.end() || reservation->second.size != size) return hipErrorInvalidValue;
  if (!reservation->second.mappings.empty()) return hipErrorInvalidValue;
  munmap(pointer, size);
  space().reservations.erase(reservation);
  return hipSuccess;
}

hipError_t add_handle(void** handle, const Ref<Physical>& memory) {
  auto fresh = std::make_unique<Handle>();
  fresh->memory = memory;
  *handle = handles().add(static_cast<std::unique_ptr<Handle>&&>(fresh));
  return hipSuccess;
}

hipError_t create(void** handle, size_t size, const Properties* wanted, u64 flags) {
  if (handle == nullptr || wanted == nullptr || flags != 0 || !aligned(size)) return hipErrorInvalidValue;
  if (wanted->kind != kPinned || wanted->location.kind != kDeviceLocation) return hipErrorInvalidValue;
  if (!is_device(wanted->location.number)) return hipErrorInvalidDevice;
  if (size > device(wanted->location.number)->spec->memory_bytes) return hipErrorOutOfMemory;
  const int file = create_file("hip", size);
  if (file < 0) return hipErrorOutOfMemory;
  return add_handle(handle, Ref<Physical>::make(file, size, *wanted));
}

/// A descriptor that the program may pass to another process, and closes.
hipError_t export_memory(int* descriptor, const void* pointer, int type, u64 flags) {
  const Handle* handle = handles().find(pointer);
  if (descriptor == nullptr || handle == nullptr || flags != 0) return hipErrorInvalidValue;
  if (type != kFileDescriptor) return hipErrorNotSupported;
  *descriptor = fcntl(handle->memory->file, F_DUPFD_CLOEXEC, 0);
  if (*descriptor < 0) return hipErrorOperatingSystem;
  add_unknown_peers();
  return hipSuccess;
}

/// The memory behind a descriptor, which stays the program's.
hipError_t import_memory(void** handle, const void* source, int type) {
  if (handle == nullptr) return hipErrorInvalidValue;
  if (type != kFileDescriptor) return hipErrorNotSupported;
  const bool direct = address_of(source) < kMostDescriptors;
  const int file =
      fcntl(direct ? static_cast<int>(address_of(source)) : *static_cast<const int*>(source), F_DUPFD_CLOEXEC, 0);
  const off_t size = file >= 0 ? lseek(file, 0, SEEK_END) : -1;
  if (size < 0 || !aligned(static_cast<u64>(size))) {
    if (file >= 0) close(file);
    return hipErrorInvalidValue;
  }
  add_unknown_peers();
  const Properties properties{kPinned, kFileDescriptor, {kDeviceLocation, current_device_number()}, nullptr, 0, 0, 0};
  return add_handle(handle, Ref<Physical>::make(file, static_cast<size_t>(size), properties));
}

/// Mapped memory stays until it is unmapped.
hipError_t give_back(void* pointer) { return handles().remove(pointer) != nullptr ? hipSuccess : hipErrorInvalidValue; }

hipError_t map(void* pointer, size_t size, size_t offset, void* handle_pointer, u64 flags) {
  const Handle* handle = handles().find(handle_pointer);
  if (handle == nullptr || flags != 0 || offset != 0 || size != handle->memory->size) return hipErrorInvalidValue;
  const Guard guard(space().lock);
  const u64 begin = address_of(pointer);
  Reservation* reservation = around(begin, size);
  if (reservation == nullptr || !aligned(begin)) return hipErrorInvalidValue;
  auto& mappings = reservation->mappings;
  const auto next = mappings.lower_bound(begin);
  const bool meets_next = next != mappings.end() && next->first < begin + size;
  const bool meets_last = next != mappings.begin() && std::prev(next)->first + std::prev(next)->second.size > begin;
  if (meets_next || meets_last) return hipErrorInvalidValue;
  if (mmap(pointer, size, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->memory->file, 0) == MAP_FAILED)
    return hipErrorMapFailed;
  mappings[begin] = {size, handle->memory, kNoAccess};
  return hipSuccess;
}

/// The mappings that fill a range exactly; false if they do not. Called locked.
bool mappings_of(u64 begin, size_t size, Reservation*& reservation, std::vector<u64>& list) {
  reservation = around(begin, size);
  if (reservation == nullptr || size == 0) return false;
  u64 at = begin;
  for (auto next = reservation->mappings.find(begin);
       next != reservation->mappings.end() && next->first == at && at < begin + size; ++next) {
    list.push_back(at);
    at += next->second.size;
  }
  return at == begin + size;
}

hipError_t unmap(void* pointer, size_t size) {
  for (int number = 0; number < device_count(); ++number) await_device(*device(number));
  const Guard guard(space().lock);
  Reservation* reservation = nullptr;
  std::vector<u64> list;
  if (!mappings_of(address_of(pointer), size, reservation, list)) return hipErrorInvalidValue;
  mmap(pointer, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (const u64 begin : list) reservation->mappings.erase(begin);
  publish(*reservation);
  return hipSuccess;
}

/// The host's tables know no devices: memory that one device may access all may.
hipError_t set_access(void* pointer, size_t size, const AccessWanted* wanted, size_t count) {
  if (wanted == nullptr || count == 0) return hipErrorInvalidValue;
  int access = kNoAccess;
  for (size_t n = 0; n < count; ++n) {
    if (wanted[n].location.kind != kDeviceLocation || !is_device(wanted[n].location.number))
      return hipErrorInvalidValue;
    if (wanted[n].access != kNoAccess && wanted[n].access != kRead && wanted[n].access != kReadWrite)
      return hipErrorInvalidValue;
    access |= wanted[n].access;
  }
  const Guard guard(space().lock);
  Reservation* reservation = nullptr;
  std::vector<u64> list;
  if (!mappings_of(address_of(pointer), size, reservation, list)) return hipErrorInvalidValue;
  constexpr int kProtection[] = {PROT_NONE, PROT_READ, PROT_NONE, PROT_READ | PROT_WRITE};
  if (mprotect(pointer, size, kProtection[access]) != 0) return hipErrorInvalidValue;
  for (const u64 begin : list) reservation->mappings[begin].access = access;
  publish(*reservation);
  return hipSuccess;
}

/// The mapping that holds an address; null if none does. Called locked.
const Mapping* mapping_at(const void* pointer) {
  const u64 address = address_of(pointer);
  const Reservation* reservation = around(address, 1);
  if (reservation == nullptr) return nullptr;
  auto next = reservation->mappings.upper_bound(address);
  if (next == reservation->mappings.begin()) return nullptr;
  --next;
  return address - next->first < next->second.size ? &next->second : nullptr;
}

hipError_t get_access(u64* access, const Location* location, const void* pointer) {
  if (access == nullptr || location == nullptr || !is_device(location->number)) return hipErrorInvalidValue;
  const Guard guard(space().lock);
  const Mapping* mapping = mapping_at(pointer);
  if (mapping == nullptr) return hipErrorInvalidValue;
  *access = static_cast<u64>(mapping->access);
  return hipSuccess;
}

/// A handle of the memory that is mapped at an address.
hipError_t retain(void** handle, const void* pointer) {
  if (handle == nullptr) return hipErrorInvalidValue;
  const Guard guard(space().lock);
  const Mapping* mapping = mapping_at(pointer);
  if (mapping == nullptr) return hipErrorInvalidValue;
  return add_handle(handle, mapping->memory);
}

hipError_t tell(Properties* properties, const void* pointer) {
  const Handle* handle = handles().find(pointer);
  if (properties == nullptr || handle == nullptr) return hipErrorInvalidValue;
  *properties = handle->memory->properties;
  return hipSuccess;
}

}  // namespace

CKEMU_EXPORT hipError_t hipMemAddressReserve(void** pointer, size_t size, size_t alignment, void* wanted, u64 flags) {
  return finish(reserve_addresses(pointer, size, alignment, wanted, flags));
}
CKEMU_EXPORT hipError_t hipMemAddressFree(void* pointer, size_t size) { return finish(free_addresses(pointer, size)); }
CKEMU_EXPORT hipError_t hipMemCreate(void** handle, size_t size, const Properties* properties, u64 flags) {
  return finish(create(handle, size, properties, flags));
}
CKEMU_EXPORT hipError_t hipMemRelease(void* handle) { return finish(give_back(handle)); }
CKEMU_EXPORT hipError_t hipMemExportToShareableHandle(void* shareable, void* handle, int type, u64 flags) {
  return finish(export_memory(static_cast<int*>(shareable), handle, type, flags));
}
CKEMU_EXPORT hipError_t hipMemImportFromShareableHandle(void** handle, void* shareable, int type) {
  return finish(import_memory(handle, shareable, type));
}
CKEMU_EXPORT hipError_t hipMemMap(void* pointer, size_t size, size_t offset, void* handle, u64 flags) {
  return finish(map(pointer, size, offset, handle, flags));
}
CKEMU_EXPORT hipError_t hipMemUnmap(void* pointer, size_t size) { return finish(unmap(pointer, size)); }
CKEMU_EXPORT hipError_t hipMemSetAccess(void* pointer, size_t size, const AccessWanted* wanted, size_t count) {
  return finish(set_access(pointer, size, wanted, count));
}
CKEMU_EXPORT hipError_t hipMemGetAccess(u64* access, const Location* location, void* pointer) {
  return finish(get_access(access, location, pointer));
}
CKEMU_EXPORT hipError_t hipMemRetainAllocationHandle(void** handle, void* pointer) {
  return finish(retain(handle, pointer));
}
CKEMU_EXPORT hipError_t hipMemGetAllocationPropertiesFromHandle(Properties* properties, void* handle) {
  return finish(tell(properties, handle));
}
CKEMU_EXPORT hipError_t hipMemGetAllocationGranularity(size_t* bytes, const Properties* properties, int) {
  if (bytes == nullptr || properties == nullptr) return finish(hipErrorInvalidValue);
  *bytes = kGranularity;
  return hipSuccess;
}

}  // namespace ckemu
