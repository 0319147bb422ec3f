// SPDX-License-Identifier: MIT
#include "checks/global_races.h"

#include "checks/global_access.h"
#include "core/fault.h"
#include "core/launch.h"
#include "core/workgroup.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

bool has(const char* name, const char* part) { return std::strstr(name, part) != nullptr; }

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

bool releases(const Inst& inst, Family family) {
  switch (family) {
    case Family::Cdna2: return waits_for_memory(inst);
    case Family::Rdna3: return inst.op == Op::s_waitcnt_vscnt && inst.simm == 0;
    case Family::Rdna4: return inst.op == Op::global_wb || inst.op == Op::global_wbinv;
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

/// What a store writes to memory, byte by byte.
class Stored {
 public:
  Stored(const Wave& w, const Code& c) : wave_(w) {
    const char* name = mnemonic(plain_name(c.inst->op));
    const Source& data = c.src[is_buffer(*c.inst) ? 3 : 2];
    known_ = !has(name, "format") && data.kind == Kind::Vgpr;
    row_ = data.index;
    bit_ = has(name, "d16_hi") ? 16 : 0;
  }

  /// Whether the bytes are those of a register; what converts has others.
  bool known(const GlobalPiece& piece) const { return known_ && piece.lane >= 0; }

  /// A byte by its address.
  u8 operator()(const GlobalPiece& piece, u64 address) const {
    const u32 bit = bit_ + 8 * (piece.skip + static_cast<u32>(address - piece.at));
    return static_cast<u8>(wave_.v[row_ + bit / 32][piece.lane] >> bit % 32);
  }

  /// Whether memory has other bytes now; what is not known is taken to change it.
  bool changes(const GlobalPiece& piece) const {
    if (!known(piece)) return true;
    for (u64 at = piece.at; at < piece.at + piece.bytes; ++at) {
      if (load_as<u8>(reinterpret_cast<const void*>(at)) != (*this)(piece, at)) return true;
    }
    return false;
  }

 private:
  const Wave& wave_;
  bool known_ = false;
  u32 row_ = 0, bit_ = 0;
};

/// The bits of the bytes that a mask names.
u32 bits_of(u8 mask) {
  u32 bits = 0;
  for (u32 n = 0; n < 4; ++n) bits |= (mask >> n & 1u) * (0xFFu << 8 * n);
  return bits;
}

}  // namespace

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

GlobalRaces::Dword& GlobalRaces::dword_at(u64 address) {
  const u64 number = address / 4 / kDwords;
  if (last_page_ == nullptr || number != last_number_) {
    std::unique_ptr<Page>& page = pages_[number];
    if (page == nullptr) page = std::make_unique<Page>();
    last_page_ = page.get();
    last_number_ = number;
  }
  return last_page_->dword[address / 4 % kDwords];
}

bool GlobalRaces::ordered(const Group& group, u32 number, const Moment& other) {
  if (other.group == 0 || other.group == number) return true;
  const auto known = group.clock.find(other.group);
  return known != group.clock.end() && known->second >= other.fence;
}

void GlobalRaces::fences(Wave& w, const Code& c, u32 number) {
  const bool release = releases(*c.inst, w.program->family()), acquire = acquires(*c.inst);
  if (!release && !acquire) return;
  const Guard guard(mutex_);
  Group& group = groups_[number];
  if (release && group.wrote) {
    group.released = group.fence++;
    group.wrote = false;
  }
  if (!acquire) return;
  join(group.clock, group.pending);
  group.pending.clear();
}

/// An atomic operation publishes what came before the last release, and learns what others have published.
void GlobalRaces::synchronise(const GlobalPiece& piece, Kind kind, Group& group, u32 number) {
  Clock& shared = published_[piece.at];
  if (kind != Kind::AtomicWrite) join(group.pending, shared);
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
GlobalRaces::Conflict GlobalRaces::among_waves(const Wave& w, const Request& request, const Dword& dword,
                                               const Group& group) const {
  Conflict conflict;
  if (w.group->order == nullptr || is_atomic(request.kind)) return conflict;
  const auto differs = [&](const Moment& other, const WaveAccess& earlier, bool atomic) {
    if (other.group == 0 || atomic || (earlier.bytes & request.mask) == 0) return false;
    conflict.wave = earlier.moment;
    return !waves_ordered(w, earlier, group, conflict.order);
  };
  const u32 number = number_of(w);
  if (dword.write.group == number && differs(dword.write, dword.wave_write, dword.atomic_write)) {
    conflict.other = dword.write;
    conflict.pc = dword.write_pc;
    conflict.wrote = true;
  } else if (!reads(request.kind) && dword.read.group == number && differs(dword.read, dword.wave_read, dword.atomic_read)) {
    conflict.other = dword.read;
    conflict.pc = dword.read_pc;
  }
  return conflict;
}

/// Whether a load is the first guess of a loop that compares and swaps, as compilers make of atomic operations that
/// a GPU lacks: a wrong guess is corrected there.
bool GlobalRaces::is_guess(const Wave& w, const Code& c) {
  {
    const Guard guard(mutex_);
    if (const auto known = guesses_.find(&c); known != guesses_.end()) return known->second;
  }
  const bool guess = guess_ahead(w, c);
  const Guard guard(mutex_);
  return guesses_[&c] = guess;
}

bool GlobalRaces::guess_ahead(const Wave& w, const Code& c) {
  constexpr u32 near = 16;  // instructions
  const auto same = [](const Source& a, const Source& b) { return a.kind == b.kind && a.index == b.index; };
  const Code* next = &c;
  for (u32 n = 0; n < near && next->inst != nullptr && !ends_run(next->inst->op); ++n) {
    if (std::strstr(mnemonic(next->inst->op), "cmpswap") != nullptr) {
      return same(c.src[0], next->src[0]) && same(c.src[1], next->src[1]);
    }
    next = w.program->at(next->pc + next->inst->bytes);
  }
  return false;
}

GlobalRaces::Conflict GlobalRaces::access(const Wave& w, const Code& c, const Request& request, Group& group, u32 number) {
  const auto [at, mask, kind, changes, known, value] = request;
  Dword& dword = dword_at(at);
  const bool atomic = is_atomic(kind);
  // The other store may not have reached memory yet: what it writes is remembered.
  const u8 both = dword.written & mask;
  const bool same_value = known && (both & ~dword.known) == 0 && ((dword.value ^ value) & bits_of(both)) == 0;
  if (both != 0 && kind == Kind::Write && (!changes || same_value)) return {};
  if ((dword.written & mask) != 0 && !(atomic && dword.atomic_write) && !ordered(group, number, dword.write)) {
    return {dword.write, dword.write_pc, true, {}, WaveOrder::Order::Before};
  }
  if (const Conflict conflict = among_waves(w, request, dword, group); conflict.other.group != 0) return conflict;
  const Moment now{number, group.fence};
  const WaveAccess own{w.group->order != nullptr ? w.group->order->now(w) : WaveMoment{}, group.atomics[w.id], mask, !reads(kind)};
  if (reads(kind)) {
    if (!ordered(group, number, dword.read)) return {};
    const bool same = dword.read.group == number && dword.read.fence == group.fence;
    dword.been_read = static_cast<u8>(same ? dword.been_read | mask : mask);
    dword.atomic_read = atomic && (!same || dword.atomic_read);
    dword.read = now;
    dword.wave_read = own;
    dword.read_pc = c.pc;
    return {};
  }
  if ((dword.been_read & mask) != 0 && !(atomic && dword.atomic_read) && !ordered(group, number, dword.read)) {
    return {dword.read, dword.read_pc, false, {}, WaveOrder::Order::Before};
  }
  const bool same = dword.write.group == number && dword.write.fence == group.fence;
  dword.written = static_cast<u8>(same ? dword.written | mask : mask);
  dword.known = static_cast<u8>(known ? dword.known | mask : dword.known & ~mask);
  dword.value = (dword.value & ~bits_of(mask)) | (value & bits_of(mask));
  dword.atomic_write = atomic;
  dword.write = now;
  dword.wave_write = own;
  dword.write_pc = c.pc;
  group.wrote = true;
  return {};
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
          u32{conflict.wave.wave}, conflict.wrote ? "written" : "read", earlier.c_str(), missing.c_str(), place.c_str());
  }
  raise(w, FaultKind::Instruction,
        "race in global memory: %s %s address 0x%llx, which workgroup (%u, %u, %u) has %s at %s, and no fences and atomic "
        "operations of device scope are between%s",
        mnemonic(c.inst->op), reads(kind) ? "reads" : "writes", static_cast<unsigned long long>(piece.at), other % width,
        other / width % height, other / width / height, conflict.wrote ? "written" : "read", earlier.c_str(), place.c_str());
}

