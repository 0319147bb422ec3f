// SPDX-License-Identifier: MIT
// CK Tile's default epilogue with our function: elements are stored from the registers in which the
// matrix instructions leave them, and each D is read in that same distribution.
#pragma once

#include "ck_tile/ops/epilogue/default_2d_epilogue.hpp"

#include "cklang/function.hpp"

namespace cklang {

template <typename Problem_, index_t vector_e, typename Function, typename... Ds>
struct DirectEpilogue : ck_tile::DefaultGemm2DEpilogue<Problem_>
{
    using Base      = ck_tile::DefaultGemm2DEpilogue<Problem_>;
    using ODataType = typename Base::ODataType;

    static constexpr index_t operands = sizeof...(Ds);

    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeC() { return vector_e; }

    template <index_t I>
    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeD(number<I>)
    {
        return std::tuple_element_t<I, std::tuple<Ds...>>::vector;
    }

    template <typename OutWindow, typename AccTile, typename DWindows>
    CK_TILE_DEVICE void operator()(OutWindow& out, const AccTile& acc, const DWindows& ds, void*)
    {
        using namespace ck_tile;

        constexpr auto distribution = AccTile::get_tile_distribution();
        const auto d_tiles          = generate_tuple(
            [&](auto i) { return load_tile(make_tile_window(ds[i], distribution)); },
            number<operands>{});
        auto e = make_static_distributed_tensor<ODataType>(distribution);
        apply<Function>(e, acc, d_tiles, std::make_index_sequence<operands>{});
        store_tile(out, e);
    }
};

} // namespace cklang
