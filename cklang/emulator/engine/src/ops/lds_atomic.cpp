// SPDX-License-Identifier: MIT
//
// Read-modify-write operations on local memory.
#include "ops/access.h"
#include "ops/atomics.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// The enabled lanes before one that is not aligned, if there is one, whose bytes lie in the allocation.
struct Served {
  u64 lanes;
  int unaligned = -1;
};
[[gnu::noinline]] Served served_one_by_one(const Wave& w, const u32* address, u32 offset, u32 bytes) {
  Served served{0};
  for (u64 left = w.exec(); left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    const u64 place = address[l] + offset;  // wraps around as 32 bits do
    if (place % bytes != 0) return {served.lanes, l};
    if (place + bytes <= w.lds_bytes) served.lanes |= u64{1} << l;
  }
  return served;
}
[[gnu::noinline]] Served served(const Wave& w, const u32* address, u32 offset, u32 bytes) {
  if (w.lds_bytes < bytes + offset || offset > w.lds_bytes) return served_one_by_one(w, address, offset, bytes);
  U8v highest = 0, bits = 0;
  const u64 exec = w.exec();
  for (int g = 0; g < 8; ++g) {
    const U8v enabled = __builtin_bit_cast(U8v, spread_mask(exec >> (8 * g) & 0xff)), at = load8(address, g) & enabled;
    highest = __builtin_elementwise_max(highest, at);
    bits |= (at + offset) & enabled;
  }
  const bool all =
      __builtin_reduce_max(highest) <= w.lds_bytes - bytes - offset && __builtin_reduce_or(bits) % bytes == 0;
  return all ? Served{exec} : served_one_by_one(w, address, offset, bytes);
}

[[gnu::noinline]] void refuse_unaligned(Wave& w, int lane, u32 place, u32 bytes) {
  w.lane = lane;
  raise(w, FaultKind::Address, "LDS atomic at byte %u, which is not aligned to %u", place, bytes);
}

/// Runs `body(lane, place)` for enabled lanes whose T lies in the allocation, in lane order.
template <class T, class Body>
CKEMU_INLINE void each_place(Wave& w, const Code& c, u32 offset, Body body) {
  if (c.inst->gds) raise(w, FaultKind::Instruction, "global data share (gds) is not emulated");
  const u32* address = source_row(w, c, 0);
  const auto [lanes, unaligned] = served(w, address, offset, sizeof(T));
#pragma clang loop unroll(disable)
  for (u64 left = lanes; left != 0; left &= left - 1) {
    const int l = __builtin_ctzll(left);
    body(l, w.lds + (address[l] + offset));
  }
  if (unaligned >= 0) refuse_unaligned(w, unaligned, address[unaligned] + offset, sizeof(T));
}

template <class T, auto op, bool returns>
void update(Wave& w, const Code& c) {
  const u32* data = source_row(w, c, 1);
  bool changed = false;
  each_place<T>(w, c, static_cast<u32>(c.offset), [&](int l, u8* place) {
    const T old = load_as<T>(place);
    const T result = op(old, get_lane<T>(data, l));
    std::memcpy(place, &result, sizeof(T));
    changed |= __builtin_memcmp(&old, &result, sizeof(T)) != 0;
    if constexpr (returns) set_lane<T>(w.v[c.dst], l, old);
  });
  w.counters->progress += changed;
}
template <class T, bool returns>
void compare_store(Wave& w, const Code& c) {
  const u32 *expected = source_row(w, c, 1), *data = source_row(w, c, 2);
  bool changed = false;
  each_place<T>(w, c, static_cast<u32>(c.offset), [&](int l, u8* place) {
    const T old = load_as<T>(place), value = get_lane<T>(data, l);
    if (old == get_lane<T>(expected, l)) {
      std::memcpy(place, &value, sizeof(T));
      changed = true;
    }
    if constexpr (returns) set_lane<T>(w.v[c.dst], l, old);
  });
  w.counters->progress += changed;
}
/// (old & ~mask) | data
template <class T, bool returns>
void masked_or(Wave& w, const Code& c) {
  const u32 *mask = source_row(w, c, 1), *data = source_row(w, c, 2);
  each_place<T>(w, c, static_cast<u32>(c.offset), [&](int l, u8* place) {
    const T old = load_as<T>(place);
    const T result = (old & ~get_lane<T>(mask, l)) | get_lane<T>(data, l);
    std::memcpy(place, &result, sizeof(T));
    if constexpr (returns) set_lane<T>(w.v[c.dst], l, old);
  });
  w.counters->progress++;
}

