// SPDX-License-Identifier: MIT
// Epilogues whose results are never stored: of each row and each block of columns they store the
// log-sum-exp, the sum or the largest element. E is the matrix of these, one number a block.
#pragma once

#include "cklang/epilogue.hpp"

namespace cklang {

/// A number of another lane.
CK_TILE_DEVICE inline float lane_value(float value, uint32_t lane)
{
    const auto bits = __builtin_bit_cast(int, value);
    return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(lane * 4, bits));
}

/// A sum of elements.
struct Sum
{
    static constexpr float none = 0; // an element that there is not
    float sum                   = 0;

    CK_TILE_DEVICE float value() const { return sum; }
    CK_TILE_DEVICE Sum join(const Sum& other) const { return {sum + other.sum}; }
    CK_TILE_DEVICE Sum of_lane(uint32_t lane) const { return {lane_value(sum, lane)}; }

    template <ck_tile::index_t count>
    CK_TILE_DEVICE static Sum of(const float (&elements)[count])
    {
        Sum own;
        for(const float element : elements)
            own.sum += element;
        return own;
    }
};

/// The largest of elements; nan if one is.
struct Maximum
{
    static constexpr float none = -__builtin_huge_valf();
    float largest               = -__builtin_huge_valf();

    CK_TILE_DEVICE float value() const { return largest; }
    CK_TILE_DEVICE Maximum join(const Maximum& other) const
    {
        const bool is_own = largest > other.largest || largest != largest;
        return {is_own ? largest : other.largest};
    }
    CK_TILE_DEVICE Maximum of_lane(uint32_t lane) const { return {lane_value(largest, lane)}; }

    template <ck_tile::index_t count>
    CK_TILE_DEVICE static Maximum of(const float (&elements)[count])
    {
        Maximum own;
        for(const float element : elements)
            own = own.join({element});
        return own;
    }
};

/// The logarithm of a sum of exponentials, as the greatest exponent and a sum without overflow.
struct LogSum
{
    static constexpr float none = -__builtin_huge_valf();
    float largest = -__builtin_huge_valf();
    float sum     = 0; // of exp(x - shift())

    /// What is taken off each exponent: nothing if the greatest is infinite.
    CK_TILE_DEVICE float shift() const
    {
        return __builtin_fabsf(largest) < __builtin_huge_valf() ? largest : 0;
    }

    CK_TILE_DEVICE float value() const { return shift() + __builtin_elementwise_log(sum); }

    CK_TILE_DEVICE LogSum join(const LogSum& other) const
    {
        LogSum result;
        result.largest = __builtin_fmaxf(largest, other.largest);
        result.sum     = scaled(result) + other.scaled(result);
        return result;
    }

    /// The sum by the shift of `whole`, which has no smaller exponents.
    CK_TILE_DEVICE float scaled(const LogSum& whole) const
    {
        // A sum of nothing is 0 at any shift, and no finite factor changes that.
        return sum * __builtin_elementwise_exp(__builtin_fminf(shift() - whole.shift(), 0.f));
    }

    CK_TILE_DEVICE LogSum of_lane(uint32_t lane) const
    {
        return {lane_value(largest, lane), lane_value(sum, lane)};
    }

    template <ck_tile::index_t count>
    CK_TILE_DEVICE static LogSum of(const float (&exponents)[count])
    {
        LogSum own;
        for(const float exponent : exponents)
            own.largest = __builtin_fmaxf(own.largest, exponent);
        for(const float exponent : exponents)
            own.sum += __builtin_elementwise_exp(exponent - own.shift());
        return own;
    }
};

template <typename Part, typename Problem_, index_t columns, typename Function, typename... Ds>
struct BlocksEpilogue : Epilogue<Problem_, Function, Ds...>
{
    using Single      = Epilogue<Problem_, Function, Ds...>;
    using Base        = typename Single::Base;
    using Problem     = Problem_;
    using AccDataType = typename Base::AccDataType;
    using ODataType   = typename Base::ODataType;

    static constexpr index_t operands = sizeof...(Ds);
    static_assert(std::is_same_v<ODataType, float>);

    /// Numbers of E are stored one by one.
    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeC() { return 1; }

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

        auto d_windows = generate_tuple(
            [&](auto i) { return make_tile_window(ds[i], distribution); }, number<operands>{});

