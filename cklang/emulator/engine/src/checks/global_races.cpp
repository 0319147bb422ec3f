// SPDX-License-Identifier: MIT
#include "checks/global_races.h"

#include <algorithm>

#include "checks/global_access.h"
#include "checks/guesses.h"
#include "core/fault.h"
#include "core/immortal.h"
#include "core/launch.h"
#include "core/workgroup.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

/// Whether a load or store reaches what all workgroups of the device share.
bool device_scope(const Inst& inst, Family family) {
  switch (family) {
    case Family::Cdna2:
    case Family::Rdna3: return inst.sc0;
    case Family::Rdna4: return inst.scope >= 2;
    default: return inst.sc1;
  }
}

/// Whether an s_waitcnt waits for all stores and loads of gfx90a.
bool waits_for_memory(const Inst& inst) {
  const u32 simm = static_cast<u32>(inst.simm);
  return inst.op == Op::s_waitcnt && (simm & 15) == 0 && (simm >> 14 & 3) == 0;
}

/// Whether a wait of gfx12 leaves no store under way: memory of device scope needs no writeback.
bool waits_for_stores(const Inst& inst) {
  const u32 simm = static_cast<u32>(inst.simm);
  return (inst.op == Op::s_wait_storecnt && simm == 0) ||
         (inst.op == Op::s_wait_storecnt_dscnt && (simm >> 8 & 63) == 0);
}

bool releases(const Inst& inst, Family family) {
  switch (family) {
    case Family::Cdna2: return waits_for_memory(inst);
    case Family::Rdna3: return inst.op == Op::s_waitcnt_vscnt && inst.simm == 0;
    case Family::Rdna4: return waits_for_stores(inst);
    default: return inst.op == Op::buffer_wbl2;
  }
}

bool acquires(const Inst& inst) {
  switch (inst.op) {
    case Op::buffer_wbinvl1:
    case Op::buffer_wbinvl1_vol:
    case Op::buffer_inv:
    case Op::buffer_gl0_inv:
    case Op::buffer_gl1_inv:
    case Op::global_inv:
    case Op::global_wbinv: return true;
    default: return false;
  }
}

void join(std::map<u32, u32>& clock, const std::map<u32, u32>& other) {
  for (const auto& [group, fence] : other) clock[group] = std::max(clock[group], fence);
}

constexpr u8 kAllBytes = 15;

/// The bits of the bytes that a mask names.
u32 bits_of(u8 mask) {
  u32 bits = 0;
  for (u32 n = 0; n < 4; ++n) bits |= (mask >> n & 1u) * (0xFFu << 8 * n);
  return bits;
}

}  // namespace

/// What a store writes to memory.
class GlobalRaces::Stored {
 public:
  Stored(const Wave& w, const Code& c) : wave_(w) {
    const GlobalOp& op = global_op(c.inst->op);
    const Source& data = c.src[is_buffer(*c.inst) ? 3 : 2];
    known_ = !op.converts && data.kind == ckemu::Kind::Vgpr;
    row_ = data.index;
    bit_ = op.upper_half ? 16 : 0;
  }

  /// Whether the bytes are those of a register; what converts has others.
  bool known(const GlobalPiece& piece) const { return known_ && piece.lane >= 0; }

  /// The bytes of the dword at `at` that the mask names.
  u32 operator()(const GlobalPiece& piece, u64 at, u8 mask) const {
    const u64 first = 4 * u64{row_} + bit_ / 8 + piece.skip + at - piece.at;  // a byte of the lane's registers
    if (mask == kAllBytes && first % 4 == 0) return wave_.v[first / 4][piece.lane];
    u32 value = 0;
    for (u32 n = 0; n < 4; ++n) {
      if ((mask >> n & 1) != 0) value |= u32{byte(piece, first + n)} << 8 * n;
    }
    return value;
  }

  /// What lanes write whose accesses are in a row, in the order of memory.
  void row(const GlobalAccesses& accesses, u32* to) const {
    for (u64 left = accesses.lanes(); left != 0; left &= left - 1) {
      for (u32 n = 0; n < accesses.bytes() / 4; ++n) *to++ = wave_.v[row_ + n][__builtin_ctzll(left)];
    }
  }
  /// Whether dwords as they are in registers are written.
  bool whole() const { return known_ && bit_ == 0; }

