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

namespace {

constexpr size_t kFewStates = 1 << 12;

}  // namespace

void LocalChecks::begin(u32 bytes, const WaveOrder* order, bool uninitialized, bool bounds) {
  size_ = bytes;
  order_ = order;
  uninitialized_ = uninitialized;
  bounds_ = bounds;
  dwords_.assign(order != nullptr || uninitialized ? (bytes + 3) / 4 : 0, 0);
  bytes_.clear();
  states_.assign(1, State{});
  most_states_ = kFewStates;
  ++instruction_;
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
  begin_instruction(w);
  note_lanes(w, c, address, {0, op.two ? offset * op.unit : offset, op.bytes, kind, data[0], op.shift});
  if (op.two) note_lanes(w, c, address, {0, c.inst->offset1 * op.unit, op.bytes, kind, data[1]});
}

/// The same access of each lane, `access.at` behind its address.
void LocalChecks::note_lanes(Wave& w, const Code& c, const u32* address, Access access) {
  if (all_aligned(w, address, access)) {
    if (dwords_.empty()) return;
    switch (access.bytes) {
      case 4: return note_aligned<1>(w, c, address, access);
      case 8: return note_aligned<2>(w, c, address, access);
      case 16: return note_aligned<4>(w, c, address, access);
      default: break;
    }
  }
  const u64 offset = access.at;
  each_lane(w, [&](int l) {
    access.lane = static_cast<u32>(l);
    access.at = u64{address[l]} + offset;
    note(w, c, access);
  });
}

/// Whether all lanes access dwords of the memory as a whole.
bool LocalChecks::all_aligned(const Wave& w, const u32* address, const Access& access) const {
  u32 highest = 0, low_bits = 0;
  for (int group = 0; group < kLanes / 8; ++group) {
    const U8v at = load8(address, group) & __builtin_bit_cast(U8v, spread_mask(w.exec() >> (8 * group) & 0xff));
    highest = std::max(highest, __builtin_reduce_max(at));
    low_bits |= __builtin_reduce_or(at);
  }
  const bool dwords = ((low_bits | access.at | access.bytes) & 3) == 0 && access.shift == 0;
  return dwords && highest + access.at + access.bytes <= size_;
}

template <u32 count>
void LocalChecks::note_aligned(Wave& w, const Code& c, const u32* address, const Access& all) {
  Access access = all;
  const bool by_value = compares(all);
  const auto note_apart = [&](int l, u32 n, u32 at, bool same) {
    access.lane = static_cast<u32>(l);
    access.at = at - 4 * n;
    note_dword(w, c, access, at, same);
  };
  each_lane(w, [&](int l) __attribute__((always_inline)) {
    const u32 begin = address[l] + static_cast<u32>(all.at);
    u32* states = &dwords_[begin / 4];
    bool alike = !by_value;
    for (u32 n = 1; n < count; ++n) alike &= states[n] == states[0];
    if (const Step& step = step_of(states[0], false); alike && known(step, states[0])) [[likely]] {
      for (u32 n = 0; n < count; ++n) states[n] = step.to;
      return;
    }
    for (u32 n = 0; n < count; ++n) {
      const u32 at = begin + 4 * n;
      const bool same = by_value && load_as<u32>(w.lds + at) == all.data[n * kLanes + l];
      const Step& step = step_of(states[n], same);
      if (known(step, states[n])) states[n] = step.to;
      else note_apart(l, n, at, same);
    }
  });
}

/// The same for one dword as a whole, which somebody may have accessed by parts.
void LocalChecks::note_dword(Wave& w, const Code& c, const Access& access, u32 at, bool same_dword) {
  u32& state = dwords_[at / 4];
  if (state != kApart) {
    state = next(w, c, access, state, at, same_dword);
    return;
  }
  u32* bytes = bytes_of(at / 4);
  for (u32 n = 0; n < 4; ++n) bytes[n] = next(w, c, access, bytes[n], at + n, same(w, access, at + n, 1));
}

void LocalChecks::load_to_local(Wave& w, const Code& c) {
  const char* name = mnemonic(c.inst->op);
  const u32 bytes = has(name, "dwordx4") ? 16 : has(name, "dwordx3") ? 12 : 4;
  const u64 base = u64{lds_base(w)} + static_cast<u32>(c.offset);
  begin_instruction(w);
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
    const u32 dword = at / 4, next_at = std::min(end, 4 * dword + 4);
    if (next_at - at == 4 && dwords_[dword] != kApart) {
      dwords_[dword] = next(w, c, access, dwords_[dword], at, same(w, access, at, 4));
      at = next_at;
      continue;
    }
    for (u32* bytes = bytes_of(dword); at < next_at; ++at) {
      bytes[at % 4] = next(w, c, access, bytes[at % 4], at, same(w, access, at, 1));
    }
  }
}

