// SPDX-License-Identifier: MIT
//
// Reads and writes of local memory for the lanes at hand: by one access where they lie side by side or are all
// the same, else lane by lane. Out of range, reads give 0 and writes are dropped.
#include <cstddef>

#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr u8 kInside = 1, kAlike = 2;
constexpr u8 kEqual = 0, kNotAbove = 2, kNotEqual = 4, kNotLess = 5;

Mem member(size_t offset) { return {kWave, kNoIndex, static_cast<i32>(offset)}; }

/// The addresses of lanes: in a vector, the first in rax, with the base in rcx; kInside has those in range.
struct Places {
  u8 place, distance;
};

Places places(Lanes& l, u32 offset, u32 bytes) {
  const u8 address = l.source(0), place = l.fresh(), room = l.fresh(), distance = l.fresh();
  const u8 from = l.constant(offset), size = l.constant(bytes);
  l.a.vector(kAddD, place, address, from);
  l.a.vector(kBroadcast, room, 0, member(offsetof(Wave, lds_bytes)));
  l.a.vector_immediate(kCompareU, kInside, room, size, kNotLess, kEnabled);
  l.a.vector(kSubD, room, room, size);
  l.a.vector_immediate(kCompareU, kInside, place, room, kNotAbove, kInside);
  l.a.vector(kBroadcast, distance, 0, place);
  l.a.vector(kSubD, distance, place, distance);
  l.a.vector_first(rax, place);
  l.a.load(rcx, member(offsetof(Wave, lds)), true);
  for (const u8 done : {room, from, size}) l.let_go(done);
  return {place, distance};
}

/// Goes to `to` unless all lanes at hand are in range and at the distances that `steps` has.
void unless(Lanes& l, const Places& at, u8 steps, Label to) {
  l.a.vector_immediate(kCompareU, kAlike, at.distance, steps, kEqual, kInside);
  l.a.jump_unless_all(kAlike, to);
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
  l.a.vector(kMove, r, 0, zero);
  l.a.jump_if_none(kInside, done);
  l.a.vector_immediate(kCompareU, kAlike, at.distance, zero, kNotEqual, kInside);
  l.a.jump_if_any(kAlike, gather);
  l.a.vector(kBroadcast, r, 0, Mem{rcx, rax}, kInside);
  l.a.jump(done);
  l.a.bind(gather);
  l.a.gather(r, rcx, at.place, 0, kInside);
  l.a.bind(done);
  for (const u8 ended : {steps, at.place, at.distance}) l.let_go(ended);
  return r;
}

void read(Lanes& l, u32) { l.result(read_dword(l, static_cast<u32>(l.code().offset))); }
void read_two(Lanes& l, u32 unit) {
  const u8 first = read_dword(l, static_cast<u32>(l.code().offset) * unit);
  const u8 second = read_dword(l, l.inst().offset1 * unit);
  l.result(first);
  l.result(second, 1);
}

/// Calls `access(lane)` for each lane in range, one after the other, with its place in rax and the base in rcx.
template <class Access>
void each_inside(Lanes& l, u8 place, Access access) {
  l.a.vector_store_anywhere(scratch_at(0), place);
  l.a.mask_move(rsi, kInside);
  for (u32 lane = 0; lane < l.a.lanes(); ++lane) {
    const Label skip = l.a.label();
    l.a.jump_unless_bit(rsi, static_cast<u8>(lane), skip);
    l.a.load(rax, scratch_at(0, lane), false);
    access(lane);
    l.a.bind(skip);
  }
}
/// Two to four dwords of each lane: the same for all, or one lane after the other.
void read_wide8(Lanes& l, u32 dwords) {
  const Places at = places(l, static_cast<u32>(l.code().offset), 4 * dwords);
  u8 r[4];
  for (u32 n = 0; n < dwords; ++n) r[n] = l.fresh();
  const u8 zero = l.constant(0);
  const Label apart = l.a.label(), done = l.a.label();
  unless(l, at, zero, apart);
  for (u32 n = 0; n < dwords; ++n) l.a.vector(kBroadcast, r[n], 0, Mem{rcx, rax, static_cast<i32>(4 * n)});
  l.a.jump(done);
  l.a.bind(apart);
  for (u32 n = 0; n < dwords; ++n) l.a.vector_store_anywhere(scratch_at(1 + n), zero);
  each_inside(l, at.place, [&](u32 lane) {
    for (u32 n = 0; n < dwords; ++n) {
      l.a.load(rdx, Mem{rcx, rax, static_cast<i32>(4 * n)}, false);
      l.a.store(scratch_at(1 + n, lane), rdx, false);
    }
  });
  for (u32 n = 0; n < dwords; ++n) l.a.vector_load_anywhere(r[n], scratch_at(1 + n));
  l.a.bind(done);
  for (u32 n = 0; n < dwords; ++n) l.result(r[n], n);
}

