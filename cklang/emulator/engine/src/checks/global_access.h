// SPDX-License-Identifier: MIT
//
// What an instruction accesses in global memory, lane by lane: for the checks that look at addresses.
#pragma once

#include "checks/accesses.h"
#include "core/program.h"
#include "decode/decode.h"
#include "ops/buffer.h"
#include "ops/flat_address.h"
#include "ops/handlers.h"

namespace ckemu {

/// Whether the operation's lanes name addresses of memory.
bool names_addresses(const char* name);
/// Bytes that a lane accesses.
u32 global_width(const char* name);
/// The same of an operation, by its name without the family's spelling.
struct GlobalOp {
  bool addressed = false;  // by its lanes
  bool store = false;
  bool to_local = false;    // a load to LDS
  bool converts = false;    // to or from a format
  bool upper_half = false;  // of a register
  u32 bytes = 0;
};
const GlobalOp& global_op(Op op);
/// Whether the instruction changes memory.
bool changes_memory(const Inst& inst);
/// Whether a flat address means local memory or scratch.
inline bool in_aperture(u64 address) {
  const u64 upper = address >> 32;
  return upper == kSharedAperture >> 32 || upper == kPrivateAperture >> 32;
}

inline bool is_buffer(const Inst& inst) { return inst.enc == Encoding::MUBUF || inst.enc == Encoding::MTBUF; }
inline bool is_global(const Inst& inst) { return inst.enc == Encoding::GLOBAL || inst.enc == Encoding::FLAT; }
inline bool accesses_global(const Inst& inst) {
  return is_buffer(inst) || is_global(inst) || inst.enc == Encoding::SMEM;
}

template <class Visit>
void each_scalar_piece(Wave& w, const Code& c, const char* name, Visit visit) {
  // Scalar buffers are range-checked by their descriptors.
  if (std::strstr(name, "buffer") != nullptr || c.src[0].kind != Kind::Sgpr) return;
  u64 offset = static_cast<u64>(static_cast<i64>(c.offset));
  if (c.src[1].kind != Kind::None) offset += scalar32(w, c.src[1]);
  const u64 at = (w.sgpr64(c.src[0].index) + offset) & ~u64{3};
  visit(GlobalPiece{-1, at, 4 * std::max<u32>(1, c.dst_dwords), 0});
}

template <class Visit>
void each_buffer_piece(Wave& w, const Code& c, u32 bytes, Visit visit) {
  const Buffer descriptor = buffer_of(w, c);
  if (descriptor.resource.add_lane) return;  // private memory
  each_lane(w, [&](int l) {
    for (u32 skip = 0; skip < bytes; skip += 4) {
      const u32 unit = std::min<u32>(4, bytes - skip);
      if (const u8* at = descriptor.place(l, skip, unit)) visit(GlobalPiece{l, reinterpret_cast<u64>(at), unit, skip});
    }
  });
}

/// Calls `visit` with each piece that `c` accesses in global memory; nothing out of a buffer's range.
template <class Visit>
void each_global_piece(Wave& w, const Code& c, Visit visit) {
  const Inst& inst = *c.inst;
  if (!accesses_global(inst)) return;
  const GlobalOp& op = global_op(inst.op);
  if (!op.addressed) return;
  if (inst.enc == Encoding::SMEM) return each_scalar_piece(w, c, mnemonic(inst.op), visit);
  const u32 bytes = op.bytes;
  if (is_buffer(inst)) return each_buffer_piece(w, c, bytes, visit);
  const Addresses at = addresses_of(w, c);
  each_lane(w, [&](int l) {
    if (!in_aperture(at(l))) visit(GlobalPiece{l, at(l), bytes, 0});
  });
}

}  // namespace ckemu
