// SPDX-License-Identifier: MIT
//
// Finds accesses to local memory that no barrier orders, and reads of what was never written.
//
// For each dword, or each byte of one whose bytes are accessed by themselves, it is known who wrote it last and
// who has read it since; what a barrier orders is in checks/wave_order.h. Few of these states are different, so
// that a dword has the number of one, and an access is checked once for all dwords that have the same. States are
// numbered in the order of time, and those from before a barrier that all waves have passed, whatever they were,
// mean the same to all that follows: they are told by a comparison, for many dwords at once. Atomic
// operations do not race with each other, and writing what is there already is no write: waves that share a value
// often all store it.
#pragma once

#include <vector>

#include "checks/wave_order.h"

namespace ckemu {

class LocalChecks {
 public:
  /// Starts with memory that nobody has accessed. Without `order` waves do not race; with `bounds` accesses
  /// beyond the memory are reported.
  void begin(u32 bytes, const WaveOrder* order, bool uninitialized, bool bounds);

  /// Checks and notes what `code` does to local memory.
  void before(Wave& wave, const Code& code);

 private:
  static constexpr u32 kSteps = 256;
  // Numbers of states: of what nobody has accessed; of what was written before all that follows; of a dword whose
  // bytes have states of their own. The bit marks those of what was read and never written.
  static constexpr u32 kUntouched = 0, kSettled = 1, kApart = ~u32{0}, kNeverWritten = u32{1} << 31;
  enum class Kind : u8 { Read, Write, Atomic };
  /// The last accesses to a byte, or to all of a dword.
  struct State {
    WaveMoment write = {}, read = {};
    u32 writers = 0, readers = 0;  // a bit for each wave; several writers wrote the same
    u32 write_pc = 0, read_pc = 0;
    bool atomic = false;
  };
  struct Access {
    u64 lanes;  // that access it, one after the other
    u32 lane;
    u64 at;
    u32 bytes;
    Kind kind;
    const u32* data = nullptr;  // what is written, a row for each dword; null: not known
    u32 shift = 0;              // of the first bit in the first row
  };

  void local_operation(Wave& wave, const Code& code);
  void flat_operation(Wave& wave, const Code& code);
  void load_to_local(Wave& wave, const Code& code);
  void note(Wave& wave, const Code& code, const Access& access);
  /// What the current instruction makes of a state.
  struct Step {
    u64 instruction = 0;
    u32 from = 0, to = 0;
  };
  void note_lanes(Wave& wave, const Code& code, const u32* address, Access access);
  template <u32 count, bool by_value>
  void note_aligned(Wave& wave, const Code& code, const u32* address, const Access& access);
  template <u32 count>
  struct Group;
  struct Recent;
  template <u32 count>
  bool follow(Group<count>& group, const Recent& recent) const;
  template <u32 count>
  bool resolve(Wave& wave, const Code& code, Access& access, Group<count>& group, Recent& recent);
  template <u32 count, bool by_value>
  void put(u8* states, const Group<count>& group);
  template <u32 count>
  void note_apart(Wave& wave, const Code& code, Access& access, const Group<count>& group, u32 enabled);
  template <u32 count>
  void note_lane(Wave& wave, const Code& code, const Access& access);
  void note_dword(Wave& wave, const Code& code, const Access& access, u32 at, bool same);
  bool all_aligned(const u32* address, const Access& access) const;
  bool beyond(const Access& access) const { return access.at + access.bytes > size_; }
  /// Whether writes are told apart by what is in memory.
  bool compares(const Access& access) const {
    return order_ != nullptr && access.kind == Kind::Write && access.data != nullptr;
  }
  Step& step_of(u32 state, bool same) { return steps_[same][state % kSteps]; }
  bool known(const Step& step, u32 state) const { return step.from == state && step.instruction == instruction_; }
  u32 next(Wave& wave, const Code& code, const Access& access, u32 state, u32 at, bool same);
  u32 after(Wave& wave, const Code& code, const Access& access, u32 state, u32 at);
  u32 after_read(const Wave& wave, const Code& code, u32 state);
  u32 after_write(const Wave& wave, const Code& code, Kind kind);
  u32 joined(const Wave& wave, u32 state);
  u32 add(const State& state);
  void begin_instruction(const Wave& wave, InFlight::Counter counter = InFlight::kCounters);
  void settle();
  bool settled(u32 state) const { return state - kSettled < settled_end_ - kSettled; }
  const State& state_of(u32 number) const { return states_[number & ~kNeverWritten]; }
  void forget_unused();
  u32* bytes_of(u32 dword);
  bool same(const Wave& wave, const Access& access, u32 at, u32 count) const;
  void check_order(Wave& wave, const Code& code, const Access& access, const State& state, u32 at) const;
  struct Conflict {
    WaveOrder::Order order;
    WaveMoment other;
    u32 pc;
    const char* did;
  };
  [[noreturn]] void report(Wave& wave, const Code& code, const Access& access, u32 at, const Conflict& conflict) const;

  u32 size_ = 0;
  // Of the bytes of a dword that have always been accessed together one state is kept; of others one each, where
  // the dword's is kApart.
  std::vector<u32> dwords_, bytes_;
  std::vector<State> states_;
  u32 settled_end_ = kSettled + 1;  // states from kSettled to before this one are settled
  u32 passed_by_all_ = 0;           // barriers, when that was found
  size_t most_states_ = 0;
  const WaveOrder* order_ = nullptr;
  bool uninitialized_ = false, bounds_ = false;
  // Of the current instruction:
  u64 instruction_ = 0;
  WaveMoment now_;
  u32 written_ = 0;        // the state after a write, if there is one yet
  Step steps_[2][kSteps];  // of writes of what is in memory already the second ones
};

}  // namespace ckemu
