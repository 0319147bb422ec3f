// SPDX-License-Identifier: MIT
// A matrix whose rows are those of a table at indices, which the main loop reads where they lie.
//
// For CK Tile this is one coordinate transform at the bottom of a tensor descriptor, so every
// pipeline takes it, direct loads to LDS too. A thread's rows do not change along K: their indices
// are constants of memory to the compiler, which loads each once, before the loop.
#pragma once

#include "cklang/source.hpp"

namespace cklang {

/// The rows of a table at indices.
template <typename Index>
struct RowIndices
{
    const Index* indices;
    index_t step;  // elements from one index to the next
    index_t rows;  // how many indices there are
    index_t table; // rows of the table

    /// The row of the table that row `row` is. Rows beyond the last one, which reach no element of E
    /// that is stored, are the last one; an index beyond the table is limited to it.
    CK_TILE_HOST_DEVICE constexpr index_t at(index_t row) const
    {
        const index_t place = (row < rows ? row : rows - 1) * step;
        const Index index   = ck_tile::cast_pointer_to_constant_address_space(indices)[place];
        const Index last    = table - 1;
        return static_cast<index_t>(index < 0 ? 0 : index < last ? index : last);
    }
};

/// Such a matrix of `columns` columns as CK Tile's coordinate transform.
template <typename Index>
struct GatherTransform : ck_tile::base_transform<1, 2>
{
    using LowerIndex = ck_tile::multi_index<1>;
    using UpperIndex = ck_tile::multi_index<2>;
    using UpLengths  = ck_tile::tuple<index_t, index_t>;

    RowIndices<Index> rows;
    index_t stride, columns;

    CK_TILE_HOST_DEVICE constexpr GatherTransform() = default;

    CK_TILE_HOST_DEVICE constexpr GatherTransform(const RowIndices<Index>& rows_,
                                                  index_t stride_,
                                                  index_t columns_)
        : rows{rows_}, stride{stride_}, columns{columns_}
    {
    }

    CK_TILE_HOST_DEVICE constexpr UpLengths get_upper_lengths() const
    {
        return ck_tile::make_tuple(rows.rows, columns);
    }

    template <typename LowIdx, typename UpIdx>
    CK_TILE_HOST_DEVICE constexpr void calculate_lower_index(LowIdx& low, const UpIdx& up) const
    {
        low(number<0>{}) = rows.at(up[number<0>{}]) * stride + up[number<1>{}];
    }

    template <typename LowIdxDiff, typename UpIdxDiff, typename LowIdx, typename UpIdx>
    CK_TILE_HOST_DEVICE void
    update_lower_index(LowIdxDiff& step, const UpIdxDiff&, LowIdx& low, const UpIdx& up) const
    {
        const index_t before = low[number<0>{}];
        calculate_lower_index(low, up);
        step(number<0>{}) = low[number<0>{}] - before;
    }

    CK_TILE_HOST_DEVICE static constexpr bool
    is_valid_upper_index_always_mapped_to_valid_lower_index()
    {
        return false;
    }

    template <typename UpIdx>
    CK_TILE_HOST_DEVICE constexpr bool
    is_valid_upper_index_mapped_to_valid_lower_index(const UpIdx& up) const
    {
        return up[number<1>{}] < columns;
    }

    CK_TILE_HOST_DEVICE static constexpr bool is_known_at_compile_time() { return false; }

    /// The columns have the vectors of memory.
    template <typename LowVectorLengths, typename LowVectorStrides>
    CK_TILE_HOST_DEVICE static constexpr auto
    calculate_upper_dimension_safe_vector_length_strides(const LowVectorLengths& lengths,
                                                         const LowVectorStrides& strides)
    {
        return ck_tile::make_tuple(ck_tile::array<index_t, 2>{-1, lengths[number<0>{}]},
                                   ck_tile::array<index_t, 2>{-1, strides[number<0>{}]});
    }
};

/// Where A comes from: a table of T, and the index of each row.
template <typename T, typename Index>
struct Gathered
{
    using DataType                  = T;
    static constexpr index_t arrays = 2;

    const void* data;
    const void* indices;
    index_t stride; // elements from one row of the table to the next
    index_t step;   // elements from one index to the next
    index_t table;  // rows of the table

    /// Beyond `inner` there are zeros, beyond `outer` the last row.
    template <index_t vector, index_t tile_outer, index_t tile_inner, bool pad_outer, bool pad_inner>
    CK_TILE_DEVICE auto
    window(index_t outer, index_t inner, index_t at_outer, index_t at_inner) const
    {
        using namespace ck_tile;
        static_assert(!pad_outer, "the outer axis of a gathered matrix is that of the rows of E");
        const auto memory = make_naive_tensor_descriptor(
            make_tuple((table - 1) * stride + inner),
            make_tuple(number<1>{}),
            number<vector>{},
            number<1>{});
        const auto matrix = transform_tensor_descriptor(
            memory,
            make_tuple(GatherTransform<Index>{
                {static_cast<const Index*>(indices), step, outer, table}, stride, inner}),
            make_tuple(sequence<0>{}),
            make_tuple(sequence<0, 1>{}));
        return make_tile_window(make_tensor_view<address_space_enum::global>(
                                    static_cast<T*>(const_cast<void*>(data)), matrix),
                                make_tuple(number<tile_outer>{}, number<tile_inner>{}),
                                {at_outer, at_inner});
    }

    CK_TILE_DEVICE Gathered moved(const std::array<int64_t, arrays>& elements) const
    {
        Gathered result = *this;
        result.data     = static_cast<const T*>(data) + elements[0];
        result.indices  = static_cast<const Index*>(indices) + elements[1];
        return result;
    }

    /// The second operand is the array of indices; its `inner` is the number of rows of the table.
    CK_TILE_HOST static Gathered make(const ck_gemm_operand* operands)
    {
        return {operands[0].data,
                operands[1].data,
                static_cast<index_t>(operands[0].outer),
                static_cast<index_t>(operands[1].outer),
                static_cast<index_t>(operands[1].inner)};
    }
};

} // namespace cklang
