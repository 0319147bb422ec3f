// SPDX-License-Identifier: MIT
#include "hip/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>

#include "checks/checks.h"
#include "checks/reports.h"
#include "core/fault.h"
#include "core/immortal.h"
#include "hip/module.h"
#include "hip/peers.h"
#include "hip/queue.h"
#include "hip/written.h"

namespace ckemu {

namespace {

constexpr size_t kPage = 4096;
// Before and behind each allocation lies memory that faults, so that a wrong address rarely is in another
// allocation: a little as a rule, more where `memory` is checked.
constexpr size_t kRedZone = size_t{1} << 16, kWideRedZone = size_t{1} << 26;
// Freed ranges stay reserved and untouchable for a while, so that using one is an error and not luck.
constexpr size_t kQuarantined = 1024;
constexpr u64 kQuarantinedBytes = u64{1} << 42;
// From so many bytes on, memory comes in pages of 2 MB: the first touch of a page of 4 KB takes longer than writing it.
constexpr size_t kHuge = size_t{4} << 20;

struct Registry {
  Mutex lock;
  std::map<u64, Allocation> blocks;
  std::map<u64, u64> freed;    // begin to end
  std::map<u64, u64> zones;    // of freed memory, begin to the bytes before and behind it
  std::map<u64, u64> images;   // of code objects, begin to end
  std::deque<u64> quarantine;  // the begins, oldest first
  u64 quarantined = 0;         // bytes
  u64 given = 0;               // allocations so far

  using Iterator = std::map<u64, Allocation>::iterator;