  /// Whether memory has other bytes now; what is not known is taken to change it.
  bool changes(const GlobalPiece& piece) const {
    if (!known(piece)) return true;
    const u64 first = 4 * u64{row_} + bit_ / 8 + piece.skip;
    for (u64 n = 0; n < piece.bytes; ++n) {
      if (load_as<u8>(reinterpret_cast<const void*>(piece.at + n)) != byte(piece, first + n)) return true;
    }
    return false;
  }

 private:
  u8 byte(const GlobalPiece& piece, u64 number) const {
    return static_cast<u8>(wave_.v[number / 4][piece.lane] >> 8 * (number % 4));
  }

  const Wave& wave_;
  bool known_ = false;
  u32 row_ = 0, bit_ = 0;
};

GlobalRaces::GlobalRaces(const Launch& launch) : launch_(launch), guesses_(launch.program->dwords()) {}

GlobalRaces::Kind GlobalRaces::kind_of(const Code& c, Family family) {
  const Inst& inst = *c.inst;
  if ((inst.row->flags & kFlagAtomic) != 0) return Kind::Atomic;
  const bool store = global_op(inst.op).store, shared = inst.enc != Encoding::SMEM && device_scope(inst, family);
  if (store) return shared ? Kind::AtomicWrite : Kind::Write;
  return shared ? Kind::AtomicRead : Kind::Read;
}

u32 GlobalRaces::number_of(const Wave& w) const {
  const u32* id = w.group->id;
  return id[0] + launch_.groups[0] * (id[1] + launch_.groups[1] * id[2]) + 1;
}

std::unique_ptr<GlobalRaces::Page> GlobalRaces::empty_page() {
  std::unique_ptr<Page> page;
  {
    IdlePages& idle = immortal<IdlePages>();
    const Guard guard(idle.lock);
    if (!idle.pages.empty()) {
      page = static_cast<std::unique_ptr<Page>&&>(idle.pages.back());
      idle.pages.pop_back();
    }
  }
  if (page == nullptr) page.reset(new Page);
  std::fill(page->state, page->state + kDwords, 0);
  return page;
}

GlobalRaces::~GlobalRaces() {
  IdlePages& idle = immortal<IdlePages>();
  const Guard guard(idle.lock);
  for (auto& [number, page] : pages_) {
    if (idle.pages.size() < IdlePages::kMost) idle.pages.push_back(static_cast<std::unique_ptr<Page>&&>(page));
  }
}

GlobalRaces::Page& GlobalRaces::page_at(u64 address) {
  const u64 number = address / 4 / kDwords;
  return near_pages_.at(number, [&] {
    std::unique_ptr<Page>& page = pages_[number];
    if (page == nullptr) page = empty_page();
    return page.get();
  });
}

GlobalRaces::Group& GlobalRaces::group_at(u32 number) {
  return near_groups_.at(number, [&] { return &groups_[number]; });
}

u32 GlobalRaces::add(const State& state) {
  states_.push_back(state);
  return static_cast<u32>(states_.size() - 1);
}

/// Numbers the states anew that some dword has, in their order.
void GlobalRaces::forget_unused() {
  numbers_.assign(states_.size(), 0);
  const auto each = [this](auto visit) {
    for (auto& [number, page] : pages_) {
      for (u32& state : page->state) visit(state);
    }
  };
  each([this](const u32& state) { numbers_[state] = 1; });
  numbers_[0] = 0;
  u32 used = 1;
  for (u32 n = 1; n < states_.size(); ++n) {
    if (numbers_[n] == 0) continue;
    states_[used] = states_[n];
    numbers_[n] = used++;
  }
  states_.resize(used);
  each([this](u32& state) { state = numbers_[state]; });
  // As much is to be done again only after as many dwords have changed.
  most_states_ = std::max({kFewStates, 2 * states_.size(), pages_.size() * kDwords / 4});
  states_.reserve(most_states_ + kMoreStates);
}

bool GlobalRaces::ordered(const Group& group, u32 number, const Moment& other) {
  if (other.group == 0 || other.group == number) return true;
  const auto known = group.clock.find(other.group);
  return known != group.clock.end() && known->second >= other.fence;
}

bool GlobalRaces::fences(const Inst& inst, Family family) { return releases(inst, family) || acquires(inst); }

