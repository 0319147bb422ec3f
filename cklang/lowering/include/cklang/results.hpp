// SPDX-License-Identifier: MIT
// Epilogues with several results: the user's function gives a tuple, whose first member is stored
// as E. The others are operands of the kernel that are written instead of read, after all that are
// read.
#pragma once

#include "cklang/direct.hpp"
#include "cklang/epilogue.hpp"

namespace cklang {

/// A result beside E: how it is addressed, and how many elements one store moves along n.
template <typename DataType_, Kind kind_, index_t vector_, index_t tile_m, index_t tile_n, bool pad_n>
struct Result
{
    using DataType                  = DataType_;
    static constexpr Kind kind      = kind_;
    static constexpr index_t vector = vector_;

    static_assert(kind == Kind::full || (kind == Kind::strided && vector == 1));

    /// The result as an M x N tensor view. Beyond its ends along n, where elements of the next row
    /// stand, nothing is stored; beyond those along m the buffer ends, unless m is the inner axis.
    CK_TILE_DEVICE static auto
    view(const void* pointer, index_t m, index_t n, index_t stride_m, index_t stride_n)
    {
        using namespace ck_tile;
        auto* data              = static_cast<DataType*>(const_cast<void*>(pointer));
        constexpr bool is_inner = kind == Kind::full;
        const auto lengths      = make_tuple(m, n);
        constexpr auto tile     = make_tuple(number<tile_m>{}, number<tile_n>{});
        const auto padded       = [&](const auto& strides) {
            const auto plain = make_naive_tensor_view<address_space_enum::global>(
                data, lengths, strides, number<vector>{}, number<is_inner ? 1 : -1>{});
            return pad_tensor_view(plain, tile, sequence<!is_inner, pad_n || !is_inner>{});
        };
        // A single row has no step, but rows beyond it must end outside the buffer.
        if constexpr(is_inner)
            return padded(make_tuple(m == 1 ? n : stride_m, number<1>{}));
        else
            return padded(make_tuple(stride_m, stride_n));
    }
};

template <typename T>
constexpr bool is_result = false;
template <typename T, Kind kind, index_t vector, index_t m, index_t n, bool pad>
constexpr bool is_result<Result<T, kind, vector, m, n, pad>> = true;

/// How many operands are read. All results follow them.
template <typename... Ds>
constexpr index_t reads_of = (0 + ... + !is_result<Ds>);

/// Tiles of one distribution, one for each of `DataTypes`.
template <typename... DataTypes, typename Distribution>
CK_TILE_DEVICE auto result_tiles(const Distribution& distribution)
{
    return ck_tile::make_tuple(
        ck_tile::make_static_distributed_tensor<DataTypes>(distribution)...);
}

/// results = function(cs..., ds...) for all elements that a thread holds of tiles of one
/// distribution.
template <typename Function,
          typename Results,
          typename CTiles,
          typename DTiles,
          std::size_t... C,
          std::size_t... I,
          std::size_t... R>
CK_TILE_DEVICE void apply_several(Results& results,
                                  const CTiles& cs,
                                  const DTiles& ds,
                                  std::index_sequence<C...>,
                                  std::index_sequence<I...>,
                                  std::index_sequence<R...>)
{
    using namespace ck_tile;
    using CTile = remove_cvref_t<decltype(cs[number<0>{}])>;
    static_for<0, CTile::get_thread_buffer_size(), 1>{}([&](auto i) {
        const auto values = Function{}(
            cs[number<static_cast<index_t>(C)>{}].get_thread_buffer()[i]...,
            widen(ds[number<static_cast<index_t>(I)>{}].get_thread_buffer()[i])...);
        const auto put = [&](auto place) {
            auto& tile = results(place);
            using T    = typename remove_cvref_t<decltype(tile)>::DataType;
            tile.get_thread_buffer()(i) = narrow<T>(values[place]);
        };
        (put(number<static_cast<index_t>(R)>{}), ...);
    });
}

/// The epilogue of epilogue.hpp with several results.
template <typename Problem_, typename Function, typename... Ds>
struct ResultsEpilogue : Epilogue<Problem_, Function, Ds...>
{
    using Single      = Epilogue<Problem_, Function, Ds...>;
    using Base        = typename Single::Base;
    using Problem     = Problem_;
    using AccDataType = typename Base::AccDataType;
    using ODataType   = typename Base::ODataType;

    static constexpr index_t operands = sizeof...(Ds);
    static constexpr index_t reads    = reads_of<Ds...>;
    static constexpr index_t results  = 1 + operands - reads;

