// SPDX-License-Identifier: MIT
//
// Finds accesses to local memory that no barrier orders, and reads of what was never written.
//
// For each dword, or each byte of one whose bytes are accessed by themselves, it is known who wrote it last and who has read it since; what a barrier orders is in
// checks/wave_order.h. Atomic operations do not race with each other, and writing what is there already is
// no write: waves that share a value often all store it. Accesses through flat addresses are not seen.
#pragma once

#include <vector>

#include "checks/wave_order.h"

namespace ckemu {

class LocalChecks {
 public:
  /// Without `order` waves do not race. With `bounds` accesses beyond the memory are reported.
  LocalChecks(u32 bytes, const WaveOrder* order, bool uninitialized, bool bounds);

  /// Checks and notes what `code` does to local memory.
  void before(Wave& wave, const Code& code);

 private:
  enum class Kind : u8 { Read, Write, Atomic };
  /// The last accesses to a byte.
  struct Byte {
    WaveMoment write, read;
    u32 writers = 0, readers = 0;  // a bit for each wave; several writers wrote the same
    u32 write_pc = 0, read_pc = 0;
    bool atomic = false;
  };
  struct Access {
    u32 lane;
    u64 at;
    u32 bytes;
    Kind kind;
    const u32* data = nullptr;  // what is written, a row for each dword; null: not known
    u32 shift = 0;              // of the first bit in the first row
  };

  void local_operation(Wave& wave, const Code& code);
  void load_to_local(Wave& wave, const Code& code);
  void note(Wave& wave, const Code& code, const Access& access);
  void note_bytes(Wave& wave, const Code& code, const Access& access, Byte& byte, u32 at, u32 count);
  Byte* bytes_of(u32 dword);
  static bool changes(const Wave& wave, const Access& access, u32 at, u32 count);
  void check_order(Wave& wave, const Code& code, const Access& access, const Byte& byte, u32 at) const;
  struct Conflict {
    WaveOrder::Order order;
    WaveMoment other;
    u32 pc;
    const char* did;
  };
  [[noreturn]] void report(Wave& wave, const Code& code, const Access& access, u32 at, const Conflict& conflict) const;

  const u32 size_;
  // Of the bytes of a dword that have always been accessed together one state is kept; of others one each.
  std::vector<Byte> dwords_, bytes_;
  std::vector<bool> apart_;  // dwords
  const WaveOrder* order_;
  const bool uninitialized_, bounds_;
};

}  // namespace ckemu
