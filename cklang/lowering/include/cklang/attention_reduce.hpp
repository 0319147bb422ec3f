// SPDX-License-Identifier: MIT
// Around the gradient of attention: the products of o and its gradient summed along a head, before;
// and parts of a gradient summed and rounded, after.
#pragma once

#include "cklang/ck_tile_attention.hpp"

#include "cklang/attention_grad_args.hpp"
#include "cklang/narrow.hpp"

namespace cklang {

template <typename T>
CK_TILE_DEVICE T* row_of(const AttentionTensor& tensor, int64_t batch, int64_t head, int64_t row)
{
    return static_cast<T*>(tensor.data) + batch * tensor.stride_batch +
           head * tensor.stride_head + row * tensor.stride_seq;
}

/// A thread has a row of o.
template <typename T>
struct DotKernel
{
    static constexpr int32_t threads = reduce_threads;

    CK_TILE_DEVICE static void run(const ReduceArgs& args)
    {
        int64_t index     = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
        const int64_t row = index % args.rows;
        index /= args.rows;
        const int64_t head  = index % args.heads;
        const int64_t batch = index / args.heads;
        if(batch >= args.batch)
            return;
        const T* a = row_of<const T>(args.a, batch, head, row);
        const T* b = row_of<const T>(args.b, batch, head, row);
        float sum  = 0;
        int32_t e  = 0;
        // Lanes are rows apart, so each load costs as much for one element as for 16 bytes.
        constexpr int32_t chunk = 16 / sizeof(T);
        struct alignas(16) Chunk
        {
            T element[chunk];
        };
        if((reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % sizeof(Chunk) == 0)
            for(; e + chunk <= args.width; e += chunk)
            {
                const Chunk x = *reinterpret_cast<const Chunk*>(a + e);
                const Chunk y = *reinterpret_cast<const Chunk*>(b + e);
#pragma unroll
                for(int32_t i = 0; i < chunk; ++i)
                    sum += ck_tile::type_convert<float>(x.element[i]) *
                           ck_tile::type_convert<float>(y.element[i]);
            }
        for(; e < args.width; ++e)
            sum += ck_tile::type_convert<float>(a[e]) * ck_tile::type_convert<float>(b[e]);
        *row_of<float>(args.result, batch, head, row) = args.factor * sum;
    }
};

/// A thread has an element of the result; the parts, of type `Part`, are added in order.
template <typename T, typename Part>
struct SumKernel
{
    static constexpr int32_t threads = reduce_threads;

    CK_TILE_DEVICE static void run(const ReduceArgs& args)
    {
        int64_t index         = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
        const int64_t element = index % args.width;
        index /= args.width;
        const int64_t row = index % args.rows;
        index /= args.rows;
        const int64_t head  = index % args.heads;
        const int64_t batch = index / args.heads;
        if(batch >= args.batch)
            return;
        const Part* a = row_of<const Part>(args.a, batch, head, row) + element;
        float sum     = 0;
        for(int32_t part = 0; part < args.count; ++part)
            sum += ck_tile::type_convert<float>(a[part * args.stride_part]);
        row_of<T>(args.result, batch, head, row)[element] = narrow<T>(args.factor * sum);
    }
};

} // namespace cklang
