// SPDX-License-Identifier: MIT
// A convolution kernel: the main loop and the epilogue of the GEMM kernel, with A, B and E where a
// direction of the convolution has them.
#pragma once

#include "cklang/gemm.hpp"
#include "cklang/conv_args.hpp"

namespace cklang {

/// The device side. Tiles are numbered through all products, those of one after those of the other.
template <typename Partitioner_,
          typename Traits,
          typename Acc_,
          typename Direction_,
          typename Epilogue_,
          typename... Ds>
struct ConvKernel
{
    using Partitioner = Partitioner_;
    using Acc         = Acc_;
    using Epilogue    = Epilogue_;
    using Direction   = Direction_;

    using Shape   = typename Partitioner::BlockGemmShape;
    using ASource = typename Direction::ASource;
    using BSource = typename Direction::BSource;
    using Args    = typename Direction::Args;
    using Loop    = LoopFunction<typename Acc::DataType, ASource, BSource>;

    static constexpr index_t block_size   = Shape::NumWarps * ck_tile::get_warp_size();
    static constexpr index_t epilogue_lds = Epilogue::GetSmemSize();

    template <index_t loop_lds, Loop* loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        WholeTiles<ConvKernel, Traits::UsePersistentKernel>::template run<loop_lds, loop>(args);
    }

    CK_TILE_HOST_DEVICE static index_t tiles(const Args& args)
    {
        return tiles_each(args) * args.items;
    }

    /// K of every product; of the gradient of x, of the one with the most.
    CK_TILE_DEVICE static index_t depth(const Args& args) { return args.K; }

    template <Loop* loop>
    CK_TILE_DEVICE static void tile(const Args& args, index_t number, char* shared)
    {
        using namespace ck_tile;

        const Place at = place(args, number);
        // The products of the phases differ in M.
        if(at.tile >= tiles_each(at.args))
            return;
        typename Acc::DataType accumulators[Acc::size];
        sum<loop>(at, 0, at.args.K, accumulators, shared);
        // Where wave groups share K, the first one has the sums.
        if constexpr(Traits::NumWaveGroups > 1)
            if(get_warp_id() != 0)
                return;
        store(at, accumulators, shared);
    }

    /// The sums of tile `number` from `k` up to `K`.
    template <Loop* loop>
    CK_TILE_DEVICE static void sum(const Args& args,
                                   index_t number,
                                   index_t k,
                                   index_t K,
                                   typename Acc::DataType* accumulators,
                                   char* shared)
    {
        sum<loop>(place(args, number), k, K, accumulators, shared);
    }

    /// The epilogue of tile `number`.
    CK_TILE_DEVICE static void store(const Args& args,
                                     index_t number,
                                     const typename Acc::DataType* accumulators,
                                     char* shared)
    {
        store(place(args, number), accumulators, shared);
    }

    private:
    struct Place
    {
        Args args; // of one product
        index_t tile;

        /// The element (m, n) at which the tile begins.
        CK_TILE_DEVICE auto begin() const
        {
            const auto [m, n] = Partitioner{args.M, args.N}.GetOutputTileIndex(tile);
            return ck_tile::make_tuple(ck_tile::amd_wave_read_first_lane(m * Shape::kM),
                                       ck_tile::amd_wave_read_first_lane(n * Shape::kN));
        }
    };

    CK_TILE_HOST_DEVICE static index_t tiles_each(const Args& args)
    {
        return Partitioner::GridSize(args.M, args.N);
    }

    CK_TILE_DEVICE static Place place(const Args& args, index_t number)
    {
        const index_t each = tiles_each(args);
        const index_t item = ck_tile::amd_wave_read_first_lane(number / each);
        return {Direction::at(args, item), number - item * each};
    }

    template <Loop* loop>
    CK_TILE_DEVICE static void sum(
        const Place& at, index_t k, index_t K, typename Acc::DataType* accumulators, char* shared)
    {
        const auto [m, n] = at.begin();
        const Args& one   = at.args;
        loop(accumulators, one.a, one.b, one.M, one.N, K, m, n, k, (CK_TILE_LDS_ADDR char*)shared);
    }

    CK_TILE_DEVICE static void
    store(const Place& at, const typename Acc::DataType* accumulators, char* shared)
    {
        using namespace ck_tile;

        const auto [m, n] = at.begin();
        const Args& one   = at.args;
        auto acc          = Acc::make();
#pragma unroll
        for(index_t i = 0; i < Acc::size; ++i)
            acc.get_thread_buffer()(i) = accumulators[i];

        auto e = one.e.template window<Epilogue::GetVectorSizeC(), Shape::kM, Shape::kN>(
            one.M, one.N, m, n);
        const auto ds = d_windows(one, m, n, std::make_index_sequence<sizeof...(Ds)>{});
        Epilogue{}(e, acc, ds, shared);
    }

    template <std::size_t... I>
    CK_TILE_DEVICE static auto
    d_windows(const Args& one, index_t m, index_t n, std::index_sequence<I...>)
    {
        return ck_tile::make_tuple(
            operand<Ds>(one.ds[I], one)
                .template window<Ds::vector, Shape::kM, Shape::kN>(one.M, one.N, m, n)...);
    }
};

} // namespace cklang
