// SPDX-License-Identifier: MIT
// Epilogues whose rows go to those of a table at indices, where they are written or added.
//
// E is one coordinate transform at the bottom of a tensor descriptor, as a gathered A is
// (gathered.hpp): the epilogue of the product stores into it as into any matrix.
#pragma once

#include "cklang/direct.hpp"
#include "cklang/epilogue.hpp"
#include "cklang/gathered.hpp"

namespace cklang {

/// The last operand of such a kernel: the row of the table that each row of E goes to. The rows of
/// the table are in the place of its step along n, which it does not have.
template <typename Index>
struct RowPlaces : Operand<Index, Kind::column, 1>
{
    using Column = Operand<Index, Kind::column, 1>;

    struct View : decltype(Column::view(nullptr, 0, 0, 0, 0))
    {
        RowIndices<Index> indices;
        index_t columns;
    };

    CK_TILE_DEVICE static View
    view(const void* pointer, index_t m, index_t n, index_t stride_m, index_t table)
    {
        return {Column::view(pointer, m, n, stride_m, 0),
                {static_cast<const Index*>(pointer), stride_m, m, table},
                n};
    }
};

/// A gather that has no element beyond E, nor in a row whose index is none of the table's.
template <typename Index>
struct ScatterTransform : GatherTransform<Index>
{
    using GatherTransform<Index>::GatherTransform;

    template <typename UpIdx>
    CK_TILE_HOST_DEVICE constexpr bool
    is_valid_upper_index_mapped_to_valid_lower_index(const UpIdx& up) const
    {
        const auto row = up[number<0>{}];
        return row < this->rows.rows && up[number<1>{}] < this->columns && has(row);
    }

    private:
    CK_TILE_HOST_DEVICE constexpr bool has(index_t row) const
    {
        const auto& rows  = this->rows;
        const Index index = ck_tile::cast_pointer_to_constant_address_space(
            rows.indices)[row * rows.step];
        return index >= 0 && index < rows.table;
    }
};

/// A window to which tiles are added by atomic instructions.
template <typename Window>
struct AddedWindow : Window
{
};

/// Found by its argument where an epilogue stores a tile.
template <typename Window, typename Tile>
CK_TILE_DEVICE void store_tile(AddedWindow<Window>& window, const Tile& tile)
{
    ck_tile::update_tile(static_cast<Window&>(window), tile);
}

/// `Single` is the epilogue of the product in rows one after the other. The last operand of the
/// kernel are its `RowPlaces`; `Single` has those before.
template <typename Single, bool adds, typename Index>
struct ScatteredEpilogue : Single
{
    template <index_t I>
    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeD(number<I> operand)
    {
        if constexpr(I == Single::operands)
            return 1;
        else
            return Single::GetVectorSizeD(operand);
    }

    template <typename OutWindow, typename AccTile, typename DWindows>
    CK_TILE_DEVICE void
    operator()(const OutWindow& out, const AccTile& acc, const DWindows& ds, void* shared)
    {
        using namespace ck_tile;

        const auto& places = ds[number<Single::operands>{}].get_bottom_tensor_view();
        const auto& matrix = out.get_bottom_tensor_view();
        const index_t stride =
            matrix.get_tensor_descriptor().calculate_offset(make_tuple(1, 0));

        const auto memory = make_naive_tensor_descriptor(
            make_tuple((places.indices.table - 1) * stride + places.columns),
            make_tuple(number<1>{}),
            number<Single::GetVectorSizeC()>{},
            number<1>{});
        const auto rows = transform_tensor_descriptor(
            memory,
            make_tuple(ScatterTransform<Index>{places.indices, stride, places.columns}),
            make_tuple(sequence<0>{}),
            make_tuple(sequence<0, 1>{}));
        constexpr auto how =
            adds ? memory_operation_enum::atomic_add : memory_operation_enum::set;
        const auto view = make_tensor_view<address_space_enum::global, how>(
            matrix.get_buffer_view().p_data_, rows);
        auto window = make_tile_window(view, out.get_window_lengths(), out.get_window_origin());

        const auto reads =
            generate_tuple([&](auto i) { return ds[i]; }, number<Single::operands>{});
        if constexpr(adds)
        {
            AddedWindow<decltype(window)> added{window};
            Single::operator()(added, acc, reads, shared);
        }
        else
            Single::operator()(window, acc, reads, shared);
    }
};

} // namespace cklang
