// SPDX-License-Identifier: MIT
// CK Tile's tensor adaptor for the form that every adaptor has: it says how an index of the top
// dimensions becomes one of the bottom through transforms, whose dimensions carry hidden numbers.
// CK Tile looks those up with a closure for each dimension of each transform; a loop over the
// numbers does the same, and a place known at compile time needs no instance of each step.
#pragma once

#include "cklang/loops.hpp"

#include "ck_tile/core/container/container_helper.hpp"
#include "ck_tile/core/container/multi_index.hpp"
#include "ck_tile/core/tensor/tensor_adaptor.hpp"

namespace cklang {

using ck_tile::number;
using ck_tile::tuple;

/// Which dimension of which transform.
struct Dimension
{
    index_t transform = -1;
    index_t place     = -1;
};

template <index_t... ids>
constexpr index_t place_of(sequence<ids...>, index_t id)
{
    index_t place = 0, found = -1;
    ((ids == id ? found = place : 0, ++place), ...);
    return found;
}

/// The last dimension with hidden number `id`.
template <typename... Idss>
constexpr Dimension dimension_of(tuple<Idss...>, index_t id)
{
    Dimension found;
    index_t transform = 0;
    const auto look   = [&](index_t place) {
        if(place >= 0)
            found = {transform, place};
        ++transform;
    };
    (look(place_of(Idss{}, id)), ...);
    return found;
}

template <index_t... ids>
constexpr index_t most(sequence<ids...>)
{
    index_t most = -1;
    ((most = ids > most ? ids : most), ...);
    return most;
}

template <index_t... ids>
constexpr void mark(sequence<ids...>, bool* marks)
{
    ((marks[ids] = true), ...);
}

/// How many hidden numbers there are.
template <typename... Idss>
constexpr index_t hidden_dimensions()
{
    constexpr index_t last = [] {
        index_t last = -1;
        ((last = most(Idss{}) > last ? most(Idss{}) : last), ...);
        return last;
    }();
    bool marks[last + 2] = {};
    (mark(Idss{}, marks), ...);
    index_t count = 0;
    for(const bool marked : marks)
        count += marked;
    return count;
}

} // namespace cklang

