// SPDX-License-Identifier: MIT
//
// gfx12's memory operations on more than a lane's few dwords: blocks of up to 32 registers of which m0
// picks some, and loads that transpose a tile between lanes.
//
// Which lane's address leads to which element of a transposed load is not in AMD's manual. What is here
// was measured on gfx1201, with a different number in each element, and published by two authors for
// either width; it is what turns rows of a row-major matrix into operands of WMMA.
#include "decode/decode.h"
#include "ops/flat_address.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// Calls `move(n)` for the registers of a block that m0 picks; a dword of memory belongs to each of the 32.
template <class Move>
void each_register(const Wave& w, Move move) {
  for (u32 left = w.s[kM0]; left != 0; left &= left - 1) move(static_cast<u32>(__builtin_ctz(left)));
}
int block_bytes(const Wave& w) { return 4 * __builtin_popcount(w.s[kM0]); }

void global_load_block(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  each_lane(w, [&](int l) {
    const u64 from = at(l);  // the block may hold the address
    w.lane = l;
    each_register(w, [&](u32 n) { w.v[c.dst + n][l] = load_as<u32>(reinterpret_cast<const u8*>(from + 4 * n)); });
  });
  w.lane = -1;
  count_load(w, block_bytes(w));
}
void global_store_block(Wave& w, const Code& c) {
  const Addresses at = addresses_of(w, c);
  const u32* rows = source_row(w, c, 2);
  each_lane(w, [&](int l) {
    w.lane = l;
    each_register(w, [&](u32 n) {
      std::memcpy(reinterpret_cast<u8*>(at(l) + 4 * n), &rows[n * kLanes + static_cast<u32>(l)], 4);
    });
  });
  w.lane = -1;
  w.counters->progress++;
  count_store(w, block_bytes(w));
}

void scratch_load_block(Wave& w, const Code& c) {
  const ScratchOffsets at = scratch_offsets(w, c);
  each_lane(w, [&](int l) {
    const u64 from = at(l);
    each_register(w, [&](u32 n) { load_from<Access{4}>(w.v[c.dst + n], l, scratch_place(w, l, from + 4 * n, 4)); });
  });
  w.lane = -1;
}
void scratch_store_block(Wave& w, const Code& c) {
  const ScratchOffsets at = scratch_offsets(w, c);
  const u32* rows = source_row(w, c, 2);
  each_lane(w, [&](int l) {
    each_register(w, [&](u32 n) { store_to<Access{4}>(rows + n * kLanes, l, scratch_place(w, l, at(l) + 4 * n, 4)); });
  });
  w.lane = -1;
}

constexpr int kElements = 8;  // that a lane reads, and gets

/// The lane that reads element j of lane l's result: 8 lanes exchange 16-bit elements.
constexpr auto source_of_halves = [](int l, int j) { return l / 8 * 8 + j; };
/// 16 lanes exchange bytes: those of lanes 0 to 7 come from each fours of lanes that start at 0, those of 8 to 15
/// from the fours between.
constexpr auto source_of_bytes = [](int l, int j) { return l / 16 * 16 + j / 4 * 8 + l / 8 % 2 * 4 + j % 4; };

template <class T, auto source_of>
void load_transposed(Wave& w, const Code& c) {
  constexpr u32 all = ~u32{0};
  if (w.lanes != 32 || w.exec() != all) {
    raise(w, FaultKind::Instruction, "%s is known for 32 lanes, all enabled; exec is 0x%llx of %u",
          mnemonic(c.inst->op), static_cast<unsigned long long>(w.exec()), w.lanes);
  }
  const Addresses at = addresses_of(w, c);
  T loaded[32][kElements];
  for (int l = 0; l < 32; ++l) {
    w.lane = l;
    std::memcpy(loaded[l], reinterpret_cast<const u8*>(at(l)), sizeof loaded[l]);
  }
  w.lane = -1;
  for (int l = 0; l < 32; ++l) {
    T result[kElements];
    for (int j = 0; j < kElements; ++j) result[j] = loaded[source_of(l, j)][l % kElements];
    for (u32 d = 0; d < sizeof result / 4; ++d)
      w.v[c.dst + d][l] = load_as<u32>(reinterpret_cast<const u8*>(result) + 4 * d);
  }
  count_load(w, sizeof loaded[0]);
}

constexpr HandlerRow kRdnaBlockRows[] = {
    {Op::global_load_block, global_load_block},
    {Op::global_store_block, global_store_block},
    {Op::scratch_load_block, scratch_load_block},
    {Op::scratch_store_block, scratch_store_block},
    {Op::global_load_tr_b128, load_transposed<u16, source_of_halves>},
    {Op::global_load_tr_b64, load_transposed<u8, source_of_bytes>},
};

}  // namespace

HandlerRows rdna_block_handlers() { return kRdnaBlockRows; }

}  // namespace ckemu
