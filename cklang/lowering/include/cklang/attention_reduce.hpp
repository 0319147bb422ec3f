// SPDX-License-Identifier: MIT
// Around the gradient of attention: the products of o and its gradient summed along a head, before;
// and parts of a gradient summed and rounded, after.
#pragma once

#include "cklang/ck_tile_attention.hpp"

#include "cklang/attention_grad_args.hpp"
#include "cklang/narrow.hpp"
#include "cklang/reduce_wide.hpp"

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

/// A thread has some elements of a row of the result, as many as `elements_of_thread` says; the
/// parts, of type `Part`, are added in order.
template <typename T, typename Part>
struct SumKernel
{
    static constexpr int32_t threads = reduce_threads;

    template <typename E>
    struct alignas(wide_sum * sizeof(E)) Chunk
    {
        E element[wide_sum];
    };

    template <typename E>
    CK_TILE_DEVICE static bool is_aligned(const AttentionTensor& tensor)
    {
        const int64_t strides = tensor.stride_batch | tensor.stride_head | tensor.stride_seq;
        return reinterpret_cast<uintptr_t>(tensor.data) % sizeof(Chunk<E>) == 0 &&
               strides % wide_sum == 0;
    }

    CK_TILE_DEVICE static void run(const ReduceArgs& args)
    {
        const int64_t rows = static_cast<int64_t>(args.batch) * args.heads * args.rows;
        // Three divisions of 64 bits take longer than all else, and results that need them are rare.
        if(elements_of_thread(rows, args.width) == wide_sum)
            run_with<uint32_t, wide_sum>(args);
        else
            run_with<uint64_t, 1>(args);
    }

    template <typename Index, int32_t count>
    CK_TILE_DEVICE static void run_with(const ReduceArgs& args)
    {
        const Index chunks = static_cast<Index>(args.width) / count;
        Index index        = static_cast<Index>(blockIdx.x) * threads + threadIdx.x;
        const Index first  = index % chunks * count;
        index /= chunks;
        const Index row = index % static_cast<Index>(args.rows);
        index /= static_cast<Index>(args.rows);
        const Index head  = index % static_cast<Index>(args.heads);
        const Index batch = index / static_cast<Index>(args.heads);
        if(batch >= static_cast<Index>(args.batch))
            return;
        const Part* a = row_of<const Part>(args.a, batch, head, row) + first;
        T* result     = row_of<T>(args.result, batch, head, row) + first;
        if constexpr(count == wide_sum)
            if(args.stride_part % wide_sum == 0 && is_aligned<Part>(args.a) &&
               is_aligned<T>(args.result))
            {
                float totals[wide_sum] = {};
                for(int32_t part = 0; part < args.count; ++part)
                {
                    const auto from =
                        *reinterpret_cast<const Chunk<Part>*>(a + part * args.stride_part);
#pragma unroll
                    for(int32_t i = 0; i < wide_sum; ++i)
                        totals[i] += ck_tile::type_convert<float>(from.element[i]);
                }
                Chunk<T> to;
#pragma unroll
                for(int32_t i = 0; i < wide_sum; ++i)
                    to.element[i] = narrow<T>(args.factor * totals[i]);
                *reinterpret_cast<Chunk<T>*>(result) = to;
                return;
            }
        for(int32_t i = 0; i < count; ++i)
        {
            float total = 0;
            for(int32_t part = 0; part < args.count; ++part)
                total += ck_tile::type_convert<float>(a[part * args.stride_part + i]);
            result[i] = narrow<T>(args.factor * total);
        }
    }
};

} // namespace cklang
