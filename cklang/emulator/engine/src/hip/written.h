// SPDX-License-Identifier: MIT
//
// Which dwords of device memory anybody has written: for the check of reads before the first write. Memory
// is followed from its allocation on, if the check is on by then.
#pragma once

#include <span>

#include "core/base.h"

namespace ckemu {

/// Follows an allocation none of whose bytes are written, and stops.
void follow_writes(u64 base, u64 size);
void forget_writes(u64 base);

/// Notes that `bytes` at `address` are written, as far as they are followed.
void note_written(u64 address, u64 bytes);
/// Notes that they are copied from elsewhere: where the source is followed, what is not written stays so.
void note_copied(u64 to, u64 from, u64 bytes);

/// What one lane accesses.
struct AccessedBytes {
  u64 at = 0;
  u32 bytes = 0;
};
/// Notes accesses of one instruction. With `reads` the number of the first whose bytes are followed and none of them
/// written, as if those before it had been made; `count` if there is none.
u32 note_accesses(const AccessedBytes* accesses, u32 count, bool reads, bool writes);

/// Notes accesses to all bytes of some ranges. With `reads` false, and nothing is noted, unless all of them are
/// written already: it depends on the lanes then.
bool note_ranges(std::span<const AddressRange> ranges, bool reads, bool writes);

/// The first bytes among `bytes` at `address` that are followed and not written: where they begin and end.
struct Gap {
  u64 begin = 0, end = 0;
};
Gap first_gap(u64 address, u64 bytes);

}  // namespace ckemu
