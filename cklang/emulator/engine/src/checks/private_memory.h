// SPDX-License-Identifier: MIT
//
// Finds reads of private memory that a lane has not written: arrays of a thread whose index is known only when the
// kernel runs. Loads at one place for all lanes are not looked at: so compilers reload registers, also for lanes whose
// value is never used. A lane's access counts as written if one of its dwords is: structures have holes.
#pragma once

#include <vector>

#include "core/program.h"

namespace ckemu {

struct GlobalOp;

/// What one wave has written.
class PrivateChecks {
 public:
  /// Starts with `bytes` of memory for each lane that nobody has written.
  explicit PrivateChecks(u32 bytes) : written_((bytes + 3) / 4) {}

  /// Checks and notes what `code` does to private memory.
  void before(Wave& wave, const Code& code);

 private:
  struct Access {
    const GlobalOp& op;
    bool by_lane;  // whether each lane has a place of its own
  };
  void note(Wave& wave, const Code& code, const Access& access, u32 lane, u64 offset);

  std::vector<u64> written_;  // a dword of all lanes, a bit each
};

}  // namespace ckemu
