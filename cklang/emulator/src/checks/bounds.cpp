// SPDX-License-Identifier: MIT
#include "checks/bounds.h"

#include <unistd.h>

#include "core/environment.h"
#include "core/launch.h"
#include "core/workgroup.h"
#include "decode/decode.h"
#include "hip/hostcall.h"
#include "hip/memory.h"
#include "ops/buffer.h"
#include "ops/flat_address.h"
#include "ops/handlers.h"

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

/// What shares an encoding with loads and stores, and accesses nothing or what its lanes do not name.
bool names_no_address(const char* name) {
  static constexpr const char* parts[] = {"_inv", "_wb", "prefetch", "block", "addtid", "ordered", "dcache", "memtime", "memrealtime", "scratch", "probe"};
  return has_any(name, parts);
}

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
u32 width_of(const char* name) {
  for (const Width& row : kWidths) {
    for (const char* const* part = row.parts; *part != nullptr; ++part) {
      if (has(name, *part)) return row.bytes;
    }
  }
  return 4;
}

bool in_aperture(u64 address) {
  const u64 upper = address >> 32;
  return upper == kSharedAperture >> 32 || upper == kPrivateAperture >> 32;
}

/// Whether a word can be an address of the host's stack, libraries or heap. Pairs of small numbers are none.
bool plausible(u64 word) {
  constexpr u64 lowest_mapped = u64{0x500000000000}, canonical = u64{1} << 47, heap = u64{1} << 32;
  if (word >= lowest_mapped) return word < canonical;
  const u64 end = reinterpret_cast<u64>(sbrk(0));  // of a program at a fixed address
  return word >= 0x10000 && word < end && end - word < heap;
}

void read_byte(void* at) { static_cast<void>(*static_cast<const volatile u8*>(at)); }
bool mapped(u64 address) { return survives(read_byte, reinterpret_cast<void*>(address)); }

bool only_host_knows(u64 address) {
  u64 begin = 0, end = 0;
  return ground_at(address, 1, begin, end) == Ground::Unknown && mapped(address);
}

}  // namespace

bool GlobalChecks::internal(u64 at) const {
  const auto inside = [at](const void* begin, u64 size) { return at - reinterpret_cast<u64>(begin) < size; };
  return inside(launch_.kernarg, launch_.kernarg_bytes) || inside(&launch_.packet, sizeof launch_.packet) ||
         (launch_.hostcall != nullptr && launch_.hostcall->owns(at));
}

void GlobalChecks::look_up(Wave& w, const Code& c, u64 at, u32 bytes) {
  u64 begin = 0, end = 0;
  const Ground ground = ground_at(at, bytes, begin, end);
  const char* name = mnemonic(c.inst->op);
  Message what;
  switch (ground) {
    case Ground::Inside:
      begin_ = begin;
      end_ = end;
      return;
    case Ground::Beyond:
      if (!bounds_) return;
      what.add("out of bounds: %s accesses %u bytes at address 0x%llx", name, bytes, static_cast<unsigned long long>(at));
      raise_access(w, at, what);
    case Ground::Freed: return;  // not mapped: the access itself faults
    case Ground::Unknown:
      if (host_memory_reachable() || internal(at) || !mapped(at)) return;
      what.add("memory access fault at address 0x%llx: %s accesses memory of the host that HIP has neither allocated nor "
               "registered, which a GPU reaches with XNACK alone (HSA_XNACK=1)",
               static_cast<unsigned long long>(at), name);
      raise_access(w, at, what);
  }
}

void GlobalChecks::check(Wave& w, const Code& c, int lane, u64 at, u32 bytes) {
  if (at - begin_ < end_ - begin_ && bytes <= end_ - at) [[likely]] return;
  w.lane = lane;
  look_up(w, c, at, bytes);
  w.lane = -1;
}

void GlobalChecks::before(Wave& w, const Code& c) {
  const Inst& inst = *c.inst;
  const bool buffer = inst.enc == Encoding::MUBUF || inst.enc == Encoding::MTBUF;
  const bool flat = inst.enc == Encoding::GLOBAL || inst.enc == Encoding::FLAT;
  if (!buffer && !flat && inst.enc != Encoding::SMEM) return;
  const char* name = mnemonic(plain_name(inst.op));
  if (names_no_address(name)) return;
  if (inst.enc == Encoding::SMEM) {
    if (has(name, "buffer") || c.src[0].kind != Kind::Sgpr) return;  // range-checked by a descriptor
    u64 offset = static_cast<u64>(static_cast<i64>(c.offset));
    if (c.src[1].kind != Kind::None) offset += scalar32(w, c.src[1]);
    const u64 at = (w.sgpr64(c.src[0].index) + offset) & ~u64{3};
    return check(w, c, -1, at, 4 * std::max<u32>(1, c.dst_dwords));
  }
  const u32 bytes = width_of(name);
  if (flat) {
    const Addresses at = addresses_of(w, c);
    each_lane(w, [&](int l) {
      if (!in_aperture(at(l))) check(w, c, l, at(l), bytes);
    });
    return;
  }
  const Buffer descriptor = buffer_of(w, c);
  if (descriptor.resource.add_lane) return;  // private memory
  each_lane(w, [&](int l) {
    for (u32 skip = 0; skip < bytes; skip += 4) {
      const u32 unit = std::min<u32>(4, bytes - skip);
      if (const u8* at = descriptor.place(l, skip, unit)) check(w, c, l, reinterpret_cast<u64>(at), unit);
    }
  });
}

bool given_host_memory(const Launch& launch) {
  for (const KernelArgument& argument : launch.program->kernel().arguments) {
    if (argument.kind == "global_buffer") {
      const u64 address = load_as<u64>(launch.kernarg + argument.offset);
      if (address != 0 && only_host_knows(address)) return true;
    } else if (argument.kind == "by_value") {
      for (u32 at = (argument.offset + 7) / 8 * 8; at + 8 <= argument.offset + argument.size; at += 8) {
        const u64 word = load_as<u64>(launch.kernarg + at);
        if (plausible(word) && only_host_knows(word)) return true;
      }
    }
  }
  return false;
}

}  // namespace ckemu
