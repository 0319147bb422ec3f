// SPDX-License-Identifier: MIT
//
// Loads and stores of global memory for the lanes at hand: by vector accesses where they lie side by side, by one
// where they are all the same, else by gathers and scatters, or lane by lane. A fault finds its lane by the address.
#include <cstddef>

#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr u8 kAlike = 2, kHalf = 3;
constexpr u8 kEqual = 0;
constexpr Evex kWiden{2, 1, 0x35, 0}, kUpper{3, 1, 0x3b, 1}, kJoin{3, 1, 0x3a, 1}, kPermuteQ{2, 1, 0x36, 1},
    kShuffle{1, 0, 0xc6, 0}, kUnpackHigh{1, 1, 0x6a, 0}, kOrQ{1, 1, 0xeb, 1}, kWidenBytes{2, 1, 0x31, 0};
constexpr u8 kEven = 0x88, kOdds = 0xdd;

u32 step4(u32 n) { return 4 * n; }
u32 step8(u32 n) { return 8 * n; }
u32 step16(u32 n) { return 16 * n; }
/// Quadwords 0, 2, 4, 6, 1, 3, 5, 7, and the other way round.
u32 from_pairs(u32 n) { return n % 2 != 0 ? 0 : n < 8 ? n : n - 7; }
u32 to_pairs(u32 n) { return n % 2 != 0 ? 0 : n % 4 == 0 ? n / 4 : n / 4 + 4; }

Mem member(size_t offset) { return {kWave, kNoIndex, static_cast<i32>(offset)}; }

/// The lanes' addresses: in vectors, and the first as rcx + rax + offset.
struct Places {
  u8 low, high;
  bool far;  // addresses of 64 bits
  i32 offset;
  Mem first(i32 more = 0) const { return {rcx, rax, offset + more}; }
};

Places places(Lanes& l) {
  const Code& code = l.code();
  const bool far = code.src[1].kind == Kind::None;
  l.settle_source(0, 0);
  if (far) l.settle_source(0, 1);
  l.a.move(rax, reinterpret_cast<u64>(&code));
  l.a.store(member(offsetof(Wave, current)), rax, true);
  l.a.store(member(offsetof(Wave, lanes_from)), kLaneBytes, false);
  const u8 low = l.plain_source(0), high = far ? l.plain_source(0, 1) : low;
  if (far) {
    l.a.vector_first(rcx, high);
    l.a.shift(4, rcx, 32, true);
  } else {
    l.a.load(rcx, scalar_at(code.src[1].index), true);
  }
  l.a.vector_first(rax, low);
  return {low, high, far, code.offset};
}

/// Goes to `to` unless all lanes at hand are enabled and at the distances of `steps` from the first, without a carry.
/// Behind a branch no register may be taken up: `t` is one to use.
void unless(Lanes& l, const Places& at, u8 steps, u32 reach, u8 t, Label to) {
  l.a.vector(kBroadcast, t, 0, at.low);
  l.a.vector(kSubD, t, at.low, t);
  l.a.vector_immediate(kCompareU, kAlike, t, steps, kEqual, kEnabled);
  if (at.far) {
    l.a.vector(kBroadcast, t, 0, at.high);
    l.a.vector_immediate(kCompareU, kAlike, at.high, t, kEqual, kAlike);
  }
  l.a.jump_unless_all(kAlike, to);
  if (reach == 0) return;
  l.a.alu(7, rax, static_cast<i32>(~0u - reach), false);
  l.a.jump_if(kAbove, to);
}

/// Puts into `r` the addresses of lanes 8 * half on, without the offset and the base in rcx, which is 0 for
/// those of 64 bits.
void eight_addresses(Lanes& l, const Places& at, int half, u8 r, u8 high) {
  const auto widen = [&](u8 to, u8 from) {
    if (half != 0) l.a.vector_immediate(kUpper, from, 0, to, 1);
    l.a.vector(kWiden, to, 0, half != 0 ? to : from);
  };
  widen(r, at.low);
  if (at.far) {
    widen(high, at.high);
    l.a.vector_shift_q(6, high, high, 32);
    l.a.vector(kOrQ, r, r, high);
  }
}
void enabled_half(Lanes& l, int half) { l.a.mask_shift_right(kHalf, kEnabled, half != 0 ? 8 : 0); }

