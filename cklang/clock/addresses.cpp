// SPDX-License-Identifier: MIT
//
// What recorded addresses cost: passes of the LDS for those of its lanes, and lines of a cache.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

using i32 = int32_t;
using i64 = int64_t;
using u32 = uint32_t;
using u64 = uint64_t;

constexpr i32 kLanes = 64, kWord = 4, kBanks = 128, kTable = 1024;
constexpr u32 kDisabled = ~0u;

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

void count_passes(Busiest& busiest, const u32* address, const i32* phase, i32 phases, i32 banks, i32 words, i64* passes) {
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

}  // namespace

/// The passes of LDS instructions, [instruction, phase], as `pass_counts` of `lds.py` describes them.
/// `address` is [instruction, lane].
extern "C" void ck_lds_passes(const u32* address, i64 count, const i32* phase, i32 phases, i32 banks, i32 words, i64* passes) {
  Busiest busiest;
  for (i64 n = 0; n < count; ++n) count_passes(busiest, address + kLanes * n, phase, phases, banks, words, passes + phases * n);
}

/// Lines that are not in a cache which drops the line used longest ago. Access n reads the lines of
/// segments[begin[n]] and the `count[n]` behind, in the order of their numbers, each once.
/// @return how many, or -1 if there is no memory.
extern "C" i64 ck_missed_lines(const u64* segments, const i64* begin, const i64* count, i64 accesses, i64 per_line,
                               i64 capacity) {
  i64 widest = 1;
  for (i64 n = 0; n < accesses; ++n) widest = count[n] > widest ? count[n] : widest;
  auto* held = static_cast<u64*>(calloc(static_cast<size_t>(capacity + widest), sizeof(u64)));
  if (held == nullptr) return -1;
  u64* lines = held + capacity;
  i64 missed = 0, used = 0;  // held[0] is the line that was used last
  for (i64 n = 0; n < accesses; ++n) {
    i64 distinct = 0;
    for (i64 i = 0; i < count[n]; ++i) {
      const u64 line = segments[begin[n] + i] / static_cast<u64>(per_line);
      i64 at = distinct;
      while (at > 0 && lines[at - 1] > line) --at;
      if (at > 0 && lines[at - 1] == line) continue;
      memmove(lines + at + 1, lines + at, static_cast<size_t>(distinct - at) * sizeof(u64));
      lines[at] = line;
      ++distinct;
    }
    for (i64 i = 0; i < distinct; ++i) {
      i64 at = 0;
      while (at < used && held[at] != lines[i]) ++at;
      if (at == used) {
        ++missed;
        if (used < capacity) ++used;
        else --at;
      }
      memmove(held + 1, held, static_cast<size_t>(at) * sizeof(u64));
      held[0] = lines[i];
    }
  }
  free(held);
  return missed;
}
