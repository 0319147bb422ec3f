// SPDX-License-Identifier: MIT
#include "checks/races.h"

#include <algorithm>

#include "checks/global_access.h"
#include "checks/names.h"
#include "core/fault.h"
#include "core/immortal.h"
#include "core/workgroup.h"
#include "decode/decode.h"
#include "ops/access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// What shares the encoding of LDS operations and touches no memory, or memory of another kind.
bool touches_nothing(const char* name) {
  static constexpr const char* parts[] = {"permute", "swizzle", "nop", "gws", "append", "consume", "ordered", "addtid"};
  return has_any(name, parts);
}

/// Bytes of one access, from the first type in the operation's name: ds_read_b64_tr_b16 reads 8.
u32 width_of(const char* name) {
  if (has(name, "_pk_")) return 4;
  for (const char* at = std::strchr(name, '_'); at != nullptr; at = std::strchr(at + 1, '_')) {
    if (std::strchr("biuf", at[1]) == nullptr || at[2] < '0' || at[2] > '9') continue;
    u32 bits = 0;
    for (const char* digit = at + 2; *digit >= '0' && *digit <= '9'; ++digit)
      bits = bits * 10 + static_cast<u32>(*digit - '0');
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
  states_.assign({State{}, State{.writers = 1}});
  settled_end_ = kSettled + 1;
  passed_by_all_ = 0;
  most_states_ = kFewStates;
  ++instruction_;
}

void LocalChecks::before(Wave& w, const Code& c) {
  if (c.inst->enc == Encoding::DS) return local_operation(w, c);
  if (c.inst->enc == Encoding::FLAT) return flat_operation(w, c);
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
  note_lanes(w, c, address, {w.exec(), 0, op.two ? offset * op.unit : offset, op.bytes, kind, data[0], op.shift});
  if (op.two) note_lanes(w, c, address, {w.exec(), 0, c.inst->offset1 * op.unit, op.bytes, kind, data[1]});
}

/// Of a flat operation the lanes that access local memory: so compilers access volatile variables.
void LocalChecks::flat_operation(Wave& w, const Code& c) {
  const GlobalOp& op = global_op(c.inst->op);
  if (!op.addressed) return;
  const Addresses at = addresses_of(w, c);
  alignas(64) u32 address[kLanes] = {};
  u64 lanes = 0;
  each_lane(w, [&](int l) {
    address[l] = static_cast<u32>(at(l));
    lanes |= u64{at(l) >> 32 == kSharedAperture >> 32} << l;
  });
  if (lanes == 0) return;
  const bool atomic = (c.inst->row->flags & kFlagAtomic) != 0;
  const u32* data = op.store ? source_row(w, c, 2) : nullptr;
  begin_instruction(w, InFlight::kLocal);
  note_lanes(w, c, address,
             {lanes, 0, 0, op.bytes,
              atomic     ? Kind::Atomic
              : op.store ? Kind::Write
                         : Kind::Read,
              data, op.upper_half ? 16u : 0});
}

/// The same access of each lane, `access.at` behind its address.
void LocalChecks::note_lanes(Wave& w, const Code& c, const u32* address, Access access) {
  if (all_aligned(address, access)) {
    if (dwords_.empty()) return;
    const bool by_value = compares(access);
    switch (access.bytes) {
      case 4:
        return by_value ? note_aligned<1, true>(w, c, address, access) : note_aligned<1, false>(w, c, address, access);
      case 8:
        return by_value ? note_aligned<2, true>(w, c, address, access) : note_aligned<2, false>(w, c, address, access);
      case 16:
        return by_value ? note_aligned<4, true>(w, c, address, access) : note_aligned<4, false>(w, c, address, access);
      default: break;
    }
  }
  const u32 offset = static_cast<u32>(access.at);
  for (u64 left = access.lanes; left != 0; left &= left - 1) {
    access.lane = static_cast<u32>(__builtin_ctzll(left));
    access.at = address[access.lane] + offset;  // wraps around as 32 bits do: registers may be negative
    // Compilers drop the stores of some lanes by an address of -1.
    const bool dropped = access.kind == Kind::Write && address[access.lane] == ~u32{0} && beyond(access);
    if (!dropped) note(w, c, access);
  }
}

/// Whether all lanes access dwords of the memory as a whole.
bool LocalChecks::all_aligned(const u32* address, const Access& access) const {
  const U8v offset = static_cast<u32>(access.at);
  u32 highest = 0, low_bits = 0;
  for (int group = 0; group < kLanes / 8; ++group) {
    const U8v enabled = __builtin_bit_cast(U8v, spread_mask(access.lanes >> (8 * group) & 0xff));
    const U8v at = (load8(address, group) + offset) & enabled;
    highest = std::max(highest, __builtin_reduce_max(at));
    low_bits |= __builtin_reduce_or(at);
  }
  const bool dwords = ((low_bits | access.bytes) & 3) == 0 && access.shift == 0;
  return dwords && u64{highest} + access.bytes <= size_;
}

namespace {

constexpr u32 kGroup = 8;  // lanes that are looked at together

/// 16 or 8 bytes of memory in half or a quarter of a vector.
U8v join_halves(const u8* a, const u8* b) {
  return __builtin_bit_cast(
      U8v, _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(b), reinterpret_cast<const __m128i*>(a)));
}
U8v join_quarters(const u8* memory, const u32* place) {
  using Quads = u64 __attribute__((ext_vector_type(4)));
  const Quads four = {load_as<u64>(memory + place[0]), load_as<u64>(memory + place[1]), load_as<u64>(memory + place[2]),
                      load_as<u64>(memory + place[3])};
  return __builtin_bit_cast(U8v, four);
}

/// The dwords at 8 places, `count` of each, lane after lane.
template <u32 count>
CKEMU_INLINE void load_places(U8v* to, const u8* memory, const u32* place, bool neighbours) {
  if (neighbours) {
    for (u32 k = 0; k < count; ++k) to[k] = load_as<U8v>(memory + place[0] + 32 * k);
  } else if constexpr (count == 4) {
    for (u32 k = 0; k < count; ++k) to[k] = join_halves(memory + place[2 * k], memory + place[2 * k + 1]);
  } else if constexpr (count == 2) {
    for (u32 k = 0; k < count; ++k) to[k] = join_quarters(memory, place + 4 * k);
  } else {
    for (u32 l = 0; l < kGroup; ++l) to[0][l] = load_as<u32>(memory + place[l]);
  }
}

/// 8 lanes of `count` registers, lane after lane.
template <u32 count>
CKEMU_INLINE void load_registers(U8v* to, const u32* rows) {
  const U8v a = load_as<U8v>(rows);
  if constexpr (count == 1) {
    to[0] = a;
    return;
  }
  const U8v b = load_as<U8v>(rows + kLanes);
  if constexpr (count == 2) {
    to[0] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    to[1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  } else if constexpr (count == 4) {
    const U8v c = load_as<U8v>(rows + 2 * kLanes), d = load_as<U8v>(rows + 3 * kLanes);
    const U8v ab = __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13),
              cd = __builtin_shufflevector(c, d, 0, 8, 1, 9, 4, 12, 5, 13);
    const U8v ab2 = __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15),
              cd2 = __builtin_shufflevector(c, d, 2, 10, 3, 11, 6, 14, 7, 15);
    to[0] = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 2, 3, 10, 11);
    to[1] = __builtin_shufflevector(ab2, cd2, 0, 1, 8, 9, 2, 3, 10, 11);
    to[2] = __builtin_shufflevector(ab, cd, 4, 5, 12, 13, 6, 7, 14, 15);
    to[3] = __builtin_shufflevector(ab2, cd2, 4, 5, 12, 13, 6, 7, 14, 15);
  }
}

}  // namespace