namespace ck_tile {

template <typename... Transforms,
          typename... Lows,
          typename... Ups,
          index_t... bottom,
          index_t... top>
struct tensor_adaptor<tuple<Transforms...>,
                      tuple<Lows...>,
                      tuple<Ups...>,
                      sequence<bottom...>,
                      sequence<top...>>
{
    static_assert(sizeof...(Lows) == sizeof...(Transforms) &&
                  sizeof...(Ups) == sizeof...(Transforms));

    static constexpr index_t ntransform_  = sizeof...(Transforms);
    static constexpr index_t ndim_hidden_ = cklang::hidden_dimensions<Lows..., Ups...>();
    static constexpr index_t ndim_bottom_ = sizeof...(bottom);
    static constexpr index_t ndim_top_    = sizeof...(top);

    using HiddenIndex = multi_index<ndim_hidden_>;
    using BottomIndex = multi_index<ndim_bottom_>;
    using TopIndex    = multi_index<ndim_top_>;

    // clang-format off
    CK_TILE_HOST_DEVICE static constexpr index_t get_num_of_transform() { return ntransform_; }
    CK_TILE_HOST_DEVICE static constexpr index_t get_num_of_hidden_dimension() { return ndim_hidden_; }
    CK_TILE_HOST_DEVICE static constexpr index_t get_num_of_bottom_dimension() { return ndim_bottom_; }
    CK_TILE_HOST_DEVICE static constexpr index_t get_num_of_top_dimension() { return ndim_top_; }

    CK_TILE_HOST_DEVICE static constexpr auto get_lower_dimension_hidden_idss() { return tuple<Lows...>{}; }
    CK_TILE_HOST_DEVICE static constexpr auto get_upper_dimension_hidden_idss() { return tuple<Ups...>{}; }
    CK_TILE_HOST_DEVICE static constexpr auto get_bottom_dimension_hidden_ids() { return sequence<bottom...>{}; }
    CK_TILE_HOST_DEVICE static constexpr auto get_top_dimension_hidden_ids() { return sequence<top...>{}; }
    // clang-format on

    private:
    template <index_t id>
    CK_TILE_HOST_DEVICE static constexpr auto length(const tuple<Transforms...>& transforms)
    {
        constexpr cklang::Dimension from = cklang::dimension_of(tuple<Ups...>{}, id);
        static_assert(from.transform >= 0, "no transform makes this dimension");
        return transforms.template at<from.transform>().get_upper_lengths()[number<from.place>{}];
    }

    public:
    CK_TILE_HOST_DEVICE static constexpr auto
    initialize_element_size(const tuple<Transforms...>& transforms)
    {
        return (number<1>{} * ... * length<top>(transforms));
    }

    using ElementSize = remove_cv_t<decltype(initialize_element_size(tuple<Transforms...>{}))>;

    CK_TILE_HOST_DEVICE constexpr tensor_adaptor() = default;

    CK_TILE_HOST_DEVICE constexpr tensor_adaptor(const tuple<Transforms...>& transforms)
        : transforms_{transforms}, element_size_{initialize_element_size(transforms)}
    {
    }

    CK_PASS_ON CK_TILE_HOST_DEVICE constexpr const auto& get_transforms() const
    {
        return transforms_;
    }

    CK_TILE_HOST_DEVICE constexpr auto get_element_size() const { return element_size_; }

    template <index_t id>
    CK_TILE_HOST_DEVICE constexpr auto get_hidden_dimension_length(number<id>) const
    {
        return length<id>(transforms_);
    }

    template <index_t axis>
    CK_TILE_HOST_DEVICE constexpr auto get_top_dimension_length(number<axis>) const
    {
        return length<sequence<top...>::at(number<axis>{})>(transforms_);
    }

    CK_TILE_HOST_DEVICE constexpr auto get_top_dimension_lengths() const
    {
        return make_tuple(length<top>(transforms_)...);
    }

    template <typename Index>
    CK_PASS_ON CK_TILE_HOST_DEVICE constexpr auto calculate_bottom_index(const Index& index) const
    {
        static_assert(Index::size() == ndim_top_, "as many indices as top dimensions");
        return bottom_of(at_top(index));
    }

    CK_TILE_HOST_DEVICE static constexpr bool is_static()
    {
        return (Transforms::is_known_at_compile_time() && ... &&
                ck_tile::is_known_at_compile_time<ElementSize>::value);
    }

    CK_TILE_HOST_DEVICE static constexpr bool is_known_at_compile_time() { return is_static(); }

    /// How far and how dense elements along each top dimension are neighbours, from what is
    /// guaranteed (-1: nothing is). With `first` > 0 of all dimensions of the first transforms.
    template <index_t first = 0>
    CK_TILE_HOST_DEVICE static constexpr auto
    get_top_dimension_safe_vector_length_strides(const HiddenIndex& lengths,
                                                 const HiddenIndex& strides)
    {
        constexpr index_t count = first > 0 && first < ntransform_ ? first : ntransform_;
        HiddenIndex all_lengths = lengths, all_strides = strides;
        [&]<index_t... n>(sequence<n...>) {
            (widen<n>(lengths, strides, all_lengths, all_strides), ...);
        }(make_index_sequence<count>{});
        if constexpr(first > 0)
            return make_tuple(all_lengths, all_strides);
        else
            return make_tuple(get_container_subset(all_lengths, sequence<top...>{}),
                              get_container_subset(all_strides, sequence<top...>{}));
    }

    private:
    template <index_t n>
    using Low = __type_pack_element<n, Lows...>;
    template <index_t n>
    using Up = __type_pack_element<n, Ups...>;

    template <index_t... index>
    CK_PASS_ON CK_TILE_HOST_DEVICE static constexpr TopIndex at_top(sequence<index...>)
    {
        return {index...};
    }

    CK_PASS_ON CK_TILE_HOST_DEVICE static constexpr const TopIndex& at_top(const TopIndex& index)
    {
        return index;
    }

    template <typename Index>
    CK_PASS_ON CK_TILE_HOST_DEVICE static constexpr TopIndex at_top(const Index& index)
    {
        return [&]<index_t... axis>(sequence<axis...>) CK_PASS_ON {
            return TopIndex{static_cast<index_t>(index[number<axis>{}])...};
        }(make_index_sequence<ndim_top_>{});
    }

    CK_TILE_HOST_DEVICE constexpr auto bottom_of(const TopIndex& index) const
    {
        HiddenIndex hidden;
        set_container_subset(hidden, sequence<top...>{}, index);
        [&]<index_t... n>(sequence<n...>) CK_PASS_ON {
            (descend<ntransform_ - 1 - n>(hidden), ...);
        }(make_index_sequence<ntransform_>{});
        return get_container_subset(hidden, sequence<bottom...>{});
    }

    template <index_t n>
    CK_TILE_HOST_DEVICE constexpr void descend(HiddenIndex& hidden) const
    {
        const auto up = get_container_subset(hidden, Up<n>{});
        multi_index<Low<n>::size()> low;
        transforms_.template at<n>().calculate_lower_index(low, up);
        set_container_subset(hidden, Low<n>{}, low);
    }

    template <index_t n>
    CK_TILE_HOST_DEVICE static constexpr void widen(const HiddenIndex& guaranteed_lengths,
                                                    const HiddenIndex& guaranteed_strides,
                                                    HiddenIndex& lengths,
                                                    HiddenIndex& strides)
    {
        const auto up_lengths = get_container_subset(guaranteed_lengths, Up<n>{});
        const auto up_strides = get_container_subset(guaranteed_strides, Up<n>{});
        auto [safe_lengths, safe_strides] =
            __type_pack_element<n, Transforms...>{}
                .calculate_upper_dimension_safe_vector_length_strides(
                    get_container_subset(lengths, Low<n>{}),
                    get_container_subset(strides, Low<n>{}));
        if constexpr(Up<n>::size() > 0)
            for(index_t i = 0; i < Up<n>::size(); ++i)
            {
                if(up_lengths[i] != -1)
                    safe_lengths(i) = up_lengths[i];
                if(up_strides[i] != -1)
                    safe_strides(i) = up_strides[i];
            }
        set_container_subset(lengths, Up<n>{}, safe_lengths);
        set_container_subset(strides, Up<n>{}, safe_strides);
    }

    tuple<Transforms...> transforms_;
    ElementSize element_size_;
};

} // namespace ck_tile
