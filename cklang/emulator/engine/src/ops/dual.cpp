// SPDX-License-Identifier: MIT
#include "ops/dual.h"

#include "core/lanes.h"

namespace ckemu {

namespace {

const DualPair& pair_of(const Code& code) { return *static_cast<const DualPair*>(code.detail); }

void x_first(Wave& w, const Code& c) {
  const DualPair& pair = pair_of(c);
  pair.x.fn(w, pair.x);
  pair.y.fn(w, pair.y);
}
void y_first(Wave& w, const Code& c) {
  const DualPair& pair = pair_of(c);
  pair.y.fn(w, pair.y);
  pair.x.fn(w, pair.x);
}

bool reads(const Code& code, u16 row) {
  for (int slot = 0; slot < 3; ++slot) {
    if (code.src[slot].kind == Kind::Vgpr && code.src[slot].index == row) return true;
  }
  return code.dst == row;  // accumulating operations read their destination
}

}  // namespace

void dual_through_spare(Wave& w, const Code& c) {
  const DualPair& pair = pair_of(c);
  u32 *spare = w.v[pair.x.dst], *d = w.v[c.dst];
  std::memcpy(spare, d, sizeof(Row64));
  pair.x.fn(w, pair.x);
  pair.y.fn(w, pair.y);
  std::memcpy(d, spare, sizeof(Row64));
}

Handler dual_handler(const DualPair& pair) {
  if (!reads(pair.y, pair.x.dst)) return x_first;
  return reads(pair.x, pair.y.dst) ? dual_through_spare : y_first;
}

}  // namespace ckemu
