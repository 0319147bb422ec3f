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

template <index_t operands>
struct BatchedArgs
{
    GemmArgs<operands> gemm;
    std::array<index_t, batch_axes> batch; // extents, the last one innermost
    BatchStrides a, b, e;                  // in elements
    std::array<BatchStrides, operands> d;
};

template <typename Gemm_, typename A, typename B, typename... Ds>
struct BatchedKernel
{
    using Gemm = Gemm_;
    using Args = BatchedArgs<sizeof...(Ds)>;
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

    template <typename T, typename Pointer>
    CK_TILE_DEVICE static Pointer* moved(Pointer* pointer, const BatchStrides& strides, const Place& at)
    {
        int64_t elements = 0;
#pragma unroll
        for(index_t axis = 0; axis < batch_axes; ++axis)
            elements += strides[axis] * at[axis];
        using Byte = std::conditional_t<std::is_const_v<Pointer>, const char, char>;
        return static_cast<Byte*>(pointer) + elements * static_cast<int64_t>(sizeof(T));
    }

    /// The arguments of the product at `at`.
    template <std::size_t... I>
    CK_TILE_DEVICE static typename Gemm::Args
    one(const Args& args, const Place& at, std::index_sequence<I...>)
    {
        const auto& g = args.gemm;
        return {{{moved<A>(g.as_ptr[0], args.a, at)},
                 {moved<B>(g.bs_ptr[0], args.b, at)},
                 {moved<typename Ds::DataType>(g.ds_ptr[I], args.d[I], at)...},
                 moved<E>(g.e_ptr, args.e, at),
                 g.M,
                 g.N,
                 g.K,
                 g.stride_As,
                 g.stride_Bs,
                 g.stride_Ds,
                 g.stride_E,
                 g.k_batch},
                g.stride_Ds_n};
    }
};

} // namespace cklang
