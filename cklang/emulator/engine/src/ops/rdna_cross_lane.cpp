// SPDX-License-Identifier: MIT
//
// Lane permutes within rows of 16, and vector moves whose register numbers m0 shifts.
#include "core/fault.h"
#include "core/lanes.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// Lane l reads lane `pick(l)` of its row of 16, or of the other row of the pair. Of an inactive
/// lane it reads the value if fetch_inactive (op_sel bit 0) is set, else 0 with bound_ctrl (bit 1),
/// else it keeps what it has.
template <bool other_row, class Pick>
void permute_rows(Wave& w, const Code& c, Pick pick) {
  const u32* a = source_row(w, c, 0);
  const bool inactive = (c.inst->op_sel & 1) != 0, zero = (c.inst->op_sel & 2) != 0;
  alignas(64) u32 values[kLanes];
  const u64 exec = w.exec();
  const u32* old = w.v[c.dst];
  for (int l = 0; l < kLanes; ++l) {
    const int row = (l & ~15) ^ (other_row ? 16 : 0), from = row | static_cast<int>(pick(l) & 15);
    const bool valid = inactive || (exec >> from & 1) != 0;
    values[l] = valid ? a[from] : zero ? 0 : old[l];
  }
  write_lanes(w, w.v[c.dst], [&](int g) { return load8(values, g); });
}

/// Sixteen selectors of four bits in two scalars.
template <bool other_row>
void permlane16(Wave& w, const Code& c) {
  const u64 selectors = scalar32(w, c.src[1]) | u64{scalar32(w, c.src[2])} << 32;
  permute_rows<other_row>(w, c, [&](int l) { return selectors >> (4 * (l & 15)); });
}
template <bool other_row>
void permlane16_var(Wave& w, const Code& c) {
  const u32* selector = source_row(w, c, 1);
  permute_rows<other_row>(w, c, [&](int l) { return selector[l]; });
}

/// Exchanges the halves of a wave of 64 lanes, active or not; with 32 lanes it does nothing.
void permlane64(Wave& w, const Code& c) {
  if (w.lanes != kLanes) return;
  alignas(64) u32 values[kLanes];
  const u32* a = source_row(w, c, 0);
  for (int l = 0; l < kLanes; ++l) values[l] = a[l ^ 32];
  write_lanes(w, w.v[c.dst], [&](int g) { return load8(values, g); });
}

u32* shifted(Wave& w, u32 number, u32 by) {
  if (number + by >= w.rows) {
    raise(w, FaultKind::Instruction, "register index %u is beyond the %u registers of the wave", number + by, w.rows);
  }
  return w.v[number + by];
}

/// Which operands m0 shifts, and whether its halves shift source and destination apart.
enum class Shift : u8 { Source, Destination, Both, Apart };

template <Shift which>
void move_relative(Wave& w, const Code& c) {
  const u32 m0 = w.s[kM0], apart = which == Shift::Apart;
  const u32 from = which == Shift::Destination ? 0 : apart ? m0 & 0x3ff : m0;
  const u32 to = which == Shift::Source ? 0 : apart ? m0 >> 16 & 0x3ff : m0;
  const u32* a = c.src[0].kind == Kind::Vgpr ? shifted(w, c.src[0].index, from) : source_row(w, c, 0);
  write_lanes(w, shifted(w, c.dst, to), [&](int g) { return load8(a, g); });
}
void swap_relative(Wave& w, const Code& c) {
  u32* a = shifted(w, c.src[0].index, w.s[kM0] & 0x3ff);
  u32* b = shifted(w, c.dst, w.s[kM0] >> 16 & 0x3ff);
  each_lane(w, [&](int l) {
    const u32 held = a[l];
    a[l] = b[l];
    b[l] = held;
  });
}

/// Exchanges two halves of registers.
void swap_halves(Wave& w, const Code& c) {
  u32 *a = w.v[c.src[0].index], *b = w.v[c.dst];
  const u32 of_a = (c.inst->op_sel & 1) * 16, of_b = (c.inst->op_sel >> 3 & 1) * 16;
  each_lane(w, [&](int l) {
    const u32 from_a = a[l] >> of_a & 0xffff, from_b = b[l] >> of_b & 0xffff;
    a[l] = (a[l] & ~(u32{0xffff} << of_a)) | from_b << of_a;
    b[l] = (b[l] & ~(u32{0xffff} << of_b)) | from_a << of_b;
  });
}

constexpr HandlerRow kRdnaCrossLaneRows[] = {
    {Op::v_permlane16_b32, permlane16<false>},
    {Op::v_permlanex16_b32, permlane16<true>},
    {Op::v_permlane16_var_b32, permlane16_var<false>},
    {Op::v_permlanex16_var_b32, permlane16_var<true>},
    {Op::v_permlane64_b32, permlane64},
    {Op::v_movrels_b32, move_relative<Shift::Source>},
    {Op::v_movreld_b32, move_relative<Shift::Destination>},
    {Op::v_movrelsd_b32, move_relative<Shift::Both>},
    {Op::v_movrelsd_2_b32, move_relative<Shift::Apart>},
    {Op::v_swaprel_b32, swap_relative},
    {Op::v_swap_b16, swap_halves},
};

}  // namespace

HandlerRows rdna_cross_lane_handlers() { return kRdnaCrossLaneRows; }

}  // namespace ckemu
