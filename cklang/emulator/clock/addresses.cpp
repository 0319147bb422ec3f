// SPDX-License-Identifier: MIT
//
// What recorded waves did: how often each line of the listing was executed and by how many lanes, what their
// addresses cost in the LDS and in memory, and which lines of a cache they need.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

using i32 = int32_t;
using i64 = int64_t;
using u32 = uint32_t;
using u64 = uint64_t;

constexpr u32 kNameBits = 44;  // of the number of a line or segment; those above say whose it is
constexpr i32 kLanes = 64, kWord = 4, kBanks = 128, kTable = 1024;
constexpr u32 kDisabled = ~0u;
constexpr u32 kSegmentShift = 6;

// Memory from one address to another.
struct Extent {
  u64 begin, end;

  bool holds(u64 segment) const { return (segment + 1) << kSegmentShift > begin && segment << kSegmentShift < end; }
};

// Words that lanes of one phase access, each once, counted by bank.
struct Busiest {
  u32 word[kTable];
  u32 stamp[kTable] = {};
  u32 now = 0;
  i32 of_bank[kBanks];

  void clear() {
    ++now;
    memset(of_bank, 0, sizeof of_bank);
  }
  // The number of words of the word's bank with it.
  i32 add(u32 what, i32 banks) {
    u32 at = what * 2654435761u >> 22;
    while (stamp[at] == now) {
      if (word[at] == what) return 0;
      at = (at + 1) % kTable;
    }
    stamp[at] = now;
    word[at] = what;
    return ++of_bank[what % static_cast<u32>(banks)];
  }
};

void count_passes(Busiest& busiest, const u32* address, const i32* phase, i32 phases, i32 banks, i32 words,
                  i64* passes) {
  const u32 aligned = static_cast<u32>(words * kWord);
  for (i32 each = 0; each < phases; ++each) {
    busiest.clear();
    i32 most = 0;
    for (i32 lane = 0; lane < kLanes; ++lane) {
      if (phase[lane] != each || address[lane] == kDisabled) continue;
      if (most == 0) most = 1;
      if (address[lane] % aligned != 0) continue;
      for (i32 n = 0; n < words; ++n) {
        const i32 of_bank = busiest.add(address[lane] / kWord + static_cast<u32>(n), banks);
        if (of_bank > most) most = of_bank;
      }
    }
    passes[each] = most;
  }
}

struct Memory {
  u32 place, bytes, segments;
};
struct Local {
  u32 pattern, shift;
};

// A recorded wave, where `pack` of the emulator's checks/recording.cpp has written it.
struct Wave {
  u64 workgroup, number;
  const u32* stretches;
  u64 executions;
  const uint8_t* lanes;
  const u32* begins;
  u64 distinct;  // stretches
  const u32* slots;
  u64 slot_count;
  const Local* local;
  u64 local_count;
  const u32* patterns;  // rows of 64
  u64 pattern_words;
  const Memory* memory;
  u64 accesses;
  const u64* segments;
  u64 segment_count;

  u64 length_of(u32 stretch) const {
    return (stretch + 1 < distinct ? begins[stretch + 1] : slot_count) - begins[stretch];
  }
};

const uint8_t* number(const uint8_t* at, u64& value) {
  memcpy(&value, at, sizeof value);
  return at + sizeof value;
}

template <class T>
const uint8_t* array(const uint8_t* at, const T*& values, u64& count, u64 each = sizeof(T)) {
  at = number(at, count);
  values = reinterpret_cast<const T*>(at);
  return at + (count * each + 7) / 8 * 8;
}

// Reads a wave and returns where the next one is.
const uint8_t* read_wave(const uint8_t* at, Wave& wave) {
  u64 lanes = 0, shown = 0;
  const uint8_t* skipped = nullptr;
  at = number(number(at, wave.workgroup), wave.number);
  at = array(at, wave.stretches, wave.executions);
  at = array(at, wave.lanes, lanes);
  at = array(at, wave.begins, wave.distinct);
  at = array(at, wave.slots, wave.slot_count);
  at = array(at, wave.local, wave.local_count);
  at = array(at, wave.patterns, wave.pattern_words);
  at = array(at, wave.memory, wave.accesses);
  at = array(at, wave.segments, wave.segment_count);
  return array(at, skipped, shown, 24);
}

}  // namespace

// A line of the listing, `LINE_COLUMNS` of native.py.
struct Line {
  i32 width;  // of its accesses to the LDS, a number in the table of widths; -1: it is none of the LDS
  i32 reads;
  i32 busy;
};

// How accesses to the LDS of one width are served, `WIDTH_COLUMNS` of native.py.
struct Width {
  i32 banks, words, lanes, phases;
  i32 phase[kLanes];
};

struct Listing {
  const i32* line_of;  // of each dword of the code
  const Line* lines;
  const Width* widths;
};

