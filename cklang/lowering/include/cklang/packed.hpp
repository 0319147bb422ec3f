// SPDX-License-Identifier: MIT
// A matrix of 4-bit elements, two in a byte along K. Its rows are filled up to whole accesses.
#pragma once

#include "cklang/source.hpp"

namespace cklang {

template <typename T, index_t vector_>
struct PackedRows
{
    using DataType                  = T;
    static constexpr index_t arrays = 1;

    static constexpr index_t filled = 32; // elements that a row is a multiple of

    const void* data;
    index_t stride; // elements from one row to the next

    /// Elements of a row that are there to be read, of which `inner` count.
    CK_TILE_HOST_DEVICE static constexpr int64_t row(int64_t inner)
    {
        return (inner + filled - 1) / filled * filled;
    }

    // What is read beyond K are numbers, and meets zeros: those of A, or its own of fp4.
    template <index_t, index_t tile_outer, index_t tile_inner, bool pad_outer, bool pad_inner>
    CK_TILE_DEVICE auto
    window(index_t outer, index_t inner, index_t at_outer, index_t at_inner) const
    {
        return cklang::window<const T, vector_, tile_outer, tile_inner, pad_outer, pad_inner>(
            static_cast<const T*>(data),
            outer,
            static_cast<index_t>(row(inner)),
            stride,
            at_outer,
            at_inner);
    }

    CK_TILE_DEVICE PackedRows moved(const std::array<int64_t, arrays>& elements) const
    {
        return {static_cast<const T*>(data) + elements[0] / packed<T>, stride};
    }

    CK_TILE_HOST static PackedRows make(const ck_gemm_operand* operands)
    {
        return {operands[0].data, static_cast<index_t>(operands[0].outer)};
    }
};

} // namespace cklang
