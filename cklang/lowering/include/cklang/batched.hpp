// SPDX-License-Identifier: MIT
// A batched GEMM: one product for each index of up to three batch axes, along which every operand
// has a stride of its own, 0 where it does not change. The batch is the y axis of the grid; a
// workgroup moves all pointers to its matrices and goes on as the GEMM kernel it is made of.
#pragma once

#include "cklang/gemm.hpp"
#include "cklang/host.h"

namespace cklang {

constexpr index_t batch_axes = CK_GEMM_MAX_BATCH;

using BatchStrides = std::array<int64_t, batch_axes>;

template <typename Gemm>
struct BatchedArgs
{
    Gemm gemm;
    std::array<index_t, batch_axes> batch; // extents, the last one innermost
    std::array<BatchStrides, Gemm::ASource::arrays> a; // in elements
    std::array<BatchStrides, Gemm::BSource::arrays> b;
    BatchStrides e;
    std::array<BatchStrides, Gemm::operands> d;
};

template <typename Gemm_, typename... Ds>
struct BatchedKernel
{
    using Gemm = Gemm_;
    using Args = BatchedArgs<typename Gemm::Args>;
    using E    = typename Gemm::EDataType;

    static constexpr index_t block_size = Gemm::block_size;

    template <index_t loop_lds, auto loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        Gemm::template run<loop_lds, loop>(
            one(args, place(args), std::make_index_sequence<sizeof...(Ds)>{}));
    }

    private:
    using Place = std::array<index_t, batch_axes>;

    CK_TILE_DEVICE static Place place(const Args& args)
    {
        Place at{};
        index_t rest = ck_tile::amd_wave_read_first_lane(blockIdx.y);
#pragma unroll
        for(index_t axis = batch_axes - 1; axis > 0; --axis)
        {
            const index_t outer = rest / args.batch[axis];
            at[axis]            = rest - outer * args.batch[axis];
            rest                = outer;
        }
        at[0] = rest;
        return at;
    }

    CK_TILE_DEVICE static int64_t elements(const BatchStrides& strides, const Place& at)
    {
        int64_t sum = 0;
#pragma unroll
        for(index_t axis = 0; axis < batch_axes; ++axis)
            sum += strides[axis] * at[axis];
        return sum;
    }

    template <typename Source, std::size_t count>
    CK_TILE_DEVICE static Source
    moved(const Source& source, const std::array<BatchStrides, count>& strides, const Place& at)
    {
        std::array<int64_t, count> steps{};
#pragma unroll
        for(std::size_t i = 0; i < count; ++i)
            steps[i] = elements(strides[i], at);
        return source.moved(steps);
    }

    /// The arguments of the product at `at`.
    template <std::size_t... I>
    CK_TILE_DEVICE static typename Gemm::Args
    one(const Args& args, const Place& at, std::index_sequence<I...>)
    {
        auto gemm = args.gemm;
        gemm.a    = moved(gemm.a, args.a, at);
        gemm.b    = moved(gemm.b, args.b, at);
        gemm.e    = static_cast<E*>(gemm.e) + elements(args.e, at);
        ((gemm.ds[I] = static_cast<const typename Ds::DataType*>(gemm.ds[I]) +
                       elements(args.d[I], at)),
         ...);
        return gemm;
    }
};

} // namespace cklang