namespace {

// What the LDS does for the operations of a wave: each way of an instruction to access it is looked at once.
class LocalCosts {
 public:
  struct Cost {
    i32 cycles = -1, conflicts = 0;
  };
  LocalCosts(const Wave& wave, const Listing& listing) : wave_(wave), listing_(listing) {}
  ~LocalCosts() { free(known_); }
  LocalCosts(const LocalCosts&) = delete;
  LocalCosts& operator=(const LocalCosts&) = delete;

  // Whether there is memory, and every operation has addresses.
  bool begin() {
    if (wave_.local_count == 0) return true;
    const u64 kinds = wave_.pattern_words / kLanes * kShifts;
    known_ = static_cast<Cost*>(malloc(kinds * sizeof(Cost)));
    if (known_ == nullptr) return false;
    for (u64 n = 0; n < kinds; ++n) known_[n] = Cost{};
    return true;
  }
  // Of an operation at a line of the listing.
  const Cost& of(const Local& operation, i32 line) {
    const u32 further = operation.shift % kShifts;
    Cost& cost = known_[operation.pattern * kShifts + further];
    if (cost.cycles < 0) look_at(wave_.patterns + kLanes * operation.pattern, further, listing_.lines[line], cost);
    return cost;
  }

 private:
  static constexpr u32 kShifts = 48;  // a multiple of the width of each access, in bytes

  void look_at(const u32* pattern, u32 further, const Line& line, Cost& cost) {
    const Width& width = listing_.widths[line.width];
    u32 address[kLanes];
    i32 enabled = 0;
    for (i32 lane = 0; lane < kLanes; ++lane) {
      address[lane] = pattern[lane] == kDisabled ? kDisabled : pattern[lane] + further;
      enabled += pattern[lane] != kDisabled;
    }
    i64 passes[kLanes] = {};
    count_passes(busiest_, address, width.phase, width.phases, width.banks, width.words, passes);
    i64 total = 0;
    for (i32 n = 0; n < width.phases; ++n) total += passes[n];
    const i64 phases = (enabled + width.lanes - 1) / width.lanes, more = total > phases ? total - phases : 0;
    // What is read returns while the banks serve the next phase, so passes of a read cost what they take longer
    // than the return; those of writes and atomics come on top.
    const i64 returned = phases + more > line.busy ? phases + more : line.busy;
    cost.conflicts = static_cast<i32>(more);
    cost.cycles = static_cast<i32>(line.reads != 0 ? returned : line.busy + more);
  }

  const Wave& wave_;
  const Listing& listing_;
  Cost* known_ = nullptr;
  Busiest busiest_;
};

i32 first_line(const Wave& wave, const Listing& listing, u32 stretch) {
  return listing.line_of[wave.slots[wave.begins[stretch]]];
}

// Whether each operation of the LDS that a wave executed has addresses.
bool has_addresses(const Wave& wave, const Listing& listing) {
  u64 executed = 0;
  for (u64 n = 0; n < wave.executions; ++n)
    executed += listing.lines[first_line(wave, listing, wave.stretches[n])].width >= 0;
  return executed == wave.local_count;
}

// The lines of a cache that drops the one which was used longest ago.
class Recent {
 public:
  explicit Recent(u64 capacity) : capacity_(capacity), held_(static_cast<u64*>(malloc(capacity * sizeof(u64)))) {}
  ~Recent() { free(held_); }
  Recent(const Recent&) = delete;
  Recent& operator=(const Recent&) = delete;
  bool works() const { return held_ != nullptr; }
  void clear() { used_ = 0; }
  bool hit(u64 line) {
    u64 at = 0;
    while (at < used_ && held_[at] != line) ++at;
    const bool found = at < used_;
    if (!found && used_ < capacity_) ++used_;
    else if (!found) --at;
    memmove(held_ + 1, held_, at * sizeof(u64));
    held_[0] = line;
    return found;
  }

 private:
  const u64 capacity_;
  u64 used_ = 0;
  u64* held_;
};

// Numbers with a value each, which begins as 0.
class Numbers {
 public:
  Numbers() = default;
  ~Numbers() { free(held_); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  // The value of a number; null: there is no memory.
  u64* at(u64 number) {
    if ((held_ == nullptr || 2 * used_ >= u64{1} << bits_) && !grow()) return nullptr;
    Entry& entry = find(held_, bits_, number + 1);
    if (entry.key == 0) {
      entry.key = number + 1;
      ++used_;
    }
    return &entry.value;
  }

 private:
  struct Entry {
    u64 key, value;  // key 0: none
  };
  static Entry& find(Entry* held, u32 bits, u64 key) {
    u64 at = key * 0x9E3779B97F4A7C15u >> (64 - bits);
    while (held[at].key != 0 && held[at].key != key) at = (at + 1) & ((u64{1} << bits) - 1);
    return held[at];
  }
  bool grow() {
    const u32 bits = held_ == nullptr ? 10 : bits_ + 2;
    auto* const larger = static_cast<Entry*>(calloc(size_t{1} << bits, sizeof(Entry)));
    if (larger == nullptr) return false;
    for (u64 n = 0; held_ != nullptr && n < u64{1} << bits_; ++n) {
      if (held_[n].key != 0) find(larger, bits, held_[n].key) = held_[n];
    }
    free(held_);
    held_ = larger;
    bits_ = bits;
    return true;
  }
  Entry* held_ = nullptr;
  u32 bits_ = 0;
  u64 used_ = 0;
};

u64 eighth_of_octave(u64 value) {  // of 1 and more
  const u64 octave = 63 - static_cast<u64>(__builtin_clzll(value));
  return 8 * octave + (octave >= 3 ? value >> (octave - 3) & 7 : (value << (3 - octave)) & 7);
}

// Several L2 caches, each of which keeps what it was asked for.
class BehindL1 {
 public:
  BehindL1(i64* counts, i64* again) : counts_(counts), again_(again) {}
  // False: there is no memory.
  bool ask(u64 line, u64 l2, uint8_t kind) {
    u64* const last = lines_.at(line << kBits | l2);
    if (last == nullptr) return false;
    ++asked_[l2];
    if (*last == 0) ++counts_[kind == 3 ? 0 : kind == 2 ? 1 : 2];
    else if (kind == 3) ++again_[eighth_of_octave(asked_[l2] - *last)];
    *last = asked_[l2];
    return true;
  }
  bool write(u64 segment, u64 l2) {
    u64* const known = segments_.at(segment << kBits | l2);
    if (known == nullptr) return false;
    counts_[3] += (*known)++ == 0;
    return true;
  }

