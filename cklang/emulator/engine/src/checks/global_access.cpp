// SPDX-License-Identifier: MIT
#include "checks/global_access.h"

#include "checks/names.h"
#include "core/immortal.h"

namespace ckemu {

namespace {

/// In names of what shares an encoding with loads and stores, and accesses nothing or what its lanes do not name.
constexpr const char* kNoAddress[] = {"_inv",   "_wb",     "prefetch",    "block",   "addtid", "ordered",
                                      "dcache", "memtime", "memrealtime", "scratch", "probe"};

struct Width {
  u32 bytes;
  const char* parts[6];
};
/// Bytes that a lane accesses, by the first row one of whose words is in the operation's name.
constexpr Width kWidths[] = {
    {4, {"_pk_", "format", nullptr}},
    {1, {"byte", "_u8", "_i8", "_b8", nullptr}},
    {2, {"short", "_u16", "_i16", "_b16", nullptr}},
    {16, {"dwordx4", "_b128", nullptr}},
    {12, {"dwordx3", "_b96", nullptr}},
    {8, {"dwordx2", "_x2", "64", nullptr}},
};
struct GlobalOps {
  GlobalOp of[static_cast<size_t>(Op::kCount)];
  GlobalOps() {
    for (size_t n = 0; n < static_cast<size_t>(Op::kCount); ++n) {
      const char *own = mnemonic(static_cast<Op>(n)), *name = mnemonic(plain_name(static_cast<Op>(n)));
      of[n] = {names_addresses(name), has(own, "store"),   has(own, "load_lds"),
               has(name, "format"),   has(name, "d16_hi"), global_width(name)};
    }
  }
};

}  // namespace

const GlobalOp& global_op(Op op) { return immortal<GlobalOps>().of[static_cast<size_t>(op)]; }

bool names_addresses(const char* name) { return !has_any(name, kNoAddress); }

u32 global_width(const char* name) {
  for (const Width& row : kWidths) {
    for (const char* const* part = row.parts; *part != nullptr; ++part) {
      if (has(name, *part)) return row.bytes;
    }
  }
  return 4;
}

void GlobalAccesses::add_range(u64 at, u32 bytes) {
  if (ranges_ != 0) {
    AddressRange& last = range_[ranges_ - 1];
    if (at == last.end) {
      last.end += bytes;
      return;
    }
    if (at >= last.begin && at + bytes <= last.end) return;
  }
  range_[ranges_++] = {at, at + bytes};
}

/// Whether all lanes are in the range of a buffer without elements, so that each accesses all of its bytes.
bool GlobalAccesses::collect_buffer(Wave& w, const Code& c, u32 bytes) {
  const Buffer buffer = buffer_of(w, c);
  if (!buffer.raw()) return false;
  u32 highest = 0;
  if (buffer.offset != nullptr) each_lane(w, [&](int l) { highest = std::max(highest, buffer.offset[l]); });
  if (highest + buffer.immediate + buffer.scalar + bytes > buffer.resource.records) return false;
  const u64 base = buffer.resource.base + buffer.scalar + buffer.immediate;
  lanes_ = w.exec();
  each_lane(w, [&](int l) { at_[l] = base + (buffer.offset != nullptr ? buffer.offset[l] : 0); });
  return true;
}

void GlobalAccesses::collect_lanes(Wave& w, const Code& c) {
  const Addresses addresses = addresses_of(w, c);
  lanes_ = w.exec();
  // Of all lanes, so that the loops are vectors.
  if (addresses.high != nullptr) {
    for (int l = 0; l < kLanes; ++l) at_[l] = addresses.base + (addresses.low[l] | u64{addresses.high[l]} << 32);
  } else {
    for (int l = 0; l < kLanes; ++l) at_[l] = addresses.base + addresses.low[l];
  }
  if (c.inst->enc != Encoding::FLAT) return;
  each_lane(w, [&](int l) {
    if (in_aperture(at_[l])) lanes_ &= ~(u64{1} << l);
  });
}

/// How many lanes access memory, if they are all of the wave and each is behind the one before; 0 otherwise.
u32 GlobalAccesses::all_in_a_row() const {
  const u32 count = lanes_ == ~u64{0} ? 64 : lanes_ == ~u32{0} ? 32 : 0;
  u64 apart = 0;
  for (u32 l = 0; l < count; ++l) apart |= at_[l] ^ (at_[0] + u64{bytes_} * l);
  return apart == 0 ? count : 0;
}

void GlobalAccesses::collect(Wave& w, const Code& c) {
  const Inst& inst = *c.inst;
  const GlobalOp& op = global_op(inst.op);
  lanes_ = 0;
  apart_ = ranges_ = 0;
  if (!op.addressed) return;
  bytes_ = op.bytes;
  unit_ = is_buffer(inst) ? 4 : op.bytes;
  if (is_global(inst)) {
    collect_lanes(w, c);
  } else if (inst.enc == Encoding::SMEM || !collect_buffer(w, c, op.bytes)) {
    each_global_piece(w, c, [&](const GlobalPiece& piece) {
      piece_[apart_++] = piece;
      add_range(piece.at, piece.bytes);
    });
  }
  if (const u32 count = all_in_a_row()) return add_range(at_[0], count * bytes_);
  for (u64 left = lanes_; left != 0; left &= left - 1) add_range(at_[__builtin_ctzll(left)], bytes_);
}

bool changes_memory(const Inst& inst) {
  if (inst.row == nullptr) return false;
  return (inst.row->flags & kFlagAtomic) != 0 || has(mnemonic(inst.op), "store");
}

}  // namespace ckemu