/// Calls `access(lane)` for each enabled lane, one after the other; its address is rcx + rax + offset. The first two
/// vectors of the frame are in use.
template <class Access>
void each_enabled(Lanes& l, const Places& at, Access access) {
  l.a.vector_store_anywhere(scratch_at(0), at.low);
  if (at.far) l.a.vector_store_anywhere(scratch_at(1), at.high);
  l.a.mask_move(rsi, kEnabled);
  for (u32 lane = 0; lane < l.a.lanes(); ++lane) {
    const Label skip = l.a.label();
    l.a.jump_unless_bit(rsi, static_cast<u8>(lane), skip);
    l.a.load(rax, scratch_at(0, lane), false);
    if (at.far) {
      l.a.load(rcx, scratch_at(1, lane), false);
      l.a.shift(4, rcx, 32, true);
    }
    access(lane);
    l.a.bind(skip);
  }
}

/// The same for all lanes, by one access: two dwords of which another wave writes both are of one time.
void broadcast(Lanes& l, const Places& at, u8 r, u8 r2, u32 dwords) {
  if (dwords == 1) return l.a.vector(kBroadcast, r, 0, at.first());
  l.a.load(rdx, at.first(), true);
  l.a.store(scratch_at(0), rdx, true);
  l.a.vector(kBroadcast, r, 0, scratch_at(0));
  l.a.vector(kBroadcast, r2, 0, scratch_at(0, 1));
}

// With AVX2 ----------------------------------------------------------------------------------------

/// The order of the quarters 0, 2, 1, 3.
constexpr u8 kCrossed = 0xd8;

void load8(Lanes& l, u32 dwords) {
  const Places at = places(l);
  const u8 r = l.fresh(), r2 = l.fresh(), steps = l.fresh(), t = l.fresh();
  const Label apart = l.a.label(), each = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table(dwords == 1 ? step4 : step8)});
  unless(l, at, steps, 32 * dwords, t, apart);
  l.a.vector_load_anywhere(r, at.first());
  if (dwords == 2) {
    l.a.vector_load_anywhere(steps, at.first(32));
    l.a.vector_immediate(kShuffle, r2, r, steps, kOdds);
    l.a.vector_immediate(kShuffle, r, r, steps, kEven);
    l.a.order_quarters(r, r, kCrossed);
    l.a.order_quarters(r2, r2, kCrossed);
  }
  l.a.jump(done);
  l.a.bind(apart);
  l.a.vector(kXor, steps, steps, steps);
  unless(l, at, steps, 0, t, each);
  broadcast(l, at, r, r2, dwords);
  l.a.jump(done);
  l.a.bind(each);
  each_enabled(l, at, [&](u32 lane) {
    l.a.load(rdx, at.first(), dwords == 2);
    l.a.store(scratch_at(2, lane), rdx, false);
    if (dwords == 1) return;
    l.a.shift(5, rdx, 32, true);
    l.a.store(scratch_at(3, lane), rdx, false);
  });
  l.a.vector_load_anywhere(r, scratch_at(2));
  if (dwords == 2) l.a.vector_load_anywhere(r2, scratch_at(3));
  l.a.bind(done);
  l.result(r);
  if (dwords == 2) l.result(r2, 1);
}

void store8(Lanes& l, u32 dwords) {
  const u8 value = l.plain_source(2), value2 = dwords == 2 ? l.plain_source(2, 1) : value;
  const Places at = places(l);
  const u8 t = l.fresh(), t2 = l.fresh(), steps = l.fresh();
  const Label apart = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table(dwords == 1 ? step4 : step8)});
  unless(l, at, steps, 32 * dwords, t, apart);
  if (dwords == 1) {
    l.a.vector_store_anywhere(at.first(), value);
  } else {
    l.a.order_quarters(t, value, kCrossed);
    l.a.order_quarters(t2, value2, kCrossed);
    l.a.vector(kUnpackLow, steps, t, t2);
    l.a.vector(kUnpackHigh, t, t, t2);
    l.a.vector_store_anywhere(at.first(), steps);
    l.a.vector_store_anywhere(at.first(32), t);
  }
  l.a.jump(done);
  l.a.bind(apart);
  l.a.vector_store_anywhere(scratch_at(2), value);
  if (dwords == 2) l.a.vector_store_anywhere(scratch_at(3), value2);
  each_enabled(l, at, [&](u32 lane) {
    l.a.load(rdx, scratch_at(2, lane), false);
    if (dwords == 2) {
      l.a.load(rdi, scratch_at(3, lane), false);
      l.a.shift(4, rdi, 32, true);
      l.a.alu(1, rdx, rdi, true);
    }
    l.a.store(at.first(), rdx, dwords == 2);
  });
  l.a.bind(done);
}

