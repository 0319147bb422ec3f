// SPDX-License-Identifier: MIT
//
// Reads and writes of local memory for 16 lanes: by one access where they lie side by side or are all
// the same, else lane by lane. Out of range, reads give 0 and writes are dropped.
#include <cstddef>

#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr Evex kCompareU{3, 1, 0x1e, 0};
constexpr u8 kInside = 1, kAlike = 2;
constexpr u8 kEqual = 0, kNotAbove = 2, kNotLess = 5;

Mem member(size_t offset) { return {kWave, kNoIndex, static_cast<i32>(offset)}; }

/// The addresses of lanes: in a vector, the first in rax, with the base in rcx; kInside has those in range.
struct Places {
  u8 place, distance;
};

Places places(Lanes& l, u32 offset, u32 bytes) {
  const u8 address = l.source(0), place = l.fresh(), room = l.fresh(), distance = l.fresh();
  l.a.vector(kAddD, place, address, l.constant(offset));
  l.a.vector(kBroadcast, room, 0, member(offsetof(Wave, lds_bytes)));
  l.a.vector_immediate(kCompareU, kInside, room, l.constant(bytes), kNotLess, kEnabled);
  l.a.vector(kSubD, room, room, l.constant(bytes));
  l.a.vector_immediate(kCompareU, kInside, place, room, kNotAbove, kInside);
  l.a.vector(kBroadcast, distance, 0, place);
  l.a.vector(kSubD, distance, place, distance);
  l.a.vector_first(rax, place);
  l.a.load(rcx, member(offsetof(Wave, lds)), true);
  return {place, distance};
}

/// Goes to `to` unless all 16 lanes are in range and at the distances that `steps` has.
void unless(Lanes& l, const Places& at, u8 steps, Label to) {
  l.a.vector_immediate(kCompareU, kAlike, at.distance, steps, kEqual, kInside);
  l.a.mask_test(kAlike);
  l.a.jump_if(kAboveEqual, to);  // the carry flag: all ones
}

u8 read_dword(Lanes& l, u32 offset) {
  const Places at = places(l, offset, 4);
  const u8 r = l.fresh(), steps = l.fresh(), zero = l.constant(0);
  const Label apart = l.a.label(), gather = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table([](u32 n) { return 4 * n; })});
  unless(l, at, steps, apart);
  l.a.vector_load_anywhere(r, {rcx, rax});
  l.a.jump(done);
  l.a.bind(apart);
  unless(l, at, zero, gather);
  l.a.vector(kBroadcast, r, 0, Mem{rcx, rax});
  l.a.jump(done);
  l.a.bind(gather);
  l.a.vector(kMove, r, 0, zero);
  l.a.gather(r, rcx, at.place, 0, kInside);
  l.a.bind(done);
  return r;
}

void read(Lanes& l, u32) { l.result(read_dword(l, static_cast<u32>(l.code().offset))); }
void read_two(Lanes& l, u32 unit) {
  const u8 first = read_dword(l, static_cast<u32>(l.code().offset) * unit);
  const u8 second = read_dword(l, l.inst().offset1 * unit);
  l.result(first);
  l.result(second, 1);
}

constexpr Evex kUnpackHigh{1, 1, 0x6a, 0}, kUnpackLowQ{1, 1, 0x6c, 1}, kUnpackHighQ{1, 1, 0x6d, 1},
    kPermute{2, 1, 0x36, 0};
u32 transposed(u32 n) { return n % 4 * 4 + n / 4; }

/// Two to four dwords of each lane: the same for all, or 16 bytes lane by lane and then turned to rows.
void read_wide(Lanes& l, u32 dwords) {
  const Places at = places(l, static_cast<u32>(l.code().offset), 4 * dwords);
  u8 r[4], t[4];
  for (u8& one : r) one = l.fresh();
  for (u8& one : t) one = l.fresh();
  const u8 zero = l.constant(0);
  const Label apart = l.a.label(), done = l.a.label();
  unless(l, at, zero, apart);
  for (u32 n = 0; n < dwords; ++n) l.a.vector(kBroadcast, r[n], 0, Mem{rcx, rax, static_cast<i32>(4 * n)});
  l.a.jump(done);
  l.a.bind(apart);
  l.a.vector(kMove, t[0], 0, zero);
  l.a.vector(kMove, t[0], 0, at.place, kInside);  // what is out of range reads somewhere, for nothing
  l.a.vector_store_anywhere(member(offsetof(Wave, places)), t[0]);
  for (u32 lane = 0; lane < 16; ++lane) {
    l.a.load(rax, member(offsetof(Wave, places) + 4 * lane), false);
    if (lane % 4 == 0) l.a.load_quarter(t[lane / 4], {rcx, rax});
    else l.a.insert_quarter(t[lane / 4], {rcx, rax}, static_cast<u8>(lane % 4));
  }
  for (int half = 0; half < 2; ++half) {
    const Evex unpack = half == 0 ? kUnpackLow : kUnpackHigh;
    l.a.vector(unpack, r[2 * half], t[0], t[1]);
    l.a.vector(unpack, r[2 * half + 1], t[2], t[3]);
  }
  for (int half = 0; half < 2; ++half) {
    l.a.vector(kUnpackLowQ, t[2 * half], r[2 * half], r[2 * half + 1]);
    l.a.vector(kUnpackHighQ, t[2 * half + 1], r[2 * half], r[2 * half + 1]);
  }
  l.a.vector_load_anywhere(r[0], Mem{.constant = l.a.table(transposed)});
  for (u32 n = dwords; n-- > 0;) {
    l.a.vector(kPermute, t[n], r[0], t[n]);
    l.a.vector(kMove, r[n], 0, zero);
    l.a.vector(kMove, r[n], 0, t[n], kInside);
  }
  l.a.bind(done);
  for (u32 n = 0; n < dwords; ++n) l.result(r[n], n);
}

void write_dword(Lanes& l, u32 offset, int slot) {
  const u8 value = l.plain_source(slot);
  const Places at = places(l, offset, 4);
  const u8 steps = l.fresh();
  const Label apart = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table([](u32 n) { return 4 * n; })});
  unless(l, at, steps, apart);
  l.a.vector_store_anywhere({rcx, rax}, value);
  l.a.jump(done);
  l.a.bind(apart);
  l.a.scatter(rcx, at.place, 0, value, kInside);
  l.a.bind(done);
  l.a.load(rax, member(offsetof(Wave, counters)), true);
  l.a.increment({rax, kNoIndex, offsetof(Counters, progress)});
}
void write(Lanes& l, u32) { write_dword(l, static_cast<u32>(l.code().offset), 1); }

constexpr VectorRow kRows[] = {
    {.op = Op::ds_read_b32, .emit = read, .local = 1},
    {.op = Op::ds_read_b64, .emit = read_wide, .detail = 2, .local = 1},
    {.op = Op::ds_read_b96, .emit = read_wide, .detail = 3, .local = 1},
    {.op = Op::ds_read_b128, .emit = read_wide, .detail = 4, .local = 1},
    {.op = Op::ds_read2_b32, .emit = read_two, .detail = 4, .local = 1},
    {.op = Op::ds_read2st64_b32, .emit = read_two, .detail = 256, .local = 1},
    {.op = Op::ds_write_b32, .emit = write, .local = 2},
};

}  // namespace

std::span<const VectorRow> local_rows() { return kRows; }

}  // namespace ckemu::translate