    template <typename OutWindow, typename AccTile, typename DWindows>
    CK_TILE_DEVICE void
    operator()(OutWindow& out, const AccTile& acc, const DWindows& ds, void* shared)
    {
        store(out, ck_tile::make_tuple(acc), ds, shared);
    }

    protected:
    /// The function of several accumulators, which pass through LDS one after the other.
    template <typename OutWindow, typename... AccTiles, typename DWindows>
    CK_TILE_DEVICE void store(OutWindow& out,
                                     const ck_tile::tuple<AccTiles...>& accs,
                                     const DWindows& ds,
                                     void* shared)
    {
        using namespace ck_tile;

        constexpr index_t count = sizeof...(AccTiles);
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
            const auto pass = [&](auto a) {
                block_sync_lds();
                Base::template slice_acc_tile<part.value>(accs[a], acc_part);
                store_tile(lds_write, acc_part);
            };
            pass(number<0>{});
            // The loads of D are in flight while the tile goes through LDS.
            const auto d_tiles =
                generate_tuple([&](auto i) { return load_tile(d_windows[i]); }, number<reads>{});
            auto cs = generate_tuple(
                [&](auto) { return make_static_distributed_tensor<AccDataType>(out_distribution); },
                number<count>{});
            static_for<0, count, 1>{}([&](auto a) {
                if constexpr(a.value > 0)
                    pass(a);
                block_sync_lds();
                cs(a) = load_tile(lds_read);
            });
            auto es = tiles(out_distribution, std::make_index_sequence<results - 1>{});
            apply_several<Function>(es,
                                    cs,
                                    d_tiles,
                                    std::make_index_sequence<count>{},
                                    std::make_index_sequence<reads>{},
                                    std::make_index_sequence<results>{});
            store_tile(out, es[number<0>{}]);
            static_for<1, results, 1>{}([&](auto r) {
                store_tile(d_windows(number<reads + r.value - 1>{}), es[r]);
            });

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
    template <typename Distribution, std::size_t... R>
    CK_TILE_DEVICE static auto tiles(const Distribution& distribution, std::index_sequence<R...>)
    {
        return result_tiles<ODataType,
                            typename std::tuple_element_t<reads + R, std::tuple<Ds...>>::DataType...>(
            distribution);
    }

    using OutPattern = ck_tile::tile_distribution_encoding_pattern_2d<
        Base::kBlockSize,
        Base::MPerIterationShuffle,
        Base::NPerIterationShuffle,
        access_width(Base::NPerIterationShuffle, Base::GetVectorSizeC()),
        ck_tile::tile_distribution_pattern::thread_raked>;
};

/// The epilogue of direct.hpp with several results.
template <typename Problem_, index_t vector_e, typename Function, typename... Ds>
struct DirectResultsEpilogue : DirectEpilogue<Problem_, vector_e, Function, Ds...>
{
    using Base      = DirectEpilogue<Problem_, vector_e, Function, Ds...>;
    using ODataType = typename Base::ODataType;

    static constexpr index_t operands = sizeof...(Ds);
    static constexpr index_t reads    = reads_of<Ds...>;
    static constexpr index_t results  = 1 + operands - reads;

    template <typename OutWindow, typename AccTile, typename DWindows>
    CK_TILE_DEVICE void operator()(OutWindow& out, const AccTile& acc, const DWindows& ds, void*)
    {
        store(out, ck_tile::make_tuple(acc), ds, std::make_index_sequence<results - 1>{});
    }

    protected:
    /// The function of several accumulators.
    template <typename OutWindow,
              typename AccTile,
              typename... AccTiles,
              typename DWindows,
              std::size_t... R>
    CK_TILE_DEVICE void store(OutWindow& out,
                                     const ck_tile::tuple<AccTile, AccTiles...>& accs,
                                     const DWindows& ds,
                                     std::index_sequence<R...>)
    {
        using namespace ck_tile;

        constexpr auto distribution = AccTile::get_tile_distribution();
        const auto d_tiles          = generate_tuple(
            [&](auto i) { return load_tile(make_tile_window(ds[i], distribution)); },
            number<reads>{});
        auto es = result_tiles<
            ODataType,
            typename std::tuple_element_t<reads + R, std::tuple<Ds...>>::DataType...>(distribution);
        apply_several<Function>(es,
                                accs,
                                d_tiles,
                                std::make_index_sequence<1 + sizeof...(AccTiles)>{},
                                std::make_index_sequence<reads>{},
                                std::make_index_sequence<results>{});
        store_tile(out, es[number<0>{}]);
        static_for<1, results, 1>{}([&](auto r) {
            auto window = make_tile_window(ds[number<reads + r.value - 1>{}], distribution);
            store_tile(window, es[r]);
        });
    }
};

} // namespace cklang