 private:
  static constexpr u32 kBits = 6;
  i64 *counts_, *again_;
  u64 asked_[1 << kBits] = {};
  Numbers lines_, segments_;
};

// Calls `visit` with the lines of an access, in the order of their numbers, each once.
template <class Visit>
bool each_line(const u64* segments, u64 count, u64 per_line, Visit visit) {
  constexpr u64 kMost = 256;
  u64 some[kMost], distinct = 0;
  u64* const lines = count <= kMost ? some : static_cast<u64*>(malloc(count * sizeof(u64)));
  if (lines == nullptr) return false;
  for (u64 n = 0; n < count; ++n) {
    const u64 line = segments[n] / per_line;
    u64 at = distinct;
    while (at > 0 && lines[at - 1] > line) --at;
    if (at > 0 && lines[at - 1] == line) continue;
    memmove(lines + at + 1, lines + at, (distinct - at) * sizeof(u64));
    lines[at] = line;
    ++distinct;
  }
  for (u64 n = 0; n < distinct; ++n) visit(lines[n]);
  if (lines != some) free(lines);
  return true;
}

// The lines of an access, in the order of its segments, each once.
class LinesOfAccess {
 public:
  explicit LinesOfAccess(u64 most) : held_(static_cast<u64*>(malloc((most + 1) * sizeof(u64)))) {}
  ~LinesOfAccess() { free(held_); }
  LinesOfAccess(const LinesOfAccess&) = delete;
  LinesOfAccess& operator=(const LinesOfAccess&) = delete;
  bool works() const { return held_ != nullptr; }
  u64 read(const u64* segments, u64 count, u64 per_line) {
    u64 used = 0;
    for (u64 n = 0; n < count; ++n) {
      const u64 line = segments[n] / per_line;
      u64 at = used;
      while (at > 0 && held_[at - 1] != line) --at;
      if (at == 0) held_[used++] = line;
    }
    return used;
  }
  u64 operator[](u64 at) const { return held_[at]; }

 private:
  u64* held_;
};

u64 largest_access(const Wave& wave) {
  u64 most = 0;
  for (u64 n = 0; n < wave.accesses; ++n) most = wave.memory[n].segments > most ? wave.memory[n].segments : most;
  return most;
}

}  // namespace

// Recorded workgroups: the waves of the nth are `begins` of `packed` from `first[n]` to `last[n]`. The accesses of a
// wave have their kinds from `access` on: 0 scalar, 1 atomic, 2 write, 3 read.
struct Groups {
  const uint8_t* packed;
  const i64 *begins, *access, *first, *last;
  i64 count;
  const uint8_t* kinds;
};

// `Levels` of hierarchy.py.
struct Levels {
  double l2_lines, far_share, cold_share, latency_l1, latency_l2, latency_far, latency_scalar, latency_cold, cycles_l2,
      cycles_far, cycles_stored, memory_share;
  i64 per_line, l1_lines, scalar_lines, stored_segments;
  i64 steps;
  const double *ratios, *retained;  // the table behind `retained` of hierarchy.py
};

namespace {

// Lines that every one of some workgroups accesses, if they are more than one.
class Shared {
 public:
  // False: there is no memory.
  bool find(const Groups& groups, u64 per_line) {
    if (groups.count < 2) return true;
    count_ = static_cast<u64>(groups.count);
    for (u64 group = 0; group < count_; ++group) {
      for (i64 n = groups.first[group]; n < groups.last[group]; ++n) {
        Wave wave;
        read_wave(groups.packed + groups.begins[n], wave);
        for (u64 each = 0; each < wave.segment_count; ++each) {
          u64* const before = seen_.at(wave.segments[each] / per_line);
          if (before == nullptr) return false;
          *before += *before == group;
        }
      }
    }
    return true;
  }
  bool has(u64 line) { return count_ != 0 && *seen_.at(line) == count_; }

