// SPDX-License-Identifier: MIT
// A matrix that stands nowhere: a function of the user computes its elements, from operands that
// are read like those of the epilogue, at the moment the main loop loads them.
//
// CK Tile's tile windows ask a tensor view for vectors of elements at a coordinate. The view here
// answers with computed ones, so every pipeline that loads into registers can take it. Beyond the
// matrix it answers zeros, whatever the function makes of the zeros that loads give there.
#pragma once

#include "cklang/function.hpp"
#include "cklang/source.hpp"

namespace cklang {

/// What a tile window needs of a tensor view, with the elements of a source.
template <typename Source, typename Descriptor, bool pad_outer, bool pad_inner>
struct ComputedView
{
    using DataType   = typename Source::DataType;
    using TensorDesc = Descriptor;

    Source source{};
    Descriptor descriptor{};
    index_t outer = 0, inner = 0;

    CK_TILE_HOST_DEVICE constexpr const auto& get_tensor_descriptor() const { return descriptor; }

    CK_TILE_HOST_DEVICE static constexpr index_t get_num_of_dimension() { return 2; }

    /// The elements from coordinate `at` on along the inner axis. Vectors never stand across the
    /// end of the matrix.
    template <typename Vector, typename Coordinate, bool check>
    CK_TILE_DEVICE Vector get_vectorized_elements(const Coordinate& at,
                                                  index_t,
                                                  ck_tile::bool_constant<check> = {}) const
    {
        const auto index = at.get_index();
        const index_t i = index[number<0>{}], j = index[number<1>{}];
        const bool inside = (!pad_outer || i < outer) && (!pad_inner || j < inner);
        const auto loaded = source.template load<Vector>(outer, inner, i, j);
        Vector result;
        ck_tile::static_for<0, Vector::size(), 1>{}(
            [&](auto e) { result(e) = inside ? loaded[e] : DataType{}; });
        return result;
    }
};

/// Elements of T that `Function` computes from operands of kinds as in the epilogue, whose rows
/// are the outer axis and whose columns are the inner one.
template <typename T, typename Function, typename... Ops>
struct Computed
{
    using DataType                  = T;
    static constexpr index_t arrays = sizeof...(Ops);

    std::array<const void*, arrays> data;
    std::array<index_t, arrays> stride_outer, stride_inner;

    template <index_t vector, index_t tile_outer, index_t tile_inner, bool pad_outer, bool pad_inner>
    CK_TILE_DEVICE auto
    window(index_t outer, index_t inner, index_t at_outer, index_t at_inner) const
    {
        using namespace ck_tile;
        // The strides serve no address; that the inner one is 1 lets windows load vectors.
        const auto descriptor = make_naive_tensor_descriptor(make_tuple(outer, inner),
                                                             make_tuple(number<0>{}, number<1>{}),
                                                             number<vector>{},
                                                             number<1>{});
        using Descriptor = remove_cvref_t<decltype(descriptor)>;
        return make_tile_window(
            ComputedView<Computed, Descriptor, pad_outer, pad_inner>{
                *this, descriptor, outer, inner},
            make_tuple(number<tile_outer>{}, number<tile_inner>{}),
            {at_outer, at_inner});
    }

    /// The elements from (i, j) on along the inner axis of an outer x inner matrix.
    template <typename Vector>
    CK_TILE_DEVICE Vector load(index_t outer, index_t inner, index_t i, index_t j) const
    {
        return load<Vector>(outer, inner, i, j, std::make_index_sequence<arrays>{});
    }

    CK_TILE_DEVICE Computed moved(const std::array<int64_t, arrays>& elements) const
    {
        return moved(elements, std::make_index_sequence<arrays>{});
    }

    CK_TILE_HOST static Computed make(const ck_gemm_operand* operands)
    {
        Computed made{};
        for(index_t i = 0; i < arrays; ++i)
        {
            made.data[i]         = operands[i].data;
            made.stride_outer[i] = static_cast<index_t>(operands[i].outer);
            made.stride_inner[i] = static_cast<index_t>(operands[i].inner);
        }
        return made;
    }

    private:
    template <typename Vector, std::size_t... I>
    CK_TILE_DEVICE Vector
    load(index_t outer, index_t inner, index_t i, index_t j, std::index_sequence<I...>) const
    {
        const auto given = ck_tile::make_tuple(Ops::template load<Vector::size()>(
            data[I], outer, inner, stride_outer[I], stride_inner[I], i, j)...);
        Vector result;
        ck_tile::static_for<0, Vector::size(), 1>{}([&](auto e) {
            result(e) = narrow<T>(
                Function{}(widen(given[number<static_cast<index_t>(I)>{}][e])...));
        });
        return result;
    }

    template <std::size_t... I>
    CK_TILE_DEVICE Computed
    moved(const std::array<int64_t, arrays>& elements, std::index_sequence<I...>) const
    {
        Computed result = *this;
        ((result.data[I] = static_cast<const typename Ops::DataType*>(data[I]) + elements[I]), ...);
        return result;
    }
};

} // namespace cklang