void GlobalRaces::fence(Wave& w, const Code& c) {
  const bool release = releases(*c.inst, w.program->family()), acquire = acquires(*c.inst);
  const u32 number = number_of(w);
  const Guard guard(mutex_);
  Group& group = group_at(number);
  if (release && group.wrote) {
    group.released = group.fence++;
    group.wrote = false;
  }
  if (!acquire) return;
  // Not when they were looked at: between the check of a load and the load another thread may publish.
  for (const u64 variable : group.looked) join(group.clock, published_[variable]);
  group.looked.clear();
}

/// An atomic operation publishes what came before the last release, and learns, at the next acquire fence, what others
/// have published.
void GlobalRaces::synchronise(const GlobalPiece& piece, Kind kind, Group& group, u32 number) {
  Clock& shared = published_[piece.at];
  if (kind != Kind::AtomicWrite) group.looked.insert(piece.at);
  if (kind == Kind::AtomicRead) return;
  join(shared, group.clock);
  if (group.released != 0) shared[number] = group.released;
}

/// Whether what a wave of the workgroup did comes before what `w` does.
bool GlobalRaces::waves_ordered(const Wave& w, const WaveAccess& earlier, const Group& group, WaveOrder::Order& order) {
  order = w.group->order->order(earlier.moment, w.id);
  if (order == WaveOrder::Order::Before || (order == WaveOrder::Order::NotWaited && !earlier.wrote)) return true;
  const bool signalled = group.atomics[earlier.moment.wave] > earlier.atomics;
  return signalled && group.atomics[w.id] != 0;
}

/// What another wave of the workgroup did to the same bytes, and nothing orders.
GlobalRaces::Conflict GlobalRaces::among_waves(const Visit& v, const State& state, u8 mask) const {
  Conflict conflict;
  if (v.wave.group->order == nullptr || is_atomic(v.kind)) return conflict;
  const auto differs = [&](const Moment& other, const WaveAccess& earlier, bool atomic) {
    if (other.group == 0 || atomic || (earlier.bytes & mask) == 0) return false;
    conflict.wave = earlier.moment;
    return !waves_ordered(v.wave, earlier, v.group, conflict.order);
  };
  if (state.write.group == v.number && differs(state.write, state.wave_write, state.atomic_write)) {
    conflict.other = state.write;
    conflict.pc = state.write_pc;
    conflict.wrote = true;
  } else if (!reads(v.kind) && state.read.group == v.number &&
             differs(state.read, state.wave_read, state.atomic_read)) {
    conflict.other = state.read;
    conflict.pc = state.read_pc;
  }
  return conflict;
}

/// Whether a load may be wrong; found out once for each.
bool GlobalRaces::is_guess(Wave& w, const Code& c) {
  u8& guess = guesses_[c.slot];
  if (const u8 known = __atomic_load_n(&guess, __ATOMIC_RELAXED); known != 0) return known == 2;
  const bool ahead = guesses_ahead(w, c);
  __atomic_store_n(&guess, static_cast<u8>(1 + ahead), __ATOMIC_RELAXED);
  return ahead;
}

WaveMoment GlobalRaces::now(const Visit& v) const {
  const WaveOrder* order = v.wave.group->order.get();
  return order != nullptr ? order->now(v.wave) : WaveMoment{};
}

/// Whether who conflicts with the wave's read conflicts with what it did to the same bytes just before as well: with
/// its own write, or with a read that is noted.
bool GlobalRaces::adds_nothing(const Visit& v, const State& state, u8 mask) const {
  const Moment present{v.number, v.group.fence};
  const WaveMoment moment = now(v);
  const auto by_wave = [&](const Moment& earlier, const WaveAccess& access) {
    return earlier.group == present.group && earlier.fence == present.fence && access.moment.wave == moment.wave &&
           access.moment.arrived == moment.arrived && access.atomics == v.group.atomics[v.wave.id];
  };
  const bool written = (state.written & mask) == mask && (state.wave_write.bytes & mask) == mask && !state.atomic_write;
  if (written && by_wave(state.write, state.wave_write)) return true;
  const bool read = (state.been_read & mask) == mask && state.wave_read.bytes == mask &&
                    state.atomic_read == (is_atomic(v.kind) && state.atomic_read);
  return read && by_wave(state.read, state.wave_read);
}