 private:
  u64 count_ = 0;
  Numbers seen_;  // of each line, the workgroups up to the first that does not access it
};

struct AccessCost {
  double latency, path, behind, memory;
};

// The caches of one compute unit during the run of some workgroups.
class UnitCaches {
 public:
  UnitCaches(const Levels& levels, Shared& shared, u64 most)
      : levels_(levels),
        shared_(shared),
        l1_(static_cast<u64>(levels.l1_lines)),
        scalar_(static_cast<u64>(levels.scalar_lines)),
        lines_(most) {}
  bool works() const { return l1_.works() && scalar_.works() && lines_.works() && enough_; }

  AccessCost cost(uint8_t kind, const u64* segments, u64 count, u64 group, i32& cycles) {
    cycles = 0;
    if (kind == 0) {
      double latency = 0;
      for (u64 n = 0; n < count; ++n) latency = fmax(latency, scalar_latency(segments[n]));
      return {latency, 0, 0, 0};
    }
    const u64 lines = lines_.read(segments, count, static_cast<u64>(levels_.per_line));
    const bool loads = kind == 3;
    double none_far = 1, all_far = 0;
    u64 missed = 0;
    for (u64 n = 0; n < lines; ++n) {
      const bool own = !shared_.has(lines_[n]);
      const u64 name = own ? lines_[n] | (group + 1) << kNameBits : lines_[n];
      if (loads && l1_.hit(name)) continue;
      const double share = far(name, own, loads ? levels_.far_share : 1);
      none_far *= 1 - share;
      all_far += share;
      ++missed;
    }
    cycles = static_cast<i32>(count);
    const double path = fmax(static_cast<double>(missed) * levels_.cycles_l2, all_far * levels_.cycles_far);
    if (!loads) {
      // One that leaves parts of its lines out takes the L1 as long as if it filled these, or the halves that it
      // touches.
      const u64 pieces = lines * static_cast<u64>(levels_.per_line);
      if (pieces != count) {
        const u64 touched = lines_.read(segments, count, static_cast<u64>(levels_.stored_segments));
        const i32 filling = static_cast<i32>(nearbyint(static_cast<double>(touched) * levels_.cycles_stored));
        if (filling > cycles) cycles = filling;
      }
      return {levels_.latency_l2, static_cast<double>(count) / static_cast<double>(pieces > 0 ? pieces : 1) * path, 0,
              0};
    }
    if (missed == 0) return {levels_.latency_l1, 0, 0, 0};
    const double share = levels_.memory_share;
    return {levels_.latency_l2 * none_far + levels_.latency_far * (1 - none_far), path, (1 - none_far) * share,
            all_far * share};
  }

 private:
  static constexpr u64 kPage = 4096 / 64, kArguments = ~u64{0} >> 1;

  // The probability that a line which is not in the L1 is not in the L2 either; `fresh` is that of a line which this
  // compute unit has not accessed. Lines that it writes leave the L2 when the kernel ends, so they go behind it once.
  double far(u64 name, bool own, double fresh) {
    u64* const last = last_.at(name);
    enough_ &= last != nullptr;
    if (last == nullptr) return 0;
    const u64 before = *last;
    *last = ++missed_;
    if (before == 0) return fresh;
    return own ? 1 - retained(static_cast<double>(missed_ - before) / levels_.l2_lines) : 0;
  }

  double retained(double ratio) const {
    const i64 last = levels_.steps - 1;
    if (ratio >= levels_.ratios[last]) return levels_.retained[last];
    const double *const x = levels_.ratios, *const y = levels_.retained;
    const i64 at = static_cast<i64>(ratio / (x[1] - x[0]));
    return (y[at + 1] - y[at]) / (x[at + 1] - x[at]) * (ratio - x[at]) + y[at];
  }

  double scalar_latency(u64 segment) {
    const u64 page = segment / kPage;
    if (arguments_ == kNone) arguments_ = page;  // The first scalar load reads what the host has just written.
    const bool arguments = page == arguments_;
    const u64 name = arguments ? kArguments : segment;
    if (scalar_.hit(name)) return levels_.latency_scalar;
    u64* const seen = scalars_.at(name);
    enough_ &= seen != nullptr;
    if (seen == nullptr) return 0;
    const bool fresh = (*seen)++ == 0;
    const double cold = fresh ? arguments ? 1 : levels_.cold_share : 0;
    return levels_.latency_l2 + cold * (levels_.latency_cold - levels_.latency_l2);
  }

