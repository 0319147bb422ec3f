// SPDX-License-Identifier: MIT
#include "checks/range.h"

#include <algorithm>

#include "checks/global_access.h"
#include "core/fault.h"

namespace ckemu {

void check_range(Wave& w, const Code& c) {
  if (!is_buffer(*c.inst)) return;
  const char* name = mnemonic(plain_name(c.inst->op));
  if (!names_addresses(name)) return;
  const u32 bytes = global_width(name);
  const Buffer buffer = buffer_of(w, c);
  if (buffer.resource.add_lane) return;  // private memory
  each_lane(w, [&](int l) {
    for (u32 skip = 0; skip < bytes; skip += 4) {
      if (buffer.place(l, skip, std::min<u32>(4, bytes - skip)) != nullptr) continue;
      w.lane = l;
      raise(w, FaultKind::Instruction,
            "out of the buffer's range: %s accesses byte %llu of a buffer at 0x%llx with %llu %s, and nothing else keeps it "
            "from memory",
            name, static_cast<unsigned long long>(buffer.lane_offset(l) + skip + buffer.scalar),
            static_cast<unsigned long long>(buffer.resource.base), static_cast<unsigned long long>(buffer.resource.records),
            buffer.resource.stride != 0 ? "records" : "bytes");
    }
  });
}

}  // namespace ckemu