void GlobalRaces::before(Wave& w, const Code& c) {
  const u32 number = number_of(w);
  fences(w, c, number);
  if (!accesses_global(*c.inst)) return;
  const Kind plain = kind_of(c, w.program->family());
  const Kind kind = plain == Kind::Read && is_guess(w, c) ? Kind::AtomicRead : plain;
  const Stored stored(w, c);
  GlobalPiece pieces[kMostPieces];
  bool changed[kMostPieces];
  u32 count = 0;
  each_global_piece(w, c, [&](const GlobalPiece& piece) {
    w.lane = piece.lane;  // for a fault: what follows reads the memory
    changed[count] = kind != Kind::Write || stored.changes(piece);
    pieces[count++] = piece;
  });
  w.lane = -1;
  if (count == 0) return;
  Conflict conflict;
  const GlobalPiece* place = nullptr;
  {  // raising jumps over destructors
    const Guard guard(mutex_);
    Group& group = groups_[number];
    for (u32 n = 0; n < count && conflict.other.group == 0; ++n) {
      const GlobalPiece& piece = pieces[n];
      place = &piece;
      const bool known = kind == Kind::Write && stored.known(piece);
      if (is_atomic(kind)) {
        synchronise(piece, kind, group, number);
        ++group.atomics[w.id];
      }
      for (u64 at = piece.at / 4 * 4; at < piece.at + piece.bytes && conflict.other.group == 0; at += 4) {
        const u64 first = std::max(at, piece.at) - at, last = std::min(at + 4, piece.at + piece.bytes) - at;
        const u8 mask = static_cast<u8>((1u << last) - (1u << first));
        u32 value = 0;
        for (u64 byte = first; byte < last && known; ++byte) value |= u32{stored(piece, at + byte)} << 8 * byte;
        conflict = access(w, c, {at, mask, kind, changed[n], known, value}, group, number);
      }
    }
  }
  if (conflict.other.group != 0) report(w, c, *place, kind, conflict);
}

}  // namespace ckemu
