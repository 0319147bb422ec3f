// SPDX-License-Identifier: MIT
// RDNA3's matrix product with its operands and sums in the places of RDNA4.
//
// The instruction of RDNA4 takes each row of an operand from two lanes, eight elements in each, and
// leaves its sums likewise, so that sums, rounded, are an operand. That of RDNA3 wants all sixteen
// elements in both lanes, and leaves row 2 * i + h of the sums in element i of half-wave h, which
// no CK Tile pipeline with an operand in registers expects. Two things give one the other's places:
// - An operand in registers is joined from both half-waves before the instruction.
// - The sums' rows come out in RDNA4's order if the operand's rows go in as 0, 8, 1, 9, ... 7, 15.
//   An operand from LDS is read in that order, at no cost.
#pragma once

#include "ck_tile/core.hpp"
#include "ck_tile/ops/gemm/warp/warp_gemm.hpp"
#include "ck_tile/ops/gemm/warp/warp_gemm_dispatcher.hpp"

namespace cklang {

/// RDNA4's lanes and elements.
template <typename T>
using Rdna4Places = ck_tile::WmmaTraitsBase<ck_tile::gfx12_t, T, T, float>;

/// An operand as RDNA3 has it: a row in lanes `r` and `r` + 16.
template <typename T>
using Row = ck_tile::ext_vector_t<T, 16>;

/// One half of a row.
template <typename T>
using HalfRow = ck_tile::ext_vector_t<T, 8>;

/// Rows 0, 8, 1, 9, ... 7, 15 of an operand in LDS.
using InterleavedRows = ck_tile::tile_distribution_encoding<ck_tile::sequence<2>,
                                                            ck_tile::tuple<ck_tile::sequence<2, 8>,
                                                                           ck_tile::sequence<16>>,
                                                            ck_tile::tuple<ck_tile::sequence<0, 1, 1>>,
                                                            ck_tile::tuple<ck_tile::sequence<0, 1, 0>>,
                                                            ck_tile::sequence<2>,
                                                            ck_tile::sequence<0>>;

/// The row of each of sixteen lanes, four bits each, the first lane's lowest.
struct Lanes
{
    uint32_t low;
    uint32_t high;
};

inline constexpr Lanes in_order{0x76543210, 0xfedcba98};
inline constexpr Lanes interleaved{0xb3a29180, 0xf7e6d5c4};

/// All of a row in both of its lanes, from the half that each has.
template <bool interleave, typename T>
CK_TILE_DEVICE Row<T> join_halves(const HalfRow<T>& half)
{
    using Words           = ck_tile::ext_vector_t<uint32_t, 4>;
    constexpr Lanes lanes = interleave ? interleaved : in_order;
    const bool upper      = ck_tile::get_lane_id() >= 16;
    const auto own        = ck_tile::bit_cast<Words>(half);
    ck_tile::ext_vector_t<uint32_t, 8> all;
    for(int i = 0; i < 4; ++i)
    {
        const uint32_t near =
            interleave
                ? __builtin_amdgcn_permlane16(own[i], own[i], lanes.low, lanes.high, false, false)
                : own[i];
        const uint32_t far =
            __builtin_amdgcn_permlanex16(own[i], own[i], lanes.low, lanes.high, false, false);
        all[i]     = upper ? far : near;
        all[i + 4] = upper ? near : far;
    }
    return ck_tile::bit_cast<Row<T>>(all);
}

/// What CK Tile's warp gemm asks of an instruction. `b_in_lds` says that B is read from LDS for
/// this product alone, and its rows are the sums' columns.
template <typename T, bool transposed, bool b_in_lds = false>
struct Rdna3Product
{
    static_assert(transposed || !b_in_lds);

    using Impl     = Rdna4Places<T>;
    using Multiply = ck_tile::WmmaTraits<ck_tile::gfx11_t, T, T, float, 16, 16, 16>;

    using ADataType = T;
    using BDataType = T;
    using CDataType = float;

    using AVecType = HalfRow<T>;
    using BVecType = std::conditional_t<b_in_lds, Row<T>, HalfRow<T>>;
    using CVecType = typename Impl::CVecType;

    static constexpr ck_tile::index_t kM          = Impl::kM;
    static constexpr ck_tile::index_t kN          = Impl::kN;
    static constexpr ck_tile::index_t kK          = Impl::kK;
    static constexpr ck_tile::index_t kKPerThread = Impl::kABK0PerLane * Impl::kABK1PerLane;

    CK_TILE_HOST_DEVICE static constexpr auto get_num_of_access() { return 1; }

    using AWarpDstrEncoding = typename ck_tile::AWarpDstrEncodingTrait<Impl>::type;
    using BWarpDstrEncoding =
        std::conditional_t<b_in_lds,
                           InterleavedRows,
                           typename ck_tile::BWarpDstrEncodingTrait<Impl>::type>;
    using CWarpDstrEncoding =
        std::conditional_t<transposed,
                           typename ck_tile::CTransposedWarpDstrEncodingTrait<Impl>::type,
                           typename ck_tile::CWarpDstrEncodingTrait<Impl>::type>;

    template <bool post_nop = false>
    CK_TILE_DEVICE void operator()(CVecType& c,
                                   const AVecType& a,
                                   const BVecType& b,
                                   ck_tile::bool_constant<post_nop> = {}) const
    {
        if constexpr(b_in_lds)
            c = Multiply::wmma_intrinsic(b, join_halves<false, T>(a), c);
        else if constexpr(transposed)
            c = Multiply::wmma_intrinsic(join_halves<true, T>(b), join_halves<false, T>(a), c);
        else
            c = Multiply::wmma_intrinsic(join_halves<true, T>(a), join_halves<false, T>(b), c);
    }

    CK_TILE_DEVICE CVecType operator()(const AVecType& a, const BVecType& b) const
    {
        CVecType c{0.f};
        operator()(c, a, b);
        return c;
    }
};

} // namespace cklang