  static constexpr u64 kNone = ~u64{0};
  const Levels& levels_;
  Shared& shared_;
  Recent l1_, scalar_;
  LinesOfAccess lines_;
  Numbers last_, scalars_;
  u64 missed_ = 0, arguments_ = kNone;
  bool enough_ = true;
};

constexpr i32 kParts = 16;  // of a cycle, `SCALE` of access_costs.py

// A wave that takes its turns.
struct Turn {
  Wave wave;
  u64 group;  // of those that run, whose waves have lines of their own
  const uint8_t* kinds;
  i64 at;  // its first access, among those of all waves that run
  const u64* segments;
  u64 next;  // access
};

enum class Turns { OneAccess, InARow };

// Workgroups that run some at a time, each as the recorded one whose turn it is. Their waves take turns, of one access
// or of those that a wave issues without another instruction in between.
class Rounds {
 public:
  Rounds(const Groups& groups, i64 together) : groups_(groups), together_(together) {
    i64 waves = 0;
    for (i64 group = 0; group < groups.count; ++group) {
      const i64 here = groups.last[group] - groups.first[group];
      waves = here > waves ? here : waves;
    }
    turns_ = static_cast<Turn*>(malloc(static_cast<size_t>(waves * together + 1) * sizeof(Turn)));
  }
  ~Rounds() { free(turns_); }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  bool works() const { return turns_ != nullptr; }

  // Calls `visit` with the wave, the number of its access and the segments of that.
  template <class Visit>
  void run(i64 count, Turns turns, Visit visit) {
    i64 before = 0;
    for (i64 begin = 0; begin < count; begin += together_) {
      i64 running = 0;
      for (i64 number = begin; number < begin + together_ && number < count; ++number) {
        const i64 group = number % groups_.count;
        for (i64 n = groups_.first[group]; n < groups_.last[group]; ++n) {
          Turn& turn = turns_[running++];
          read_wave(groups_.packed + groups_.begins[n], turn.wave);
          turn.group = static_cast<u64>(number);
          turn.kinds = groups_.kinds + groups_.access[n];
          turn.segments = turn.wave.segments;
          turn.at = before;
          turn.next = 0;
          before += static_cast<i64>(turn.wave.accesses);
        }
      }
      for (bool more = true; more;) {
        more = false;
        for (i64 n = 0; n < running; ++n) {
          Turn& turn = turns_[n];
          const u64 end = turn.next < turn.wave.accesses ? end_of_turn(turn, turns) : turn.next;
          for (; turn.next < end; ++turn.next) {
            visit(turn, turn.next, turn.segments);
            turn.segments += turn.wave.memory[turn.next].segments;
          }
          more |= turn.next < turn.wave.accesses;
        }
      }
    }
  }

 private:
  static u64 end_of_turn(const Turn& turn, Turns turns) {
    const Memory* const memory = turn.wave.memory;
    u64 end = turn.next + 1;
    if (turns == Turns::InARow) {
      while (end < turn.wave.accesses && memory[end].place - memory[end - 1].place <= 1) ++end;
    }
    return end;
  }

