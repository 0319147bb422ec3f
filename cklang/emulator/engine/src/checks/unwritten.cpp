// SPDX-License-Identifier: MIT
#include "checks/unwritten.h"

#include "checks/global_access.h"
#include "core/fault.h"
#include "core/launch.h"
#include "core/workgroup.h"
#include "hip/written.h"

namespace ckemu {

void check_written(Wave& w, const Code& c, const GlobalAccesses& all) {
  const Inst& inst = *c.inst;
  if (inst.row == nullptr || all.empty()) return;
  const bool atomic = (inst.row->flags & kFlagAtomic) != 0, store = global_op(inst.op).store;
  const bool report_reads = (w.group->launch->checks & kCheckUninitialized) != 0;
  if (note_ranges(all.ranges(), report_reads && !store, store || atomic)) return;
  AccessedBytes accesses[kMostPieces];
  u32 count = 0;
  i32 lanes[kMostPieces];
  all.each([&](const GlobalPiece& piece) {
    lanes[count] = piece.lane;
    accesses[count++] = {piece.at, piece.bytes};
    return true;
  });
  const u32 first = note_accesses(accesses, count, report_reads && !store, store || atomic);
  if (first == count) return;
  Message text;
  text.add(
      "uninitialized device memory: %s reads %u bytes at address 0x%llx, which nothing has written since they were "
      "allocated",
      mnemonic(inst.op), accesses[first].bytes, static_cast<unsigned long long>(accesses[first].at));
  w.lane = lanes[first];
  raise_access(w, accesses[first].at, text);
}

}  // namespace ckemu
