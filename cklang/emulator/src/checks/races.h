// SPDX-License-Identifier: MIT
//
// Finds accesses to local memory that no barrier orders, and reads of what was never written.
//
// For each byte it is known who wrote it last and who has read it since, and how many barriers that wave
// had arrived at by then. Another wave comes after such an access if it has passed a barrier that the
// first wave arrived at later. Atomic operations do not race with each other, and writing what is there
// already is no write: waves that share a value often all store it. Accesses through flat addresses are
// not seen.
#pragma once

#include <vector>

#include "core/program.h"

namespace ckemu {

class LocalChecks {
 public:
  LocalChecks(u32 bytes, u32 waves, bool races, bool uninitialized);

  /// Checks and notes what `code` does to local memory, and counts barriers.
  void before(Wave& wave, const Code& code);

 private:
  enum class Kind : u8 { Read, Write, Atomic };
  /// The last accesses to a byte; `written` and `read` count the barriers that the waves had arrived at.
  struct Byte {
    u32 written = 0, read = 0;
    u32 writers = 0, readers = 0;  // a bit for each wave; several writers wrote the same
    u32 write_pc = 0, read_pc = 0;
    bool atomic = false;
  };
  struct Clock {
    u32 arrived = 0, passed = 0;
  };
  struct Access {
    u32 lane;
    u64 at;
    u32 bytes;
    Kind kind;
    const u32* data = nullptr;  // what is written, a row for each dword; null: not known
    u32 shift = 0;              // of the first bit in the first row
  };

  void count_barriers(const Wave& wave, const Code& code);
  void local_operation(Wave& wave, const Code& code);
  void load_to_local(Wave& wave, const Code& code);
  void note(Wave& wave, const Code& code, const Access& access);
  bool changes(const Wave& wave, const Access& access, u32 at) const;
  void check_order(Wave& wave, const Code& code, const Access& access, u32 at) const;
  [[noreturn]] void report(Wave& wave, const Code& code, const Access& access, u32 at, u32 other, u32 pc,
                           const char* did) const;

  std::vector<Byte> bytes_;
  std::vector<Clock> clocks_;  // of each wave
  const bool races_, uninitialized_;
};

}  // namespace ckemu