// With AVX-512 -------------------------------------------------------------------------------------

void load(Lanes& l, u32 dwords) {
  if (!l.a.wide()) return load8(l, dwords);
  const Places at = places(l);
  const u8 r = l.fresh(), r2 = l.fresh(), steps = l.fresh(), address = l.fresh(), t = l.fresh();
  const Label apart = l.a.label(), gather = l.a.label(), turn = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table(dwords == 1 ? step4 : step8)});
  unless(l, at, steps, 64 * dwords, t, apart);
  l.a.vector_load_anywhere(r, at.first());
  if (dwords == 2) l.a.vector_load_anywhere(steps, at.first(64));
  l.a.jump(turn);
  l.a.bind(apart);
  l.a.vector(kXor, steps, steps, steps);
  unless(l, at, steps, 0, t, gather);
  broadcast(l, at, r, r2, dwords);
  l.a.jump(done);
  l.a.bind(gather);
  if (at.far) l.a.alu(6, rcx, rcx, false);
  for (int half = 0; half < 2; ++half) {
    eight_addresses(l, at, half, address, t);
    enabled_half(l, half);
    l.a.gather_far(half == 0 ? r : steps, rcx, address, at.offset, kHalf, dwords == 2);
  }
  if (dwords == 1) l.a.vector_immediate(kJoin, r, r, steps, 1);
  l.a.bind(turn);
  if (dwords == 2) {
    l.a.vector_immediate(kShuffle, r2, r, steps, kOdds);
    l.a.vector_immediate(kShuffle, r, r, steps, kEven);
    l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table(from_pairs)});
    l.a.vector(kPermuteQ, r, steps, r);
    l.a.vector(kPermuteQ, r2, steps, r2);
  }
  l.a.bind(done);
  l.result(r);
  if (dwords == 2) l.result(r2, 1);
}

void store(Lanes& l, u32 dwords) {
  if (!l.a.wide()) return store8(l, dwords);
  const u8 value = l.plain_source(2), value2 = dwords == 2 ? l.plain_source(2, 1) : value;
  const Places at = places(l);
  const u8 t = l.fresh(), t2 = l.fresh(), steps = l.fresh(), address = l.fresh();
  const Label apart = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table(dwords == 1 ? step4 : step8)});
  unless(l, at, steps, 64 * dwords, t, apart);
  if (dwords == 1) {
    l.a.vector_store_anywhere(at.first(), value);
  } else {
    l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table(to_pairs)});
    l.a.vector(kPermuteQ, t, steps, value);
    l.a.vector(kPermuteQ, t2, steps, value2);
    l.a.vector(kUnpackLow, steps, t, t2);
    l.a.vector(kUnpackHigh, t, t, t2);
    l.a.vector_store_anywhere(at.first(), steps);
    l.a.vector_store_anywhere(at.first(64), t);
  }
  l.a.jump(done);
  l.a.bind(apart);
  if (at.far) l.a.alu(6, rcx, rcx, false);
  for (int half = 0; half < 2; ++half) {
    eight_addresses(l, at, half, address, t);
    const auto eight = [&](u8 to, u8 from) {
      if (half != 0) l.a.vector_immediate(kUpper, from, 0, to, 1);
      return half != 0 ? to : from;
    };
    u8 data = eight(t, value);
    if (dwords == 2) {  // both of a lane at once: a later lane may overwrite them
      const u8 upper = eight(t2, value2);
      l.a.vector(kWiden, t2, 0, upper);
      l.a.vector_shift_q(6, t2, t2, 32);
      l.a.vector(kWiden, t, 0, data);
      l.a.vector(kOrQ, t, t, t2);
      data = t;
    }
    enabled_half(l, half);
    l.a.scatter_far(rcx, address, at.offset, data, kHalf, dwords == 2);
  }
  l.a.bind(done);
}

