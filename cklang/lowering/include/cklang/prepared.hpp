// SPDX-License-Identifier: MIT
// A matrix B that was put into the order in which the lanes of a warp take it: for each warp tile
// along N a row of warp tiles along K, in each of which stand the elements of lane after lane. The
// main loop reads it straight into registers. Both axes are filled up to whole warp tiles.
#pragma once

#include "cklang/policy.hpp"
#include "cklang/source.hpp"

namespace cklang {

template <typename T, typename Shape, index_t vector_>
struct Prepared
{
    using DataType                  = T;
    static constexpr index_t arrays = 1;

    static constexpr index_t warp_n = Shape::WarpTile::at(number<1>{});
    static constexpr index_t warp_k = Shape::WarpTile::at(number<2>{});

    const void* data;
    index_t stride; // elements from one row of warp tiles to the next

    /// Rows of warp tiles for `outer` columns of B.
    CK_TILE_HOST_DEVICE static constexpr int64_t blocks(int64_t outer)
    {
        return (outer + warp_n - 1) / warp_n;
    }

    /// Elements of such a row for `inner` steps along K.
    CK_TILE_HOST_DEVICE static constexpr int64_t row(int64_t inner)
    {
        return (inner + warp_k - 1) / warp_k * (warp_k * warp_n);
    }

    /// The window that the pipeline moves over the warp tiles, from the block tile's place on.
    template <index_t, index_t, index_t, bool, bool>
    CK_TILE_DEVICE auto
    window(index_t outer, index_t inner, index_t at_outer, index_t at_inner) const
    {
        return cklang::
            window<const T, vector_, Shape::flatNPerWarp, Shape::flatKPerWarp, false, true>(
                static_cast<const T*>(data),
                static_cast<index_t>(blocks(outer)),
                static_cast<index_t>(row(inner)),
                stride,
                at_outer / warp_n,
                at_inner * warp_n);
    }

    CK_TILE_DEVICE Prepared moved(const std::array<int64_t, arrays>& elements) const
    {
        return {static_cast<const T*>(data) + elements[0], stride};
    }

    CK_TILE_HOST static Prepared make(const ck_gemm_operand* operands)
    {
        return {operands[0].data, static_cast<index_t>(operands[0].outer)};
    }
};

/// `Base` is the policy that CK Tile gives the pipeline.
template <typename Base>
struct PreparedPolicy : VectorPolicy<Base>
{
    // Of B: whole warp tiles have no ends that CK Tile would have to ask about.
    template <typename Problem, bool = false>
    CK_TILE_HOST_DEVICE static constexpr index_t GetVectorSizeB()
    {
        return 1;
    }

    // LDS holds A alone.
    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr index_t GetSmemSize()
    {
        using Shape = typename Problem::BlockGemmShape;
        return tile_lds<Shape::kM * Shape::kK, typename Problem::ADataType>;
    }
};

} // namespace cklang