u32 GlobalRaces::after_read(const Visit& v, u32 from, u8 mask) {
  State state = states_[from];
  if (!ordered(v.group, v.number, state.read)) return from;
  const bool atomic = is_atomic(v.kind), same = state.read.group == v.number && state.read.fence == v.group.fence;
  state.been_read = static_cast<u8>(same ? state.been_read | mask : mask);
  state.atomic_read = atomic && (!same || state.atomic_read);
  state.read = {v.number, v.group.fence};
  state.wave_read = {now(v), v.group.atomics[v.wave.id], mask, false};
  state.read_pc = v.code.pc;
  return add(state);
}

u32 GlobalRaces::after_write(Visit& v, u32 from, u8 mask) {
  // Who conflicts with earlier accesses to all of the bytes, which come before this one, conflicts with it as well.
  const bool whole = mask == kAllBytes && !is_atomic(v.kind);
  if (whole && v.whole[v.known] != 0) return v.whole[v.known];
  State state = whole ? State{} : states_[from];
  const bool same = state.write.group == v.number && state.write.fence == v.group.fence;
  state.written = static_cast<u8>(same ? state.written | mask : mask);
  state.known = static_cast<u8>(v.known ? state.known | mask : state.known & ~mask);
  state.atomic_write = is_atomic(v.kind);
  state.write = {v.number, v.group.fence};
  state.wave_write = {now(v), v.group.atomics[v.wave.id], mask, true};
  state.write_pc = v.code.pc;
  v.group.wrote = true;
  const u32 to = add(state);
  if (whole) v.whole[v.known] = to;
  return to;
}

/// The state after an access to the bytes of `mask`. A conflict is noted, and the state stays.
u32 GlobalRaces::after(Visit& v, u32 from, u8 mask) {
  const State& state = states_[from];
  if (reads(v.kind) && adds_nothing(v, state, mask)) return from;
  const bool atomic = is_atomic(v.kind);
  if ((state.written & mask) != 0 && !(atomic && state.atomic_write) && !ordered(v.group, v.number, state.write)) {
    v.conflict = {state.write, state.write_pc, true, {}, WaveOrder::Order::Before};
    return from;
  }
  v.conflict = among_waves(v, state, mask);
  if (v.conflict.other.group != 0) return from;
  if (reads(v.kind)) return after_read(v, from, mask);
  if ((state.been_read & mask) != 0 && !(atomic && state.atomic_read) && !ordered(v.group, v.number, state.read)) {
    v.conflict = {state.read, state.read_pc, false, {}, WaveOrder::Order::Before};
    return from;
  }
  return after_write(v, from, mask);
}

inline u32 GlobalRaces::next(Visit& v, u32 from, u8 mask) {
  Visit::Step& step = v.steps[from % Visit::kSteps];
  if (step.mask != mask || step.from != from) [[unlikely]] {
    const u32 to = after(v, from, mask);
    if (v.conflict.other.group != 0 || is_atomic(v.kind)) return to;  // an atomic operation changes what comes after
    step = {from, to, mask};
  }
  return step.to;
}

namespace {

/// The bytes of the dword at `at` that an access from `begin` to before `end` covers, a bit each.
u8 mask_of(u64 at, u64 begin, u64 end) {
  const u64 first = std::max(at, begin) - at, last = std::min(at + 4, end) - at;
  return static_cast<u8>((1u << last) - (1u << first));
}

/// How many of `most` states, 1 at least, are as the first.
u32 run_of(const u32* state, u32 most) {
  const U8v first = state[0];
  u32 count = 0;
  while (count + 8 <= most && mask_bits(load_as<U8v>(state + count) == first) == 0xff) count += 8;
  while (count < most && state[count] == state[0]) ++count;
  return std::max<u32>(count, 1);
}

}  // namespace

/// Loads, which are told apart by nothing but their addresses.
void GlobalRaces::visit_reads(Visit& v, const GlobalAccesses& accesses) {
  for (const auto& [begin, end] : accesses.ranges()) {
    for (u64 at = begin / 4 * 4; at < end;) {
      u32* state = &page_at(at).state[at / 4 % kDwords];
      const u64 stop = std::min(end, (at / 4 / kDwords + 1) * 4 * kDwords);
      while (at < stop) {
        const u8 mask = mask_of(at, begin, end);
        const u32 from = *state, to = next(v, from, mask);
        if (v.conflict.other.group != 0) {
          v.place = at;
          return;
        }
        const u32 count = mask != kAllBytes ? 1 : run_of(state, static_cast<u32>((stop - at) / 4));
        if (to != from) std::fill(state, state + count, to);
        at += 4 * count;
        state += count;
      }
    }
  }
}