/// The same by 16 lanes: the same for all, or 16 bytes lane by lane and then turned to rows.
void read_wide(Lanes& l, u32 dwords) {
  if (!l.a.wide()) return read_wide8(l, dwords);
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
  l.a.vector_store_anywhere(scratch_at(0), t[0]);
  for (u32 lane = 0; lane < 16; ++lane) {
    l.a.load(rax, scratch_at(0, lane), false);
    if (lane % 4 == 0) l.a.load_quarter(r[lane / 4], {rcx, rax});
    else l.a.insert_quarter(r[lane / 4], {rcx, rax}, static_cast<u8>(lane % 4));
  }
  rows_of_lanes(l, r, t);
  l.a.jump_if_all(kInside, done);
  for (u32 n = dwords; n-- > 0;) { l.a.vector(kBlendD, r[n], zero, r[n], kInside); }
  l.a.bind(done);
  for (u32 n = 0; n < dwords; ++n) l.result(r[n], n);
}

void note_progress(Lanes& l) {
  l.a.load(rax, member(offsetof(Wave, counters)), true);
  l.a.increment({rax, kNoIndex, offsetof(Counters, progress)});
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
  if (l.a.wide()) {
    l.a.scatter(rcx, at.place, 0, value, kInside);
  } else {
    l.a.vector_store_anywhere(scratch_at(1), value);
    each_inside(l, at.place, [&](u32 lane) {
      l.a.load(rdx, scratch_at(1, lane), false);
      l.a.store({rcx, rax}, rdx, false);
    });
  }
  l.a.bind(done);
  note_progress(l);
}
void write(Lanes& l, u32) { write_dword(l, static_cast<u32>(l.code().offset), 1); }
void write_first(Lanes& l, u32 unit) { write_dword(l, static_cast<u32>(l.code().offset) * unit, 1); }
void write_second(Lanes& l, u32 unit) { write_dword(l, l.inst().offset1 * unit, 2); }
void write_pair(Lanes& l, u32) {
  const u8 low = l.plain_source(1), high = l.plain_source(1, 1);
  const Places at = places(l, static_cast<u32>(l.code().offset), 8);
  l.a.vector_store_anywhere(scratch_at(1), low);
  l.a.vector_store_anywhere(scratch_at(2), high);
  each_inside(l, at.place, [&](u32 lane) {
    l.a.load(rdx, scratch_at(1, lane), false);
    l.a.load(rdi, scratch_at(2, lane), false);
    l.a.store({rcx, rax}, rdx, false);
    l.a.store({rcx, rax, 4}, rdi, false);
  });
  note_progress(l);
}
void write_four(Lanes& l, u32) {
  u8 rows[4];
  for (u32 n = 0; n < 4; ++n) rows[n] = l.plain_source(1, n);
  const Places at = places(l, static_cast<u32>(l.code().offset), 16);
  const Quads quads = lanes_of_rows(l, rows);
  const auto write = [&](u32 lane) {
    l.a.store_quarter({rcx, rax}, quads.of_lanes[lane / 4], static_cast<u8>(lane % 4));
  };
  const Label some = l.a.label(), done = l.a.label();
  l.a.jump_unless_all(kInside, some);
  l.a.vector_store_anywhere(scratch_at(0), at.place);
  for (u32 lane = 0; lane < 16; ++lane) {
    l.a.load(rax, scratch_at(0, lane), false);
    write(lane);
  }
  l.a.jump(done);
  l.a.bind(some);
  each_inside(l, at.place, write);
  l.a.bind(done);
  note_progress(l);
}

