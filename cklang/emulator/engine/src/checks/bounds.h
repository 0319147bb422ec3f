// SPDX-License-Identifier: MIT
//
// Finds accesses to global memory that no allocation holds as a whole, those that leave the allocation of
// their base address for another one, and those to memory that only the host knows, where the GPU cannot
// reach it. The processor's page protection finds accesses to what is not mapped; this finds the rest: what
// lies behind the end of an allocation on its last page, other allocations, and the host's heap and stack.
// Also scalar loads from an address that is no multiple of 4, of which the hardware drops the lowest bits.
#pragma once

#include "core/program.h"

namespace ckemu {

struct Launch;
class GlobalAccesses;

class GlobalChecks {
 public:
  /// With `bounds` accesses behind the end of an allocation are reported too.
  GlobalChecks(const Launch& launch, bool bounds) : launch_(launch), bounds_(bounds) {}

  /// Checks what `code` accesses in global memory.
  void before(Wave& wave, const Code& code, const GlobalAccesses& accesses);

 private:
  void check(Wave& wave, const Code& code, int lane, u64 at, u32 bytes);
  void look_up(Wave& wave, const Code& code, u64 at, u32 bytes);
  void check_base(Wave& wave, const Code& code, int lane, u64 at);
  void check_alignment(Wave& wave, const Code& code);
  bool internal(u64 at) const;
  bool fine(u64 begin, u64 end);
  bool all_fine(const GlobalAccesses& accesses);
  void learn(const GlobalAccesses& accesses);
  void remember(u64 begin, u64 end);

  const Launch& launch_;
  const bool bounds_;
  struct Memory {
    u64 begin = 0, end = 0;
    bool holds(u64 from, u64 to) const { return from - begin < end - begin && to - from <= end - from; }
  };
  static constexpr u32 kKnown = 4;
  Memory known_[kKnown];               // memory that was accessed before, from the last on
  u64 base_ = 0;                       // of the current instruction; 0 if lanes have addresses of their own
  u64 base_begin_ = 0, base_end_ = 0;  // of the allocation that it lies in
};

/// Whether some argument of a launch may be an address that only the host knows.
bool given_host_memory(const Launch& launch);

}  // namespace ckemu
