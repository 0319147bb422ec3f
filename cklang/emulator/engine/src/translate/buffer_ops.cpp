// SPDX-License-Identifier: MIT
//
// Loads and stores of raw buffers and of scratch by the lanes at hand. Lanes of a buffer that are out of range, and
// those of buffers with strides or swizzles, are done one by one behind. Where fours of lanes lie side by side, 16
// bytes each, they are one access.
#include <cstddef>

#include "ops/access.h"
#include "ops/buffer.h"
#include "translate/section.h"

namespace ckemu::translate {

using namespace x86;

namespace {

constexpr u8 kInside = 1, kAlike = 2, kHalf = 3;
constexpr u8 kEqual = 0, kBelowThat = 1;
constexpr Evex kFirstOfFour{1, 1, 0x70, 0};
constexpr i32 kFarthest = 0x7fffffff;  // offsets from here on are done one by one

u32 step4(u32 n) { return 4 * n; }
u32 step16(u32 n) { return n % 4 * 16; }

Mem member(size_t offset) { return {kWave, kNoIndex, static_cast<i32>(offset)}; }

// What is done one by one --------------------------------------------------------------------------

/// The registers of translated code, while a function is called.
struct Saved {
  u32* vectors;
  u32 lanes;
  u64 numbers;  // of the offsets' register, and of those with data, a byte each
  u32* row(u32 which) const { return vectors + lanes * (numbers >> (8 * which) & 0xff); }
};

/// Moves the dwords of the enabled lanes at hand that are in range, between memory and the registers with data: what
/// the handlers do. Returns the bytes moved.
template <bool loads>
u64 move_dwords(Wave& w, const Saved& saved, u32 dwords) {
  Buffer buffer = buffer_of(w, *w.current);
  const u32 first = w.lanes_from / 4;
  buffer.offset = saved.row(0) - first;
  w.lanes_from = kNoLanes;  // faults find the lane where it is noted
  u64 bytes = 0;
  const i64 room = buffer.raw() ? i64{buffer.resource.records} - static_cast<i64>(buffer.scalar + buffer.immediate) : 0;
  for (u32 n = 0; n < saved.lanes; ++n) {
    const int lane = static_cast<int>(first + n);
    if ((w.exec() >> lane & 1) == 0) continue;
    if (buffer.raw() && i64{saved.row(0)[n]} >= room) {  // all of it is out of range
      for (u32 d = 0; loads && d < dwords; ++d) saved.row(1 + d)[n] = 0;
      continue;
    }
    w.lane = lane;
    const u32 unit = buffer.split(lane, 4) ? 1 : 4;
    for (u32 d = 0; d < dwords; ++d) {
      u8* places[4];
      bool inside = true;
      for (u32 b = 0; b < 4; b += unit) {
        places[b] = buffer.place(lane, 4 * d + b, unit);
        inside &= places[b] != nullptr;
      }
      u8* value = reinterpret_cast<u8*>(saved.row(1 + d) + n);
      if (loads) std::memset(value, 0, 4);
      for (u32 b = 0; inside && b < 4; b += unit)
        loads ? std::memcpy(value + b, places[b], unit) : std::memcpy(places[b], value + b, unit);
      bytes += inside ? 4 : 0;
    }
  }
  w.lane = -1;
  w.lanes_from = 4 * first;
  return bytes;
}

/// What the handlers do for the lanes at hand. All bytes of enabled lanes are counted behind the section: here it is
/// counted what is missing of them.
template <bool loads, u32 dwords>
void one_by_one(Wave* w, u32* vectors, u64 numbers) {
  const Saved saved{vectors, w->counters->lanes_at_hand, numbers};
  u64& counter = loads ? w->counters->bytes_loaded : w->counters->bytes_stored;
  const u64 group = w->exec() >> (w->lanes_from / 4) & ((u64{1} << saved.lanes) - 1);
  counter -= static_cast<u64>(__builtin_popcountll(group)) * 4 * dwords;
  counter += move_dwords<loads>(*w, saved, dwords);
}

template <bool loads, u32 dwords>
void call(Assembler& a, const u8* r) {
  const i32 bytes = static_cast<i32>(4 * a.lanes()), room = a.registers() * bytes;
  u64 numbers = 0;
  for (u32 n = 0; n < 5; ++n) numbers |= u64{r[n]} << (8 * n);
  a.alu(5, rsp, room, true);
  for (u8 n = 0; n < a.registers(); ++n) a.vector_store_anywhere({rsp, kNoIndex, n * bytes}, n);
  a.move(rdi, kWave);
  a.move(rsi, rsp);
  a.move(rdx, numbers);
  a.move(rax, reinterpret_cast<u64>(one_by_one<loads, dwords>));
  a.call(rax);
  for (u8 n = 0; n < a.registers(); ++n) a.vector_load_anywhere(n, {rsp, kNoIndex, n * bytes});
  a.alu(0, rsp, room, true);
  a.mask_load(kEnabled, mask_at(kExec));
  a.mask_not(kDisabled, kEnabled);
}

// Buffers -----------------------------------------------------------------------------------------

/// The lanes' offsets; those of kInside are in range, and rcx + immediate is where offset 0 lies. kAlike has the
/// others.
struct Places {
  u8 offset;
  i32 immediate;
};

/// Leaves 0 in rax if the descriptor is one of a raw buffer.
void check_raw(Lanes& l, u32 descriptor) {
  const bool rdna = is_rdna(l.family);
  l.a.load(rax, scalar_at(descriptor + 1), false);
  l.a.alu(4, rax, static_cast<i32>(rdna ? 0xffff0000 : 0xbfff0000), false);  // stride, swizzle
  l.a.load(rsi, scalar_at(descriptor + 3), false);
  l.a.alu(4, rsi, rdna ? 0x30800000 : 0x00800000, false);  // whether lanes are added, OOB_SELECT
  if (rdna) l.a.alu(6, rsi, 0x30000000, false);
  l.a.alu(1, rax, rsi, false);
}

Places places(Lanes& l, u32 bytes) {
  const Code& code = l.code();
  const u32 descriptor = code.src[1].index;
  const Source& more = code.src[2];
  l.a.move(rax, reinterpret_cast<u64>(&code));
  l.a.store(member(offsetof(Wave, current)), rax, true);
  l.a.store(member(offsetof(Wave, lanes_from)), kLaneBytes, false);
  l.settle_source(0, 0);
  const u8 offset = l.plain_source(0), end = l.fresh();
  check_raw(l, descriptor);
  l.a.load(rcx, scalar_at(descriptor), true);
  l.a.shift(4, rcx, 16, true);
  l.a.shift(5, rcx, 16, true);
  l.a.load(rdx, scalar_at(descriptor + 2), false);
  if (more.kind == Kind::Sgpr) l.a.load(rsi, scalar_at(more.index), false);
  else l.a.move(rsi, more.kind == Kind::Constant ? more.row[0] : 0);
  l.a.alu(0, rcx, rsi, true);
  l.a.alu(5, rdx, rsi, true);
  l.a.alu(5, rdx, code.offset + static_cast<i32>(bytes) - 1, true);  // offsets below this are in range
  l.a.move(rsi, static_cast<u64>(kFarthest));
  l.a.alu(7, rdx, rsi, true);
  l.a.move_if(kGreater, rdx, rsi, true);
  l.a.alu(6, rsi, rsi, false);
  l.a.alu(7, rdx, rsi, true);
  l.a.move_if(kLess, rdx, rsi, true);
  l.a.test(rax, rax, false);
  l.a.move_if(kNonZero, rdx, rsi, true);
  l.a.store(scratch_at(0), rdx, false);
  l.a.vector(kBroadcast, end, 0, scratch_at(0));
  l.a.vector_immediate(kCompareU, kInside, offset, end, kBelowThat, kEnabled);
  l.a.mask_xor(kAlike, kInside, kEnabled);
  l.let_go(end);
  return {offset, code.offset};
}

/// Goes to `to` unless all lanes at hand are enabled and lie at the distances of `steps` from the first, or from the
/// first of each four.
void unless(Lanes& l, const Places& at, u8 t, bool fours, u32 (*steps)(u32), Label to) {
  if (fours) l.a.vector_immediate(kFirstOfFour, t, 0, at.offset, 0);
  else l.a.vector(kBroadcast, t, 0, at.offset);
  l.a.vector(kSubD, t, at.offset, t);
  l.a.vector(kSubD, t, t, Mem{.constant = l.a.table(steps)});
  l.a.vector(kTestNone, kAlike, t, t, kEnabled);
  l.a.jump_unless_all(kAlike, to);
}

void load(Lanes& l, u32) {
  const Places at = places(l, 4);
  const u8 r = l.fresh(), t = l.fresh();
  const Label apart = l.a.label(), back = l.a.label();
  l.instead(kAlike, call<true, 1>, {at.offset, r, r, r, r}, back);
  unless(l, at, t, false, step4, apart);
  l.a.vector_first(rax, at.offset);
  l.a.vector_load_anywhere(r, {rcx, rax, at.immediate});
  l.a.jump(back);
  l.a.bind(apart);
  l.a.vector(kXor, r, r, r);
  l.a.mask_or(kHalf, kEnabled, kEnabled);
  l.a.gather(r, rcx, at.offset, at.immediate, kHalf);
  l.a.bind(back);
  l.result(r);
}

void store(Lanes& l, u32) {
  const u8 value = l.plain_source(3);
  const Places at = places(l, 4);
  const u8 t = l.fresh();
  const Label apart = l.a.label(), back = l.a.label();
  l.instead(kAlike, call<false, 1>, {at.offset, value, value, value, value}, back);
  unless(l, at, t, false, step4, apart);
  l.a.vector_first(rax, at.offset);
  l.a.vector_store_anywhere({rcx, rax, at.immediate}, value);
  l.a.jump(back);
  l.a.bind(apart);
  l.a.mask_or(kHalf, kEnabled, kEnabled);
  l.a.scatter(rcx, at.offset, at.immediate, value, kHalf);
  l.a.bind(back);
}

void load_four(Lanes& l, u32) {
  const Places at = places(l, 16);
  u8 rows[4], free[4];
  for (u8* some : {rows, free}) {
    for (int n = 0; n < 4; ++n) some[n] = l.fresh();
  }
  const Label apart = l.a.label(), some = l.a.label(), turn = l.a.label(), back = l.a.label();
  l.instead(kAlike, call<true, 4>, {at.offset, rows[0], rows[1], rows[2], rows[3]}, back);
  l.a.vector_store_anywhere(scratch_at(0), at.offset);
  unless(l, at, free[0], true, step16, apart);
  for (u32 n = 0; n < 4; ++n) {
    l.a.load(rax, scratch_at(0, 4 * n), false);
    l.a.vector_load_anywhere(rows[n], {rcx, rax, at.immediate});
    l.a.prefetch({rcx, rax, at.immediate + 64});  // a loop along rows goes on there
  }
  l.a.jump(turn);
  l.a.bind(apart);
  l.a.jump_unless_all(kEnabled, some);
  for (u32 lane = 0; lane < 16; ++lane) {
    l.a.load(rax, scratch_at(0, lane), false);
    if (lane % 4 == 0) l.a.load_quarter(rows[lane / 4], {rcx, rax, at.immediate});
    else l.a.insert_quarter(rows[lane / 4], {rcx, rax, at.immediate}, static_cast<u8>(lane % 4));
  }
  l.a.jump(turn);
  l.a.bind(some);
  for (u32 n = 0; n < 4; ++n) {
    l.a.vector(kXor, rows[n], rows[n], rows[n]);
    l.a.mask_or(kHalf, kEnabled, kEnabled);
    l.a.gather(rows[n], rcx, at.offset, at.immediate + static_cast<i32>(4 * n), kHalf);
  }
  l.a.jump(back);
  l.a.bind(turn);
  rows_of_lanes(l, rows, free);
  l.a.bind(back);
  for (u32 n = 0; n < 4; ++n) l.result(rows[n], n);
}

void store_four(Lanes& l, u32) {
  u8 rows[4];
  for (u32 n = 0; n < 4; ++n) rows[n] = l.plain_source(3, n);
  const Places at = places(l, 16);
  const Quads quads = lanes_of_rows(l, rows);
  const u8 t = l.fresh();
  const Label apart = l.a.label(), back = l.a.label();
  l.instead(kAlike, call<false, 4>, {at.offset, rows[0], rows[1], rows[2], rows[3]}, back);
  l.a.vector_store_anywhere(scratch_at(0), at.offset);
  unless(l, at, t, true, step16, apart);
  for (u32 n = 0; n < 4; ++n) {
    l.a.load(rax, scratch_at(0, 4 * n), false);
    l.a.vector_store_anywhere({rcx, rax, at.immediate}, quads.of_lanes[n]);
  }
  l.a.jump(back);
  l.a.bind(apart);
  l.a.mask_move(rsi, kEnabled);
  for (u32 lane = 0; lane < 16; ++lane) {
    const Label skip = l.a.label();
    l.a.jump_unless_bit(rsi, static_cast<u8>(lane), skip);
    l.a.load(rax, scratch_at(0, lane), false);
    l.a.store_quarter({rcx, rax, at.immediate}, quads.of_lanes[lane / 4], static_cast<u8>(lane % 4));
    l.a.bind(skip);
  }
  l.a.bind(back);
}

// Scratch -----------------------------------------------------------------------------------------

/// Leaves the offset that all lanes have in rax.
void scratch_offset(Assembler& a, const Code& code) {
  a.move(rax, 0);
  if (code.src[1].kind == Kind::Sgpr) a.load(rax, scalar_at(code.src[1].index), false);
  a.alu(0, rax, code.offset, true);
}

/// The lanes' dwords lie side by side if the offset is that of a dword of scratch.
void check_scratch(Assembler& a, const Code& code, Family, Label unusual) {
  const bool loads = code.dst_kind == Kind::Vgpr;
  scratch_offset(a, code);
  a.move(rcx, rax);
  a.alu(4, rcx, 3, false);
  a.jump_if(kNonZero, unusual);
  a.load(rcx, member(offsetof(Wave, scratch_bytes)), false);
  a.alu(5, rcx, static_cast<i32>(4 * (loads ? code.dst_dwords : code.src[2].dwords)), true);
  a.alu(7, rax, rcx, true);
  a.jump_if(kGreater, unusual);
  a.alu(7, rax, 0, true);
  a.jump_if(kLess, unusual);
}

/// Leaves where the dwords of the lanes at hand lie in rax: 64 lanes have 256 bytes.
void scratch_place(Lanes& l) {
  scratch_offset(l.a, l.code());
  l.a.shift(4, rax, 6, true);
  l.a.alu(0, rax, kLaneBytes, true);
  l.a.load(rcx, member(offsetof(Wave, scratch)), true);
}
Mem dword_at(u32 number) { return {rcx, rax, static_cast<i32>(256 * number)}; }

void scratch_load(Lanes& l, u32 dwords) {
  scratch_place(l);
  u8 r[4];
  for (u32 n = 0; n < dwords; ++n) l.a.vector_load_anywhere(r[n] = l.fresh(), dword_at(n));
  for (u32 n = 0; n < dwords; ++n) l.result(r[n], n);
}
void scratch_store(Lanes& l, u32 dwords) {
  scratch_place(l);
  const u8 r = l.fresh();
  for (u32 n = 0; n < dwords; ++n) {
    const u8 value = l.plain_source(2, n);
    l.a.vector_load_anywhere(r, dword_at(n));
    l.a.vector(kMove, r, 0, value, kEnabled);
    l.a.vector_store_anywhere(dword_at(n), r);
    l.let_go(value);
  }
}

constexpr VectorRow kRows[] = {
    {.op = Op::buffer_load_dword, .emit = load, .global = 1, .bytes = 4, .wide = true},
    {.op = Op::buffer_load_dwordx4, .emit = load_four, .global = 1, .bytes = 16, .wide = true},
    {.op = Op::buffer_store_dword, .emit = store, .global = 2, .bytes = 4, .wide = true},
    {.op = Op::buffer_store_dwordx4, .emit = store_four, .global = 2, .bytes = 16, .wide = true},
    {.op = Op::scratch_load_dword, .emit = scratch_load, .detail = 1, .guard = check_scratch},
    {.op = Op::scratch_load_dwordx2, .emit = scratch_load, .detail = 2, .guard = check_scratch},
    {.op = Op::scratch_load_dwordx3, .emit = scratch_load, .detail = 3, .guard = check_scratch},
    {.op = Op::scratch_load_dwordx4, .emit = scratch_load, .detail = 4, .guard = check_scratch},
    {.op = Op::scratch_store_dword, .emit = scratch_store, .detail = 1, .guard = check_scratch},
    {.op = Op::scratch_store_dwordx2, .emit = scratch_store, .detail = 2, .guard = check_scratch},
    {.op = Op::scratch_store_dwordx3, .emit = scratch_store, .detail = 3, .guard = check_scratch},
    {.op = Op::scratch_store_dwordx4, .emit = scratch_store, .detail = 4, .guard = check_scratch},
};

}  // namespace

bool buffer_fits(const Code& code) {
  const Inst& inst = *code.inst;
  const Kind more = code.src[2].kind;
  const bool scalars =
      code.src[1].kind == Kind::Sgpr && (more == Kind::None || more == Kind::Sgpr || more == Kind::Constant);
  const bool data = code.src[3].kind == Kind::None || code.src[3].kind == Kind::Vgpr;
  return inst.offen && !inst.idxen && !inst.lds && code.src[0].kind == Kind::Vgpr && scalars && data;
}

bool scratch_fits(const Code& code) {
  const Kind base = code.src[1].kind;
  const bool data = code.src[2].kind == Kind::None || code.src[2].kind == Kind::Vgpr;
  return code.src[0].kind == Kind::None && (base == Kind::None || base == Kind::Sgpr) && data;
}

std::span<const VectorRow> buffer_rows() { return kRows; }

}  // namespace ckemu::translate
