// SPDX-License-Identifier: MIT
//
// Reading and writing scalar operands of 32 or 64 bits, and the handler shapes of scalar ALU
// operations. `op` is a captureless lambda; those that set scc take it by reference.
#pragma once

#include "core/lanes.h"

namespace ckemu {

template <class T>
CKEMU_INLINE T scalar_get(const Wave& w, const Source& source) {
  if constexpr (sizeof(T) == 8) return static_cast<T>(scalar64(w, source));
  return static_cast<T>(scalar32(w, source));
}
template <class T>
CKEMU_INLINE void scalar_set(Wave& w, u16 index, T value) {
  if constexpr (sizeof(T) == 8) {
    w.set_sgpr64(index, static_cast<u64>(value));
  } else {
    w.s[index] = static_cast<u32>(value);
  }
}

/// dst = op(a, scc&)
template <class R, class A, auto op>
void scalar1(Wave& w, const Code& c) {
  bool scc = w.scc;
  const R result = op(scalar_get<A>(w, c.src[0]), scc);
  w.scc = scc;
  scalar_set<R>(w, c.dst, result);
}
/// dst = op(a, b, scc&)
template <class R, class A, class B, auto op>
void scalar2(Wave& w, const Code& c) {
  bool scc = w.scc;
  const R result = op(scalar_get<A>(w, c.src[0]), scalar_get<B>(w, c.src[1]), scc);
  w.scc = scc;
  scalar_set<R>(w, c.dst, result);
}
/// scc = op(a, b)
template <class A, class B, auto op>
void scalar_compare(Wave& w, const Code& c) {
  w.scc = op(scalar_get<A>(w, c.src[0]), scalar_get<B>(w, c.src[1]));
}

}  // namespace ckemu
