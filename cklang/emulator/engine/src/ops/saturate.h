// SPDX-License-Identifier: MIT
//
// Integers cut off at the limits of a narrower type.
#pragma once

#include <limits>

#include "core/base.h"

namespace ckemu {

/// `value` in the range of T; Wide holds every T.
template <class T, class Wide>
constexpr T saturated(Wide value) {
  constexpr Wide low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(value < low ? low : value > high ? high : value);
}

}  // namespace ckemu