  /// The allocation that holds `address`; end() if none does.
  Iterator find(u64 address) {
    auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return blocks.end();
    --next;
    return address < next->first + next->second.size ? next : blocks.end();
  }
  /// The range that holds `address`; end() if none does.
  static std::map<u64, u64>::const_iterator range_at(const std::map<u64, u64>& ranges, u64 address) {
    auto next = ranges.upper_bound(address);
    return next != ranges.begin() && address < (--next)->second ? next : ranges.end();
  }
  bool was_freed(u64 address) const { return range_at(freed, address) != freed.end(); }
  void put_away(const Allocation& block) {
    if (block.file >= 0) close(block.file);
    const u64 begin = block.base, size = block.mapped - 2 * block.zone;
    mmap(reinterpret_cast<void*>(begin), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    freed[begin] = begin + size;
    zones[begin] = block.zone;
    quarantine.push_back(begin);
    quarantined += block.mapped;
    while (quarantine.size() > kQuarantined || quarantined > kQuarantinedBytes) {
      const auto oldest = freed.find(quarantine.front());
      const u64 zone = zones[oldest->first], bytes = oldest->second - oldest->first + 2 * zone;
      zones.erase(oldest->first);
      munmap(reinterpret_cast<void*>(oldest->first - zone), bytes);
      quarantined -= bytes;
      quarantine.pop_front();
      freed.erase(oldest);
    }
  }
};
Registry& registry() { return immortal<Registry>(); }

const char* kind_of(const Allocation& block) {
  if (block.openings != 0) return "another process's device memory";
  switch (block.type) {
    case MemoryType::Device: return "device memory";
    case MemoryType::Managed: return "managed memory";
    case MemoryType::Array: return "an array";
    case MemoryType::Object: return "a texture or surface object";
    default: return block.mapped == 0 ? "registered host memory" : "host memory";
  }
}

/// Bytes from an allocation to an address outside of it.
u64 distance(const Allocation& block, u64 address) {
  return address < block.base ? block.base - address : address - (block.base + block.size);
}

void describe_nearest(const Allocation& block, u64 address, Message& out) {
  using Long = unsigned long long;
  out.add("\n  the nearest allocation is %zu bytes of %s at 0x%llx on device %d", block.size, kind_of(block),
          static_cast<Long>(block.base), block.device);
  if (address - block.base < block.size) {
    out.add("; the address is at byte %llu of it", static_cast<Long>(address - block.base));
  } else {
    out.add("; the address is %llu bytes %s", static_cast<Long>(distance(block, address)),
            address < block.base ? "before it" : "behind its end");
  }
}

size_t pages_of(size_t size) { return (size + kPage - 1) / kPage * kPage; }

/// Addresses for `size` bytes, with what faults around them; false if there are none.
bool reserve(size_t size, Allocation& block) {
  block.size = size;
  block.zone = (checks_asked() & kCheckMemory) != 0 ? kWideRedZone : kRedZone;
  block.mapped = pages_of(size) + 2 * block.zone;
  block.device = current_device_number();
  void* ground = mmap(nullptr, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  block.base = reinterpret_cast<u64>(ground) + block.zone;
  return ground != MAP_FAILED;
}

bool all_zero(const u8* bytes, size_t count) { return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, count - 1) == 0; }

/// A file without a name with the contents of memory; -1 if there is no room. Pages of zeros take none.
int file_of(const u8* memory, size_t bytes) {
  const int file = create_file("cklang-memory", bytes);
  if (file < 0) return -1;
  bool fine = true;
  for (size_t at = 0; fine && at < bytes; at += kPage) {
    if (all_zero(memory + at, kPage)) continue;
    fine = pwrite(file, memory + at, kPage, static_cast<off_t>(at)) == static_cast<ssize_t>(kPage);
  }
  if (fine) return file;
  close(file);
  return -1;
}

/// Puts a file's pages at the addresses of an allocation.
bool map_file(const Allocation& block, int file) {
  return mmap(reinterpret_cast<void*>(block.base), pages_of(block.size), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
              file, 0) != MAP_FAILED;
}

/// Gives the pages of an allocation to a file, with what they hold. Called locked.
hipError_t back_by_file(Allocation& block) {
  const int file = file_of(reinterpret_cast<const u8*>(block.base), pages_of(block.size));
  if (file < 0) return hipErrorOutOfMemory;
  if (!map_file(block, file)) {
    close(file);
    return hipErrorMapFailed;
  }
  block.file = file;
  forget_writes(block.base);  // others write it, too
  return hipSuccess;
}

/// Whether other processes may have the page of an address, as that of a file which this one has mapped.
bool is_shared_page(u64 address) {
  std::FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  char line[512], rights[5] = {};
  bool shared = false;
  for (unsigned long long begin, end; !shared && std::fgets(line, sizeof line, maps) != nullptr;) {
    const bool read = std::sscanf(line, "%llx-%llx %4s", &begin, &end, rights) == 3;
    shared = read && address >= begin && address < end && rights[3] == 's';
  }
  std::fclose(maps);
  return shared;
}

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
  Allocation block;
  if (size > gpu.spec->memory_bytes || !reserve(size, block)) return hipErrorOutOfMemory;
  const u64 base = block.base;
  void* memory = reinterpret_cast<void*>(base);
  const size_t pages = pages_of(size);
  mprotect(memory, pages, PROT_READ | PROT_WRITE);
  if (pages >= kHuge) madvise(memory, pages, MADV_HUGEPAGE);
  const Guard guard(registry().lock);
  if (gpu.allocated + size > gpu.spec->memory_bytes) {
    munmap(reinterpret_cast<void*>(base - block.zone), block.mapped);
    return hipErrorOutOfMemory;
  }
  gpu.allocated += size;
  block.type = type;
  block.flags = flags;
  block.number = ++registry().given;
  registry().blocks[base] = block;
  if (block.followed() && (checks_asked() & (kCheckUninitialized | kCheckUnwritten)) != 0) follow_writes(base, size);
  *pointer = memory;
  return hipSuccess;
}

hipError_t release(void* pointer) {
  if (pointer == nullptr) return hipSuccess;
  const Guard guard(registry().lock);
  const u64 base = reinterpret_cast<u64>(pointer);
  const auto found = registry().blocks.find(base);
  if (found == registry().blocks.end() || found->second.mapped == 0) return hipErrorInvalidValue;
  if (found->second.openings != 0) return hipErrorInvalidValue;  // another process's
  device(found->second.device)->allocated -= found->second.size;
  forget_writes(base);
  registry().put_away(found->second);
  registry().blocks.erase(found);
  return hipSuccess;
}

hipError_t share(const void* pointer, Allocation& shared) {
  if (find_allocation(pointer, shared) && shared.file >= 0 && shared.openings == 0) return hipSuccess;
  hipError_t error = hipSuccess;
  run_alone([&] {
    const Guard guard(registry().lock);
    const auto found = registry().find(reinterpret_cast<u64>(pointer));
    const bool ours = found != registry().blocks.end() && found->second.mapped != 0 && found->second.openings == 0;
    error = ours && found->second.type == MemoryType::Device ? hipSuccess : hipErrorInvalidValue;
    if (error == hipSuccess && found->second.file < 0) error = back_by_file(found->second);
    if (error == hipSuccess) shared = found->second;
  });
  return error;
}

hipError_t attach(void** pointer, int file, size_t size) {
  const u64 inode = inode_of(file);
  const Guard guard(registry().lock);
  for (auto& [base, block] : registry().blocks) {
    if (block.openings == 0 || inode_of(block.file) != inode) continue;
    ++block.openings;
    close(file);
    *pointer = reinterpret_cast<void*>(base);
    return hipSuccess;
  }
  Allocation block;
  if (!reserve(size, block) || !map_file(block, file)) {
    close(file);
    return hipErrorMapFailed;
  }
  block.file = file;
  block.openings = 1;
  block.number = ++registry().given;
  registry().blocks[block.base] = block;
  *pointer = reinterpret_cast<void*>(block.base);
  return hipSuccess;
}

hipError_t detach(void* pointer) {
  Allocation found;
  if (!find_allocation(pointer, found) || found.openings == 0) return hipErrorInvalidValue;
  for (int number = 0; number < device_count(); ++number) await_device(*device(number));
  const Guard guard(registry().lock);
  const auto block = registry().blocks.find(found.base);
  if (block == registry().blocks.end() || block->second.openings == 0) return hipErrorInvalidValue;
  if (--block->second.openings != 0) return hipSuccess;
  registry().put_away(block->second);
  registry().blocks.erase(block);
  return hipSuccess;
}

hipError_t register_host(void* pointer, size_t size, u32 flags) {
  if (size == 0 || !accessible(pointer, size)) return hipErrorInvalidValue;
  std::pair<u64, u64> pages{reinterpret_cast<u64>(pointer), size};
  if (!survives(touch, &pages)) return hipErrorInvalidValue;
  if (is_shared_page(pages.first)) add_unknown_peers();
  const Guard guard(registry().lock);
  const u64 base = reinterpret_cast<u64>(pointer);
  if (registry().find(base) != registry().blocks.end()) return hipErrorHostMemoryAlreadyRegistered;
  registry().blocks[base] = {base, size, 0, MemoryType::Host, current_device_number(), flags};
  return hipSuccess;
}

hipError_t unregister_host(void* pointer) {
  const Guard guard(registry().lock);
  const auto found = registry().blocks.find(reinterpret_cast<u64>(pointer));
  const bool registered =
      found != registry().blocks.end() && found->second.mapped == 0 && found->second.type == MemoryType::Host;
  if (!registered) return hipErrorHostMemoryNotRegistered;
  registry().blocks.erase(found);
  return hipSuccess;
}

void know_mapped(u64 base, size_t size, int device) {
  const Guard guard(registry().lock);
  registry().blocks[base] = {base, size, 0, MemoryType::Device, device};
}
void forget_mapped(u64 base) {
  const Guard guard(registry().lock);
  registry().blocks.erase(base);
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

Ground ground_at(u64 address, size_t size, u64& begin, u64& end) {
  const Guard guard(registry().lock);
  const auto& blocks = registry().blocks;
  const auto after = blocks.upper_bound(address);
  if (after != blocks.begin()) {
    const Allocation& block = std::prev(after)->second;
    begin = block.base;
    end = block.base + block.size;
    if (address < end && size <= end - address) return Ground::Inside;
    if (address < std::max<u64>(end, begin + block.mapped - block.zone)) return Ground::Beyond;
  }
  if (after != blocks.end() && after->second.base - address <= after->second.zone) return Ground::Beyond;
  if (const auto image = Registry::range_at(registry().images, address); image != registry().images.end()) {
    begin = image->first;
    end = image->second;
    return Ground::Inside;
  }
  return registry().was_freed(address) ? Ground::Freed : Ground::Unknown;
}

void describe_address(u64 address, Message& out) {
  using Long = unsigned long long;
  const Guard guard(registry().lock);
  if (const auto freed = Registry::range_at(registry().freed, address); freed != registry().freed.end()) {
    out.add("\n  the address is at byte %llu of memory that was freed", static_cast<Long>(address - freed->first));
    return;
  }
  const auto& blocks = registry().blocks;
  const auto after = blocks.upper_bound(address);
  const Allocation* nearest = after != blocks.end() ? &after->second : nullptr;
  if (after != blocks.begin()) {
    const Allocation& before = std::prev(after)->second;
    const bool inside = address - before.base < before.size;
    if (nearest == nullptr || inside || distance(before, address) <= distance(*nearest, address)) nearest = &before;
  }
  if (nearest != nullptr) describe_nearest(*nearest, address, out);
}

void know(u64 begin, u64 size) {
  const Guard guard(registry().lock);
  registry().images[begin] = begin + size;
}
void forget(u64 begin) {
  const Guard guard(registry().lock);
  registry().images.erase(begin);
}

bool freed_before(const void* pointer) {
  const Guard guard(registry().lock);
  return registry().was_freed(reinterpret_cast<u64>(pointer));
}

bool find_beginning(const void* pointer, Allocation& found) {
  if (find_allocation(pointer, found) && found.base == reinterpret_cast<u64>(pointer)) return true;
  const bool freed = freed_before(pointer);
  last_message().clear();
  last_message().add(freed ? "the memory at %p was freed before" : "%p is not the beginning of an allocation", pointer);
  Message report;
  report.add("a wrong free: %s", last_message().c_str());
  report_call(report, reinterpret_cast<u64>(pointer));
  return false;
}

void report_leaks() {
  using Long = unsigned long long;
  const Guard guard(registry().lock);
  u64 bytes = 0, count = 0;
  for (const auto& [base, block] : registry().blocks) {
    if (block.mapped == 0) continue;  // registered or mapped: the program's own
    bytes += block.size;
    ++count;
  }
  if (count == 0) return;
  std::fprintf(stderr, "memory that is not freed: %llu bytes in %llu allocations\n", static_cast<Long>(bytes),
               static_cast<Long>(count));
  for (const auto& [base, block] : registry().blocks) {
    if (block.mapped == 0) continue;  // registered or mapped: the program's own
    std::fprintf(stderr, "  %zu bytes of %s on device %d, number %llu of the program's allocations\n", block.size,
                 kind_of(block), block.device, static_cast<Long>(block.number));
  }
}

std::vector<Allocation> all_allocations() {
  const Guard guard(registry().lock);
  std::vector<Allocation> all;
  for (const auto& [base, block] : registry().blocks) all.push_back(block);
  return all;
}

u64 allocated_bytes(const Device& gpu) {
  const Guard guard(registry().lock);
  return gpu.allocated;
}

}  // namespace ckemu