void GlobalRaces::visit_atomics(Visit& v, const GlobalAccesses& accesses) {
  const Stored stored(v.wave, v.code);
  u64 last = 0;
  accesses.each([&](const GlobalPiece& piece) {
    if (piece.at == last) return true;  // as the lane before it
    last = piece.at;
    synchronise(piece, v.kind, v.group, v.number);
    ++v.group.atomics[v.wave.id];
    visit_piece(v, stored, piece, true);
    return v.conflict.other.group == 0;
  });
}

void GlobalRaces::visit_writes(Visit& v, const Stored& stored, const GlobalAccesses& accesses, const bool* changed) {
  accesses.each([&](const GlobalPiece& piece) {
    v.known = stored.known(piece);
    visit_piece(v, stored, piece, changed == nullptr || *changed++);
    return v.conflict.other.group == 0;
  });
}

/// One piece of a store or an atomic operation.
void GlobalRaces::visit_piece(Visit& v, const Stored& stored, const GlobalPiece& piece, bool changes) {
  for (u64 at = piece.at / 4 * 4; at < piece.at + piece.bytes; at += 4) {
    Page& page = page_at(at);
    u32 &state = page.state[at / 4 % kDwords], &last = page.value[at / 4 % kDwords];
    const u8 mask = mask_of(at, piece.at, piece.at + piece.bytes);
    const u32 bits = bits_of(mask), value = v.known ? stored(piece, at, mask) : 0;
    // The other store may not have reached memory yet: what it writes is remembered.
    const u8 both = states_[state].written & mask;
    const bool same_value = v.known && (both & ~states_[state].known) == 0 && ((last ^ value) & bits_of(both)) == 0;
    if (both != 0 && v.kind == Kind::Write && (!changes || same_value)) continue;
    state = next(v, state, mask);
    if (v.conflict.other.group != 0) {
      v.place = at;
      return;
    }
    if (!reads(v.kind)) last = (last & ~bits) | (value & bits);
  }
}

/// A store of whole dwords, and what was `before` in their places; null if nobody has written there.
void GlobalRaces::visit_row(Visit& v, const AddressRange& range, const u32* data, const u32* before) {
  v.known = true;
  for (u64 at = range.begin; at < range.end;) {
    Page& page = page_at(at);
    const u32 first = at / 4 % kDwords, most = static_cast<u32>(std::min<u64>((range.end - at) / 4, kDwords - first));
    u32 *state = page.state + first, *value = page.value + first;
    const u32 from = *state, count = run_of(state, most);
    const bool known = (states_[from].written & ~states_[from].known) == 0, written = states_[from].written != 0;
    // The other store may not have reached memory yet: what it writes is remembered.
    const auto same = [&](u32 n) { return written && ((before[n] == data[n]) | (known & (value[n] == data[n]))); };
    u32 other = 0;
    while (other < count && same(other)) ++other;
    if (other < count) {
      const u32 to = next(v, from, kAllBytes);
      if (v.conflict.other.group != 0) {
        v.place = at + 4 * other;
        return;
      }
      for (u32 n = other; n < count; ++n) {
        const bool stays = same(n);
        state[n] = stays ? from : to;
        value[n] = stays ? value[n] : data[n];
      }
    }
    at += 4 * count;
    data += count;
    if (before != nullptr) before += count;
  }
}

/// Whether some of the bytes have been written before.
bool GlobalRaces::rewrites(const GlobalAccesses& accesses) {
  for (const auto& [begin, end] : accesses.ranges()) {
    for (u64 at = begin / 4 * 4; at < end;) {
      const u32* state = &page_at(at).state[at / 4 % kDwords];
      const u64 stop = std::min(end, (at / 4 / kDwords + 1) * 4 * kDwords);
      const u8 mask = mask_of(at, begin, end);
      if ((states_[*state].written & mask) != 0) return true;
      at += mask != kAllBytes ? 4 : 4 * run_of(state, static_cast<u32>((stop - at) / 4));
    }
  }
  return false;
}

