// SPDX-License-Identifier: MIT
// A matrix A in 2:4 form: of each four elements along K two are multiplied, which are found in
// registers on the way to the matrix instruction.
//
// CK Tile's own search takes for granted that two elements at most are not zero. Here the first two
// that are not zero count, whatever else the four hold. And the pinned tree's instruction wrapper
// asks for macros that nothing defines (__gfx94_), so that it computes nothing: the instructions
// are called here.
#pragma once

#include "ck_tile/ops/gemm/warp/warp_gemm_smfmac_impl.hpp"

#include "cklang/policy.hpp"

namespace cklang {

/// c += a b, where `places` has the place of each element of a in its four.
template <typename A, typename B, typename C>
CK_TILE_DEVICE void multiply_sparse(C& c, const A& a, const B& b, int32_t places)
{
#if defined(__gfx94__) || defined(__gfx950__)
    if constexpr(sizeof(C) == 16 * sizeof(float))
        c = __builtin_amdgcn_smfmac_f32_32x32x16_f16(a, b, c, places, 0, 0);
    else
        c = __builtin_amdgcn_smfmac_f32_16x16x32_f16(a, b, c, places, 0, 0);
#else
    static_assert(sizeof(C) == 0, "the GPU has no sparse matrix instructions");
#endif
}

template <typename Base>
struct SparseWarpGemm : Base
{
    using Attribute = typename Base::WarpGemmAttribute;

    template <typename CTensor, typename ATensor, typename BTensor>
    CK_TILE_DEVICE void operator()(CTensor& c, const ATensor& a, const BTensor& b) const
    {
        using A = typename Attribute::AVecType;
        using B = typename Attribute::BVecType;
        using C = typename Attribute::CVecType;

        constexpr number<0> all{};
        constexpr index_t fours = ATensor::get_thread_buffer_size() / 4;
        const auto& elements    = a.get_thread_buffer();
        A kept;
        int32_t places = 0;
        ck_tile::static_for<0, fours, 1>{}([&](auto four) {
            const auto at = [&](index_t i) { return elements[4 * four + i]; };
            const bool is_0 = at(0) != 0, is_1 = at(1) != 0, is_2 = at(2) != 0;
            const index_t first  = is_0 ? 0 : is_1 ? 1 : 2;
            const index_t second = is_0 && is_1 ? 1 : (is_0 || is_1) && is_2 ? 2 : 3;
            kept[2 * four]       = is_0 ? at(0) : is_1 ? at(1) : at(2);
            kept[2 * four + 1]   = second == 1 ? at(1) : second == 2 ? at(2) : at(3);
            places |= (first | second << 2) << (4 * four);
        });

        auto sums = c.get_thread_buffer().template get_as<C>()[all];
        multiply_sparse(sums, kept, b.get_thread_buffer().template get_as<B>()[all], places);
        c.get_thread_buffer().template set_as<C>(all, sums);
    }
};

/// `Base` is the policy that CK Tile gives the pipeline.
template <typename Base>
struct SparsePolicy : VectorPolicy<Base>
{
    template <typename Problem>
    CK_TILE_HOST_DEVICE static constexpr auto GetBlockGemm()
    {
        using Theirs = decltype(Base::template GetBlockGemm<Problem>());
        using Block  = ck_tile::BlockGemmASmemBSmemCRegV1CustomPolicy<
            typename Problem::ADataType,
            typename Problem::BDataType,
            typename Problem::CDataType,
            typename Problem::BlockGemmShape::BlockWarps,
            SparseWarpGemm<typename Theirs::WarpGemm>>;
        return ck_tile::BlockUniversalGemmAsBsCr<Problem, Block>{};
    }
};

} // namespace cklang
