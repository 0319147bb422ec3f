// SPDX-License-Identifier: MIT
// Rows that lie in pages, as a tensor view: CK Tile's tile windows ask it for vectors of elements
// at a coordinate, and it looks up the page. So pages may have any size, and every pipeline that
// loads into registers can take them. Beyond the last row and the width it answers zeros.
#pragma once

#include "cklang/core.hpp"

namespace cklang {

using ck_tile::index_t;
using ck_tile::number;

template <typename T, typename Descriptor, bool rows_first, bool pad>
struct PagedView
{
    using DataType   = T;
    using TensorDesc = Descriptor;

    const T* data            = nullptr;
    const int32_t* table     = nullptr;
    index_t page             = 1; // rows
    int64_t stride_page      = 0;
    int64_t stride_row       = 0;
    index_t rows             = 0;
    index_t width            = 0;
    Descriptor descriptor{};

    CK_TILE_HOST_DEVICE constexpr const auto& get_tensor_descriptor() const { return descriptor; }

    CK_TILE_HOST_DEVICE static constexpr index_t get_num_of_dimension()
    {
        return Descriptor::get_num_of_top_dimension();
    }

    /// The elements from coordinate `at` on along a row.
    template <typename Vector, bool check = true, typename Coordinate>
    CK_TILE_DEVICE Vector get_vectorized_elements(const Coordinate& at,
                                                  index_t,
                                                  ck_tile::bool_constant<check> = {}) const
    {
        const auto index     = at.get_index();
        const index_t row    = index[number<rows_first ? 0 : 1>{}];
        const index_t column = index[number<rows_first ? 1 : 0>{}];
        Vector result;
        if(row < rows && (!pad || column < width))
        {
            const int64_t first = table[row / page] * stride_page;
            __builtin_memcpy(&result, data + first + row % page * stride_row + column, sizeof result);
        }
        else
            ck_tile::static_for<0, Vector::size(), 1>{}([&](auto e) { result(e) = T{}; });
        return result;
    }

    /// The same with columns first.
    CK_TILE_DEVICE auto transposed() const
    {
        using namespace ck_tile;
        const auto turned = transform_tensor_descriptor(
            descriptor,
            make_tuple(make_pass_through_transform(width), make_pass_through_transform(rows)),
            make_tuple(sequence<1>{}, sequence<0>{}),
            make_tuple(sequence<0>{}, sequence<1>{}));
        return PagedView<T, remove_cvref_t<decltype(turned)>, false, pad>{
            data, table, page, stride_page, stride_row, rows, width, turned};
    }
};

template <typename T, index_t vector, bool pad>
CK_TILE_DEVICE auto make_paged_view(const T* data,
                                    const int32_t* table,
                                    index_t page,
                                    int64_t stride_page,
                                    int64_t stride_row,
                                    index_t rows,
                                    index_t width)
{
    using namespace ck_tile;
    // The strides serve no address; that the inner one is 1 lets windows load vectors.
    const auto descriptor = make_naive_tensor_descriptor(
        make_tuple(rows, width), make_tuple(number<0>{}, number<1>{}), number<vector>{}, number<1>{});
    return PagedView<T, remove_cvref_t<decltype(descriptor)>, true, pad>{
        data, table, page, stride_page, stride_row, rows, width, descriptor};
}

} // namespace cklang
