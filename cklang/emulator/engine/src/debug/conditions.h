// SPDX-License-Identifier: MIT
//
// Where a debugged launch stops: at instructions, at source lines, and before accesses to memory.
#pragma once

#include <vector>

#include "core/program.h"

namespace ckemu {

enum class Where : u64 {
  Code,    // before the instruction at dword `from` of the code
  Line,    // where a wave arrives at line number `from` (`Conditions::set_lines`)
  Write,   // before the bytes of global memory from `from` to `to` are changed
  Access,  // or read
};

constexpr u64 kAny = ~u64{0};

/// As a debugger asks for it (`requests.cpp`).
struct Breakpoint {
  u64 number = 0;
  Where where = Where::Code;
  u64 from = 0, to = 0;
  u64 group = kAny, wave = kAny, lane = kAny;  // of the waves that stop; a lane must be enabled
};

class Conditions {
 public:
  explicit Conditions(size_t dwords) : lines_(dwords), stops_(dwords) {}
  void set_breakpoints(const std::vector<Breakpoint>& breakpoints);
  /// The number of the source line of each dword of the code; 0: none.
  void set_lines(const std::vector<u32>& lines);

  u32 line_at(u32 slot) const { return lines_[slot]; }
  /// The breakpoint at which a wave of workgroup `group` is before its next instruction; null if at none.
  const Breakpoint* at(Wave& wave, u64 group) const;
  /// Whether a wave comes to a line, from another one or from farther down.
  bool arrives(const Wave& wave) const;

 private:
  void mark();
  bool holds(const Breakpoint& breakpoint, Wave& wave, u64 group) const;

  std::vector<u32> lines_;
  std::vector<u8> stops_;  // by dword: whether a breakpoint of the code may hold
  std::vector<Breakpoint> breakpoints_;
  bool watches_ = false;
};

}  // namespace ckemu
