// SPDX-License-Identifier: MIT
// Epilogues that take the largest of a value over groups of columns: rows are quantised by group,
// and one number is stored for each group. The user's function gives that value last, and takes
// its largest as its last parameter.
#pragma once

#include "cklang/log_sums.hpp"
#include "cklang/results.hpp"

namespace cklang {

/// A result beside E with one element for each row and group of columns.
template <typename DataType_, index_t columns_>
struct GroupResult
{
    using DataType                   = DataType_;
    static constexpr Kind kind       = Kind::strided;
    static constexpr index_t vector  = 1;
    static constexpr index_t columns = columns_;

    /// The result as a tensor view of rows by groups.
    CK_TILE_DEVICE static auto
    view(const void* pointer, index_t m, index_t n, index_t stride_m, index_t stride_n)
    {
        return ck_tile::make_naive_tensor_view<ck_tile::address_space_enum::global>(
            static_cast<DataType*>(const_cast<void*>(pointer)),
            ck_tile::make_tuple(m, n / columns),
            ck_tile::make_tuple(stride_m, stride_n),
            number<1>{},
            number<-1>{});
    }
};

template <typename T, index_t columns>
constexpr bool is_result<GroupResult<T, columns>> = true;

template <typename T>
constexpr bool is_group_result = false;
template <typename T, index_t columns>
constexpr bool is_group_result<GroupResult<T, columns>> = true;

/// The epilogue of results.hpp, whose function takes the largest of `columns` columns.
template <typename Problem_, index_t columns, typename Function, typename... Ds>
struct QuantisedEpilogue : ResultsEpilogue<Problem_, Function, Ds...>
{
    using Single      = ResultsEpilogue<Problem_, Function, Ds...>;
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
        using namespace ck_tile;

        constexpr auto acc_distribution =
            make_static_tile_distribution(Base::MakeLdsDistributionEncode());
        constexpr auto distribution = Pattern::make_2d_static_tile_distribution();
        constexpr auto extent       = make_tuple(number<height>{}, number<width>{});

        auto acc_part  = make_static_distributed_tensor<AccDataType>(acc_distribution);
        auto lds       = make_tensor_view<address_space_enum::lds>(
            static_cast<AccDataType*>(shared), Base::template MakeLdsBlockDescriptor<Problem>());
        auto lds_write = make_tile_window(lds, extent, {0, 0}, acc_distribution);
        auto lds_read  = make_tile_window(lds, extent, {0, 0}, distribution);

        auto read_windows = generate_tuple(
            [&](auto i) { return make_tile_window(ds[i], distribution); }, number<reads>{});
        // Of a result that has one element a group, the window stays where the tile begins.
        auto windows = generate_tuple(
            [&](auto r) {
                constexpr index_t place = reads + r.value;
                if constexpr(is_group<place>)
                    return ds[number<place>{}];
                else
                    return make_tile_window(ds[number<place>{}], distribution);
            },
            number<results - 1>{});

        constexpr index_t groups = Base::SFC::get_num_of_access() / passes;
        static_for<0, groups, 1>{}([&](auto group) {
            auto cs = generate_tuple(
                [&](auto) { return make_static_distributed_tensor<AccDataType>(distribution); },
                number<passes>{});
            auto d_tiles = generate_tuple(
                [&](auto) { return read_tiles(distribution, std::make_index_sequence<reads>{}); },
                number<passes>{});
            Maximum peaks[rows];

            // Read what the passes of a group of columns have, and find the largest.
            static_for<0, passes, 1>{}([&](auto pass) {
                constexpr index_t part = group.value * passes + pass.value;
                static_assert(is_together<part, group.value * passes>());
                block_sync_lds();
                Base::template slice_acc_tile<part>(acc, acc_part);
                store_tile(lds_write, acc_part);
                // The loads of D are in flight while the tile goes through LDS.
                static_for<0, reads, 1>{}(
                    [&](auto i) { d_tiles(pass)(i) = load_tile(read_windows[i]); });
                block_sync_lds();
                cs(pass) = load_tile(lds_read);
                static_for<0, size, 1>{}([&](auto i) {
                    const auto values = call(cs[pass], d_tiles[pass], i, 0.f, Reads{});
                    peaks[i / across] = peaks[i / across].join({values[number<results>{}]});
                });
                move<part>([&](const auto& step) {
                    static_for<0, reads, 1>{}(
                        [&](auto i) { move_tile_window(read_windows(i), step); });
                });
            });
#pragma unroll
            for(index_t row = 0; row < rows; ++row)
#pragma unroll
                for(index_t distance = lanes / 2; distance > 0; distance /= 2)
                    peaks[row] = peaks[row].join(peaks[row].of_lane(get_lane_id() ^ distance));

            static_for<0, passes, 1>{}([&](auto pass) {
                constexpr index_t part = group.value * passes + pass.value;
                auto es = tiles(distribution, std::make_index_sequence<results - 1>{});
                static_for<0, size, 1>{}([&](auto i) {
                    const float peak  = peaks[i / across].value();
                    const auto values = call(cs[pass], d_tiles[pass], i, peak, Reads{});
                    static_for<0, results, 1>{}([&](auto r) {
                        using T = typename remove_cvref_t<decltype(es[r])>::DataType;
                        es(r).get_thread_buffer()(i) = narrow<T>(values[r]);
                    });
                });
                store_tile(out, es[number<0>{}]);
                static_for<1, results, 1>{}([&](auto r) {
                    constexpr auto w = number<r.value - 1>{};
                    if constexpr(!is_group<reads + w.value>)
                        store_tile(windows(w), es[r]);
                    else if constexpr(pass.value == passes - 1)
                        store_numbers<part>(windows[w], es[r]);
                });
                move<part>([&](const auto& step) {
                    move_tile_window(out, step);
                    static_for<0, results - 1, 1>{}([&](auto w) {
                        if constexpr(!is_group<reads + w.value>)
                            move_tile_window(windows(w), step);
                    });
                });
            });
        });
    }

