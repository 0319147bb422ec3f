// SPDX-License-Identifier: MIT
//
// Floating-point arithmetic on scalar registers (gfx12): each operation is a vector operation of
// one lane, so that there is one implementation of its numbers.
#include "core/fault.h"
#include "core/lanes.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// Runs `plain` for lane 0 alone with its result in `inner.dst`.
template <Op plain>
void run_one_lane(Wave& w, const Code& inner) {
  const u64 exec = w.exec();
  w.set_exec(1);
  handler_of(plain)(w, inner);
  w.set_exec(exec);
}

template <Op plain>
void as_vector(Wave& w, const Code& c) {
  if (c.inst->omod != 0 || c.inst->clamp)
    raise(w, FaultKind::Instruction, "clamp or omod of a scalar result is not emulated");
  Code inner = c;
  inner.dst = static_cast<u16>(w.rows + kSpareResult);
  inner.dst_kind = Kind::Vgpr;
  u32* result = w.v[inner.dst];
  result[0] = w.s[c.dst];  // multiply-add into the destination reads it
  run_one_lane<plain>(w, inner);
  w.s[c.dst] = result[0];
}

template <Op plain>
void compare(Wave& w, const Code& c) {
  Code inner = c;
  inner.dst = kDiscarded;
  run_one_lane<plain>(w, inner);
  w.scc = (w.s[kDiscarded] & 1) != 0;
}

/// The high half, which the vector operation would choose by a modifier.
void cvt_high_f16(Wave& w, const Code& c) {
  w.s[c.dst] = bits_as<u32>(_cvtsh_ss(static_cast<u16>(scalar32(w, c.src[0]) >> 16)));
}

// clang-format off
#define SCALAR(name, plain) {Op::name, as_vector<Op::plain>},
#define BOTH(name, plain) SCALAR(s_##name##_f32, v_##plain##_f32) SCALAR(s_##name##_f16, v_##plain##_f16)
#define TRANSCENDENTAL(name) SCALAR(v_s_##name##_f32, v_##name##_f32) SCALAR(v_s_##name##_f16, v_##name##_f16)
#define COMPARE(name)                                         \
  {Op::s_cmp_##name##_f32, compare<Op::v_cmp_##name##_f32>},  \
  {Op::s_cmp_##name##_f16, compare<Op::v_cmp_##name##_f16>},

constexpr HandlerRow kRdnaScalarFloatRows[] = {
    BOTH(add, add) BOTH(sub, sub) BOTH(mul, mul) BOTH(fmac, fmac)
    BOTH(min_num, min_num) BOTH(max_num, max_num) BOTH(minimum, minimum) BOTH(maximum, maximum)
    BOTH(ceil, ceil) BOTH(floor, floor) BOTH(trunc, trunc) BOTH(rndne, rndne)
    SCALAR(s_fmaak_f32, v_fmaak_f32) SCALAR(s_fmamk_f32, v_fmamk_f32)
    SCALAR(s_cvt_f32_i32, v_cvt_f32_i32) SCALAR(s_cvt_f32_u32, v_cvt_f32_u32)
    SCALAR(s_cvt_i32_f32, v_cvt_i32_f32) SCALAR(s_cvt_u32_f32, v_cvt_u32_f32)
    SCALAR(s_cvt_f16_f32, v_cvt_f16_f32) SCALAR(s_cvt_f32_f16, v_cvt_f32_f16)
    SCALAR(s_cvt_pk_rtz_f16_f32, v_cvt_pkrtz_f16_f32)
    {Op::s_cvt_hi_f32_f16, cvt_high_f16},
    TRANSCENDENTAL(exp) TRANSCENDENTAL(log) TRANSCENDENTAL(rcp) TRANSCENDENTAL(rsq) TRANSCENDENTAL(sqrt)
    COMPARE(lt) COMPARE(eq) COMPARE(le) COMPARE(gt) COMPARE(lg) COMPARE(ge) COMPARE(o) COMPARE(u)
    COMPARE(nge) COMPARE(nlg) COMPARE(ngt) COMPARE(nle) COMPARE(neq) COMPARE(nlt)
};
// clang-format on

}  // namespace

HandlerRows rdna_scalar_float_handlers() { return kRdnaScalarFloatRows; }

}  // namespace ckemu
