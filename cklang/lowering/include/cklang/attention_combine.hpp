// SPDX-License-Identifier: MIT
// The second stage of attention whose workgroups shared the keys of a row: each left o of its keys
// and the logarithm of their weight, and here they are weighed against one another.
#pragma once

#include "cklang/ck_tile_attention.hpp"

#include "cklang/attention_at.hpp"
#include "cklang/narrow.hpp"

namespace cklang {

/// A thread has `vector` neighbours of one row; rows are those of [batch, head, query]. With `output`
/// the user's function makes of o what is stored.
template <typename OType, bool store_lse, bool output>
struct CombineKernel
{
    static constexpr int32_t threads = combine_threads;
    static constexpr int32_t vector  = combine_vector;

    CK_TILE_DEVICE static void run(const AttentionArgs& args)
    {
        const int32_t chunks = (args.hdim_v + vector - 1) / vector;
        const int64_t index  = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
        const int32_t column = static_cast<int32_t>(index % chunks) * vector;
        int64_t row          = index / chunks;
        const int64_t i      = row % args.seqlen_q;
        row /= args.seqlen_q;
        const int64_t head  = row % args.heads;
        const int64_t batch = row / args.heads;
        if(batch >= args.batch)
            return;
        const int32_t left = args.hdim_v - column;
        if(left >= vector)
            elements<true>(args, batch, head, i, column, vector);
        else
            elements<false>(args, batch, head, i, column, left);
    }

    private:
    /// `count` elements from `column` on, which are `all` of a vector or the last of a row.
    template <bool all>
    CK_TILE_DEVICE static void elements(const AttentionArgs& args,
                                        int64_t batch,
                                        int64_t head,
                                        int64_t i,
                                        int32_t column,
                                        int32_t count)
    {
        const auto* lse = at<const float>(args.partial_lse, batch, head, i);
        const auto* o   = at<const float>(args.partial_o, batch, head, i) + column;

        constexpr float nothing = -__builtin_inff();
        float top               = nothing;
        for(int32_t split = 0; split < args.splits; ++split)
            top = ck_tile::max(top, lse[split * args.stride_split_lse]);
        const float base = top == nothing ? 0 : top;

        float total       = 0;
        float sum[vector] = {};
        for(int32_t split = 0; split < args.splits; ++split)
        {
            const float weight = __builtin_elementwise_exp(lse[split * args.stride_split_lse] - base);
            total += weight;
            for(int32_t e = 0; e < vector; ++e)
                if(all || e < count)
                    sum[e] += weight * o[split * args.stride_split_o + e];
        }
        const float scale = total > 0 ? 1 / total : 0;
        auto* result      = at<OType>(args.o, batch, head, i) + column;
        for(int32_t e = 0; e < vector; ++e)
            if(all || e < count)
                result[e] = narrow<OType>(stored(args, batch, head, i, column + e, sum[e] * scale));
        if(store_lse && column == 0)
            *at<float>(args.lse, batch, head, i) =
                total > 0 ? base + __builtin_elementwise_log(total) : nothing;
    }

    CK_TILE_DEVICE static float stored(
        const AttentionArgs& args, int64_t batch, int64_t head, int64_t i, int32_t column, float o)
    {
        if constexpr(output)
        {
            const At place{static_cast<index_t>(batch),
                           static_cast<index_t>(head),
                           static_cast<index_t>(head) / args.heads_per_kv,
                           args.seqlen_q,
                           args.seqlen_k,
                           function_tensors()};
            return ck_output(o, CK_ATTENTION_ARGS(place, static_cast<int>(i), column));
        }
        else
            return o;
    }

    template <typename T>
    CK_TILE_DEVICE static T* at(const AttentionTensor& tensor, int64_t batch, int64_t head, int64_t i)
    {
        return static_cast<T*>(tensor.data) + batch * tensor.stride_batch +
               head * tensor.stride_head + i * tensor.stride_seq;
    }
};

} // namespace cklang
