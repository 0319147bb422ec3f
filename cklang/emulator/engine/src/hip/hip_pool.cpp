// SPDX-License-Identifier: MIT
//
// HIP: memory pools. Memory of a pool is plain memory: a pool only counts what it has given.
#include <algorithm>

#include "core/immortal.h"
#include "hip/handles.h"
#include "hip/memory.h"
#include "hip/stream.h"

namespace ckemu {

namespace {

/// hipMemPoolAttr from 1 on: three reuse policies (int), threshold, four byte counts (u64).
constexpr int kFirstAttribute = 1, kLastPolicy = 3, kThreshold = 4, kLastAttribute = 8;

struct Pool {
  int device = 0;
  int policies[kLastPolicy] = {1, 1, 1};
  u64 threshold = 0;
};

struct Pools {
  Handles<Pool> made;
  std::vector<Pool*> standard, chosen;  // by device
  Pools() {
    for (int n = 0; n < device_count(); ++n) {
      auto pool = std::make_unique<Pool>();
      pool->device = n;
      standard.push_back(made.add(static_cast<std::unique_ptr<Pool>&&>(pool)));
    }
    chosen = standard;
  }
};
Pools& pools() { return immortal<Pools>(); }

hipError_t pool_of(const std::vector<Pool*>& which, void** pool, int number) {
  if (pool == nullptr) return hipErrorInvalidValue;
  if (!is_device(number)) return hipErrorInvalidDevice;
  *pool = which[static_cast<size_t>(number)];
  return hipSuccess;
}

/// hipMemPoolProps.
struct PoolProperties {
  int kind, handles, location_kind, location;
  void* security;
  size_t most;
  u8 reserved[56];
};
hipError_t create(void** handle, const PoolProperties* properties) {
  if (handle == nullptr || properties == nullptr) return hipErrorInvalidValue;
  if (!is_device(properties->location)) return hipErrorInvalidDevice;
  auto pool = std::make_unique<Pool>();
  pool->device = properties->location;
  *handle = pools().made.add(static_cast<std::unique_ptr<Pool>&&>(pool));
  return hipSuccess;
}

hipError_t destroy(void* handle) {
  Pool* pool = pools().made.find(handle);
  if (pool == nullptr) return hipErrorInvalidValue;
  const size_t number = static_cast<size_t>(pool->device);
  if (pools().standard[number] == pool) return hipErrorInvalidValue;
  if (pools().chosen[number] == pool) pools().chosen[number] = pools().standard[number];
  pools().made.remove(handle);
  return hipSuccess;
}

hipError_t give(void** pointer, size_t size, void* handle, void* stream) {
  if (pools().made.find(handle) == nullptr) return hipErrorInvalidValue;
  if (!queue_of(stream)) return hipErrorInvalidHandle;
  return allocate(pointer, size, MemoryType::Device);
}

hipError_t set(void* handle, int attribute, const void* value) {
  Pool* pool = pools().made.find(handle);
  if (pool == nullptr || value == nullptr || attribute < kFirstAttribute || attribute > kLastAttribute)
    return hipErrorInvalidValue;
  if (attribute <= kLastPolicy) pool->policies[attribute - kFirstAttribute] = load_as<int>(value);
  else if (attribute == kThreshold) pool->threshold = load_as<u64>(value);
  else if (load_as<u64>(value) != 0) return hipErrorInvalidValue;  // counts can only be reset
  return hipSuccess;
}

hipError_t get(void* handle, int attribute, void* value) {
  const Pool* pool = pools().made.find(handle);
  if (pool == nullptr || value == nullptr || attribute < kFirstAttribute || attribute > kLastAttribute)
    return hipErrorInvalidValue;
  if (attribute <= kLastPolicy) {
    std::memcpy(value, &pool->policies[attribute - kFirstAttribute], sizeof(int));
    return hipSuccess;
  }
  const u64 answer = attribute == kThreshold ? pool->threshold : allocated_bytes(*device(pool->device));
  std::memcpy(value, &answer, sizeof answer);
  return hipSuccess;
}

hipError_t choose(int number, void* handle) {
  Pool* pool = pools().made.find(handle);
  if (!is_device(number)) return hipErrorInvalidDevice;
  if (pool == nullptr || pool->device != number) return hipErrorInvalidValue;
  pools().chosen[static_cast<size_t>(number)] = pool;
  return hipSuccess;
}

hipError_t known(void* handle) { return pools().made.find(handle) != nullptr ? hipSuccess : hipErrorInvalidValue; }

constexpr int kPoolReadWrite = 3;  // hipMemAccessFlagsProtReadWrite

}  // namespace

CKEMU_EXPORT hipError_t hipDeviceGetDefaultMemPool(void** pool, int number) {
  return finish(pool_of(pools().standard, pool, number));
}
CKEMU_EXPORT hipError_t hipDeviceGetMemPool(void** pool, int number) {
  return finish(pool_of(pools().chosen, pool, number));
}
CKEMU_EXPORT hipError_t hipDeviceSetMemPool(int number, void* pool) { return finish(choose(number, pool)); }
CKEMU_EXPORT hipError_t hipMemPoolCreate(void** pool, const PoolProperties* properties) {
  return finish(create(pool, properties));
}
CKEMU_EXPORT hipError_t hipMemPoolDestroy(void* pool) { return finish(destroy(pool)); }
CKEMU_EXPORT hipError_t hipMallocFromPoolAsync(void** pointer, size_t size, void* pool, void* stream) {
  return finish(give(pointer, size, pool, stream));
}
CKEMU_EXPORT hipError_t hipMemPoolTrimTo(void* pool, size_t) { return finish(known(pool)); }  // nothing is kept back
CKEMU_EXPORT hipError_t hipMemPoolSetAttribute(void* pool, int attribute, void* value) {
  return finish(set(pool, attribute, value));
}
CKEMU_EXPORT hipError_t hipMemPoolGetAttribute(void* pool, int attribute, void* value) {
  return finish(get(pool, attribute, value));
}
CKEMU_EXPORT hipError_t hipMemPoolSetAccess(void* pool, const void*, size_t) { return finish(known(pool)); }
CKEMU_EXPORT hipError_t hipMemPoolGetAccess(int* flags, void* pool, void*) {
  if (flags == nullptr) return finish(hipErrorInvalidValue);
  *flags = kPoolReadWrite;
  return finish(known(pool));
}

}  // namespace ckemu
