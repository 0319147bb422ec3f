// SPDX-License-Identifier: MIT
#include "checks/unwritten.h"

#include "checks/global_access.h"
#include "core/fault.h"
#include "core/launch.h"
#include "core/workgroup.h"
#include "hip/written.h"

namespace ckemu {

void check_written(Wave& w, const Code& c) {
  const Inst& inst = *c.inst;
  if (inst.row == nullptr) return;
  const bool atomic = (inst.row->flags & kFlagAtomic) != 0, store = std::strstr(mnemonic(inst.op), "store") != nullptr;
  const bool report_reads = (w.group->launch->checks & kCheckUninitialized) != 0;
  each_global_piece(w, c, [&](const GlobalPiece& piece) {
    if (report_reads && !store && never_written(piece.at, piece.bytes)) {
      Message text;
      text.add("uninitialized device memory: %s reads %u bytes at address 0x%llx, which nothing has written since they were allocated",
               mnemonic(inst.op), piece.bytes, static_cast<unsigned long long>(piece.at));
      w.lane = piece.lane;
      raise_access(w, piece.at, text);
    }
    if (store || atomic) note_written(piece.at, piece.bytes);
  });
}

}  // namespace ckemu