void load_four(Lanes& l, u32) {
  const Places at = places(l);
  u8 rows[4], free[4];
  for (u8* some : {rows, free}) {
    for (int n = 0; n < 4; ++n) some[n] = l.fresh();
  }
  const Label apart = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(rows[0], Mem{.constant = l.a.table(step16)});
  unless(l, at, rows[0], 256, rows[1], apart);
  for (int n = 0; n < 4; ++n) l.a.vector_load_anywhere(rows[n], at.first(64 * n));
  l.a.jump(done);
  l.a.bind(apart);
  for (const u8 row : rows) l.a.vector(kXor, row, row, row);
  each_enabled(l, at, [&](u32 lane) { l.a.insert_quarter(rows[lane / 4], at.first(), static_cast<u8>(lane % 4)); });
  l.a.bind(done);
  rows_of_lanes(l, rows, free);
  for (u32 n = 0; n < 4; ++n) l.result(rows[n], n);
}

void load_byte(Lanes& l, u32) {
  const Places at = places(l);
  const u8 r = l.fresh(), steps = l.fresh(), t = l.fresh();
  const Label apart = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table([](u32 n) { return n; })});
  unless(l, at, steps, 16, t, apart);
  l.a.alu(0, rax, at.offset, true);
  l.a.vector(kWidenBytes, r, 0, Mem{rcx, rax});
  l.a.jump(done);
  l.a.bind(apart);
  l.a.vector(kXor, r, r, r);
  l.a.vector_store_anywhere(scratch_at(2), r);
  each_enabled(l, at, [&](u32 lane) {
    l.a.load_byte(rdx, at.first());
    l.a.store(scratch_at(2, lane), rdx, false);
  });
  l.a.vector_load_anywhere(r, scratch_at(2));
  l.a.bind(done);
  l.result(r);
}

void store_four(Lanes& l, u32) {
  u8 rows[4];
  for (u32 n = 0; n < 4; ++n) rows[n] = l.plain_source(2, n);
  const Places at = places(l);
  const Quads quads = lanes_of_rows(l, rows);
  const u8 steps = l.fresh(), t = l.fresh();
  const Label apart = l.a.label(), done = l.a.label();
  l.a.vector_load_anywhere(steps, Mem{.constant = l.a.table(step16)});
  unless(l, at, steps, 256, t, apart);
  for (int n = 0; n < 4; ++n) l.a.vector_store_anywhere(at.first(64 * n), quads.of_lanes[n]);
  l.a.jump(done);
  l.a.bind(apart);
  each_enabled(l, at,
               [&](u32 lane) { l.a.store_quarter(at.first(), quads.of_lanes[lane / 4], static_cast<u8>(lane % 4)); });
  l.a.bind(done);
}

constexpr VectorRow kRows[] = {
    {.op = Op::global_load_dwordx4, .emit = load_four, .global = 1, .bytes = 16, .wide = true},
    {.op = Op::global_store_dwordx4, .emit = store_four, .global = 2, .bytes = 16, .wide = true},
    {.op = Op::global_load_ubyte, .emit = load_byte, .global = 1, .bytes = 1, .wide = true},
    {.op = Op::global_load_dword, .emit = load, .detail = 1, .global = 1, .bytes = 4},
    {.op = Op::global_load_dwordx2, .emit = load, .detail = 2, .global = 1, .bytes = 8},
    {.op = Op::global_store_dword, .emit = store, .detail = 1, .global = 2, .bytes = 4},
    {.op = Op::global_store_dwordx2, .emit = store, .detail = 2, .global = 2, .bytes = 8},
};

}  // namespace

bool global_fits(const Code& code) {
  const Kind base = code.src[1].kind;
  const bool data = code.src[2].kind == Kind::None || code.src[2].kind == Kind::Vgpr;
  return code.src[0].kind == Kind::Vgpr && (base == Kind::None || base == Kind::Sgpr) && data;
}

std::span<const VectorRow> global_rows() { return kRows; }

}  // namespace ckemu::translate
