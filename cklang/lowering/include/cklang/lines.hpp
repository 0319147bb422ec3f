// SPDX-License-Identifier: MIT
// What kernels of lines have in common: places in memory, and values of elements.
#pragma once

#include <hip/hip_runtime.h>

#include "cklang/lines_host.h"
#include "cklang/narrow.hpp"

namespace cklang {

/// What elements are computed in: i32 of integers, f32 of floats.
template <typename E>
using LineValue = std::conditional_t<ck_tile::is_any_of<E, int8_t, int32_t>::value, int32_t, float>;

template <typename E>
CK_TILE_DEVICE LineValue<E> line_value(E element)
{
    if constexpr(std::is_same_v<LineValue<E>, int32_t>)
        return element;
    else
        return ck_tile::type_convert<float>(element);
}

/// How far an index leads along axes that follow one another, the last one innermost.
CK_TILE_DEVICE int64_t line_place(const int64_t* extents, const int64_t* strides, uint32_t index)
{
    int64_t place = 0;
#pragma unroll
    for(int axis = CK_LINES_AXES - 1; axis > 0; --axis)
    {
        const uint32_t extent = static_cast<uint32_t>(extents[axis]);
        if(extent != 1)
        {
            place += static_cast<int64_t>(index % extent) * strides[axis];
            index /= extent;
        }
    }
    return place + static_cast<int64_t>(index) * strides[0];
}

CK_TILE_DEVICE uint32_t line_count(const int64_t* extents)
{
    return static_cast<uint32_t>(extents[0] * extents[1] * extents[2] * extents[3]);
}

} // namespace cklang
