// SPDX-License-Identifier: MIT
#include "hip/peers.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "checks/deadlock.h"
#include "core/clock.h"
#include "core/environment.h"
#include "core/immortal.h"
#include "core/mutex.h"
#include "core/progress.h"

namespace ckemu {

namespace {

constexpr u32 kMostGuests = 128;
constexpr u64 kAskAgain = 10;  // milliseconds
constexpr long kPause = 100;   // microseconds

/// How a process has ended, as its exit handler leaves it.
enum Ending : u32 { kNone, kSuccess, kFailure };

struct Page {
  u64 progress;
  u32 ending;                      // an Ending
  u32 guests;                      // processes that have opened memory of this one
  FileAddress guest[kMostGuests];  // their pages; the process is written last
};

struct Peer {
  FileAddress address;
  int file;
  const Page* page;
};

struct Circle {
  Mutex lock;
  FileAddress own;
  Page* page = nullptr;
  std::vector<Peer> peers;
  bool unknown = false;
  bool any = false;  // read without the lock
};
Circle& circle() { return immortal<Circle>(); }

Page* map_page(int file) { return static_cast<Page*>(map_shared(file, sizeof(Page))); }

void note_ending(int status, void*) {
  Page* page = circle().page;
  if (page == nullptr || circle().own.process != getpid()) return;
  __atomic_store_n(&page->ending, status == 0 ? u32{kSuccess} : u32{kFailure}, __ATOMIC_RELEASE);
}

/// The page stays the parent's.
void forget_page() {
  circle().page = nullptr;
  circle().lock = Mutex{};
  count_progress_in(nullptr);
}

/// Called locked.
Page* open_page() {
  if (circle().page != nullptr) return circle().page;
  static bool first = true;
  const int file = create_file("cklang-peer", sizeof(Page));
  if (file < 0) return nullptr;
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  Page* page = fcntl(file, F_SETLK, &lock) == 0 ? map_page(file) : nullptr;
  if (page == nullptr) {
    close(file);
    return nullptr;
  }
  if (first) {
    on_exit(note_ending, nullptr);
    pthread_atfork(nullptr, nullptr, forget_page);
    first = false;
  }
  circle().page = page;
  circle().own = address_of_file(file);
  count_progress_in(&page->progress);
  return page;
}

bool same(const FileAddress& a, const FileAddress& b) { return a.process == b.process && a.inode == b.inode; }

/// Called locked; false if the process has ended.
bool remember(const FileAddress& address, Page** page = nullptr) {
  for (const Peer& peer : circle().peers) {
    if (same(peer.address, address)) return true;
  }
  const int file = open_file(address);
  Page* const view = file >= 0 ? map_page(file) : nullptr;
  if (view == nullptr) return false;
  circle().peers.push_back({address, file, view});
  __atomic_store_n(&circle().any, true, __ATOMIC_RELEASE);
  if (page != nullptr) *page = view;
  return true;
}

/// Makes peers of those that have opened memory of this process. Called locked.
void welcome_guests() {
  Page* page = circle().page;
  if (page == nullptr) return;
  const u32 count = std::min(__atomic_load_n(&page->guests, __ATOMIC_ACQUIRE), kMostGuests);
  for (u32 n = 0; n < count; ++n) {
    FileAddress guest;
    guest.process = __atomic_load_n(&page->guest[n].process, __ATOMIC_ACQUIRE);
    guest.number = page->guest[n].number;
    guest.inode = page->guest[n].inode;
    if (guest.process != 0) remember(guest);
  }
}

/// The system has released the lock of a process that is no more.
bool runs(const Peer& peer) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  return fcntl(peer.file, F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

u32 ending_of(const Peer& peer) { return __atomic_load_n(&peer.page->ending, __ATOMIC_ACQUIRE); }

/// Adds how a peer has died; false if it runs, or has ended as it should.
bool has_died(const Peer& peer, Message& why) {
  if (runs(peer)) return false;
  const u32 ending = ending_of(peer);
  if (ending == kSuccess) return false;
  why.add("process %d, which shares memory with this one, %s", peer.address.process,
          ending == kFailure ? "has exited with an error" : "was killed or left without exit()");
  return true;
}

u64 progress_of_all() {
  u64 sum = progress();
  for (const Peer& peer : circle().peers) sum += __atomic_load_n(&peer.page->progress, __ATOMIC_RELAXED);
  return sum;
}

}  // namespace

int create_file(const char* name, u64 bytes) {
  const int file = memfd_create(name, MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes)) == 0) return file;
  close(file);
  return -1;
}
void* map_shared(int file, u64 bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return memory != MAP_FAILED ? memory : nullptr;
}

