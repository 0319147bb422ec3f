// SPDX-License-Identifier: MIT
// A GEMM kernel: which tile a workgroup computes, the main loop, and the epilogue. It follows CK
// Tile's universal GEMM, but reads every D by its kind and bounds K whichever axis is contiguous.
#pragma once

#include "cklang/epilogue.hpp"
#include "cklang/gemm_args.hpp"
#include "cklang/mainloop.hpp"
#include "cklang/operand.hpp"

namespace cklang {

/// The device side. `loop` is the main loop, which takes `loop_lds` bytes of LDS.
template <typename Partitioner, typename Traits, typename Acc, typename Epilogue, typename... Ds>
struct GemmKernel
{
    using Shape     = typename Partitioner::BlockGemmShape;
    using EDataType = typename Epilogue::ODataType;
    using Args      = GemmArgs<sizeof...(Ds)>;

    static constexpr index_t block_size = Shape::NumWarps * ck_tile::get_warp_size();

    template <index_t loop_lds, LoopFunction* loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        using namespace ck_tile;

        const auto block    = amd_wave_read_first_lane(blockIdx.x);
        const auto [tm, tn] = Partitioner{args.M, args.N}.GetOutputTileIndex(block);
        const index_t m     = amd_wave_read_first_lane(tm * Shape::kM);
        const index_t n     = amd_wave_read_first_lane(tn * Shape::kN);

        __shared__ char shared[max(loop_lds, Epilogue::GetSmemSize())];

        float accumulators[Acc::size];
        loop(accumulators,
             args.as_ptr[0],
             args.bs_ptr[0],
             args.M,
             args.N,
             args.K,
             args.stride_As[0],
             args.stride_Bs[0],
             m,
             n,
             (CK_TILE_LDS_ADDR char*)shared);
        auto acc = Acc::make();
#pragma unroll
        for(index_t i = 0; i < Acc::size; ++i)
            acc.get_thread_buffer()(i) = accumulators[i];

        auto e = window<EDataType, Epilogue::GetVectorSizeC(), Shape::kM, Shape::kN, false, Traits::kPadN>(
            static_cast<EDataType*>(args.e_ptr), args.M, args.N, args.stride_E, m, n);
        const auto ds = d_windows(args, m, n, std::make_index_sequence<sizeof...(Ds)>{});
        Epilogue{}(e, acc, ds, shared);
    }

    private:
    // D needs no padding: what it reads beyond M and N meets only elements that are not stored.
    template <std::size_t... I>
    CK_TILE_DEVICE static auto
    d_windows(const Args& args, index_t m, index_t n, std::index_sequence<I...>)
    {
        using namespace ck_tile;
        constexpr auto tile = make_tuple(number<Shape::kM>{}, number<Shape::kN>{});
        return make_tuple(make_tile_window(
            Ds::view(args.ds_ptr[I], args.M, args.N, args.stride_Ds[I], args.stride_Ds_n[I]),
            tile,
            {m, n})...);
    }
};

/// The host side: CK Tile's own verdict, grid and arguments.
template <typename Partitioner, typename Pipeline, typename Epilogue, typename... Ds>
struct HostKernel : ck_tile::UniversalGemmKernel<Partitioner, Pipeline, Epilogue>
{
};

} // namespace cklang