/// What 8 lanes access, `count` dwords each: vectors have them lane after lane.
template <u32 count>
struct LocalChecks::Group {
  u32 first;                      // lane
  bool neighbours;                // whether the lanes lie side by side
  alignas(32) u32 place[kGroup];  // in memory; the states lie as far from the first
  U8v from[count], to[count];     // states
  I8v same[count];                // which are written as they are
  /// Where a dword is.
  u32 at(u32 number) const { return place[number / count] + 4 * (number % count); }
};

/// What an instruction has made of the states of earlier lanes: of the settled ones, and of another one.
struct LocalChecks::Recent {
  u32 settled = kApart;  // not known
  u32 from = kApart, to = kApart, to_same = kApart;
};

namespace {

template <u32 count>
CKEMU_INLINE bool none(const I8v* masks) {
  I8v all = masks[0];
  for (u32 k = 1; k < count; ++k) all |= masks[k];
  return _mm256_testz_si256(__builtin_bit_cast(__m256i, all), __builtin_bit_cast(__m256i, all)) != 0;
}

}  // namespace

/// Accesses of whole dwords, of 8 lanes at a time; stores `by_value` if it matters what is there.
template <u32 count, bool by_value>
void LocalChecks::note_aligned(Wave& w, const Code& c, const u32* address, const Access& all) {
  Access access = all;
  Recent recent;
  const U8v offset = static_cast<u32>(all.at),
            steps = {0, 4 * count, 8 * count, 12 * count, 16 * count, 20 * count, 24 * count, 28 * count};
  u8* const states = reinterpret_cast<u8*>(dwords_.data());
  for (u32 first = 0; first < static_cast<u32>(kLanes); first += kGroup) {
    const u32 enabled = all.lanes >> first & 0xff;
    if (enabled == 0) continue;
    const U8v at = load_as<U8v>(address + first) + offset;
    Group<count> group;
    group.first = first;
    store8(group.place, 0, at);
    if (enabled != 0xff) {
      note_apart<count>(w, c, access, group, enabled);
      continue;
    }
    group.neighbours = mask_bits(at - at[0] == steps) == 0xff;
    load_places<count>(group.from, states, group.place, group.neighbours);
    for (u32 k = 0; k < count; ++k) group.same[k] = 0;
    if constexpr (by_value) {
      U8v data[count], memory[count];
      load_registers<count>(data, all.data + first);
      load_places<count>(memory, w.lds, group.place, group.neighbours);
      for (u32 k = 0; k < count; ++k) group.same[k] = data[k] == memory[k];
    }
    if (!follow<count>(group, recent)) [[unlikely]] {
      Group<count> other = group;  // a copy, so that the group itself may be in registers
      if (!resolve<count>(w, c, access, other, recent)) {
        note_apart<count>(w, c, access, other, enabled);
        continue;
      }
      group = other;
    }
    put<count, by_value>(states, group);
  }
}

