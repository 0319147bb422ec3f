// SPDX-License-Identifier: MIT
//
// Memory operations that only RDNA has: compare-and-store on LDS with the operands in their new
// order, loads that transpose (gfx12), addresses by lane number.
#include "access.h"
#include "fault.h"
#include "handlers.h"

namespace ckemu {

namespace {

/// ds_cmpstore: data0 is the new value, data1 the expected one; ds_cmpst has them the other way.
template <class T, bool returns>
void compare_store(Wave& w, const Code& c) {
  const u32 *address = source_row(w, c, 0), *data = source_row(w, c, 1), *expected = source_row(w, c, 2);
  bool changed = false;
  each_lane(w, [&](int l) {
    const u64 place = u64{address[l]} + static_cast<u32>(c.offset);
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

u64 global_address(Wave& w, const Code& c, int l) {
  const u32* low = source_row(w, c, 0);
  const u64 offset = static_cast<u64>(static_cast<i64>(c.offset));
  if (c.src[1].kind == Kind::None) return offset + (low[l] | u64{low[kLanes + l]} << 32);
  return offset + scalar64(w, c.src[1]) + low[l];
}

/// Loads rows of a matrix of Element and delivers its columns. Each lane names the place of
/// `per_lane` elements of one row: lanes 0 to 15 hold the first columns of 16 rows, and so on.
/// Lane l receives column l mod 16 of a block of rows, which is what a WMMA operand wants.
template <class Element, int bytes>
void load_transposed(Wave& w, const Code& c) {
  const u64 all = w.lanes == kLanes ? ~u64{0} : 0xffffffff;
  if (w.exec() != all) raise(w, FaultKind::Instruction, "a transposed load needs all lanes enabled");
  constexpr int per_lane = bytes / sizeof(Element), dwords = bytes / 4;
  Element tile[kLanes][per_lane];
  for (int l = 0; l < static_cast<int>(w.lanes); ++l) {
    w.lane = l;
    std::memcpy(tile[l], reinterpret_cast<const u8*>(global_address(w, c, l)), bytes);
  }
  w.lane = -1;
  Element result[per_lane];
  for (int l = 0; l < static_cast<int>(w.lanes); ++l) {
    // Element j of lane l: row per_lane * (l / 16) + j of the tile, column l mod 16.
    const int column = l % 16;
    for (int j = 0; j < per_lane; ++j) {
      const int row = per_lane * (l / 16) + j;
      result[j] = tile[row % 16 + 16 * (column / per_lane)][column % per_lane];
    }
    u32 words[dwords];
    std::memcpy(words, result, bytes);
    for (int n = 0; n < dwords; ++n) w.v[c.dst + n][l] = words[n];
  }
  count_load(w, bytes);
}

/// Addressed by an SGPR pair, the immediate and the lane number.
u8* place_by_lane(Wave& w, const Code& c, int l) {
  w.lane = l;
  return reinterpret_cast<u8*>(scalar64(w, c.src[1]) + static_cast<u64>(static_cast<i64>(c.offset)) + 4 * static_cast<u64>(l));
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

constexpr HandlerRow kRows[] = {
    {Op::ds_cmpstore_b32, compare_store<u32, false>},
    {Op::ds_cmpstore_b64, compare_store<u64, false>},
    {Op::ds_cmpstore_rtn_b32, compare_store<u32, true>},
    {Op::ds_cmpstore_rtn_b64, compare_store<u64, true>},
    {Op::ds_cmpstore_f32, compare_store<float, false>},
    {Op::ds_cmpstore_f64, compare_store<double, false>},
    {Op::ds_cmpstore_rtn_f32, compare_store<float, true>},
    {Op::ds_cmpstore_rtn_f64, compare_store<double, true>},
    {Op::global_load_tr_b128, load_transposed<u16, 16>},
    {Op::global_load_tr_b64, load_transposed<u8, 8>},
    {Op::global_load_addtid_b32, load_by_lane},
    {Op::global_store_addtid_b32, store_by_lane},
};

}  // namespace

HandlerRows rdna_memory_handlers() { return kRows; }

}  // namespace ckemu
