// SPDX-License-Identifier: MIT
// How many elements a thread of the sums after the gradient of attention has: host and kernel agree.
#pragma once

#include <cstdint>

namespace cklang {

constexpr int32_t wide_sum = 4;

/// Several where rows are whole numbers of them and 32 bits count all elements.
constexpr int32_t elements_of_thread(int64_t rows, int64_t width)
{
    return width % wide_sum == 0 && rows * width < int64_t{1} << 31 ? wide_sum : 1;
}

} // namespace cklang
