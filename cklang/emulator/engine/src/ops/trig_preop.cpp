// SPDX-License-Identifier: MIT
//
// v_trig_preop_f64: 53 bits of 2/pi, from a place that src1 and the size of src0 choose: a step of the
// reduction of large angles.
#include "core/lanes.h"
#include "ops/handlers.h"

namespace ckemu {

namespace {

/// The first 1,201 bits of 2/pi behind the point, the highest first.
constexpr int kDigits = 1201;
constexpr u64 kTwoOverPi[] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
    0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b0000,
};

u64 digit(int n) { return n < kDigits ? kTwoOverPi[n / 64] >> (63 - n % 64) & 1 : 0; }

constexpr auto segment = [](double angle, u32 number) {
  const int exponent = static_cast<int>(bits_as<u64>(angle) >> 52 & 0x7ff);
  int shift = static_cast<int>(number & 31) * 53;
  if (exponent > 1077) shift += exponent - 1077;
  u64 digits = 0;
  for (int n = 0; n < 53; ++n) digits = digits << 1 | digit(shift + n);
  const int scale = -53 - shift + (exponent >= 1968 ? 128 : 0);
  return __builtin_scalbn(static_cast<double>(digits), scale);
};

constexpr HandlerRow kTrigPreopRows[] = {
    {Op::v_trig_preop_f64, lane2<double, double, u32, segment>},
};

}  // namespace

HandlerRows trig_preop_handlers() { return kTrigPreopRows; }

}  // namespace ckemu
