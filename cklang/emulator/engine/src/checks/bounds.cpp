// SPDX-License-Identifier: MIT
#include "checks/bounds.h"

#include <unistd.h>

#include <algorithm>

#include "checks/global_access.h"
#include "core/environment.h"
#include "core/launch.h"
#include "core/workgroup.h"
#include "hip/hostcall.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

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

void GlobalChecks::remember(u64 begin, u64 end) {
  std::copy_backward(known_, known_ + kKnown - 1, known_ + kKnown);
  known_[0] = {begin, end};
}

void GlobalChecks::look_up(Wave& w, const Code& c, u64 at, u32 bytes) {
  u64 begin = 0, end = 0;
  const Ground ground = ground_at(at, bytes, begin, end);
  const char* name = mnemonic(c.inst->op);
  Message what;
  switch (ground) {
    case Ground::Inside: return remember(begin, end);
    case Ground::Beyond:
      if (!bounds_) return;
      what.add("out of bounds: %s accesses %u bytes at address 0x%llx", name, bytes,
               static_cast<unsigned long long>(at));
      raise_access(w, at, what);
    case Ground::Freed: return;  // not mapped: the access itself faults
    case Ground::Unknown:
      if (host_memory_reachable() || internal(at) || !mapped(at)) return;
      fault_frame()->check = "";
      what.add(
          "memory access fault at address 0x%llx: %s accesses memory of the host that HIP has neither allocated nor "
          "registered, which a GPU reaches with XNACK alone (HSA_XNACK=1)",
          static_cast<unsigned long long>(at), name);
      raise_access(w, at, what);
  }
}

/// An address in another allocation than that of the base from which it is reckoned.
void GlobalChecks::check_base(Wave& w, const Code& c, int lane, u64 at) {
  if (base_ == 0 || at - base_begin_ < base_end_ - base_begin_) return;
  u64 begin = 0, end = 0;
  if (base_ - base_begin_ >= base_end_ - base_begin_) {
    if (ground_at(base_, 1, begin, end) != Ground::Inside) return;
    base_begin_ = begin;
    base_end_ = end;
    if (at - begin < end - begin) return;
  }
  if (ground_at(at, 1, begin, end) != Ground::Inside) return;  // what is no allocation is found by its address
  w.lane = lane;
  Message what;
  what.add(
      "out of bounds: %s accesses address 0x%llx in another allocation than that of its base 0x%llx, which is the %llu "
      "bytes at 0x%llx",
      mnemonic(c.inst->op), static_cast<unsigned long long>(at), static_cast<unsigned long long>(base_),
      static_cast<unsigned long long>(base_end_ - base_begin_), static_cast<unsigned long long>(base_begin_));
  raise_access(w, at, what);
}

void GlobalChecks::check(Wave& w, const Code& c, int lane, u64 at, u32 bytes) {
  if (bounds_) check_base(w, c, lane, at);
  if (std::any_of(known_, known_ + kKnown, [=](const Memory& memory) { return memory.holds(at, at + bytes); })) return;
  w.lane = lane;
  look_up(w, c, at, bytes);
  w.lane = -1;
}

void GlobalChecks::check_alignment(Wave& w, const Code& c) {
  if (c.inst->enc != Encoding::SMEM || c.src[0].kind != Kind::Sgpr) return;
  const u64 register_offset = c.src[1].kind != Kind::None ? scalar32(w, c.src[1]) : 0;
  const u64 at = w.sgpr64(c.src[0].index) + static_cast<u64>(i64{c.offset}) + register_offset;
  const char* name = mnemonic(c.inst->op);
  if (at % 4 == 0 || c.dst_dwords == 0 || !names_addresses(name)) return;
  for (const char* part : {"buffer", "_u8", "_i8", "_u16", "_i16"}) {  // narrow loads of gfx12 drop nothing
    if (std::strstr(name, part) != nullptr) return;
  }
  raise(w, FaultKind::Instruction,
        "misaligned: %s loads from address 0x%llx, of which the hardware drops the lowest two bits", name,
        static_cast<unsigned long long>(at));
}

namespace {

/// The address that all lanes of an instruction reckon from; 0 if each has its own.
u64 base_of(Wave& w, const Code& c) {
  if (is_buffer(*c.inst)) return resource_of(w, c).base;
  const bool scalar_base = c.inst->enc == Encoding::GLOBAL && c.src[1].kind == Kind::Sgpr;
  if (scalar_base) return w.sgpr64(c.src[1].index);
  return c.inst->enc == Encoding::SMEM && c.src[0].kind == Kind::Sgpr ? w.sgpr64(c.src[0].index) : 0;
}

}  // namespace

/// Whether bytes are in memory that is known, and in the allocation of their base.
bool GlobalChecks::fine(u64 begin, u64 end) {
  if (bounds_ && base_ != 0 && (begin < base_begin_ || end > base_end_)) return false;
  for (u32 n = 0; n < kKnown; ++n) {
    if (!known_[n].holds(begin, end)) continue;
    std::swap(known_[0], known_[n]);
    return true;
  }
  return false;
}

bool GlobalChecks::all_fine(const GlobalAccesses& accesses) {
  const auto ranges = accesses.ranges();
  u64 begin = ~u64{0}, end = 0;
  for (const AddressRange& range : ranges) {
    begin = std::min(begin, range.begin);
    end = std::max(end, range.end);
  }
  if (begin >= end || fine(begin, end)) return true;  // as a rule all lie in one allocation
  return std::all_of(ranges.begin(), ranges.end(), [this](const auto& range) { return fine(range.begin, range.end); });
}

/// Looks up the allocation of the base, and that of the first access.
void GlobalChecks::learn(const GlobalAccesses& accesses) {
  u64 begin = 0, end = 0;
  if (bounds_ && base_ != 0 && base_ - base_begin_ >= base_end_ - base_begin_ &&
      ground_at(base_, 1, begin, end) == Ground::Inside) {
    base_begin_ = begin;
    base_end_ = end;
  }
  const u64 first = accesses.ranges()[0].begin;
  const bool known =
      std::any_of(known_, known_ + kKnown, [=](const Memory& memory) { return memory.holds(first, first + 1); });
  if (!known && ground_at(first, 1, begin, end) == Ground::Inside) remember(begin, end);
}

void GlobalChecks::before(Wave& w, const Code& c, const GlobalAccesses& accesses) {
  if (bounds_) {
    check_alignment(w, c);
    base_ = base_of(w, c);
  }
  if (all_fine(accesses)) return;
  learn(accesses);
  if (all_fine(accesses)) return;
  accesses.each([&](const GlobalPiece& piece) {
    check(w, c, piece.lane, piece.at, piece.bytes);
    return true;
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
