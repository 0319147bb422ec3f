// SPDX-License-Identifier: MIT
//
// Finds accesses to global memory that no allocation holds as a whole, and those to memory that only the
// host knows, where the GPU cannot reach it. The processor's page protection finds accesses to what is
// not mapped; this finds the rest: what lies behind the end of an allocation on its last page, and the
// host's heap and stack.
#pragma once

#include "core/program.h"

namespace ckemu {

struct Launch;

class GlobalChecks {
 public:
  /// With `bounds` accesses behind the end of an allocation are reported too.
  GlobalChecks(const Launch& launch, bool bounds) : launch_(launch), bounds_(bounds) {}

  /// Checks what `code` accesses in global memory.
  void before(Wave& wave, const Code& code);

 private:
  void check(Wave& wave, const Code& code, int lane, u64 at, u32 bytes);
  void look_up(Wave& wave, const Code& code, u64 at, u32 bytes);
  bool internal(u64 at) const;

  const Launch& launch_;
  const bool bounds_;
  u64 begin_ = 0, end_ = 0;  // of the memory that was accessed last
};

/// Whether some argument of a launch may be an address that only the host knows.
bool given_host_memory(const Launch& launch);

}  // namespace ckemu