/// Finds the states after an access from what is known of the same instruction; false if that is not enough.
template <u32 count>
CKEMU_INLINE bool LocalChecks::follow(Group<count>& group, const Recent& recent) const {
  I8v missing[count];
  const bool any_settled = recent.settled != kApart;
  for (u32 k = 0; k < count; ++k) {
    const U8v from = group.from[k];
    const I8v old = from - kSettled < settled_end_ - kSettled, known = from == recent.from, same = group.same[k];
    const U8v next = choose(same, U8v(recent.to_same), U8v(recent.to));
    group.to[k] = choose(known, next, choose(old & ~same, U8v(recent.settled), from));
    missing[k] = (~known & ~old) | (known & I8v(next == kApart)) | (any_settled ? I8v(0) : old & ~same);
  }
  return none<count>(missing);
}

/// The same where something is not known yet, and notes it; false, and nothing is noted, if a dword's bytes have
/// states of their own.
template <u32 count>
bool LocalChecks::resolve(Wave& w, const Code& c, Access& access, Group<count>& group, Recent& recent) {
  u32 fresh = 0, same = 0, apart = 0;
  for (u32 k = 0; k < count; ++k) {
    fresh |= mask_bits(I8v(group.from[k] - kSettled >= settled_end_ - kSettled)) << 8 * k;
    apart |= mask_bits(I8v(group.from[k] == kApart));
    same |= mask_bits(group.same[k]) << 8 * k;
    group.to[k] = group.from[k];
  }
  if (apart != 0) return false;
  const auto put = [&](u32 which, u32 state) {
    for (u32 k = 0; k < count; ++k) group.to[k] = choose(spread_mask(which >> 8 * k & 0xff), U8v(state), group.to[k]);
  };
  const auto after_first = [&](u32 which, u32 state, bool as_it_is) {
    const u32 number = static_cast<u32>(__builtin_ctz(which));
    access.lane = group.first + number / count;
    access.at = group.place[number / count];
    return next(w, c, access, state, group.at(number), as_it_is);
  };
  constexpr u32 every = static_cast<u32>((u64{1} << (kGroup * count)) - 1);
  if (const u32 old = every & ~fresh & ~same; old != 0) put(old, recent.settled = after_first(old, kSettled, false));
  for (u32 left = fresh; left != 0;) {
    const u32 number = static_cast<u32>(__builtin_ctz(left)), state = group.from[number / 8][number % 8];
    const bool as_it_is = (same >> number & 1) != 0;
    u32 alike = 0;
    for (u32 k = 0; k < count; ++k) alike |= mask_bits(I8v(group.from[k] == state)) << 8 * k;
    alike &= as_it_is ? same : ~same;
    const u32 to = after_first(alike, state, as_it_is);
    put(alike, to);
    if (state != recent.from) recent.to = recent.to_same = kApart;
    recent.from = state;
    (as_it_is ? recent.to_same : recent.to) = to;
    left &= ~alike;
  }
  return true;
}

