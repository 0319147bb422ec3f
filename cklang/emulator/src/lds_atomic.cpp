// SPDX-License-Identifier: MIT
//
// Read-modify-write operations on local memory.
#include "atomics.h"
#include "fault.h"
#include "handlers.h"

namespace ckemu {

namespace {

/// Runs `body(lane, place)` for enabled lanes whose T lies in the allocation, in lane order.
template <class T, class Body>
void each_place(Wave& w, const Code& c, u32 offset, Body body) {
  if (c.inst->gds) raise(w, FaultKind::Instruction, "global data share (gds) is not emulated");
  const u32* address = source_row(w, c, 0);
  each_lane(w, [&](int l) {
    const u64 place = u64{address[l]} + offset;
    if (place % sizeof(T) != 0) {
      w.lane = l;
      raise(w, FaultKind::Address, "LDS atomic at byte %llu, which is not aligned to %zu",
            static_cast<unsigned long long>(place), sizeof(T));
    }
    if (place + sizeof(T) <= w.lds_bytes) body(l, w.lds + place);
  });
}

template <class T, auto op, bool returns>
void update(Wave& w, const Code& c) {
  const u32* data = source_row(w, c, 1);
  bool changed = false;
  each_place<T>(w, c, static_cast<u32>(c.offset), [&](int l, u8* place) {
    const T old = load_as<T>(place);
    const T result = op(old, get_lane<T>(data, l));
    std::memcpy(place, &result, sizeof(T));
    changed |= std::memcmp(&old, &result, sizeof(T)) != 0;
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

#define BOTH(name, returning, T, op)              \
  {Op::ds_##name, update<T, atomic::op, false>}, \
      {Op::ds_##returning, update<T, atomic::op, true>}

constexpr HandlerRow kRows[] = {
    BOTH(add_u32, add_rtn_u32, u32, add),
    BOTH(sub_u32, sub_rtn_u32, u32, sub),
    BOTH(rsub_u32, rsub_rtn_u32, u32, rsub),
    BOTH(inc_u32, inc_rtn_u32, u32, increment),
    BOTH(dec_u32, dec_rtn_u32, u32, decrement),
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
    {Op::ds_mskor_b32, masked_or<u32, false>},
    {Op::ds_mskor_rtn_b32, masked_or<u32, true>},
    {Op::ds_mskor_b64, masked_or<u64, false>},
    {Op::ds_mskor_rtn_b64, masked_or<u64, true>},
};

}  // namespace

HandlerRows lds_atomic_handlers() { return kRows; }

}  // namespace ckemu
