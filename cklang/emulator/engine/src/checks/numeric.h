// SPDX-License-Identifier: MIT
//
// Finds where the first NaN, or the first infinity, is born: a floating-point operation whose result is one
// and whose operands in that lane are not. A result of f16 that is too large for it is such an infinity.
// Kernels may mean them, as quotients and logarithms of 0, so it is asked for by itself.
#pragma once

#include "core/program.h"

namespace ckemu {

class Numeric {
 public:
  /// Checks what the last instruction has computed, and looks at the operands of `code`.
  void before(Wave& wave, const Code& code);

 private:
  /// Lanes with a NaN, and with a NaN or an infinity.
  struct Lanes {
    u64 nan = 0, infinite = 0;
  };
  static Lanes look(const Wave& wave, Kind kind, u32 index, const Operand& operand, u32 shift);
  void check(Wave& wave) const;

  const Code* last_ = nullptr;
  u64 exec_ = 0;
  Lanes before_;
};

}  // namespace ckemu
