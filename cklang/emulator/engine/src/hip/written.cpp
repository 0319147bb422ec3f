// SPDX-License-Identifier: MIT
#include "hip/written.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/immortal.h"
#include "core/mutex.h"

namespace ckemu {

namespace {

/// A bit for each dword.
class Dwords {
 public:
  explicit Dwords(u64 count = 0) : words_((count + 63) / 64) {}
  bool operator[](u64 number) const { return (words_[number / 64] >> number % 64 & 1) != 0; }
  void set(u64 number) { words_[number / 64] |= u64{1} << number % 64; }
  /// Whether all from `begin` to before `end` are set.
  bool all(u64 begin, u64 end) const {
    bool set = true;
    each_word(begin, end, [&](u64 word, u64 bits) { set &= (words_[word] & bits) == bits; });
    return set;
  }
  void set(u64 begin, u64 end) {
    each_word(begin, end, [&](u64 word, u64 bits) { words_[word] |= bits; });
  }

 private:
  template <class Visit>
  static void each_word(u64 begin, u64 end, Visit visit) {
    for (u64 at = begin; at < end; at = (at / 64 + 1) * 64) {
      const u64 count = std::min(end, (at / 64 + 1) * 64) - at;
      visit(at / 64, (count == 64 ? ~u64{0} : (u64{1} << count) - 1) << at % 64);
    }
  }
  std::vector<u64> words_;
};

struct Followed {
  u64 size = 0;
  Dwords written;
};

struct Register {
  Mutex lock;
  std::map<u64, Followed> blocks;  // by address
  bool any = false;                // read without the lock

  /// The block with `address`; null if it is not followed.
  Followed* find(u64 address, u64& base) {
    auto next = blocks.upper_bound(address);
    if (next == blocks.begin()) return nullptr;
    --next;
    base = next->first;
    return address - base < next->second.size ? &next->second : nullptr;
  }
};
Register& everything() { return immortal<Register>(); }
bool following() { return __atomic_load_n(&everything().any, __ATOMIC_ACQUIRE); }

/// Calls `visit(written, number)` with each dword of the bytes, in their block.
template <class Visit>
void each_dword(Followed& block, u64 offset, u64 bytes, Visit visit) {
  const u64 end = std::min(offset + bytes, block.size);
  for (u64 number = offset / 4; number * 4 < end; ++number) visit(block.written, number);
}

}  // namespace

void follow_writes(u64 base, u64 size) {
  const Guard guard(everything().lock);
  everything().blocks[base] = {size, Dwords((size + 3) / 4)};
  __atomic_store_n(&everything().any, true, __ATOMIC_RELEASE);
}

void forget_writes(u64 base) {
  if (!following()) return;
  const Guard guard(everything().lock);
  everything().blocks.erase(base);
}

void note_written(u64 address, u64 bytes) {
  if (!following()) return;
  const Guard guard(everything().lock);
  u64 base = 0;
  Followed* block = everything().find(address, base);
  if (block == nullptr) return;
  each_dword(*block, address - base, bytes, [](Dwords& written, u64 number) { written.set(number); });
}

void note_copied(u64 to, u64 from, u64 bytes) {
  if (!following()) return;
  u64 base = 0, source_base = 0;
  {
    const Guard guard(everything().lock);
    Followed* block = everything().find(to, base);
    const Followed* source = everything().find(from, source_base);
    if (block != nullptr && source != nullptr && (to - base) % 4 == (from - source_base) % 4) {
      const u64 shift = (from - source_base) / 4 - (to - base) / 4;
      const u64 known = (source->size + 3) / 4;
      each_dword(*block, to - base, bytes, [&](Dwords& written, u64 number) {
        const u64 other = number + shift;
        if (other < known && source->written[other]) written.set(number);
      });
      return;
    }
  }
  note_written(to, bytes);
}

Gap first_gap(u64 address, u64 bytes) {
  Gap gap;
  if (!following()) return gap;
  const Guard guard(everything().lock);
  u64 base = 0;
  Followed* block = everything().find(address, base);
  if (block == nullptr) return gap;
  each_dword(*block, address - base, bytes, [&](const Dwords& written, u64 number) {
    const u64 at = base + 4 * number;
    if (written[number] || (gap.end != 0 && gap.end != at)) return;
    if (gap.end == 0) gap.begin = std::max(at, address);
    gap.end = std::min(at + 4, address + bytes);
  });
  return gap;
}

u32 note_accesses(const AccessedBytes* accesses, u32 count, bool reads, bool writes) {
  if (count == 0 || !following()) return count;
  const Guard guard(everything().lock);
  u64 base = 0;
  Followed* block = nullptr;
  for (u32 n = 0; n < count; ++n) {
    const auto [at, bytes] = accesses[n];
    if (block == nullptr || at - base >= block->size) block = everything().find(at, base);
    if (block == nullptr) continue;
    bool any = false;
    each_dword(*block, at - base, bytes, [&](Dwords& written, u64 number) {
      any = any || written[number];
      if (writes) written.set(number);
    });
    if (reads && !any) return n;
  }
  return count;
}

bool note_ranges(std::span<const AddressRange> ranges, bool reads, bool writes) {
  if (!following() || !(reads || writes)) return true;
  const Guard guard(everything().lock);
  u64 base = 0;
  Followed* block = nullptr;
  const auto each = [&](auto visit) {
    for (const auto& [begin, end] : ranges) {
      if (block == nullptr || begin - base >= block->size) block = everything().find(begin, base);
      if (block == nullptr) continue;
      const u64 last = std::min(end - base, block->size);
      if (!visit((begin - base) / 4, (last + 3) / 4)) return false;
    }
    return true;
  };
  if (reads && !each([&](u64 first, u64 end) { return block->written.all(first, end); })) return false;
  if (writes) {
    each([&](u64 first, u64 end) {
      block->written.set(first, end);
      return true;
    });
  }
  return true;
}

}  // namespace ckemu
