// SPDX-License-Identifier: MIT
//
// Integer addition with carry, per-lane selection, and 64-bit multiply-add: the operations that
// read or write a lane mask beside their vector operands.
#include <type_traits>

#include "core/lanes.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// The lane mask in source `slot`: an SGPR pair or a constant.
u64 mask_source(const Wave& w, const Code& c, int slot) { return scalar64(w, c.src[slot]); }

struct Sum {
  U8v value;
  I8v carry;
};
constexpr auto add = [](U8v a, U8v b, U8v in) {
  const U8v partial = a + b, sum = partial + in;
  return Sum{sum, (partial < a) | (sum < partial)};
};
constexpr auto sub = [](U8v a, U8v b, U8v in) {
  const U8v partial = a - b, difference = partial - in;
  return Sum{difference, (a < b) | (partial < in)};
};
constexpr auto subrev = [](U8v a, U8v b, U8v in) { return sub(b, a, in); };

/// Carry-out goes to the lanes' bits in dst[1]; bits of disabled lanes become zero.
template <auto op, bool carry_in>
void with_carry(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  const u64 in = carry_in ? mask_source(w, c, 2) : 0;
  u64 out = 0;
  write_lanes(w, w.v[c.dst], [&](int g) {
    const U8v one = __builtin_bit_cast(U8v, spread_mask(in >> (8 * g) & 0xff)) & 1;
    const Sum sum = op(load8(a, g), load8(b, g), one);
    out |= u64{mask_bits(sum.carry)} << (8 * g);
    return sum.value;
  });
  w.set_mask(c.dst2, out & w.exec());
}

void cndmask(Wave& w, const Code& c) {
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1);
  const u64 mask = mask_source(w, c, 2);
  write_lanes(w, w.v[c.dst],
              [&](int g) { return choose(spread_mask(mask >> (8 * g) & 0xff), load8(b, g), load8(a, g)); });
}

template <class T>
void mad_64_32(Wave& w, const Code& c) {
  using Wide = std::conditional_t<std::is_signed_v<T>, i64, u64>;
  const u32 *a = source_row(w, c, 0), *b = source_row(w, c, 1), *e = source_row(w, c, 2);
  u32* d = w.v[c.dst];
  u64 carry = 0;
  each_lane(w, [&](int l) {
    const Wide product = Wide{get_lane<T>(a, l)} * Wide{get_lane<T>(b, l)};
    Wide sum;
    const bool over = __builtin_add_overflow(product, get_lane<Wide>(e, l), &sum);
    set_lane<Wide>(d, l, sum);
    carry |= u64{over} << l;
  });
  w.set_mask(c.dst2, carry);
}

constexpr HandlerRow kCarryRows[] = {
    {Op::v_add_co_u32, with_carry<add, false>},
    {Op::v_sub_co_u32, with_carry<sub, false>},
    {Op::v_subrev_co_u32, with_carry<subrev, false>},
    {Op::v_addc_co_u32, with_carry<add, true>},
    {Op::v_subb_co_u32, with_carry<sub, true>},
    {Op::v_subbrev_co_u32, with_carry<subrev, true>},
    {Op::v_cndmask_b32, cndmask},
    {Op::v_mad_u64_u32, mad_64_32<u32>},
    {Op::v_mad_i64_i32, mad_64_32<i32>},
};

}  // namespace

HandlerRows carry_handlers() { return kCarryRows; }

}  // namespace ckemu
