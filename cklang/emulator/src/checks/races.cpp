// SPDX-License-Identifier: MIT
#include "checks/races.h"

#include <algorithm>

#include "checks/global_access.h"
#include "core/fault.h"
#include "core/immortal.h"
#include "core/workgroup.h"
#include "decode/decode.h"
#include "ops/access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }

/// What shares the encoding of LDS operations and touches no memory, or memory of another kind.
bool touches_nothing(const char* name) {
  static constexpr const char* parts[] = {"permute", "swizzle", "nop", "gws", "append", "consume", "ordered", "addtid"};
  for (const char* part : parts) {
    if (has(name, part)) return true;
  }
  return false;
}

constexpr u64 kDroppedOnPurpose = u64{1} << 31;

/// Bytes of one access, from the first type in the operation's name: ds_read_b64_tr_b16 reads 8.
u32 width_of(const char* name) {
  if (has(name, "_pk_")) return 4;
  for (const char* at = std::strchr(name, '_'); at != nullptr; at = std::strchr(at + 1, '_')) {
    if (std::strchr("biuf", at[1]) == nullptr || at[2] < '0' || at[2] > '9') continue;
    u32 bits = 0;
    for (const char* digit = at + 2; *digit >= '0' && *digit <= '9'; ++digit) bits = bits * 10 + static_cast<u32>(*digit - '0');
    return bits / 8;
  }
  return 4;
}

/// What is known of each operation of LDS by its name.
struct LocalOp {
  bool accesses = false, reads = false, writes = false, two = false;
  u32 bytes = 0, unit = 0;  // of one access; of an offset of two
  u32 shift = 0;            // of the first bit in its register
};
struct LocalOps {
  LocalOp of[static_cast<size_t>(Op::kCount)];
  LocalOps() {
    for (size_t n = 0; n < static_cast<size_t>(Op::kCount); ++n) {
      const char* name = mnemonic(plain_name(static_cast<Op>(n)));
      LocalOp& op = of[n];
      op.accesses = !touches_nothing(name);
      op.reads = std::strncmp(name, "ds_read", 7) == 0;
      op.writes = std::strncmp(name, "ds_write", 8) == 0;
      op.two = has(name, "read2") || has(name, "write2") || has(name, "xchg2");
      op.bytes = width_of(name);
      op.unit = has(name, "2st64") ? 64 * op.bytes : op.bytes;
      op.shift = has(name, "d16_hi") ? 16 : 0;
    }
  }
};

}  // namespace

LocalChecks::LocalChecks(u32 bytes, const WaveOrder* order, bool uninitialized, bool bounds)
    : size_(bytes), order_(order), uninitialized_(uninitialized), bounds_(bounds) {
  if (order == nullptr && !uninitialized) return;
  dwords_.resize((bytes + 3) / 4);
  apart_.resize(dwords_.size());
}

void LocalChecks::before(Wave& w, const Code& c) {
  if (c.inst->enc == Encoding::DS) return local_operation(w, c);
  if (c.inst->lds || global_op(c.inst->op).to_local) load_to_local(w, c);
}

void LocalChecks::local_operation(Wave& w, const Code& c) {
  const LocalOp& op = immortal<LocalOps>().of[static_cast<size_t>(c.inst->op)];
  if (c.inst->gds || !op.accesses) return;
  const Kind kind = op.reads ? Kind::Read : op.writes ? Kind::Write : Kind::Atomic;
  const u32* address = source_row(w, c, 0);
  const u32* data[] = {op.writes ? source_row(w, c, 1) : nullptr, op.writes && op.two ? source_row(w, c, 2) : nullptr};
  const u32 offset = static_cast<u32>(c.offset);
  each_lane(w, [&](int l) {
    const u32 lane = static_cast<u32>(l);
    note(w, c, {lane, u64{address[l]} + (op.two ? offset * op.unit : offset), op.bytes, kind, data[0], op.shift});
    if (op.two) note(w, c, {lane, u64{address[l]} + c.inst->offset1 * op.unit, op.bytes, kind, data[1]});
  });
}

void LocalChecks::load_to_local(Wave& w, const Code& c) {
  const char* name = mnemonic(c.inst->op);
  const u32 bytes = has(name, "dwordx4") ? 16 : has(name, "dwordx3") ? 12 : 4;
  const u64 base = u64{lds_base(w)} + static_cast<u32>(c.offset);
  each_lane(w, [&](int l) {
    note(w, c, {static_cast<u32>(l), base + u64{bytes} * static_cast<u32>(l), bytes, Kind::Write});
  });
}

