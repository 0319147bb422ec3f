// SPDX-License-Identifier: MIT
#include "checks/range.h"

#include <algorithm>

#include "checks/global_access.h"
#include "core/fault.h"

namespace ckemu {

namespace {

/// Whether a lane's offset was moved by 2 GiB, out of a buffer that is no longer than that: no index leads there, so it
/// was meant. CK Tile masks lanes of stores so, and in large products those of loads.
bool moved(const Buffer& buffer, int l) {
  constexpr u32 kMoved = u32{1} << 31;
  return buffer.resource.stride == 0 && buffer.resource.records <= kMoved && buffer.offset != nullptr &&
         buffer.offset[l] >= kMoved;
}

}  // namespace

void check_range(Wave& w, const Code& c) {
  if (!is_buffer(*c.inst)) return;
  const char* name = mnemonic(plain_name(c.inst->op));
  if (!names_addresses(name)) return;
  const u32 bytes = global_width(name);
  const Buffer buffer = buffer_of(w, c);
  if (buffer.resource.add_lane) return;  // private memory
  each_lane(w, [&](int l) {
    if (moved(buffer, l)) return;
    for (u32 skip = 0; skip < bytes; skip += 4) {
      if (buffer.place(l, skip, std::min<u32>(4, bytes - skip)) != nullptr) continue;
      w.lane = l;
      raise(w, FaultKind::Instruction,
            "out of the buffer's range: %s accesses byte %llu of a buffer at 0x%llx with %llu %s, and nothing else "
            "keeps it "
            "from memory",
            name, static_cast<unsigned long long>(buffer.lane_offset(l) + skip + buffer.scalar),
            static_cast<unsigned long long>(buffer.resource.base),
            static_cast<unsigned long long>(buffer.resource.records),
            buffer.resource.stride != 0 ? "records" : "bytes");
    }
  });
}

}  // namespace ckemu