/// Puts the states after an access in their places.
template <u32 count, bool by_value>
CKEMU_INLINE void LocalChecks::put(u8* states, const Group<count>& group) {
  I8v changed[count];
  for (u32 k = 0; k < count; ++k) changed[k] = group.to[k] != group.from[k];
  if (none<count>(changed)) return;
  if (group.neighbours) {
    for (u32 k = 0; k < count; ++k) std::memcpy(states + group.place[0] + 32 * k, &group.to[k], 32);
    return;
  }
  alignas(32) u32 word[kGroup * count];
  for (u32 k = 0; k < count; ++k) store8(word, static_cast<int>(k), group.to[k]);
  for (u32 l = 0; l < kGroup; ++l) std::memcpy(states + group.place[l], word + l * count, 4 * count);
  if constexpr (!by_value) return;
  if (none<count>(group.same)) return;
  // Of lanes with one place the last may leave it as it is: it counts that another does not.
  U8v now[count];
  load_places<count>(now, states, group.place, false);
  for (u32 k = 0; k < count; ++k) changed[k] &= ~group.same[k] & I8v(now[k] != group.to[k]);
  if (none<count>(changed)) [[likely]]
    return;
  for (u32 number = 0; number < kGroup * count; ++number) {
    if (changed[number / 8][number % 8] != 0) std::memcpy(states + group.at(number), &word[number], 4);
  }
}

/// The same lane by lane.
template <u32 count>
void LocalChecks::note_apart(Wave& w, const Code& c, Access& access, const Group<count>& group, u32 enabled) {
  for (u32 left = enabled; left != 0; left &= left - 1) {
    const u32 l = static_cast<u32>(__builtin_ctz(left));
    access.lane = group.first + l;
    access.at = group.place[l];
    note_lane<count>(w, c, access);
  }
}

/// Whole dwords of one lane.
template <u32 count>
void LocalChecks::note_lane(Wave& w, const Code& c, const Access& access) {
  const u32 place = static_cast<u32>(access.at);
  for (u32 n = 0; n < count; ++n) {
    const bool same = compares(access) && load_as<u32>(w.lds + place + 4 * n) == access.data[n * kLanes + access.lane];
    note_dword(w, c, access, place + 4 * n, same);
  }
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
  if (std::all_of(bytes, bytes + 4, [bytes](u32 one) { return one == bytes[0]; })) state = bytes[0];
}

void LocalChecks::load_to_local(Wave& w, const Code& c) {
  const char* name = mnemonic(c.inst->op);
  const u32 bytes = has(name, "dwordx4") ? 16 : has(name, "dwordx3") ? 12 : 4;
  const u64 base = u64{lds_base(w)} + static_cast<u32>(c.offset);
  alignas(64) u32 distance[kLanes];
  for (u32 l = 0; l < static_cast<u32>(kLanes); ++l) distance[l] = bytes * l;
  begin_instruction(w);
  note_lanes(w, c, distance, {w.exec(), 0, base, bytes, Kind::Write});
}

