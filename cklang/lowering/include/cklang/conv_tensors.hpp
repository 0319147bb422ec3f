// SPDX-License-Identifier: MIT
// The tensors of a convolution as lattices, on the host.
#pragma once

#include "cklang/conv.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

#include <algorithm>

#include "cklang/conv_host.h"

namespace cklang {

constexpr int space_axes = 3;

inline index_t i32(int64_t value) { return static_cast<index_t>(value); }

/// One axis of a tensor.
struct Axis
{
    int64_t extent, stride;
};

/// Elements from the first to beyond the last one of a tensor of these axes.
template <std::size_t n>
int64_t span(const std::array<Axis, n>& axes)
{
    int64_t last = 0;
    for(const Axis& axis : axes)
        last += (axis.extent - 1) * axis.stride;
    return last + 1;
}

/// The axes as one, if the elements along them have one stride; extent 0 otherwise.
template <std::size_t n>
Axis joined(const std::array<Axis, n>& axes)
{
    Axis all{1, 0};
    for(std::size_t i = n; i-- > 0;)
    {
        if(axes[i].extent == 1)
            continue;
        if(all.extent != 1 && axes[i].stride != all.extent * all.stride)
            return {0, 0};
        all = {all.extent * axes[i].extent, all.extent == 1 ? axes[i].stride : all.stride};
    }
    return all;
}

template <std::size_t n>
Digits<static_cast<index_t>(n)> digits(const std::array<Axis, n>& axes)
{
    Digits<static_cast<index_t>(n)> made{};
    for(std::size_t i = 0; i < n; ++i)
        made.extents[i] = Divisor::of(i32(std::max<int64_t>(axes[i].extent, 1)));
    return made;
}

template <std::size_t n>
std::array<index_t, n> strides(const std::array<Axis, n>& axes)
{
    std::array<index_t, n> made{};
    for(std::size_t i = 0; i < n; ++i)
        made[i] = i32(axes[i].stride);
    return made;
}

template <typename Lattice, std::size_t outer, std::size_t inner>
Lattice lattice(const std::array<Axis, outer>& rows,
                const std::array<Axis, inner>& columns,
                const typename Lattice::Condition& condition = {},
                int64_t base                                 = 0)
{
    return {digits(rows), digits(columns), strides(rows), strides(columns), i32(base), condition};
}

/// The tensors of a problem, axis by axis as a direction's lattices take them.
template <typename Shape>
struct ConvTensors
{
    static constexpr index_t spatial = Shape::spatial;
    static constexpr int skip        = space_axes - spatial; // axes of space that are not used
    static constexpr index_t merged  = Shape::merged;

    using Pixel = std::array<Axis, 1 + spatial>;

    const ck_conv_problem& p;

    /// Images and positions.
    Pixel pixels(const int64_t* strides, const int64_t* extents) const
    {
        Pixel axes{};
        axes[0] = {p.n, strides[0]};
        for(index_t i = 0; i < spatial; ++i)
            axes[1 + i] = {extents[skip + i], strides[1 + skip + i]};
        return axes;
    }

    /// Channels of the groups in a tile.
    std::array<Axis, 2> channels(const int64_t* strides, int64_t of_group) const
    {
        return {Axis{merged, strides[4]}, Axis{of_group, strides[5]}};
    }

    std::array<Axis, spatial> taps(const int64_t* strides) const
    {
        std::array<Axis, spatial> axes{};
        for(index_t i = 0; i < spatial; ++i)
            axes[i] = {p.window[skip + i], strides[2 + skip + i]};
        return axes;
    }

    /// Pixels by channels.
    typename Shape::Pixels pixel_rows(const Pixel& axes, int64_t of_group) const
    {
        const std::array<Axis, 1> inner{Axis{merged * of_group, 1}};
        if constexpr(Shape::packed)
            return lattice<typename Shape::Pixels>(std::array{joined(axes)}, inner);
        else
            return lattice<typename Shape::Pixels>(axes, inner);
    }

    /// Windows by taps and channels: tap y of window o is at o * step + y * spread + shift.
    typename Shape::Windows windows(Pixel image,
                                    int64_t of_group,
                                    const int64_t* step,
                                    const int64_t* spread,
                                    const int64_t* shift,
                                    const int64_t* count) const
    {
        using Windows = typename Shape::Windows;
        const Axis channel{merged * of_group, 1};
        if constexpr(Shape::packed)
            return lattice<Windows>(std::array{joined(image)}, std::array{channel});
        else
        {
            typename Windows::Condition inside{};
            std::array<Axis, Shape::tap> inner{};
            inner[Shape::tap - 1] = channel;
            int64_t base          = 0;
            for(index_t i = 0; i < spatial; ++i)
            {
                const Axis along = image[1 + i];
                const int at     = skip + i;
                image[1 + i]     = {count[at], step[at] * along.stride};
                if constexpr(!Shape::pointwise)
                {
                    base += shift[at] * along.stride;
                    inner[i]           = {p.window[at], spread[at] * along.stride};
                    inside.step[i]   = i32(step[at]);
                    inside.spread[i] = i32(spread[at]);
                    inside.shift[i]  = i32(shift[at]);
                    inside.extent[i] = i32(along.extent);
                }
            }
            return lattice<Windows>(image, inner, inside, base);
        }
    }

    /// Features by taps and channels of the weights.
    FilterRows<Shape> filter_rows(const int64_t* strides) const
    {
        const Axis tap = joined(taps(strides));
        if constexpr(Shape::blocks)
            return lattice<FilterRows<Shape>>(
                std::array{Axis{merged, strides[0]}, Axis{p.k, strides[1]}},
                std::array{tap, Axis{merged, 0}, Axis{p.c, 1}});
        else
            return lattice<FilterRows<Shape>>(std::array{Axis{p.k, strides[1]}},
                                              std::array{Axis{tap.extent * p.c, 1}});
    }

    /// Taps and features by channels of the weights.
    FilterTaps<Shape> filter_taps(const int64_t* strides) const
    {
        const auto tap = taps(strides);
        std::array<Axis, Shape::tap + Shape::blocks> rows{};
        if constexpr(!Shape::pointwise)
            std::copy(tap.begin(), tap.end(), rows.begin());
        rows.back() = {p.k, strides[1]};
        if constexpr(Shape::blocks)
        {
            rows[Shape::tap - 1] = {merged, strides[0]};
            return lattice<FilterTaps<Shape>>(rows, std::array{Axis{merged, 0}, Axis{p.c, 1}});
        }
        else
            return lattice<FilterTaps<Shape>>(rows, std::array{Axis{p.c, 1}});
    }

    /// The weights' taps and channels, and features.
    std::array<Axis, spatial + 3> filter(const int64_t* strides) const
    {
        std::array<Axis, spatial + 3> axes{};
        axes[0]        = {merged, strides[0]};
        axes[1]        = {p.k, strides[1]};
        const auto tap = taps(strides);
        std::copy(tap.begin(), tap.end(), axes.begin() + 2);
        axes.back() = {p.c, strides[5]};
        return axes;
    }
};

} // namespace cklang

#endif
