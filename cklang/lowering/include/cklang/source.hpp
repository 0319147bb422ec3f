// SPDX-License-Identifier: MIT
// Where the main loop's A and B come from. A source is a small value, part of the kernel's
// arguments: the addresses and strides of a launch. It gives the loop a window over an
// outer x inner matrix whose inner axis is the one along which an access moves neighbours.
//
// A source has
//   DataType  what the matrix instruction takes
//   arrays    how many arrays in memory it reads, each of which a batch moves by itself
//   window    the view of the matrix, zeros beyond its ends along the axes that are padded
//   moved     the same source with each array some elements further
#pragma once

#include "cklang/gemm_args.hpp"
#include "cklang/host.h"

namespace cklang {

/// A matrix as it lies in memory: its inner axis is contiguous.
template <typename T>
struct Strided
{
    using DataType                  = T;
    static constexpr index_t arrays = 1;

    const void* data;
    index_t stride; // elements from one outer index to the next

    template <index_t vector, index_t tile_outer, index_t tile_inner, bool pad_outer, bool pad_inner>
    CK_TILE_DEVICE auto
    window(index_t outer, index_t inner, index_t at_outer, index_t at_inner) const
    {
        return cklang::window<const T, vector, tile_outer, tile_inner, pad_outer, pad_inner>(
            static_cast<const T*>(data), outer, inner, stride, at_outer, at_inner);
    }

    CK_TILE_DEVICE Strided moved(const std::array<int64_t, arrays>& elements) const
    {
        return {static_cast<const T*>(data) + elements[0], stride};
    }

    CK_TILE_HOST static Strided make(const ck_gemm_operand* operands)
    {
        return {operands[0].data, static_cast<index_t>(operands[0].outer)};
    }
};

} // namespace cklang
