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
//   gfx12   s_wait_storecnt 0      global_inv or global_wbinv
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
#include <set>

#include "checks/wave_order.h"
#include "core/mutex.h"

namespace ckemu {

struct GlobalPiece;
class GlobalAccesses;
struct Launch;

class GlobalRaces {
 public:
  explicit GlobalRaces(const Launch& launch);
  ~GlobalRaces();

  /// Checks and notes what `code` does; called by all threads of a launch.
  void before(Wave& wave, const Code& code, const GlobalAccesses& accesses);
  /// Notes the fence that `code` is.
  void fence(Wave& wave, const Code& code);
  /// Whether an instruction is one.
  static bool fences(const Inst& inst, Family family);

 private:
  class Stored;
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
  struct State {
    Moment write, read;
    u32 write_pc = 0, read_pc = 0;
    u8 written = 0, been_read = 0, known = 0;
    bool atomic_write = false, atomic_read = false;
    WaveAccess wave_write, wave_read;
  };
  static constexpr u32 kDwords = 1024;
  static constexpr size_t kFewStates = 1 << 14, kMoreStates = 1 << 8;
  static constexpr u32 kMostWaves = 32;  // of a workgroup
  /// Neighbouring dwords. Few states are different, so that a dword has the number of one.
  struct Page {
    u32 state[kDwords];
    u32 value[kDwords];  // what the last write wrote, as far as it is known
  };
  /// Pages that no launch uses: new memory would cost more than the checks that it is for.
  struct IdlePages {
    static constexpr size_t kMost = 4096;
    Mutex lock;
    std::vector<std::unique_ptr<Page>> pages;
  };
  /// Entries of a map that were looked up not long ago: those of a map stay where they are.
  template <class Key, class T, u32 count>
  class Recent {
   public:
    /// The entry, if it is known; else `find` finds it.
    template <class Find>
    T& at(Key key, Find find) {
      auto& [known, entry] = entries_[key % count];
      if (entry == nullptr || known != key) [[unlikely]] {
        entry = find();
        known = key;
      }
      return *entry;
    }

   private:
    std::pair<Key, T*> entries_[count] = {};
  };
  using Clock = std::map<u32, u32>;  // fences of other workgroups that come before
  struct Group {
    u32 fence = 1;     // the current one
    u32 released = 0;  // what atomic operations publish
    bool wrote = false;
    Clock clock;
    std::set<u64> looked;          // atomic variables that were read since the last acquire fence
    u32 atomics[kMostWaves] = {};  // of each wave
  };
  struct Conflict {
    Moment other;
    u32 pc = 0;
    bool wrote = false;
    WaveMoment wave;                                    // of the same workgroup
    WaveOrder::Order order = WaveOrder::Order::Before;  // Before: of another one
  };

  static Kind kind_of(const Code& code, Family family);
  static bool is_atomic(Kind kind) { return kind >= Kind::Atomic; }
  static bool reads(Kind kind) { return kind == Kind::Read || kind == Kind::AtomicRead; }
  void synchronise(const GlobalPiece& piece, Kind kind, Group& group, u32 number);
  /// What an instruction does, and what that makes of states: it is found out once for each.
  struct Visit {
    Wave& wave;
    const Code& code;
    Kind kind;
    Group& group;
    u32 number;
    bool known = false;  // whether what is written is
    Conflict conflict = {};
    u64 place = 0;  // of the conflict
    struct Step {
      u32 from = 0, to = 0;
      u8 mask = 0;
    };
    static constexpr u32 kSteps = 16;
    Step steps[kSteps] = {};
    u32 whole[2] = {};  // the state of a dword that the instruction has written, by whether it is known what
  };
  Visit visit(Wave& wave, const Code& code, Kind kind, const GlobalAccesses& accesses);
  Visit visit_stores(Wave& wave, const Code& code, const GlobalAccesses& accesses);
  void visit_reads(Visit& visit, const GlobalAccesses& accesses);
  void visit_atomics(Visit& visit, const GlobalAccesses& accesses);
  void visit_writes(Visit& visit, const Stored& stored, const GlobalAccesses& accesses, const bool* changed);
  void visit_row(Visit& visit, const AddressRange& range, const u32* data, const u32* before);
  void visit_piece(Visit& visit, const Stored& stored, const GlobalPiece& piece, bool changes);
  bool rewrites(const GlobalAccesses& accesses);
  u32 next(Visit& visit, u32 state, u8 mask);
  u32 after(Visit& visit, u32 state, u8 mask);
  u32 after_read(const Visit& visit, u32 state, u8 mask);
  u32 after_write(Visit& visit, u32 state, u8 mask);
  WaveMoment now(const Visit& visit) const;
  bool adds_nothing(const Visit& visit, const State& state, u8 mask) const;
  Conflict among_waves(const Visit& visit, const State& state, u8 mask) const;
  u32 add(const State& state);
  void forget_unused();
  static bool waves_ordered(const Wave& wave, const WaveAccess& earlier, const Group& group, WaveOrder::Order& order);
  bool is_guess(Wave& wave, const Code& code);
  static bool ordered(const Group& group, u32 number, const Moment& other);
  [[noreturn]] void report(Wave& wave, const Code& code, const GlobalPiece& piece, Kind kind, const Conflict& conflict);
  Page& page_at(u64 address);
  static std::unique_ptr<Page> empty_page();
  u32 number_of(const Wave& wave) const;
  Group& group_at(u32 number);

  const Launch& launch_;
  Mutex mutex_;
  std::map<u64, std::unique_ptr<Page>> pages_;
  Recent<u64, Page, 1024> near_pages_;
  std::map<u64, Clock> published_;  // by the address of an atomic variable
  std::map<u32, Group> groups_;
  Recent<u32, Group, 64> near_groups_;
  std::vector<u8> guesses_;             // by dword of the code: 0 is not known yet, 1 no, 2 yes
  std::vector<State> states_{State{}};  // the first is that of what nobody has accessed
  std::vector<u32> numbers_;            // room for forget_unused
  size_t most_states_ = kFewStates;
};

}  // namespace ckemu
