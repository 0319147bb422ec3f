// SPDX-License-Identifier: MIT
#include "checks/global_access.h"

#include "core/immortal.h"

namespace ckemu {

namespace {

bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }

template <size_t count>
bool has_any(const char* name, const char* const (&parts)[count]) {
  for (const char* part : parts) {
    if (has(name, part)) return true;
  }
  return false;
}

/// In names of what shares an encoding with loads and stores, and accesses nothing or what its lanes do not name.
constexpr const char* kNoAddress[] = {"_inv", "_wb", "prefetch", "block", "addtid", "ordered", "dcache", "memtime", "memrealtime", "scratch", "probe"};

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
      of[n] = {names_addresses(name), has(own, "store"), has(own, "load_lds"), global_width(name)};
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

bool changes_memory(const Inst& inst) {
  if (inst.row == nullptr) return false;
  return (inst.row->flags & kFlagAtomic) != 0 || has(mnemonic(inst.op), "store");
}

bool in_aperture(u64 address) {
  const u64 upper = address >> 32;
  return upper == kSharedAperture >> 32 || upper == kPrivateAperture >> 32;
}

}  // namespace ckemu
