// SPDX-License-Identifier: MIT
// Attention of bf8, for which CK Tile has the parts but no kernel.
#pragma once

#include "cklang/attention.hpp"

#include <tuple>

// The matrix products of CDNA. CK Tile's policies choose them for fp8 by its type, and for all
// other types ask its dispatcher, which has none of bf8 with these tiles. They are those of fp8
// with the instruction of bf8: which lane has which element does not depend on it.
namespace ck_tile::impl {

template <index_t swizzle_factor>
struct Bf8Product
{
    using Type = WarpGemmImpl<WarpGemmAttributeMfmaIterateKAndTransposedCDistribution_SwizzleB<
        WarpGemmAttributeMfmaImpl_f32_32x32x16_bf8_bf8<WGAttrCtlEnum::Default_>,
        2,
        swizzle_factor>>;
};

/// Of queries and keys. CK Tile notes of fp8 that other factors than 4 give wrong results.
template <>
struct WarpGemmDispatcher<bf8_t, bf8_t, float, 32, 32, 32, true, true> : Bf8Product<4>
{
};

/// Of weights and values.
template <>
struct WarpGemmDispatcher<bf8_t, bf8_t, float, 32, 32, 32, true, false> : Bf8Product<2>
{
};

} // namespace ck_tile::impl

namespace cklang {

/// A pipeline that is given weights in bf8. Its own conversion, cast_tile of CK Tile, makes the
/// bits of fp8 for either type where the GPU has an instruction that converts.
template <typename Base>
struct Bf8Weights : Base
{
    template <typename... Args>
    CK_TILE_DEVICE auto operator()(Args&&... args) const
    {
        const auto all = std::forward_as_tuple(args...);
        return [&]<std::size_t... before, std::size_t... after>(
                   std::index_sequence<before...>, std::index_sequence<after...>) {
            const auto& change  = std::get<weights>(all);
            const auto rounded = [&](const auto& x) { return narrow<ck_tile::bf8_t>(change(x)); };
            return Base::operator()(std::get<before>(all)...,
                                    rounded,
                                    std::get<weights + 1 + after>(all)...);
        }(std::make_index_sequence<weights>{},
          std::make_index_sequence<sizeof...(Args) - weights - 1>{});
    }

    private:
    /// The place of the function of weights among the arguments.
    static constexpr std::size_t weights = 12;
};

} // namespace cklang