/// Two exchanges whose offsets count elements, or 64 elements.
template <class T, u32 unit>
void exchange2(Wave& w, const Code& c) {
  constexpr int words = sizeof(T) / 4;
  constexpr u32 scale = sizeof(T) * unit;
  alignas(64) u32 old[2 * words][kLanes] = {};
  const u32 offsets[2] = {static_cast<u32>(c.offset) * scale, c.inst->offset1 * scale};
#pragma clang loop unroll(disable)
  for (int n = 0; n < 2; ++n) {
    const u32* data = source_row(w, c, 1 + n);
    each_place<T>(w, c, offsets[n], [&](int l, u8* place) {
      const T value = get_lane<T>(data, l);
      set_lane<T>(old[words * n], l, load_as<T>(place));
      std::memcpy(place, &value, sizeof(T));
    });
  }
  each_lane_once(w, [&](int l) {
    for (int n = 0; n < 2 * words; ++n) w.v[c.dst + n][l] = old[n][l];
  });
  w.counters->progress++;
}

/// Two neighbouring dwords, each replaced by the 31 bits of its data if the data's top bit is set.
void exchange_conditionally(Wave& w, const Code& c) {
  const u32 *address = source_row(w, c, 0), *data = source_row(w, c, 1);
  if (c.inst->gds) raise(w, FaultKind::Instruction, "global data share (gds) is not emulated");
  each_lane_once(w, [&](int l) {
    const u32 place = (address[l] + static_cast<u32>(c.offset)) & 0xfff8;
    const u64 value = get_lane<u64>(data, l);
    u64 old = 0;
    if (u64{place} + 8 <= w.lds_bytes) {
      old = load_as<u64>(w.lds + place);
      u64 result = old;
      for (int shift = 0; shift < 64; shift += 32) {
        if ((value >> (shift + 31) & 1) == 0) continue;
        result = (result & ~(u64{0xffffffff} << shift)) | (value >> shift & 0x7fffffff) << shift;
      }
      std::memcpy(w.lds + place, &result, 8);
    }
    set_lane<u64>(w.v[c.dst], l, old);
  });
  w.counters->progress++;
}

/// old >= data0 ? old - data0 : old + data1
void wrap(Wave& w, const Code& c) {
  const u32 *limit = source_row(w, c, 1), *more = source_row(w, c, 2);
  each_place<u32>(w, c, static_cast<u32>(c.offset), [&](int l, u8* place) {
    const u32 old = load_as<u32>(place);
    const u32 result = old >= limit[l] ? old - limit[l] : old + more[l];
    std::memcpy(place, &result, 4);
    w.v[c.dst][l] = old;
  });
  w.counters->progress++;
}

/// A counter at m0 + offset grows or shrinks by the number of enabled lanes, which all get the old value.
template <int sign>
void count(Wave& w, const Code& c) {
  if (c.inst->gds) raise(w, FaultKind::Instruction, "global data share (gds) is not emulated");
  const u64 place = u64{lds_base(w)} + static_cast<u32>(c.offset);
  u32 old = 0;
  if (place + 4 <= w.lds_bytes) {
    old = load_as<u32>(w.lds + place);
    const u32 result = old + static_cast<u32>(sign * __builtin_popcountll(w.exec()));
    std::memcpy(w.lds + place, &result, 4);
  }
  each_lane(w, [&](int l) { w.v[c.dst][l] = old; });
  w.counters->progress++;
}

