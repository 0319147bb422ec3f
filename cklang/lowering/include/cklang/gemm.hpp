// SPDX-License-Identifier: MIT
// A GEMM kernel: which tile a workgroup computes, the main loop, and the epilogue. It follows CK
// Tile's universal GEMM, but reads every D by its kind and bounds K whichever axis is contiguous.
#pragma once

#include "cklang/computed.hpp"
#include "cklang/direct.hpp"
#include "cklang/epilogue.hpp"
#include "cklang/gemm_args.hpp"
#include "cklang/mainloop.hpp"
#include "cklang/operand.hpp"
#include "cklang/tiles.hpp"

namespace cklang {

/// The device side.
template <typename Partitioner_,
          typename Traits,
          typename Acc_,
          typename ASource,
          typename BSource,
          typename Epilogue_,
          typename... Ds>
struct GemmKernel
{
    using Partitioner = Partitioner_;
    using Acc         = Acc_;
    using Epilogue    = Epilogue_;

    using Shape     = typename Partitioner::BlockGemmShape;
    using EDataType = typename Epilogue::ODataType;
    using Args      = GemmArgs<ASource, BSource, sizeof...(Ds)>;
    using Loop      = LoopFunction<typename Acc::DataType, ASource, BSource>;

    static constexpr index_t block_size = Shape::NumWarps * ck_tile::get_warp_size();

    /// `loop` is the main loop, which takes `loop_lds` bytes of LDS.
    template <index_t loop_lds, Loop* loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        WholeTiles<GemmKernel, Traits::UsePersistentKernel>::template run<loop_lds, loop>(args);
    }

    CK_TILE_DEVICE static index_t tiles(const Args& args)
    {
        return Partitioner::GridSize(args.M, args.N);
    }

    CK_TILE_DEVICE static index_t depth(const Args& args) { return args.K; }

    static constexpr index_t epilogue_lds = Epilogue::GetSmemSize();

    /// The tile that a data-parallel grid gives to workgroup `block`; `shared` has room for the
    /// loop and the epilogue.
    template <Loop* loop>
    [[gnu::always_inline]] CK_TILE_DEVICE static void
    tile(const Args& args, index_t block, char* shared) // the fill has no calls
    {
        using namespace ck_tile;

        typename Acc::DataType accumulators[Acc::size];
        sum<loop>(args, block, 0, args.K, accumulators, shared);
        // Where wave groups share K, the first one has the sums.
        if constexpr(Traits::NumWaveGroups > 1)
            if(get_warp_id() != 0)
                return;
        store(args, block, accumulators, shared);
    }

    /// The sums of tile `block` from `k` up to `K`.
    template <Loop* loop>
    CK_TILE_DEVICE static void sum(const Args& args,
                                   index_t block,
                                   index_t k,
                                   index_t K,
                                   typename Acc::DataType* accumulators,
                                   char* shared)
    {
        const auto [m, n] = place(args, block);
        loop(accumulators,
             args.a,
             args.b,
             args.M,
             args.N,
             K,
             m,
             n,
             k,
             (CK_TILE_LDS_ADDR char*)shared);
    }

    /// The epilogue of tile `block`.
    CK_TILE_DEVICE static void store(const Args& args,
                                     index_t block,
                                     const typename Acc::DataType* accumulators,
                                     char* shared)
    {
        using namespace ck_tile;

        const auto [m, n] = place(args, block);
        auto acc = Acc::make();
#pragma unroll
        for(index_t i = 0; i < Acc::size; ++i)
            acc.get_thread_buffer()(i) = accumulators[i];

        auto e = window<EDataType, Epilogue::GetVectorSizeC(), Shape::kM, Shape::kN, false, Traits::kPadN>(
            static_cast<EDataType*>(args.e), args.M, args.N, args.stride_e, m, n);
        const auto ds = d_windows(args, m, n, std::make_index_sequence<sizeof...(Ds)>{});
        Epilogue{}(e, acc, ds, shared);
    }

    private:
    /// The element (m, n) at which tile `block` begins.
    CK_TILE_DEVICE static auto place(const Args& args, index_t block)
    {
        const auto [m, n] = Partitioner{args.M, args.N}.GetOutputTileIndex(block);
        return ck_tile::make_tuple(ck_tile::amd_wave_read_first_lane(m * Shape::kM),
                                   ck_tile::amd_wave_read_first_lane(n * Shape::kN));
    }

    // D needs no padding: what it reads beyond M and N meets only elements that are not stored.
    template <std::size_t... I>
    CK_TILE_DEVICE static auto
    d_windows(const Args& args, index_t m, index_t n, std::index_sequence<I...>)
    {
        using namespace ck_tile;
        constexpr auto tile = make_tuple(number<Shape::kM>{}, number<Shape::kN>{});
        return make_tuple(make_tile_window(
            Ds::view(args.ds[I], args.M, args.N, args.stride_ds_m[I], args.stride_ds_n[I]),
            tile,
            {m, n})...);
    }
};

/// The host side: CK Tile's own verdict, grid and arguments.
template <typename Partitioner,
          typename Pipeline,
          typename ASource,
          typename BSource,
          typename Epilogue,
          typename... Ds>
struct HostKernel : ck_tile::UniversalGemmKernel<Partitioner, Pipeline, Epilogue>
{
};

} // namespace cklang