    private:
    static constexpr index_t height = Base::MPerIterationShuffle;
    static constexpr index_t width  = Base::NPerIterationShuffle;
    static_assert(columns % width == 0 || width % columns == 0);

    using Pattern = ck_tile::tile_distribution_encoding_pattern_2d<
        Base::kBlockSize,
        height,
        width,
        access_width(width, Base::GetVectorSizeC()),
        ck_tile::tile_distribution_pattern::thread_raked>;
    using Reads = std::make_index_sequence<reads>;

    /// Passes through LDS that have the columns of one group.
    static constexpr index_t passes = columns > width ? columns / width : 1;
    /// Neighbours along a row, and rows, that a thread has of a pass.
    static constexpr index_t across = Pattern::X1;
    static constexpr index_t rows   = Pattern::Y2;
    static constexpr index_t size   = rows * across;
    /// Lanes next to one another that have a group of a row.
    static constexpr index_t lanes = ck_tile::min(columns, width) / across;
    static_assert(ck_tile::min(columns, width) % across == 0 && lanes <= width / across);
    static_assert(width / across <= ck_tile::get_warp_size(), "a row is one wave's");

    template <index_t place>
    static constexpr bool is_group = is_group_result<std::tuple_element_t<place, std::tuple<Ds...>>>;

    /// Whether two passes have rows and a group in common.
    template <index_t part, index_t other>
    static constexpr bool is_together()
    {
        constexpr auto here  = Base::SFC::get_index(ck_tile::number<part>{});
        constexpr auto there = Base::SFC::get_index(ck_tile::number<other>{});
        constexpr auto m     = ck_tile::number<0>{};
        constexpr auto n     = ck_tile::number<1>{};
        return here.at(m) == there.at(m) && here.at(n) / columns == there.at(n) / columns;
    }

    /// The function on element `i` of a thread's part of a pass.
    template <typename CTile, typename DTiles, typename Index, std::size_t... I>
    CK_TILE_DEVICE static auto
    call(const CTile& c, const DTiles& ds, Index i, float peak, std::index_sequence<I...>)
    {
        return Function{}(
            c.get_thread_buffer()[i],
            widen(ds[number<static_cast<index_t>(I)>{}].get_thread_buffer()[i])...,
            peak);
    }

    /// Move windows from a pass to the next one.
    template <index_t part, typename Move>
    CK_TILE_DEVICE static void move(const Move& windows)
    {
        using namespace ck_tile;
        if constexpr(part + 1 != Base::SFC::get_num_of_access())
        {
            constexpr auto step = Base::SFC::get_forward_step(number<part>{});
            windows(multi_index<2>{step.at(number<0>{}), step.at(number<1>{})});
        }
    }

    template <typename Distribution, std::size_t... I>
    CK_TILE_DEVICE static auto read_tiles(const Distribution& distribution,
                                          std::index_sequence<I...>)
    {
        return result_tiles<
            typename std::tuple_element_t<I, std::tuple<Ds...>>::DataType...>(distribution);
    }

    template <typename Distribution, std::size_t... R>
    CK_TILE_DEVICE static auto tiles(const Distribution& distribution, std::index_sequence<R...>)
    {
        return result_tiles<ODataType,
                            typename std::tuple_element_t<reads + R, std::tuple<Ds...>>::DataType...>(
            distribution);
    }

    /// Store one element of each row and group that this thread's lanes have.
    template <index_t part, typename Window, typename Tile>
    CK_TILE_DEVICE static void store_numbers(const Window& window, const Tile& tile)
    {
        using namespace ck_tile;
        const auto& view       = window.get_bottom_tensor_view();
        const auto& descriptor = view.get_tensor_descriptor();
        const auto origin      = window.get_window_origin();
        constexpr auto place   = Base::SFC::get_index(number<part>{});
        sweep_tile_span(Tile::get_distributed_spans()[number<0>{}], [&](auto row) {
            constexpr auto index = make_tuple(row, tile_distributed_index<0>{});
            const auto own =
                get_x_indices_from_distributed_indices(Tile::get_tile_distribution(), index);
            const index_t m = origin.at(number<0>{}) + place.at(number<0>{}) + own.at(number<0>{});
            const index_t n = origin.at(number<1>{}) + place.at(number<1>{}) + own.at(number<1>{});
            const bool is_first = get_lane_id() % lanes == 0;
            if(is_first && m < descriptor.get_length(number<0>{}) &&
               n / columns < descriptor.get_length(number<1>{}))
                view.get_buffer_view().p_data_[descriptor.calculate_offset(
                    make_tuple(m, n / columns))] = tile[index];
        });
    }
};

} // namespace cklang