  const Groups& groups_;
  const i64 together_;
  Turn* turns_;
};

}  // namespace

/// The passes of LDS instructions, [instruction, phase], as `pass_counts` of `lds.py` describes them.
/// `address` is [instruction, lane].
extern "C" void ck_lds_passes(const u32* address, i64 count, const i32* phase, i32 phases, i32 banks, i32 words,
                              i64* passes) {
  Busiest busiest;
  for (i64 n = 0; n < count; ++n)
    count_passes(busiest, address + kLanes * n, phase, phases, banks, words, passes + phases * n);
}

/// The head of each wave: where it begins, its workgroup, its number in that, the instructions that it executed, and
/// its accesses to global memory, [wave, 5].
extern "C" void ck_heads(const uint8_t* packed, i64 count, i64* heads) {
  const uint8_t* at = packed;
  for (i64 n = 0; n < count; ++n) {
    Wave wave;
    const i64 begin = at - packed;
    at = read_wave(at, wave);
    u64 executed = 0;
    for (u64 each = 0; each < wave.executions; ++each) executed += wave.length_of(wave.stretches[each]);
    const u64 head[] = {static_cast<u64>(begin), wave.workgroup, wave.number, executed, wave.accesses};
    for (const u64 fact : head) *heads++ = static_cast<i64>(fact);
  }
}

/// Adds what waves did to `sums`, [column, line]: executions, lanes, accesses to global memory, their bytes and
/// segments, conflicts and cycles of the LDS. `access_lines` becomes the line of each access, wave after wave.
/// @return 0, or -1 if there is no memory.
extern "C" i64 ck_sums(const uint8_t* packed, i64 count, const Listing* listing, i64 lines, double* sums,
                       i32* access_lines) {
  double* const column[] = {
      sums, sums + lines, sums + 2 * lines, sums + 3 * lines, sums + 4 * lines, sums + 5 * lines, sums + 6 * lines};
  for (i64 n = 0; n < count; ++n) {
    Wave wave;
    packed = read_wave(packed, wave);
    LocalCosts costs(wave, *listing);
    const bool local = wave.local_count != 0 && has_addresses(wave, *listing);
    // Of each stretch: executions, lanes, its instructions, whether it accesses the LDS.
    struct Each {
      u64 executions, lanes, length;
      i32 line;
      bool local;
    };
    auto* const each = static_cast<Each*>(calloc(wave.distinct + 1, sizeof(Each)));
    if (each == nullptr || !costs.begin()) {
      free(each);
      return -1;
    }
    for (u32 stretch = 0; stretch < wave.distinct; ++stretch) {
      each[stretch].length = wave.length_of(stretch);
      each[stretch].line = first_line(wave, *listing, stretch);
      each[stretch].local = local && listing->lines[each[stretch].line].width >= 0;
    }
    const Local* operation = wave.local;
    const Memory *access = wave.memory, *const last = wave.memory + wave.accesses;
    u64 place = 0;
    for (u64 at = 0; at < wave.executions; ++at) {
      Each& stretch = each[wave.stretches[at]];
      ++stretch.executions;
      stretch.lanes += wave.lanes[at];
      if (access != last && access->place == place) {
        column[2][stretch.line] += 1;
        column[3][stretch.line] += access->bytes;
        column[4][stretch.line] += access->segments;
        *access_lines++ = stretch.line;
        ++access;
      }
      if (stretch.local) {
        const LocalCosts::Cost& cost = costs.of(*operation++, stretch.line);
        column[5][stretch.line] += cost.conflicts;
        column[6][stretch.line] += cost.cycles;
      }
      place += stretch.length;
    }
    for (u32 stretch = 0; stretch < wave.distinct; ++stretch) {
      for (u64 at = 0; at < each[stretch].length; ++at) {
        const i32 line = listing->line_of[wave.slots[wave.begins[stretch] + at]];
        column[0][line] += static_cast<double>(each[stretch].executions);
        column[1][line] += static_cast<double>(each[stretch].lanes);
      }
    }
    free(each);
  }
  return 0;
}

/// What one wave executed: the line of each instruction, and the cycles of the LDS where it takes other than those of
/// the listing, else -1.
/// @return 1 if its operations of the LDS have addresses, else 0; -1 if there is no memory.
extern "C" i64 ck_stream(const uint8_t* packed, const Listing* listing, i32* line, i32* cycles) {
  Wave wave;
  read_wave(packed, wave);
  LocalCosts costs(wave, *listing);
  if (!costs.begin()) return -1;
  const bool local = has_addresses(wave, *listing);
  const Local* operation = wave.local;
  for (u64 at = 0; at < wave.executions; ++at) {
    const u32 stretch = wave.stretches[at];
    const u64 length = wave.length_of(stretch);
    const u32* const slots = wave.slots + wave.begins[stretch];
    for (u64 n = 0; n < length; ++n) line[n] = listing->line_of[slots[n]];
    for (u64 n = 0; n < length; ++n) cycles[n] = -1;
    if (local && listing->lines[*line].width >= 0) *cycles = costs.of(*operation++, *line).cycles;
    line += length;
    cycles += length;
  }
  return local;
}

/// What the L1 caches of workgroups ask the L2 for: lines read, segments written and changed by atomics. Waves of a
/// workgroup are `begins[n]` of `packed`, up to where the workgroup ends in `ends`; they take turns of one access.
/// `kinds` is that of each access, from `first[n]` on: 0 scalar, 1 atomic, 2 write, 3 read. With `l2`, the number of
/// the L2 behind each workgroup, `requests` goes on with the lines that are new to their L2, read, written and changed,
/// and the segments that are written or changed, each once; `again` counts lines that are read again from an L2, by
/// how many it was asked for since: eight entries an octave.
/// @return 0, or -1 if there is no memory.
extern "C" i64 ck_requests(const uint8_t* packed, const i64* begins, const i64* first, const i64* ends, const i64* l2,
                           i64 groups, const uint8_t* kinds, i64 per_line, i64 capacity, i64* requests, i64* again) {
  Recent l1(static_cast<u64>(capacity));
  BehindL1 behind(requests + 3, again);
  if (!l1.works()) return -1;
  i64 begin = 0;
  for (i64 group = 0; group < groups; begin = ends[group++]) {
    const i64 count = ends[group] - begin;
    auto* const waves = static_cast<Wave*>(malloc(static_cast<size_t>(count) * sizeof(Wave)));
    if (waves == nullptr) return -1;
    u64 turns = 0;
    for (i64 n = 0; n < count; ++n) {
      read_wave(packed + begins[begin + n], waves[n]);
      turns = waves[n].accesses > turns ? waves[n].accesses : turns;
    }
    l1.clear();
    const u64 place = l2 == nullptr ? 0 : static_cast<u64>(l2[group]);
    bool enough = true;
    for (u64 turn = 0; turn < turns && enough; ++turn) {
      for (i64 n = 0; n < count; ++n) {
        Wave& wave = waves[n];
        if (turn >= wave.accesses) continue;
        const u64* const segments = wave.segments;
        const u32 size = wave.memory[turn].segments;
        wave.segments += size;
        const uint8_t kind = kinds[first[begin + n] + static_cast<i64>(turn)];
        const bool reads = kind == 3;
        if (kind == 0) continue;
        if (!reads) requests[kind == 2 ? 1 : 2] += size;
        if (!reads && l2 == nullptr) continue;
        enough &= each_line(segments, size, static_cast<u64>(per_line), [&](u64 line) {
          if (reads && l1.hit(line)) return;
          requests[0] += reads;
          if (l2 != nullptr) enough &= behind.ask(line, place, kind);
        });
        for (u32 each = 0; !reads && each < size; ++each) enough &= behind.write(segments[each], place);
      }
    }
    free(waves);
    if (!enough) return -1;
  }
  return 0;
}

/// What waves access of each of some extents of memory, which are in order: `counts` has the segments, each counted
/// once, and how many reads and writes touch it; behind the last extent, those of segments in none. `kinds` is that of
/// each access, as in `ck_requests`; without, no reads and writes are counted.
/// @return 0, or -1 if there is no memory.
extern "C" i64 ck_extents(const uint8_t* packed, i64 count, const Extent* extents, i64 extent_count,
                          const uint8_t* kinds, i64* counts) {
  u64 most = 0;
  const uint8_t* at = packed;
  Wave wave;
  for (i64 n = 0; n < count; ++n) {
    at = read_wave(at, wave);
    most += wave.segment_count;
  }
  u32 bits = 4;
  while (u64{1} << bits < 2 * most) ++bits;
  auto* const table = static_cast<u64*>(calloc(size_t{1} << bits, sizeof(u64)));  // 0: none
  if (table == nullptr) return -1;
  i64 extent = extent_count;
  at = packed;
  for (i64 n = 0; n < count; ++n) {
    at = read_wave(at, wave);
    const u64* segment = wave.segments;
    for (u64 access = 0; access < wave.accesses; ++access) {
      const uint8_t kind = kinds == nullptr ? 0 : *kinds++;
      for (u32 s = 0; s < wave.memory[access].segments; ++s, ++segment) {
        if (extent == extent_count || !extents[extent].holds(*segment)) {
          i64 before = 0, end = extent_count;  // the extents that begin before the segment ends
          while (before < end) {
            const i64 middle = (before + end) / 2;
            if (extents[middle].begin < (*segment + 1) << kSegmentShift) {
              before = middle + 1;
            } else {
              end = middle;
            }
          }
          extent = before > 0 && extents[before - 1].holds(*segment) ? before - 1 : extent_count;
        }
        i64* const of_extent = counts + 3 * extent;
        const u64 key = *segment + 1;
        u64 place = key * 0x9E3779B97F4A7C15u >> (64 - bits);
        while (table[place] != 0 && table[place] != key) place = (place + 1) & ((u64{1} << bits) - 1);
        of_extent[0] += table[place] == 0;
        table[place] = key;
        of_extent[1] += kinds != nullptr && kind != 2;
        of_extent[2] += kinds != nullptr && (kind == 1 || kind == 2);
      }
    }
  }
  free(table);
  return 0;
}

/// Adds to each line's `sums` the values of its executions.
extern "C" void ck_add_by_line(const i32* line, const i32* values, i64 count, double* sums) {
  for (i64 n = 0; n < count; ++n) sums[line[n]] += values[n];
}

/// The lines that each of some workgroups loads, and those that it stores, added up: `sums`.
/// @return 0, or -1 if there is no memory.
extern "C" i64 ck_lines(const Groups* groups, i64 per_line, i64* sums) {
  Numbers loaded, stored;  // of each line, the last workgroup that accesses it, counted from 1
  for (i64 group = 0; group < groups->count; ++group) {
    for (i64 n = groups->first[group]; n < groups->last[group]; ++n) {
      Wave wave;
      read_wave(groups->packed + groups->begins[n], wave);
      const uint8_t* kind = groups->kinds + groups->access[n];
      const u64* segment = wave.segments;
      for (u64 access = 0; access < wave.accesses; ++access, ++kind) {
        const u64* const end = segment + wave.memory[access].segments;
        for (; segment != end; ++segment) {
          if (*kind == 0) continue;
          u64* const last = (*kind == 3 ? loaded : stored).at(*segment / static_cast<u64>(per_line));
          if (last == nullptr) return -1;
          sums[*kind != 3] += *last != static_cast<u64>(group) + 1;
          *last = static_cast<u64>(group) + 1;
        }
      }
    }
  }
  return 0;
}

/// What the accesses of workgroups cost that one compute unit executes in turn, `resident` at a time and `count` in
/// all, each as the recorded one whose turn it is: `memory_costs` of access_costs.py. The results are [access], of the
/// waves one after the other.
/// @return 0, or -1 if there is no memory.
extern "C" i64 ck_memory_costs(const Groups* groups, const Levels* levels, i64 count, i64 resident, i32* places,
                               i32* cycles, i32* latency, i32* path, double* behind, double* memory) {
  Shared shared;
  if (!shared.find(*groups, static_cast<u64>(levels->per_line))) return -1;
  u64 most = 0;
  for (i64 group = 0; group < groups->count; ++group) {
    for (i64 n = groups->first[group]; n < groups->last[group]; ++n) {
      Wave wave;
      read_wave(groups->packed + groups->begins[n], wave);
      const u64 largest = largest_access(wave);
      most = largest > most ? largest : most;
    }
  }
  UnitCaches caches(*levels, shared, most);
  Rounds rounds(*groups, resident);
  if (!caches.works() || !rounds.works()) return -1;
  rounds.run(count, Turns::InARow, [&](const Turn& turn, u64 access, const u64* segments) {
    const Memory& each = turn.wave.memory[access];
    const i64 at = turn.at + static_cast<i64>(access);
    const AccessCost cost = caches.cost(turn.kinds[access], segments, each.segments, turn.group, cycles[at]);
    places[at] = static_cast<i32>(each.place);
    latency[at] = static_cast<i32>(nearbyint(cost.latency));
    path[at] = static_cast<i32>(nearbyint(cost.path * kParts));
    behind[at] = cost.behind;
    memory[at] = cost.memory;
  });
  return caches.works() ? 0 : -1;
}

/// How many waits for scalar loads each access comes behind, `before`, [access]. `waits` says which lines of the
/// listing are such.
extern "C" void ck_waits_before(const Groups* groups, const i32* line_of, const uint8_t* waits, i32* before) {
  for (i64 group = 0; group < groups->count; ++group) {
    for (i64 n = groups->first[group]; n < groups->last[group]; ++n) {
      Wave wave;
      read_wave(groups->packed + groups->begins[n], wave);
      u64 place = 0, access = 0;
      i32 waited = 0;
      for (u64 at = 0; at < wave.executions && access < wave.accesses; ++at) {
        const u64 length = wave.length_of(wave.stretches[at]);
        const u32* const slots = wave.slots + wave.begins[wave.stretches[at]];
        if (wave.memory[access].place == place) before[groups->access[n] + static_cast<i64>(access++)] = waited;
        for (u64 each = 0; each < length; ++each) waited += waits[line_of[slots[each]]];
        place += length;
      }
    }
  }
}

/// What a scalar cache of `lines` is asked for by workgroups that run `together` at a time, `count` in all, each as
/// the recorded one whose turn it is. It is empty before the first. `sums` are requests, those for lines that are not
/// there, those for lines on their way, and the lines that are fetched: of the workgroups of the first round, and of
/// all, [2, 4]. A line is on its way until the waves wait for scalar loads, `before` as by `ck_waits_before`, and so
/// many as `queue` others are answered with it.
/// @return 0, or -1 if there is no memory.
extern "C" i64 ck_scalar_cache(const Groups* groups, const i32* before, i64 lines, i64 count, i64 together, i64 queue,
                               i64* sums) {
  Shared shared;
  Recent cache(static_cast<u64>(lines));
  Numbers
      fetched;  // of each line, when it was asked for; in the last byte, how many others may still be answered with it
  Rounds rounds(*groups, together);
  if (!shared.find(*groups, 1) || !cache.works() || !rounds.works()) return -1;
  constexpr u64 kPage = 4096 / 64, kNone = ~u64{0};
  u64 arguments = kNone;
  bool enough = true;
  rounds.run(count, Turns::OneAccess, [&](const Turn& turn, u64 access, const u64* segments) {
    if (turn.kinds[access] != 0 || !enough) return;
    const bool first = turn.group < static_cast<u64>(together);
    const u64 round = turn.group / static_cast<u64>(together);
    const u64 waited = static_cast<u64>(before[turn.kinds + access - groups->kinds]);
    const u64 now = ((round << 32 | waited) + 1) << 8;
    bool missed = false, coming = false;
    for (u32 n = 0; n < turn.wave.memory[access].segments; ++n) {
      if (arguments == kNone) arguments = segments[n] / kPage;
      const bool own = segments[n] / kPage != arguments && !shared.has(segments[n]);
      const u64 name = own ? segments[n] | (turn.group + 1) << kNameBits : segments[n];
      u64* const coming_to = fetched.at(name);
      enough &= coming_to != nullptr;
      if (!enough) return;
      if (!cache.hit(name)) {
        missed = true;
        *coming_to = now | static_cast<u64>(queue);
        for (i32 sum = first ? 0 : 1; sum < 2; ++sum) ++sums[4 * sum + 3];
      } else if (*coming_to >> 8 == now >> 8 && *coming_to % 256 > 0) {
        coming = true;
        --*coming_to;
      }
    }
    for (i32 sum = first ? 0 : 1; sum < 2; ++sum) {
      ++sums[4 * sum];
      sums[4 * sum + 1] += missed;
      sums[4 * sum + 2] += coming && !missed;
    }
  });
  return enough ? 0 : -1;
}

/// Which of some lines a cache of `capacity` does not have when it is asked for them in turn.
/// @return 0, or -1 if there is no memory.
extern "C" i64 ck_recent(const i64* lines, i64 count, i64 capacity, uint8_t* missed) {
  Recent cache(static_cast<u64>(capacity));
  if (!cache.works()) return -1;
  for (i64 n = 0; n < count; ++n) missed[n] = !cache.hit(static_cast<u64>(lines[n]));
  return 0;
}
