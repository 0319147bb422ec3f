// SPDX-License-Identifier: MIT
#include "checks/private_memory.h"

#include "checks/global_access.h"
#include "core/fault.h"

namespace ckemu {

void PrivateChecks::before(Wave& w, const Code& c) {
  const GlobalOp& op = global_op(c.inst->op);
  if (c.inst->enc == Encoding::SCRATCH) {
    const ScratchOffsets at = scratch_offsets(w, c);
    each_lane(w, [&](int l) { note(w, c, {op, at.lanes != nullptr}, static_cast<u32>(l), at(l)); });
  } else if (c.inst->enc == Encoding::FLAT && op.addressed) {
    const Addresses at = addresses_of(w, c);
    each_lane(w, [&](int l) {
      if (at(l) >> 32 == kPrivateAperture >> 32) note(w, c, {op, true}, static_cast<u32>(l), static_cast<u32>(at(l)));
    });
  } else if (is_buffer(*c.inst) && op.addressed) {
    const Buffer buffer = buffer_of(w, c);
    if (!buffer.resource.add_lane) return;
    each_lane(w, [&](int l) {
      note(w, c, {op, buffer.offset != nullptr}, static_cast<u32>(l), buffer.lane_offset(l) + buffer.scalar / kLanes);
    });
  }
}

void PrivateChecks::note(Wave& w, const Code& c, const Access& access, u32 lane, u64 offset) {
  const u64 end = offset + access.op.bytes, bit = u64{1} << lane;
  if (end > 4 * written_.size()) return;  // faults by itself
  u64 all = 0;
  for (u64 dword = offset / 4; 4 * dword < end; ++dword) {
    all |= written_[dword];
    if (access.op.store) written_[dword] |= bit;
  }
  if (access.op.store || !access.by_lane || (all & bit) != 0) return;
  w.lane = static_cast<i32>(lane);
  raise(
      w, FaultKind::Instruction,
      "uninitialized private memory: %s reads %u bytes at byte %llu of the lane's own memory, which it has not written",
      mnemonic(c.inst->op), access.op.bytes, static_cast<unsigned long long>(offset));
}

}  // namespace ckemu