        // Of each row that the thread has in a part of the tile, and of the block under way.
        Part sums[Pattern::Y2];
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
            auto values  = make_static_distributed_tensor<float>(distribution);
            apply<Function>(values, c, d_tiles, std::make_index_sequence<operands>{});
            add(sums, values, out, place<part.value>());
            if constexpr(is_last<part.value>())
            {
                store(sums, values, out, place<part.value>());
                static_for<0, Pattern::Y2, 1>{}([&](auto row) { sums[row.value] = Part{}; });
            }
            if constexpr(part.value != parts - 1)
            {
                constexpr auto step = Base::SFC::get_forward_step(part);
                static_for<0, operands, 1>{}([&](auto i) {
                    move_tile_window(d_windows[i], {step.at(number<0>{}), step.at(number<1>{})});
                });
            }
        });
    }

    private:
    static constexpr index_t height = Base::MPerIterationShuffle;
    static constexpr index_t width  = Base::NPerIterationShuffle;
    // A block is one or more parts along the columns, or a part has one or more blocks.
    static_assert(columns % width == 0 || width % columns == 0);

    using Pattern = ck_tile::tile_distribution_encoding_pattern_2d<
        Base::kBlockSize,
        height,
        width,
        access_width(width, 4),
        ck_tile::tile_distribution_pattern::thread_raked>;

    /// Lanes next to one another that have a block of a row.
    static constexpr index_t lanes = (columns < width ? columns : width) / Pattern::X1;

    /// A row and a column.
    struct Place
    {
        index_t m;
        index_t n;
    };

    /// Where in the tile a part begins.
    template <index_t part>
    static constexpr Place place()
    {
        constexpr auto index = Base::SFC::get_index(ck_tile::number<part>{});
        return {index.at(ck_tile::number<0>{}), index.at(ck_tile::number<1>{})};
    }

    /// Whether a part is the last one of its rows and block.
    template <index_t part>
    static constexpr bool is_last()
    {
        if constexpr(part + 1 == Base::SFC::get_num_of_access())
            return true;
        else
        {
            constexpr Place here = place<part>(), next = place<part + 1>();
            return here.m != next.m || here.n / columns != next.n / columns;
        }
    }

    /// Add the values of a part to the sums of their rows; columns beyond E have none.
    template <typename Values, typename OutWindow>
    CK_TILE_DEVICE static void
    add(Part* sums, const Values& values, const OutWindow& out, const Place& place)
    {
        using namespace ck_tile;
        const auto& descriptor = out.get_bottom_tensor_view().get_tensor_descriptor();
        constexpr auto spans   = Values::get_distributed_spans();
        sweep_tile_span(spans[number<0>{}], [&](auto row) {
            float elements[Pattern::X1];
            index_t count = 0;
            sweep_tile_span(spans[number<1>{}], [&](auto column) {
                constexpr auto index = make_tuple(row, column);
                const auto [m, n]    = at(values, index, out, place);
                const auto element   = make_tensor_coordinate(descriptor, make_tuple(0, n));
                const bool is_in     = coordinate_has_valid_offset(descriptor, element);
                elements[count++]    = is_in ? values[index] : Part::none;
            });
            const index_t slot = row.impl_.at(number<0>{});
            sums[slot]         = sums[slot].join(Part::of(elements));
        });
    }

    /// Join the sums of lanes and store one for each row and block.
    template <typename Values, typename OutWindow>
    CK_TILE_DEVICE static void
    store(Part* sums, const Values& values, const OutWindow& out, const Place& place)
    {
        using namespace ck_tile;
        const auto& view       = out.get_bottom_tensor_view();
        const auto& descriptor = view.get_tensor_descriptor();
        constexpr auto spans   = Values::get_distributed_spans();
        const uint32_t lane    = get_lane_id();
        sweep_tile_span(spans[number<0>{}], [&](auto row) {
            Part all = sums[row.impl_.at(number<0>{})];
#pragma unroll
            for(index_t distance = lanes / 2; distance > 0; distance /= 2)
                all = all.join(all.of_lane(lane ^ distance));
            constexpr auto first = make_tuple(row, tile_distributed_index<0>{});
            const auto [m, n]    = at(values, first, out, place);
            // The part may be beyond E where its block began inside.
            const index_t begin  = n / columns * columns;
            const auto element   = make_tensor_coordinate(descriptor, make_tuple(0, begin));
            const bool is_in     = coordinate_has_valid_offset(descriptor, element);
            if(lane % lanes == 0 && is_in && m < descriptor.get_length(number<0>{}))
            {
                const auto row_begin = descriptor.calculate_offset(make_tuple(m, 0));
                view.get_buffer_view().p_data_[row_begin + n / columns] = all.value();
            }
        });
    }

    /// The row and column of E of an element that the thread has in a part.
    template <typename Values, typename Index, typename OutWindow>
    CK_TILE_DEVICE static Place
    at(const Values&, const Index& index, const OutWindow& out, const Place& place)
    {
        using namespace ck_tile;
        const auto own =
            get_x_indices_from_distributed_indices(Values::get_tile_distribution(), index);
        const auto origin = out.get_window_origin();
        return {origin.at(number<0>{}) + place.m + own.at(number<0>{}),
                origin.at(number<1>{}) + place.n + own.at(number<1>{})};
    }
};

template <typename Problem, index_t columns, typename Function, typename... Ds>
using LogSumsEpilogue = BlocksEpilogue<LogSum, Problem, columns, Function, Ds...>;

template <typename Problem, index_t columns, typename Function, typename... Ds>
using SumsEpilogue = BlocksEpilogue<Sum, Problem, columns, Function, Ds...>;

template <typename Problem, index_t columns, typename Function, typename... Ds>
using MaximaEpilogue = BlocksEpilogue<Maximum, Problem, columns, Function, Ds...>;

} // namespace cklang
