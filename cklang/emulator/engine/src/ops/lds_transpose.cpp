// SPDX-License-Identifier: MIT
//
// Transposed reads of local memory (gfx950). Each block of 16 lanes reads a tile whose rows of 16
// elements lie along M in memory, and every lane gets the column of "its" M: consecutive elements of
// K. One row is read by 16 / n lanes of n elements each, in order of lanes.
#include <type_traits>

#include "core/fault.h"
#include "ops/access.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

constexpr int kBlock = 16;  // lanes that exchange elements, and elements of a row

/// Refuses an enabled lane that would get an element from a disabled one: what that contributes is not
/// documented.
void check_sources(Wave& w, int per_lane, int lanes_a_row) {
  each_lane(w, [&](int l) {
    for (int j = 0; j < per_lane; ++j) {
      const int from = l / kBlock * kBlock + lanes_a_row * j + l % kBlock / per_lane;
      if ((w.exec() >> from & 1) != 0) continue;
      w.lane = l;
      raise(w, FaultKind::Instruction,
            "transposed LDS read with exec 0x%llx: lane %d needs what the disabled lane %d reads",
            static_cast<unsigned long long>(w.exec()), l, from);
    }
  });
}

/// The same where all lanes are enabled and elements are of 8 or 16 bits: a block's tile is what its lanes read, one
/// after the other.
template <class T>
void transpose_blocks(Wave& w, const u32* address, u32 offset, u32* rows) {
  constexpr int bytes = 8, bits = 8 * sizeof(T), in_dword = 32 / bits;
  T tile[kLanes / kBlock][bytes / sizeof(T)][kBlock];  // all is read before the first is written
  for (int l = 0; l < kLanes; ++l) {
    const u64 place = address[l] + offset;  // wraps around as 32 bits do
    u64 value = 0;
    if (place + bytes <= w.lds_bytes) std::memcpy(&value, w.lds + place, bytes);
    std::memcpy(reinterpret_cast<u8*>(tile) + bytes * l, &value, bytes);
  }
  for (int block = 0; block < kLanes / kBlock; ++block) {
    for (int d = 0; d < bytes / 4; ++d) {
      for (int column = 0; column < kBlock; ++column) {
        u32 value = 0;
        for (int n = 0; n < in_dword; ++n) value |= u32{tile[block][in_dword * d + n][column]} << (bits * n);
        rows[d * kLanes + kBlock * block + column] = value;
      }
    }
  }
}

template <int bits, int bytes>
void read_transposed(Wave& w, const Code& c) {
  constexpr int per_lane = bytes * 8 / bits, lanes_a_row = kBlock / per_lane;
  constexpr u32 mask = (1u << bits) - 1;
  if (c.inst->gds) raise(w, FaultKind::Instruction, "global data share (gds) is not emulated");
  if (w.exec() != ~u64{0}) check_sources(w, per_lane, lanes_a_row);
  const u32* address = source_row(w, c, 0);
  if constexpr (bits == 8 || bits == 16) {
    using Element = std::conditional_t<bits == 8, u8, u16>;
    if (w.exec() == ~u64{0}) return transpose_blocks<Element>(w, address, static_cast<u32>(c.offset), w.v[c.dst]);
  }
  unsigned __int128 loaded[kLanes] = {};
  each_lane(w, [&](int l) {
    const u64 place = address[l] + static_cast<u32>(c.offset);  // wraps around as 32 bits do
    if (place + bytes <= w.lds_bytes) std::memcpy(&loaded[l], w.lds + place, bytes);
  });
  each_lane(w, [&](int l) {
    const int block = l / kBlock * kBlock, column = l % kBlock;
    unsigned __int128 result = 0;
    for (int j = 0; j < per_lane; ++j) {
      const int from = block + lanes_a_row * j + column / per_lane;
      const u32 element = static_cast<u32>(loaded[from] >> (bits * (column % per_lane))) & mask;
      result |= static_cast<unsigned __int128>(element) << (bits * j);
    }
    for (int d = 0; d < bytes / 4; ++d) w.v[c.dst + d][l] = static_cast<u32>(result >> (32 * d));
  });
}

constexpr HandlerRow kLdsTransposeRows[] = {
    {Op::ds_read_b64_tr_b16, read_transposed<16, 8>},
    {Op::ds_read_b64_tr_b8, read_transposed<8, 8>},
    {Op::ds_read_b64_tr_b4, read_transposed<4, 8>},
    {Op::ds_read_b96_tr_b6, read_transposed<6, 12>},
};

}  // namespace

HandlerRows lds_transpose_handlers() { return kLdsTransposeRows; }

}  // namespace ckemu