void LocalChecks::note(Wave& w, const Code& c, const Access& access) {
  if (access.at + access.bytes > size_) {  // gives 0, or is dropped
    // Compilers drop the stores of some lanes by an address of -1.
    if (!bounds_ || access.at >= kDroppedOnPurpose) return;
    fault_frame()->check = "memory";
    w.lane = static_cast<i32>(access.lane);
    raise(w, FaultKind::Instruction, "out of bounds: %s accesses %u bytes at byte 0x%llx of local memory, of which the workgroup has %u",
          mnemonic(c.inst->op), access.bytes, static_cast<unsigned long long>(access.at), size_);
  }
  if (dwords_.empty()) return;
  const u32 begin = static_cast<u32>(access.at), end = begin + access.bytes;
  for (u32 at = begin; at < end;) {
    const u32 dword = at / 4, next = std::min(end, 4 * dword + 4);
    if (next - at == 4 && !apart_[dword]) {
      note_bytes(w, c, access, dwords_[dword], at, 4);
      at = next;
      continue;
    }
    for (Byte* bytes = bytes_of(dword); at < next; ++at) note_bytes(w, c, access, bytes[at % 4], at, 1);
  }
}

/// The states of a dword's bytes, which are apart from now on.
LocalChecks::Byte* LocalChecks::bytes_of(u32 dword) {
  if (bytes_.empty()) bytes_.resize(4 * dwords_.size());
  Byte* bytes = &bytes_[4 * dword];
  if (!apart_[dword]) std::fill(bytes, bytes + 4, dwords_[dword]);
  apart_[dword] = true;
  return bytes;
}

/// Checks and notes an access to `count` bytes that share a state.
void LocalChecks::note_bytes(Wave& w, const Code& c, const Access& access, Byte& byte, u32 at, u32 count) {
  const WaveMoment now = order_ != nullptr ? order_->now(w) : WaveMoment{};
  if (access.kind == Kind::Write && byte.writers != 0 && !changes(w, access, at, count)) {
    byte.writers |= 1u << w.id;
    return;
  }
  check_order(w, c, access, byte, at);
  if (access.kind == Kind::Read) {
    if (byte.read.arrived != now.arrived) byte.readers = 0;
    byte.read = now;
    byte.readers |= 1u << w.id;
    byte.read_pc = c.pc;
    return;
  }
  byte = {.write = now, .writers = 1u << w.id, .write_pc = c.pc, .atomic = access.kind == Kind::Atomic};
}

bool LocalChecks::changes(const Wave& w, const Access& access, u32 at, u32 count) {
  if (access.data == nullptr) return true;
  for (u32 n = 0; n < count; ++n) {
    const u32 bit = access.shift + 8 * (at + n - static_cast<u32>(access.at));
    if (static_cast<u8>(access.data[bit / 32 * kLanes + access.lane] >> bit % 32) != w.lds[at + n]) return true;
  }
  return false;
}

void LocalChecks::check_order(Wave& w, const Code& c, const Access& access, const Byte& byte, u32 at) const {
  using Order = WaveOrder::Order;
  if (uninitialized_ && access.kind != Kind::Write && byte.writers == 0) {
    fault_frame()->check = "uninitialized";
    w.lane = static_cast<i32>(access.lane);
    raise(w, FaultKind::Instruction, "uninitialized local memory: %s reads byte 0x%x, which the workgroup has not written", mnemonic(c.inst->op), at);
  }
  if (order_ == nullptr) return;
  const bool both_atomic = byte.atomic && access.kind == Kind::Atomic;
  if (byte.writers != 0 && (byte.writers >> w.id & 1) == 0 && !both_atomic) {
    const Order order = order_->order(byte.write, w.id);
    if (order != Order::Before) report(w, c, access, at, {order, byte.write, byte.write_pc, "has written"});
  }
  const u32 others = byte.readers & ~(1u << w.id);
  if (access.kind == Kind::Read || others == 0) return;
  WaveMoment other = byte.read;
  other.wave = static_cast<u8>(__builtin_ctz(others));
  const Order order = order_->order(other, w.id);
  if (order == Order::NoBarrier) report(w, c, access, at, {order, other, byte.read_pc, "has read"});
}

void LocalChecks::report(Wave& w, const Code& c, const Access& access, u32 at, const Conflict& conflict) const {
  Text<768> earlier;
  describe_code(*w.program, *w.program->at(conflict.pc), earlier);
  Text<128> missing;
  order_->describe(conflict.order, conflict.other, missing);
  w.lane = static_cast<i32>(access.lane);
  raise(w, FaultKind::Instruction, "race in local memory: %s %s byte 0x%x, which wave %u %s at %s, and %s", mnemonic(c.inst->op),
        access.kind == Kind::Read ? "reads" : "writes", at, u32{conflict.other.wave}, conflict.did, earlier.c_str(),
        missing.c_str());
}

}  // namespace ckemu
