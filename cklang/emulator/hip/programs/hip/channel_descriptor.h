// SPDX-License-Identifier: MIT
// Descriptions of an array's elements, from their types.
#pragma once

#include <type_traits>

#include <hip/texture_types.h>
#include <hip/vector_types.h>

static inline hipChannelFormatDesc hipCreateChannelDesc(int x, int y, int z, int w, hipChannelFormatKind kind)
{
    return {x, y, z, w, kind};
}

namespace cklang_hip {

template <typename T>
hipChannelFormatDesc channels_of(int count)
{
    constexpr int bits                  = 8 * sizeof(T);
    constexpr hipChannelFormatKind kind = !std::is_integral_v<T>  ? hipChannelFormatKindFloat
                                          : std::is_signed_v<T> ? hipChannelFormatKindSigned
                                                                : hipChannelFormatKindUnsigned;
    const auto channel = [count](int n) { return n < count ? bits : 0; };
    return {channel(0), channel(1), channel(2), channel(3), kind};
}

} // namespace cklang_hip

template <typename T>
hipChannelFormatDesc hipCreateChannelDesc()
{
    if constexpr(std::is_class_v<T>)
        return cklang_hip::channels_of<cklang_hip::Element<T>>(cklang_hip::Elements<T>::count);
    else
        return cklang_hip::channels_of<T>(1);
}

static inline hipChannelFormatDesc hipCreateChannelDescHalf()
{
    return {16, 0, 0, 0, hipChannelFormatKindFloat};
}
static inline hipChannelFormatDesc hipCreateChannelDescHalf1()
{
    return hipCreateChannelDescHalf();
}
static inline hipChannelFormatDesc hipCreateChannelDescHalf2()
{
    return {16, 16, 0, 0, hipChannelFormatKindFloat};
}
static inline hipChannelFormatDesc hipCreateChannelDescHalf4()
{
    return {16, 16, 16, 16, hipChannelFormatKindFloat};
}
