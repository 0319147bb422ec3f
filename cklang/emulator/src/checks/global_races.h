// SPDX-License-Identifier: MIT
//
// Finds accesses of different workgroups to the same byte of global memory, one of them a write, that
// nothing orders.
//
// As in the memory model of HIP, a workgroup comes after another where it reads, by an atomic operation
// and before an acquire fence, what the other has written by an atomic operation after a release fence.
// Fences are the instructions that the compiler makes of those of device scope:
//
//           release                acquire
//   gfx90a  s_waitcnt vmcnt(0)     buffer_wbinvl1
//   gfx942  buffer_wbl2            buffer_inv       (gfx950 too)
//   gfx11   s_waitcnt_vscnt 0      buffer_gl1_inv or buffer_gl0_inv
//   gfx12   global_wb              global_inv       (global_wbinv is both)
//
// Waves of one workgroup are ordered by its barriers (checks/wave_order.h), or where both have executed
// atomic operations, the earlier one after its access: then no report is made.
//
// Loads and stores of device scope count as atomic operations: sc1, on gfx90a and gfx11 glc, on gfx12
// scope 2 and 3. Two atomic operations do not race, nor do stores of the same value. Of the
// readers of a byte that nothing orders one is remembered.
#pragma once

#include <map>
#include <memory>

#include "checks/wave_order.h"
#include "core/mutex.h"

namespace ckemu {

struct GlobalPiece;
struct Launch;

class GlobalRaces {
 public:
  explicit GlobalRaces(const Launch& launch) : launch_(launch) {}

  /// Checks and notes what `code` does; called by all threads of a launch.
  void before(Wave& wave, const Code& code);

 private:
  enum class Kind : u8 { Read, Write, Atomic, AtomicRead, AtomicWrite };
  /// A workgroup at a time: its number + 1, 0 for none, and how many fences it had passed.
  struct Moment {
    u32 group = 0, fence = 0;
  };
  /// The last access of a wave to some bytes of a dword, and how many atomic operations came before.
  struct WaveAccess {
    WaveMoment moment;
    u32 atomics = 0;
    u8 bytes = 0;
    bool wrote = false;
  };
  /// The last accesses to a dword, with a bit for each byte.
  struct Dword {
    Moment write, read;
    u32 write_pc = 0, read_pc = 0;
    u32 value = 0;  // what the last write wrote, as far as it is known
    u8 written = 0, been_read = 0, known = 0;
    bool atomic_write = false, atomic_read = false;
    WaveAccess wave_write, wave_read;
  };
  static constexpr u32 kDwords = 1024;
  static constexpr u32 kMostWaves = 32;  // of a workgroup
  struct Page {
    Dword dword[kDwords];
  };
  using Clock = std::map<u32, u32>;  // fences of other workgroups that come before
  struct Group {
    u32 fence = 1;     // the current one
    u32 released = 0;  // what atomic operations publish
    bool wrote = false;
    Clock clock, pending;
    u32 atomics[kMostWaves] = {};  // of each wave
  };
  struct Conflict {
    Moment other;
    u32 pc = 0;
    bool wrote = false;
    WaveMoment wave;                                  // of the same workgroup
    WaveOrder::Order order = WaveOrder::Order::Before;  // Before: of another one
  };

  static Kind kind_of(const Code& code, Family family);
  static bool is_atomic(Kind kind) { return kind >= Kind::Atomic; }
  static bool reads(Kind kind) { return kind == Kind::Read || kind == Kind::AtomicRead; }
  void fences(Wave& wave, const Code& code, u32 number);
  void synchronise(const GlobalPiece& piece, Kind kind, Group& group, u32 number);
  struct Request {
    u64 at;  // of a dword
    u8 mask;
    Kind kind;
    bool changes;
    bool known;  // whether `value` is what is written
    u32 value;
  };
  Conflict access(const Wave& wave, const Code& code, const Request& request, Group& group, u32 number);
  Conflict among_waves(const Wave& wave, const Request& request, const Dword& dword, const Group& group) const;
  static bool waves_ordered(const Wave& wave, const WaveAccess& earlier, const Group& group, WaveOrder::Order& order);
  bool is_guess(const Wave& wave, const Code& code);
  static bool guess_ahead(const Wave& wave, const Code& code);
  static bool ordered(const Group& group, u32 number, const Moment& other);
  [[noreturn]] void report(Wave& wave, const Code& code, const GlobalPiece& piece, Kind kind, const Conflict& conflict);
  Dword& dword_at(u64 address);
  u32 number_of(const Wave& wave) const;

  const Launch& launch_;
  Mutex mutex_;
  std::map<u64, std::unique_ptr<Page>> pages_;
  Page* last_page_ = nullptr;  // of pages_, the one that was accessed last
  u64 last_number_ = 0;
  std::map<u64, Clock> published_;  // by the address of an atomic variable
  std::map<u32, Group> groups_;
  std::map<const Code*, bool> guesses_;
};

}  // namespace ckemu
