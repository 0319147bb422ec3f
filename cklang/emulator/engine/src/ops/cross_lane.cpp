// SPDX-License-Identifier: MIT
//
// Operations that move values between lanes and the scalar registers, or count lanes.
#include "core/lanes.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// The first enabled lane, or lane 0 if none is.
int first_lane(const Wave& w) { return w.exec() != 0 ? __builtin_ctzll(w.exec()) : 0; }

void readfirstlane(Wave& w, const Code& c) { w.s[c.dst] = source_row(w, c, 0)[first_lane(w)]; }

void readlane(Wave& w, const Code& c) {  // exec does not matter; the lane number wraps
  w.s[c.dst] = source_row(w, c, 0)[scalar32(w, c.src[1]) % w.lanes];
}

void writelane(Wave& w, const Code& c) { w.v[c.dst][scalar32(w, c.src[1]) % w.lanes] = scalar32(w, c.src[0]); }

/// Counts the mask's bits below each lane, in its own half of the wave.
template <bool high>
void mbcnt(Wave& w, const Code& c) {
  const u32 *mask = source_row(w, c, 0), *base = source_row(w, c, 1);
  u32* d = w.v[c.dst];
  each_lane(w, [&](int l) {
    const u64 below = (u64{1} << l) - 1;
    const u32 half = static_cast<u32>(high ? below >> 32 : below);
    d[l] = static_cast<u32>(__builtin_popcount(mask[l] & half)) + base[l];
  });
}

/// Swaps the upper part of dst's lane groups with the lower part of src's (gfx950).
template <int span>
void permlane_swap(Wave& w, const Code& c) {
  u32 *a = w.v[c.dst], *b = w.v[c.src[0].index];
  for (int l = 0; l < kLanes; ++l) {
    const int high = l + span;
    if ((l / span) % 2 != 0) continue;
    const u64 exec = w.exec();
    const u32 from_a = a[high], from_b = b[l];
    if ((exec >> high & 1) != 0) a[high] = from_b;
    if ((exec >> l & 1) != 0) b[l] = from_a;
  }
}

constexpr HandlerRow kCrossLaneRows[] = {
    {Op::v_readfirstlane_b32, readfirstlane},
    {Op::v_readlane_b32, readlane},
    {Op::v_writelane_b32, writelane},
    {Op::v_mbcnt_lo_u32_b32, mbcnt<false>},
    {Op::v_mbcnt_hi_u32_b32, mbcnt<true>},
    {Op::v_permlane16_swap_b32, permlane_swap<16>},
    {Op::v_permlane32_swap_b32, permlane_swap<32>},
};

}  // namespace

HandlerRows cross_lane_handlers() { return kCrossLaneRows; }

}  // namespace ckemu
