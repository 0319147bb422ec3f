// SPDX-License-Identifier: MIT
// CK Tile's cshuffle epilogue with two changes: the accumulator stays in single precision until
// the user's function has returned (CK Tile rounds it to E on its way through LDS), and the
// function sees every D widened.
#pragma once

#include "cklang/function.hpp"
#include "cklang/policy.hpp"

namespace cklang {

template <typename Problem_, typename Function, typename... Ds>
struct Epilogue : ck_tile::CShuffleEpilogue<Problem_>
{
    using Base        = ck_tile::CShuffleEpilogue<Problem_>;
    using Problem     = Problem_;
    using AccDataType = typename Base::AccDataType;
    using ODataType   = typename Base::ODataType;

    static constexpr index_t operands = sizeof...(Ds);

    template <index_t I>
    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeD(number<I>)
    {
        return std::tuple_element_t<I, std::tuple<Ds...>>::vector;
    }

    CK_TILE_HOST_DEVICE static constexpr index_t GetSmemSize()
    {
        return Base::MPerIterationShuffle * Base::NPerIterationShuffle * sizeof(AccDataType);
    }

    template <typename OutWindow, typename AccTile, typename DWindows>
    CK_TILE_DEVICE void
    operator()(OutWindow& out, const AccTile& acc, const DWindows& ds, void* shared)
    {
        using namespace ck_tile;

        constexpr auto acc_distribution =
            make_static_tile_distribution(Base::MakeLdsDistributionEncode());
        constexpr auto out_distribution = OutPattern::make_2d_static_tile_distribution();
        constexpr auto extent           = make_tuple(number<Base::MPerIterationShuffle>{},
                                           number<Base::NPerIterationShuffle>{});

        auto acc_part  = make_static_distributed_tensor<AccDataType>(acc_distribution);
        auto lds       = make_tensor_view<address_space_enum::lds>(
            static_cast<AccDataType*>(shared), Base::template MakeLdsBlockDescriptor<Problem>());
        auto lds_write = make_tile_window(lds, extent, {0, 0}, acc_distribution);
        auto lds_read  = make_tile_window(lds, extent, {0, 0}, out_distribution);

        auto d_windows = generate_tuple(
            [&](auto i) { return make_tile_window(ds[i], out_distribution); }, number<operands>{});

        constexpr index_t parts = Base::SFC::get_num_of_access();
        static_for<0, parts, 1>{}([&](auto part) {
            block_sync_lds();
            Base::template slice_acc_tile<part.value>(acc, acc_part);
            store_tile(lds_write, acc_part);
            // The loads of D are in flight while the tile goes through LDS.
            const auto d_tiles =
                generate_tuple([&](auto i) { return load_tile(d_windows[i]); }, number<operands>{});
            block_sync_lds();

            const auto c = load_tile(lds_read);
            auto e       = make_static_distributed_tensor<ODataType>(out_distribution);
            apply<Function>(e, c, d_tiles, std::make_index_sequence<operands>{});
            store_tile(out, e);

            if constexpr(part.value != parts - 1)
            {
                constexpr auto step = Base::SFC::get_forward_step(part);
                move_tile_window(out, {step.at(number<0>{}), step.at(number<1>{})});
                static_for<0, operands, 1>{}([&](auto i) {
                    move_tile_window(d_windows[i], {step.at(number<0>{}), step.at(number<1>{})});
                });
            }
        });
    }

    private:
    using OutPattern = ck_tile::tile_distribution_encoding_pattern_2d<
        Base::kBlockSize,
        Base::MPerIterationShuffle,
        Base::NPerIterationShuffle,
        access_width(Base::NPerIterationShuffle, Base::GetVectorSizeC()),
        ck_tile::tile_distribution_pattern::thread_raked>;
};

} // namespace cklang