u64 inode_of(int file) {
  struct statx status;  // fstat is in no shared library of older systems
  return statx(file, "", AT_EMPTY_PATH, STATX_INO, &status) == 0 ? status.stx_ino : 0;
}
FileAddress address_of_file(int file) { return {getpid(), file, inode_of(file)}; }

int open_file(const FileAddress& address) {
  Text<64> path;
  path.add("/proc/%d/fd/%d", address.process, address.number);
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0 || inode_of(file) == address.inode) return file;
  close(file);
  return -1;
}

FileAddress own_page() {
  const Guard guard(circle().lock);
  return open_page() != nullptr ? circle().own : FileAddress{};
}

hipError_t add_peer(const FileAddress& address) {
  const Guard guard(circle().lock);
  if (open_page() == nullptr) return hipErrorOperatingSystem;
  Page* page = nullptr;
  if (!remember(address, &page)) return hipErrorMapFailed;
  if (page == nullptr) return hipSuccess;  // it is known
  const u32 number = __atomic_fetch_add(&page->guests, 1, __ATOMIC_ACQ_REL);
  if (number >= kMostGuests) return hipErrorOutOfMemory;
  page->guest[number].number = circle().own.number;
  page->guest[number].inode = circle().own.inode;
  __atomic_store_n(&page->guest[number].process, circle().own.process, __ATOMIC_RELEASE);
  return hipSuccess;
}

void add_unknown_peers() {
  const Guard guard(circle().lock);
  circle().unknown = true;
  __atomic_store_n(&circle().any, true, __ATOMIC_RELEASE);
}

bool have_peers() {
  if (__atomic_load_n(&circle().any, __ATOMIC_ACQUIRE)) return true;
  const Page* page = __atomic_load_n(&circle().page, __ATOMIC_ACQUIRE);
  return page != nullptr && __atomic_load_n(&page->guests, __ATOMIC_RELAXED) != 0;
}

bool PeerWatch::may_help(Message& why) {
  const u64 now = milliseconds();
  if (asked_ != 0 && now - asked_ < kAskAgain) return true;
  asked_ = now;
  const Guard guard(circle().lock);
  welcome_guests();
  if (const u64 sum = progress_of_all(); since_ == 0 || sum != progress_) {
    progress_ = sum;
    since_ = now;
  }
  if (now - since_ < patience()) return true;  // those that are left may be all that is needed
  bool left = circle().unknown;
  for (const Peer& peer : circle().peers) {
    if (has_died(peer, why)) return false;
    left = left || ending_of(peer) == kNone;
  }
  if (!left) {
    why.add("all processes that share memory with this one have ended");
    return false;
  }
  if (now - since_ < environment().peer_timeout) return true;
  why.add("no process that shares memory with this one has made progress for %llu seconds (CKLANG_PEER_TIMEOUT)",
          static_cast<unsigned long long>(environment().peer_timeout / 1000));
  for (const Peer& peer : circle().peers) {
    if (ending_of(peer) == kNone)
      why.add("\n  process %d is there, and waits or computes on the host", peer.address.process);
  }
  return false;
}

void pause_for_peers() {
  const timespec time{0, 1000 * kPause};
  nanosleep(&time, nullptr);
}

}  // namespace ckemu