/// Raises: the handler finds the lane whose address is not aligned. What it does before has no effect.
void misaligned(Assembler& a, const u8*) {
  a.load(rsi, member(offsetof(Wave, current)), true);
  a.move(rdi, kWave);
  a.load(rax, {rsi, kNoIndex, offsetof(Code, fn)}, true);
  a.call(rax);
}
/// What x86 does to memory with one instruction, one lane after the other: several may mean the same place.
void update(Lanes& l, u32 alu) {
  const u8 data = l.plain_source(1);
  l.settle_source(0, 0);
  const Places at = places(l, static_cast<u32>(l.code().offset), 4);
  const u8 odd = l.fresh(), low = l.constant(3), zero = l.constant(0);
  l.a.move(rsi, reinterpret_cast<u64>(&l.code()));
  l.a.store(member(offsetof(Wave, current)), rsi, true);
  l.a.vector(kAnd, odd, at.place, low);
  l.a.vector_immediate(kCompareU, kAlike, odd, zero, kNotEqual, kEnabled);
  l.rarely(kAlike, misaligned, 0, 0, 0, 0);
  l.a.vector_store_anywhere(scratch_at(1), data);
  const auto change = [&](u32 lane) {
    l.a.load(rdx, scratch_at(1, lane), false);
    l.a.alu(static_cast<u8>(alu), Mem{rcx, rax}, rdx, false);
  };
  const Label some = l.a.label(), done = l.a.label();
  l.a.jump_unless_all(kInside, some);
  l.a.vector_store_anywhere(scratch_at(0), at.place);
  for (u32 lane = 0; lane < l.a.lanes(); ++lane) {
    l.a.load(rax, scratch_at(0, lane), false);
    change(lane);
  }
  l.a.jump(done);
  l.a.bind(some);
  each_inside(l, at.place, change);
  l.a.bind(done);
  note_progress(l);
}

constexpr VectorRow kRows[] = {
    {.op = Op::ds_read_b32, .emit = read, .local = 1},
    {.op = Op::ds_read_b64, .emit = read_wide, .detail = 2, .local = 1},
    {.op = Op::ds_read_b96, .emit = read_wide, .detail = 3, .local = 1},
    {.op = Op::ds_read_b128, .emit = read_wide, .detail = 4, .local = 1},
    {.op = Op::ds_read2_b32, .emit = read_two, .detail = 4, .local = 1},
    {.op = Op::ds_read2st64_b32, .emit = read_two, .detail = 256, .local = 1},
    {.op = Op::ds_write_b32, .emit = write, .local = 2},
    {.op = Op::ds_write2_b32, .emit = write_first, .detail = 4, .local = 2, .then = write_second},
    {.op = Op::ds_write2st64_b32, .emit = write_first, .detail = 256, .local = 2, .then = write_second},
    {.op = Op::ds_write_b64, .emit = write_pair, .local = 2},
    {.op = Op::ds_write_b128, .emit = write_four, .local = 2, .wide = true},
    {.op = Op::ds_add_u32, .emit = update, .detail = 0, .local = 2},
    {.op = Op::ds_sub_u32, .emit = update, .detail = 5, .local = 2},
    {.op = Op::ds_and_b32, .emit = update, .detail = 4, .local = 2},
    {.op = Op::ds_or_b32, .emit = update, .detail = 1, .local = 2},
    {.op = Op::ds_xor_b32, .emit = update, .detail = 6, .local = 2},
};

}  // namespace

std::span<const VectorRow> local_rows() { return kRows; }

}  // namespace ckemu::translate