/// Whom a load or an atomic operation is in conflict with.
GlobalRaces::Visit GlobalRaces::visit(Wave& w, const Code& c, Kind kind, const GlobalAccesses& accesses) {
  if (kind == Kind::Write) return visit_stores(w, c, accesses);
  const u32 number = number_of(w);
  const Guard guard(mutex_);
  if (states_.size() > most_states_) forget_unused();
  Visit visit{w, c, kind, group_at(number), number};
  if (kind == Kind::Read) visit_reads(visit, accesses);
  else visit_atomics(visit, accesses);
  return visit;
}

GlobalRaces::Visit GlobalRaces::visit_stores(Wave& w, const Code& c, const GlobalAccesses& accesses) {
  const u32 number = number_of(w);
  const Stored stored(w, c);
  const bool row = accesses.in_a_row() && stored.whole();
  u32 data[kMostPieces], before[kMostPieces];
  bool changed[kMostPieces];
  if (row) stored.row(accesses, data);
  {
    const Guard guard(mutex_);
    if (states_.size() > most_states_) forget_unused();
    if (!rewrites(accesses)) {
      Visit visit{w, c, Kind::Write, group_at(number), number};
      if (row) visit_row(visit, accesses.ranges()[0], data, nullptr);
      else visit_writes(visit, stored, accesses, nullptr);
      return visit;
    }
  }
  u32 count = 0;
  accesses.each([&](const GlobalPiece& piece) {  // not under the lock: memory may not be there
    w.lane = piece.lane;
    if (!row) changed[count++] = stored.changes(piece);
    for (u32 n = 0; row && n < piece.bytes; n += 4)
      before[count++] = load_as<u32>(reinterpret_cast<const void*>(piece.at + n));
    return true;
  });
  w.lane = -1;
  const Guard guard(mutex_);
  Visit visit{w, c, Kind::Write, group_at(number), number};
  if (row) visit_row(visit, accesses.ranges()[0], data, before);
  else visit_writes(visit, stored, accesses, changed);
  return visit;
}

void GlobalRaces::report(Wave& w, const Code& c, const GlobalPiece& piece, Kind kind, const Conflict& conflict) {
  Text<768> earlier;
  describe_code(*w.program, *w.program->at(conflict.pc), earlier);
  const u32 other = conflict.other.group - 1, width = launch_.groups[0], height = launch_.groups[1];
  Message place;
  describe_address(piece.at, place);
  w.lane = piece.lane;
  if (conflict.order != WaveOrder::Order::Before) {
    Text<128> missing;
    w.group->order->describe(conflict.order, conflict.wave, missing);
    raise(w, FaultKind::Instruction,
          "race in global memory: %s %s address 0x%llx, which wave %u of the workgroup has %s at %s, and %s%s",
          mnemonic(c.inst->op), reads(kind) ? "reads" : "writes", static_cast<unsigned long long>(piece.at),
          u32{conflict.wave.wave}, conflict.wrote ? "written" : "read", earlier.c_str(), missing.c_str(),
          place.c_str());
  }
  raise(w, FaultKind::Instruction,
        "race in global memory: %s %s address 0x%llx, which workgroup (%u, %u, %u) has %s at %s, and no fences and "
        "atomic "
        "operations of device scope are between%s",
        mnemonic(c.inst->op), reads(kind) ? "reads" : "writes", static_cast<unsigned long long>(piece.at),
        other % width, other / width % height, other / width / height, conflict.wrote ? "written" : "read",
        earlier.c_str(), place.c_str());
}

void GlobalRaces::before(Wave& w, const Code& c, const GlobalAccesses& accesses) {
  if (accesses.empty()) return;
  const Kind plain = kind_of(c, w.program->family());
  const Kind kind = plain == Kind::Read && is_guess(w, c) ? Kind::AtomicRead : plain;
  const Visit result = visit(w, c, kind, accesses);
  if (result.conflict.other.group == 0) return;
  accesses.each([&](const GlobalPiece& piece) {
    if (result.place >= piece.at / 4 * 4 && result.place < piece.at + piece.bytes)
      report(w, c, piece, kind, result.conflict);
    return true;
  });
}

}  // namespace ckemu
