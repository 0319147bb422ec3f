// SPDX-License-Identifier: MIT
//
// Scalar values as vector operands, and the read-only scalar sources.
#include "core/fault.h"
#include "core/lanes.h"

namespace ckemu {

u64 special_value(const Wave& w, u16 which) {
  switch (which) {
    case kSharedBase: return kSharedAperture;
    case kSharedLimit: return kSharedAperture | 0xffffffff;
    case kPrivateBase: return kPrivateAperture;
    case kPrivateLimit: return kPrivateAperture | 0xffffffff;
    case kVccz: return w.vcc() == 0;
    case kExecz: return w.exec() == 0;
    case kScc: return w.scc;
    default: break;
  }
  raise(const_cast<Wave&>(w), FaultKind::Instruction, "scalar source %u is not emulated", which);
}

const u32* spread_scalar(Wave& w, const Source& source, int slot) {
  u32* rows = w.spread->row[slot][0];
  for (int n = 0; n < (source.dwords > 2 ? 4 : source.dwords > 1 ? 2 : 1); ++n) {
    const u32 value = source.kind == Kind::Sgpr ? w.s[source.index + n]
                                                : static_cast<u32>(special_value(w, source.index) >> (32 * n));
    for (int g = 0; g < 8; ++g) store8(rows + n * kLanes, g, U8v(value));
  }
  return rows;
}

}  // namespace ckemu
