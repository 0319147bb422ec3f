// SPDX-License-Identifier: MIT
#include "checks/races.h"

#include "core/fault.h"
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

}  // namespace

LocalChecks::LocalChecks(u32 bytes, const WaveOrder* order, bool uninitialized, bool bounds)
    : bytes_(bytes), order_(order), uninitialized_(uninitialized), bounds_(bounds) {}

void LocalChecks::before(Wave& w, const Code& c) {
  if (c.inst->enc == Encoding::DS) return local_operation(w, c);
  if (c.inst->lds || has(mnemonic(c.inst->op), "load_lds")) load_to_local(w, c);
}

void LocalChecks::local_operation(Wave& w, const Code& c) {
  const char* name = mnemonic(plain_name(c.inst->op));
  if (c.inst->gds || touches_nothing(name)) return;
  const bool reads = std::strncmp(name, "ds_read", 7) == 0, writes = std::strncmp(name, "ds_write", 8) == 0;
  const Kind kind = reads ? Kind::Read : writes ? Kind::Write : Kind::Atomic;
  const u32 bytes = width_of(name), unit = has(name, "2st64") ? 64 * bytes : bytes;
  const bool two = has(name, "read2") || has(name, "write2") || has(name, "xchg2");
  const u32* address = source_row(w, c, 0);
  each_lane(w, [&](int l) {
    const u32 lane = static_cast<u32>(l), offset = static_cast<u32>(c.offset);
    const u32 shift = has(name, "d16_hi") ? 16 : 0;
    const auto data = [&](int slot) { return writes ? source_row(w, c, slot) : nullptr; };
    note(w, c, {lane, u64{address[l]} + (two ? offset * unit : offset), bytes, kind, data(1), shift});
    if (two) note(w, c, {lane, u64{address[l]} + c.inst->offset1 * unit, bytes, kind, data(2)});
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
  if (access.at + access.bytes > bytes_.size()) {  // gives 0, or is dropped
    // Compilers drop the stores of some lanes by an address of -1.
    if (!bounds_ || access.at >= kDroppedOnPurpose) return;
    fault_frame()->check = "memory";
    w.lane = static_cast<i32>(access.lane);
    raise(w, FaultKind::Instruction, "out of bounds: %s accesses %u bytes at byte 0x%llx of local memory, of which the workgroup has %zu",
          mnemonic(c.inst->op), access.bytes, static_cast<unsigned long long>(access.at), bytes_.size());
  }
  const WaveMoment now = order_ != nullptr ? order_->now(w) : WaveMoment{};
  for (u32 at = static_cast<u32>(access.at); at < access.at + access.bytes; ++at) {
    Byte& byte = bytes_[at];
    if (access.kind == Kind::Write && byte.writers != 0 && !changes(w, access, at)) {
      byte.writers |= 1u << w.id;
      continue;
    }
    check_order(w, c, access, at);
    if (access.kind == Kind::Read) {
      if (byte.read.arrived != now.arrived) byte.readers = 0;
      byte.read = now;
      byte.readers |= 1u << w.id;
      byte.read_pc = c.pc;
      continue;
    }
    byte = {.write = now, .writers = 1u << w.id, .write_pc = c.pc, .atomic = access.kind == Kind::Atomic};
  }
}

bool LocalChecks::changes(const Wave& w, const Access& access, u32 at) const {
  if (access.data == nullptr) return true;
  const u32 bit = access.shift + 8 * (at - static_cast<u32>(access.at));
  return static_cast<u8>(access.data[bit / 32 * kLanes + access.lane] >> bit % 32) != w.lds[at];
}

void LocalChecks::check_order(Wave& w, const Code& c, const Access& access, u32 at) const {
  using Order = WaveOrder::Order;
  const Byte& byte = bytes_[at];
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