/// The states of a dword's bytes, which are apart from now on.
u32* LocalChecks::bytes_of(u32 dword) {
  if (bytes_.empty()) bytes_.resize(4 * dwords_.size());
  u32* bytes = &bytes_[4 * dword];
  if (dwords_[dword] != kApart) std::fill(bytes, bytes + 4, dwords_[dword]);
  dwords_[dword] = kApart;
  return bytes;
}

void LocalChecks::begin_instruction(const Wave& w) {
  if (states_.size() > most_states_) forget_unused();
  ++instruction_;
  written_ = 0;
  now_ = order_ != nullptr ? order_->now(w) : WaveMoment{};
}

u32 LocalChecks::add(const State& state) {
  states_.push_back(state);
  return static_cast<u32>(states_.size() - 1);
}

/// Numbers the states anew that some byte has.
void LocalChecks::forget_unused() {
  std::vector<u32> numbers(states_.size());
  std::vector<State> used(1, State{});
  const auto renumber = [&](u32& state) {
    if (state == 0 || state == kApart) return;
    if (numbers[state] == 0) {
      numbers[state] = static_cast<u32>(used.size());
      used.push_back(states_[state]);
    }
    state = numbers[state];
  };
  for (size_t n = 0; n < dwords_.size(); ++n) {
    const bool apart = dwords_[n] == kApart;
    renumber(dwords_[n]);
    for (size_t byte = 4 * n; apart && byte < 4 * n + 4; ++byte) renumber(bytes_[byte]);
  }
  states_.swap(used);
  most_states_ = std::max(kFewStates, 2 * states_.size());
}

/// The state after an access; `same` if it writes what is in memory already, which is no write where somebody has
/// written before.
inline u32 LocalChecks::next(Wave& w, const Code& c, const Access& access, u32 state, u32 at, bool same) {
  Step& step = step_of(state, same);
  if (!known(step, state)) [[unlikely]] {
    const u32 to = same && states_[state].writers != 0 ? joined(w, state) : after(w, c, access, state, at);
    step = {instruction_, state, to};
  }
  return step.to;
}

/// The state after a write of what is there already.
u32 LocalChecks::joined(const Wave& w, u32 state) {
  if ((states_[state].writers >> w.id & 1) != 0) return state;
  State joint = states_[state];
  joint.writers |= 1u << w.id;
  return add(joint);
}

u32 LocalChecks::after(Wave& w, const Code& c, const Access& access, u32 state, u32 at) {
  check_order(w, c, access, states_[state], at);
  return access.kind == Kind::Read ? after_read(w, c, state) : after_write(w, c, access.kind, state);
}

u32 LocalChecks::after_read(const Wave& w, const Code& c, u32 state) {
  State read = states_[state];
  if (read.read.arrived != now_.arrived) read.readers = 0;
  if ((read.readers >> w.id & 1) != 0) return state;
  read.read = now_;
  read.readers |= 1u << w.id;
  read.read_pc = c.pc;
  return add(read);
}

/// All bytes that an instruction writes have the same state then.
u32 LocalChecks::after_write(const Wave& w, const Code& c, Kind kind, u32 state) {
  if (order_ == nullptr && states_[state].writers != 0) return state;
  if (written_ == 0) {
    written_ = add({.write = now_, .writers = 1u << w.id, .write_pc = c.pc, .atomic = kind == Kind::Atomic});
  }
  return written_;
}

/// Whether a write leaves `count` bytes as they are.
bool LocalChecks::same(const Wave& w, const Access& access, u32 at, u32 count) const {
  if (!compares(access)) return false;
  for (u32 n = 0; n < count; ++n) {
    const u32 bit = access.shift + 8 * (at + n - static_cast<u32>(access.at));
    if (static_cast<u8>(access.data[bit / 32 * kLanes + access.lane] >> bit % 32) != w.lds[at + n]) return false;
  }
  return true;
}

void LocalChecks::check_order(Wave& w, const Code& c, const Access& access, const State& state, u32 at) const {
  using Order = WaveOrder::Order;
  if (uninitialized_ && access.kind != Kind::Write && state.writers == 0) {
    fault_frame()->check = "uninitialized";
    w.lane = static_cast<i32>(access.lane);
    raise(w, FaultKind::Instruction, "uninitialized local memory: %s reads byte 0x%x, which the workgroup has not written", mnemonic(c.inst->op), at);
  }
  if (order_ == nullptr) return;
  const bool both_atomic = state.atomic && access.kind == Kind::Atomic;
  if (state.writers != 0 && (state.writers >> w.id & 1) == 0 && !both_atomic) {
    const Order order = order_->order(state.write, w.id);
    if (order != Order::Before) report(w, c, access, at, {order, state.write, state.write_pc, "has written"});
  }
  const u32 others = state.readers & ~(1u << w.id);
  if (access.kind == Kind::Read || others == 0) return;
  WaveMoment other = state.read;
  other.wave = static_cast<u8>(__builtin_ctz(others));
  const Order order = order_->order(other, w.id);
  if (order == Order::NoBarrier) report(w, c, access, at, {order, other, state.read_pc, "has read"});
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
