// SPDX-License-Identifier: MIT
#include "hip/memory.h"

#include <sys/mman.h>

#include <deque>
#include <map>

#include "core/fault.h"
#include "core/immortal.h"

namespace ckemu {

namespace {

constexpr size_t kPage = 4096;
// Freed ranges stay reserved and untouchable for a while, so that using one is an error and not luck.
constexpr size_t kQuarantined = 1024;
constexpr u64 kQuarantinedBytes = u64{1} << 42;

struct Registry {
  Mutex lock;
  std::map<u64, Allocation> blocks;
  std::map<u64, u64> freed;  // begin to end
  std::deque<u64> quarantine;  // the begins, oldest first
  u64 quarantined = 0;  // bytes

  using Iterator = std::map<u64, Allocation>::iterator;

  /// The allocation that holds `address`; end() if none does.
  Iterator find(u64 address) {
    auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return blocks.end();
    --next;
    return address < next->first + next->second.size ? next : blocks.end();
  }
  bool was_freed(u64 address) const {
    auto next = freed.upper_bound(address);
    return next != freed.begin() && address < (--next)->second;
  }
  void put_away(u64 begin, u64 size) {
    mmap(reinterpret_cast<void*>(begin), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    freed[begin] = begin + size;
    quarantine.push_back(begin);
    quarantined += size;
    while (quarantine.size() > kQuarantined || quarantined > kQuarantinedBytes) {
      const auto oldest = freed.find(quarantine.front());
      const u64 bytes = oldest->second - oldest->first;
      munmap(reinterpret_cast<void*>(oldest->first), bytes);
      quarantined -= bytes;
      quarantine.pop_front();
      freed.erase(oldest);
    }
  }
};
Registry& registry() { return immortal<Registry>(); }

/// Reads a byte of each page, so that what is no memory faults.
void touch(void* context) {
  const auto [begin, size] = *static_cast<const std::pair<u64, u64>*>(context);
  for (u64 at = begin; at - begin < size; at = (at / kPage + 1) * kPage) {
    static_cast<void>(*reinterpret_cast<const volatile u8*>(at));
  }
}

}  // namespace

hipError_t allocate(void** pointer, size_t size, MemoryType type, u32 flags) {
  if (pointer == nullptr) return hipErrorInvalidValue;
  *pointer = nullptr;
  if (size == 0) return hipSuccess;
  Device& gpu = current_device();
  if (size > gpu.spec->memory_bytes) return hipErrorOutOfMemory;
  const size_t mapped = (size + kPage - 1) / kPage * kPage + kPage;
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return hipErrorOutOfMemory;
  const u64 base = reinterpret_cast<u64>(memory);
  mprotect(static_cast<u8*>(memory) + mapped - kPage, kPage, PROT_NONE);
  const Guard guard(registry().lock);
  if (gpu.allocated + size > gpu.spec->memory_bytes) {
    munmap(memory, mapped);
    return hipErrorOutOfMemory;
  }
  gpu.allocated += size;
  registry().blocks[base] = {base, size, mapped, type, current_device_number(), flags};
  *pointer = memory;
  return hipSuccess;
}

hipError_t release(void* pointer) {
  if (pointer == nullptr) return hipSuccess;
  const Guard guard(registry().lock);
  const u64 base = reinterpret_cast<u64>(pointer);
  const auto found = registry().blocks.find(base);
  if (found == registry().blocks.end() || found->second.mapped == 0) return hipErrorInvalidValue;
  device(found->second.device)->allocated -= found->second.size;
  registry().put_away(base, found->second.mapped);
  registry().blocks.erase(found);
  return hipSuccess;
}

hipError_t register_host(void* pointer, size_t size, u32 flags) {
  if (size == 0 || !accessible(pointer, size)) return hipErrorInvalidValue;
  std::pair<u64, u64> pages{reinterpret_cast<u64>(pointer), size};
  if (!survives(touch, &pages)) return hipErrorInvalidValue;
  const Guard guard(registry().lock);
  const u64 base = reinterpret_cast<u64>(pointer);
  if (registry().find(base) != registry().blocks.end()) return hipErrorHostMemoryAlreadyRegistered;
  registry().blocks[base] = {base, size, 0, MemoryType::Host, current_device_number(), flags};
  return hipSuccess;
}

hipError_t unregister_host(void* pointer) {
  const Guard guard(registry().lock);
  const auto found = registry().blocks.find(reinterpret_cast<u64>(pointer));
  if (found == registry().blocks.end() || found->second.mapped != 0) return hipErrorHostMemoryNotRegistered;
  registry().blocks.erase(found);
  return hipSuccess;
}

bool find_allocation(const void* pointer, Allocation& found) {
  const Guard guard(registry().lock);
  const auto block = registry().find(reinterpret_cast<u64>(pointer));
  if (block == registry().blocks.end()) return false;
  found = block->second;
  return true;
}

bool accessible(const void* pointer, size_t size) {
  if (pointer == nullptr) return false;
  const Guard guard(registry().lock);
  const u64 address = reinterpret_cast<u64>(pointer);
  const auto found = registry().find(address);
  if (found == registry().blocks.end()) return address + size >= address && !registry().was_freed(address);
  return size <= found->first + found->second.size - address;
}

u64 allocated_bytes(const Device& gpu) {
  const Guard guard(registry().lock);
  return gpu.allocated;
}

}  // namespace ckemu