void LocalChecks::note(Wave& w, const Code& c, const Access& access) {
  if (beyond(access)) {  // gives 0, or is dropped
    if (!bounds_) return;
    fault_frame()->check = "memory";
    w.lane = static_cast<i32>(access.lane);
    const i64 at = access.at >> 31 == 1 ? static_cast<i32>(access.at) : static_cast<i64>(access.at);
    raise(w, FaultKind::Instruction,
          "out of bounds: %s accesses %u bytes at byte %s0x%llx of local memory, of which the workgroup has %u",
          mnemonic(c.inst->op), access.bytes, at < 0 ? "-" : "", static_cast<unsigned long long>(at < 0 ? -at : at),
          size_);
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

void LocalChecks::begin_instruction(const Wave& w, InFlight::Counter counter) {
  if (states_.size() > most_states_) forget_unused();
  if (order_ != nullptr && order_->passed_by_all() != passed_by_all_) settle();
  ++instruction_;
  written_ = 0;
  now_ = order_ != nullptr ? order_->now(w, counter) : WaveMoment{};
}

u32 LocalChecks::add(const State& state) {
  states_.push_back(state);
  return static_cast<u32>(states_.size() - 1) | (state.writers == 0 ? kNeverWritten : 0);
}

/// Finds the states that come before all that follows.
void LocalChecks::settle() {
  passed_by_all_ = order_->passed_by_all();
  const auto over = [this](const State& state) {
    return (state.writers == 0 || order_->over(state.write)) &&
           (state.readers == 0 || state.read.arrived < passed_by_all_);
  };
  while (settled_end_ < states_.size() && over(states_[settled_end_])) ++settled_end_;
}

/// Numbers the states anew that some byte has.
void LocalChecks::forget_unused() {
  std::vector<u32> numbers(states_.size());
  std::vector<State> used{states_[kUntouched], states_[kSettled]};
  const auto renumber = [&](u32& state) {
    if (settled(state)) state = kSettled;
    if (state <= kSettled || state == kApart) return;
    u32& number = numbers[state & ~kNeverWritten];
    if (number == 0) {
      number = static_cast<u32>(used.size()) | (state & kNeverWritten);
      used.push_back(state_of(state));
    }
    state = number;
  };
  for (size_t n = 0; n < dwords_.size(); ++n) {
    const bool apart = dwords_[n] == kApart;
    renumber(dwords_[n]);
    for (size_t byte = 4 * n; apart && byte < 4 * n + 4; ++byte) renumber(bytes_[byte]);
  }
  states_.swap(used);
  settled_end_ = kSettled + 1;
  most_states_ = std::max(kFewStates, 2 * states_.size());
}

/// The state after an access; `same` if it writes what is in memory already, which is no write where somebody has
/// written before.
inline u32 LocalChecks::next(Wave& w, const Code& c, const Access& access, u32 number, u32 at, bool same) {
  const u32 state = settled(number) ? kSettled : number;
  Step& step = step_of(state, same);
  if (!known(step, state)) [[unlikely]] {
    const u32 to = same && state_of(state).writers != 0 ? joined(w, state) : after(w, c, access, state, at);
    step = {instruction_, state, to};
  }
  return step.to;
}

/// The state after a write of what is there already.
u32 LocalChecks::joined(const Wave& w, u32 state) {
  if (state == kSettled || (state_of(state).writers >> w.id & 1) != 0) return state;
  State joint = state_of(state);
  joint.writers |= 1u << w.id;
  return add(joint);
}

u32 LocalChecks::after(Wave& w, const Code& c, const Access& access, u32 state, u32 at) {
  check_order(w, c, access, state_of(state), at);
  return access.kind == Kind::Read ? after_read(w, c, state) : after_write(w, c, access.kind);
}

u32 LocalChecks::after_read(const Wave& w, const Code& c, u32 state) {
  if (order_ == nullptr) return state;
  State read = state_of(state);
  // Who conflicts with the read conflicts with the wave's own write before it.
  const bool own = read.writers == 1u << w.id && !read.atomic && read.write.arrived == now_.arrived;
  if (own && read.readers == 0) return state;
  if (read.read.arrived != now_.arrived) read.readers = 0;
  if ((read.readers >> w.id & 1) != 0) return state;
  read.read = now_;
  read.readers |= 1u << w.id;
  read.read_pc = c.pc;
  return add(read);
}

/// All bytes that an instruction writes have the same state then; without order all that are written have.
u32 LocalChecks::after_write(const Wave& w, const Code& c, Kind kind) {
  if (order_ == nullptr) return kSettled;
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
    raise(w, FaultKind::Instruction,
          "uninitialized local memory: %s reads byte 0x%x, which the workgroup has not written", mnemonic(c.inst->op),
          at);
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
  raise(w, FaultKind::Instruction, "race in local memory: %s %s byte 0x%x, which wave %u %s at %s, and %s",
        mnemonic(c.inst->op), access.kind == Kind::Read ? "reads" : "writes", at, u32{conflict.other.wave},
        conflict.did, earlier.c_str(), missing.c_str());
}

}  // namespace ckemu
