// SPDX-License-Identifier: MIT
#pragma once

#include "core/base.h"

namespace ckemu {

/// ln(2)^n / n!, the last one first: 2^x of x in [-1/2, 1/2], by the interpreter and by translated code.
constexpr double kExp2Series[] = {0x1.816193166d0f9p-40, 0x1.c3bd650fc2986p-36,
                                  0x1.e8cac7351bb25p-32, 0x1.e4cf5158b8ecap-28,
                                  0x1.b5253d395e7c4p-24, 0x1.62c0223a5c824p-20,
                                  0x1.ffcbfc588b0c7p-17, 0x1.430912f86c787p-13,
                                  0x1.5d87fe78a6731p-10, 0x1.3b2ab6fba4e77p-7,
                                  0x1.c6b08d704a0cp-5,   0x1.ebfbdff82c58fp-3,
                                  0x1.62e42fefa39efp-1,  1.0};
constexpr u32 kExp2Terms = sizeof kExp2Series / sizeof kExp2Series[0];

}  // namespace ckemu