#define BOTH(name, returning, T, op) \
  {Op::ds_##name, update<T, atomic::op, false>}, { Op::ds_##returning, update<T, atomic::op, true> }

constexpr HandlerRow kLdsAtomicRows[] = {
    BOTH(add_u32, add_rtn_u32, u32, add),
    BOTH(sub_u32, sub_rtn_u32, u32, sub),
    BOTH(rsub_u32, rsub_rtn_u32, u32, rsub),
    BOTH(inc_u32, inc_rtn_u32, u32, increment),
    BOTH(dec_u32, dec_rtn_u32, u32, decrement),
    BOTH(sub_clamp_u32, sub_clamp_rtn_u32, u32, sub_clamp),
    BOTH(cond_sub_u32, cond_sub_rtn_u32, u32, cond_sub),
    BOTH(min_i32, min_rtn_i32, i32, minimum),
    BOTH(max_i32, max_rtn_i32, i32, maximum),
    BOTH(min_u32, min_rtn_u32, u32, minimum),
    BOTH(max_u32, max_rtn_u32, u32, maximum),
    BOTH(and_b32, and_rtn_b32, u32, bit_and),
    BOTH(or_b32, or_rtn_b32, u32, bit_or),
    BOTH(xor_b32, xor_rtn_b32, u32, bit_xor),
    BOTH(min_f32, min_rtn_f32, float, minimum),
    BOTH(max_f32, max_rtn_f32, float, maximum),
    BOTH(add_f32, add_rtn_f32, float, add),
    BOTH(pk_add_f16, pk_add_rtn_f16, u32, pk_add_f16),
    BOTH(pk_add_bf16, pk_add_rtn_bf16, u32, pk_add_bf16),
    BOTH(add_u64, add_rtn_u64, u64, add),
    BOTH(sub_u64, sub_rtn_u64, u64, sub),
    BOTH(rsub_u64, rsub_rtn_u64, u64, rsub),
    BOTH(inc_u64, inc_rtn_u64, u64, increment),
    BOTH(dec_u64, dec_rtn_u64, u64, decrement),
    BOTH(min_i64, min_rtn_i64, i64, minimum),
    BOTH(max_i64, max_rtn_i64, i64, maximum),
    BOTH(min_u64, min_rtn_u64, u64, minimum),
    BOTH(max_u64, max_rtn_u64, u64, maximum),
    BOTH(and_b64, and_rtn_b64, u64, bit_and),
    BOTH(or_b64, or_rtn_b64, u64, bit_or),
    BOTH(xor_b64, xor_rtn_b64, u64, bit_xor),
    BOTH(min_f64, min_rtn_f64, double, minimum),
    BOTH(max_f64, max_rtn_f64, double, maximum),
    BOTH(add_f64, add_rtn_f64, double, add),
    {Op::ds_wrxchg_rtn_b32, update<u32, atomic::swap, true>},
    {Op::ds_wrxchg_rtn_b64, update<u64, atomic::swap, true>},
    {Op::ds_cmpst_b32, compare_store<u32, false>},
    {Op::ds_cmpst_rtn_b32, compare_store<u32, true>},
    {Op::ds_cmpst_b64, compare_store<u64, false>},
    {Op::ds_cmpst_rtn_b64, compare_store<u64, true>},
    {Op::ds_cmpst_f32, compare_store<float, false>},
    {Op::ds_cmpst_rtn_f32, compare_store<float, true>},
    {Op::ds_cmpst_f64, compare_store<double, false>},
    {Op::ds_cmpst_rtn_f64, compare_store<double, true>},
    {Op::ds_wrxchg2_rtn_b32, exchange2<u32, 1>},
    {Op::ds_wrxchg2_rtn_b64, exchange2<u64, 1>},
    {Op::ds_wrxchg2st64_rtn_b32, exchange2<u32, 64>},
    {Op::ds_wrxchg2st64_rtn_b64, exchange2<u64, 64>},
    {Op::ds_condxchg32_rtn_b64, exchange_conditionally},
    {Op::ds_wrap_rtn_b32, wrap},
    {Op::ds_append, count<1>},
    {Op::ds_consume, count<-1>},
    {Op::ds_mskor_b32, masked_or<u32, false>},
    {Op::ds_mskor_rtn_b32, masked_or<u32, true>},
    {Op::ds_mskor_b64, masked_or<u64, false>},
    {Op::ds_mskor_rtn_b64, masked_or<u64, true>},
};

}  // namespace

HandlerRows lds_atomic_handlers() { return kLdsAtomicRows; }

}  // namespace ckemu
