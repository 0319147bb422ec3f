// SPDX-License-Identifier: MIT
//
// Memory operations that only RDNA has: compare-and-store on LDS with the operands in their new
// order, addresses by lane number.
#include "core/fault.h"
#include "ops/access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// ds_cmpstore: data0 is the new value, data1 the expected one; ds_cmpst has them the other way.
template <class T, bool returns>
void compare_store(Wave& w, const Code& c) {
  const u32 *address = source_row(w, c, 0), *data = source_row(w, c, 1), *expected = source_row(w, c, 2);
  bool changed = false;
  each_lane(w, [&](int l) {
    const u64 place = address[l] + static_cast<u32>(c.offset);  // wraps around as 32 bits do
    if (place % sizeof(T) != 0) {
      w.lane = l;
      raise(w, FaultKind::Address, "LDS atomic at byte %llu, which is not aligned to %zu",
            static_cast<unsigned long long>(place), sizeof(T));
    }
    if (place + sizeof(T) > w.lds_bytes) return;
    const T old = load_as<T>(w.lds + place), value = get_lane<T>(data, l);
    if (old == get_lane<T>(expected, l)) {
      std::memcpy(w.lds + place, &value, sizeof(T));
      changed |= old != value;
    }
    if constexpr (returns) set_lane<T>(w.v[c.dst], l, old);
  });
  w.counters->progress += changed;
}

/// Addressed by an SGPR pair, the immediate and the lane number.
u8* place_by_lane(Wave& w, const Code& c, int l) {
  w.lane = l;
  return reinterpret_cast<u8*>(scalar64(w, c.src[1]) + static_cast<u64>(static_cast<i64>(c.offset)) +
                               4 * static_cast<u64>(l));
}
void load_by_lane(Wave& w, const Code& c) {
  each_lane(w, [&](int l) { w.v[c.dst][l] = load_as<u32>(place_by_lane(w, c, l)); });
  w.lane = -1;
  count_load(w, 4);
}
void store_by_lane(Wave& w, const Code& c) {
  const u32* data = source_row(w, c, 2);
  each_lane(w, [&](int l) { std::memcpy(place_by_lane(w, c, l), &data[l], 4); });
  w.lane = -1;
  w.counters->progress++;
  count_store(w, 4);
}

constexpr HandlerRow kRdnaMemoryRows[] = {
    {Op::ds_cmpstore_b32, compare_store<u32, false>},
    {Op::ds_cmpstore_b64, compare_store<u64, false>},
    {Op::ds_cmpstore_rtn_b32, compare_store<u32, true>},
    {Op::ds_cmpstore_rtn_b64, compare_store<u64, true>},
    {Op::ds_cmpstore_f32, compare_store<float, false>},
    {Op::ds_cmpstore_f64, compare_store<double, false>},
    {Op::ds_cmpstore_rtn_f32, compare_store<float, true>},
    {Op::ds_cmpstore_rtn_f64, compare_store<double, true>},
    {Op::global_load_addtid_b32, load_by_lane},
    {Op::global_store_addtid_b32, store_by_lane},
};

}  // namespace

HandlerRows rdna_memory_handlers() { return kRdnaMemoryRows; }

}  // namespace ckemu
