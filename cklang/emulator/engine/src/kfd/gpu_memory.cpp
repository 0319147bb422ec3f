// SPDX-License-Identifier: MIT
//
// The driver's memory: a file without a name, of which each buffer is a part. AMD's runtime maps buffers where it
// wants them; what it does not map itself is mapped here.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>

#include "core/immortal.h"
#include "hip/peers.h"
#include "kfd/calls.h"
#include "kfd/kfd.h"

namespace ckemu::kfd {

namespace {

constexpr u64 kPage = 4096, kHuge = u64{2} << 20;
constexpr u64 kFileBytes = u64{1} << 50;    // of which pages exist that were written
constexpr u64 kDoorbellBytes = 8192;        // of a GPU
constexpr u64 kFirstBuffer = u64{1} << 32;  // below are doorbells

u64 padded(u64 size, u64 to) { return (size + to - 1) / to * to; }

struct Memory {
  Mutex lock;
  const int fd = create_file("kfd", kFileBytes);
  u64* doorbells = nullptr;       // of all GPUs
  u64 next = kFirstBuffer;        // offset that no buffer had
  u64 last = 0;                   // handle
  std::map<u64, Buffer> buffers;  // by handle
  std::map<u64, u64> places;      // handles by address
  u64 used[kMostDevices] = {};    // bytes of each GPU

  Memory() {
    if (fd >= 0) doorbells = static_cast<u64*>(map_shared(fd, kDoorbellBytes * kMostDevices));
  }
};
Memory& memory() { return immortal<Memory>(); }

bool map_at(const Buffer& buffer) {
  return mmap(reinterpret_cast<void*>(buffer.address), buffer.size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
              memory().fd, static_cast<off_t>(buffer.offset)) != MAP_FAILED;
}

}  // namespace

int open_device() { return memory().doorbells != nullptr ? fcntl(memory().fd, F_DUPFD_CLOEXEC, 0) : -1; }

bool is_device_file(int fd) {
  struct stat ours, other;
  return fstat(memory().fd, &ours) == 0 && fstat(fd, &other) == 0 && ours.st_ino == other.st_ino &&
         ours.st_dev == other.st_dev;
}

u64 doorbell_offset(int gpu, u32 slot) { return static_cast<u64>(gpu) * kDoorbellBytes + 8 * slot; }
u64* doorbell(int gpu, u32 slot) { return memory().doorbells + doorbell_offset(gpu, slot) / 8; }

bool find_buffer(u64 address, Buffer& found) {
  Memory& all = memory();
  const Guard guard(all.lock);
  auto after = all.places.upper_bound(address);
  if (after == all.places.begin()) return false;
  found = all.buffers[(--after)->second];
  return address - found.address < found.size;
}

int allocate_memory(AllocateMemory& call) {
  const int gpu = gpu_of(call.gpu_id);
  if (gpu < 0 || call.size == 0) return -EINVAL;
  Memory& all = memory();
  const Guard guard(all.lock);
  const bool own = (call.flags & (kVram | kGtt)) != 0;
  const bool local = (call.flags & kVram) != 0;
  if (local && all.used[gpu] + call.size > device(gpu)->spec->memory_bytes) return -ENOMEM;
  Buffer buffer{call.address, call.size, 0, call.flags, gpu};
  if (own) {
    buffer.offset = all.next = padded(all.next, call.size < kHuge ? kPage : kHuge);
    all.next += padded(call.size, kPage);
    call.offset = buffer.offset;
    if (call.address != 0 && !map_at(buffer)) return -ENOMEM;
  }
  if (local) all.used[gpu] += call.size;
  call.handle = ++all.last;
  all.buffers[call.handle] = buffer;
  if (call.address != 0) all.places[call.address] = call.handle;
  return 0;
}

int free_memory(FreeMemory& call) {
  Memory& all = memory();
  const Guard guard(all.lock);
  const auto found = all.buffers.find(call.handle);
  if (found == all.buffers.end()) return -EINVAL;
  const Buffer buffer = found->second;
  if (buffer.offset != 0)
    fallocate(all.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(buffer.offset),
              static_cast<off_t>(buffer.size));
  if ((buffer.flags & kVram) != 0) all.used[buffer.gpu] -= buffer.size;
  if (const auto place = all.places.find(buffer.address); place != all.places.end() && place->second == call.handle)
    all.places.erase(place);
  all.buffers.erase(found);
  return 0;
}

int map_memory(MapMemory& call) {
  Memory& all = memory();
  const Guard guard(all.lock);
  const auto found = all.buffers.find(call.handle);
  if (found == all.buffers.end()) return -EINVAL;
  if (found->second.offset != 0 && found->second.address != 0 && !map_at(found->second)) return -ENOMEM;
  call.done = call.count;
  return 0;
}

/// Memory stays mapped for all until it is freed.
int unmap_memory(MapMemory& call) {
  call.done = call.count;
  return 0;
}

int available_memory(AvailableMemory& call) {
  const int gpu = gpu_of(call.gpu_id);
  if (gpu < 0) return -EINVAL;
  const Guard guard(memory().lock);
  call.bytes = device(gpu)->spec->memory_bytes - memory().used[gpu];
  return 0;
}

}  // namespace ckemu::kfd
