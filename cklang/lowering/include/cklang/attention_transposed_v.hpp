// SPDX-License-Identifier: MIT
// A v whose keys are contiguous in memory. CK Tile's pipelines take its tiles as they lie, without the
// transposition in registers that rows need; AttentionKernel knows rows alone, so the window comes
// from here.
#pragma once

#include "cklang/attention.hpp"
#include "cklang/attention_launched.hpp"

namespace cklang {

/// A pipeline whose v is by columns, `vector` keys an access; args.v.stride_seq is from one element
/// of a head to the next. blockIdx.y counts tiles of columns.
template <typename Base, index_t vector>
struct TransposedV : Base
{
    using Problem = typename Base::Problem;

    template <typename Q, typename K, typename V, typename Bias, typename Lse, typename Same,
              typename Random, typename MaskAll, typename Encoding, typename Variant,
              typename Params, typename Indices, typename Dropout>
    CK_TILE_DEVICE auto
    operator()(const Q& q, Same same, const K& k, Same, const V& v, Same, const Bias& bias, Same,
               Random& random, Lse& lse, Same, Same, const auto& p_function,
               const auto& o_function, const MaskAll& visible, const Encoding& encoding,
               float scale, const Variant& variant, const Params& params, const Indices& indices,
               char* shared, Dropout& dropout) const
    {
        using namespace ck_tile;
        constexpr auto tile    = make_tuple(number<Base::kN1>{}, number<Base::kK1>{});
        const auto& args       = launched();
        const At& at           = params.at;
        const index_t first    = blockIdx.y * Base::kN1;
        const auto* const data = static_cast<const typename Base::VDataType*>(args.v.data) +
                                 at.batch * args.v.stride_batch +
                                 at.kv_head * args.v.stride_head + first * args.v.stride_seq;
        const auto columns = make_naive_tensor_view<address_space_enum::global>(
            data,
            make_tuple(ck_tile::min(args.hdim_v - first, Base::kN1), at.seqlen_k),
            make_tuple(static_cast<index_t>(args.v.stride_seq), 1),
            number<vector>{},
            number<1>{});
        const auto v_at = make_tile_window(
            pad_tensor_view(columns, tile, sequence<Base::kPadHeadDimV, Base::kPadSeqLenK>{}),
            tile,
            v.get_window_origin());
        const Base& base = *this;
        return base(q, same, k, same, v_at, same, bias, same, random, lse, same, same, p_function,
                    o_function, visible, encoding, scale, variant, params, indices, shared,
                    dropout);
    }
};

} // namespace cklang
