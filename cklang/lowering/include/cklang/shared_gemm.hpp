// SPDX-License-Identifier: MIT
// A GEMM kernel whose workgroups share the K of a tile: split-K and stream-K.
#pragma once

#include "cklang/gemm.hpp"
#include "cklang/share.hpp"

namespace cklang {

template <typename Gemm>
struct SharedArgs : Gemm
{
    void* workspace; // counters, and slots to which sums are added, hold zeros
    index_t parts;   // workgroups that share a tile in split-K
};

/// With `data_parallel`, workgroups compute whole tiles while each gets one, and share the rest.
template <typename Gemm, Work work, Reduction reduction, bool data_parallel = false>
struct SharedGemm
{
    using Args     = SharedArgs<typename Gemm::Args>;
    using Loop     = typename Gemm::Loop;
    using Acc      = typename Gemm::Acc;
    using DataType = typename Acc::DataType;
    using Shape    = typename Gemm::Shape;
    using Space    = Workspace<Shape, DataType>;

    static constexpr index_t block_size = Gemm::block_size;
    static constexpr bool pairs         = reduction == Reduction::tree;

    static_assert(Acc::size * block_size == Space::slot, "every accumulator is one thread's");

    template <index_t loop_lds, Loop* loop>
    CK_TILE_DEVICE static void run(const Args& args)
    {
        using namespace ck_tile;

        __shared__ char shared[ck_tile::max(loop_lds, Gemm::Epilogue::GetSmemSize(), index_t{16})];

        const index_t tiles = amd_wave_read_first_lane(Gemm::tiles(args));
        const index_t steps = amd_wave_read_first_lane(
            ck_tile::max(integer_divide_ceil(Gemm::depth(args), Shape::kK), 1));
        const index_t block = amd_wave_read_first_lane(blockIdx.x);
        if constexpr(work == Work::split_k)
        {
            const index_t part = amd_wave_read_first_lane(blockIdx.z);
            const Shares shares{steps, args.parts};
            const Space space{args.workspace, pairs ? tiles * args.parts : tiles};
            Piece piece{block, shares.begin(part), shares.begin(part + 1), part, args.parts};
            const auto slot = [&](index_t each) { return block * args.parts + each; };
            compute<loop>(args, space, piece, slot, shared);
        }
        else
        {
            const index_t blocks = gridDim.x;
            const index_t whole  = data_parallel ? tiles / blocks * blocks : 0;
            for(index_t tile = block; tile < whole; tile += blocks)
            {
                Gemm::template tile<loop>(args, tile, shared);
                // The next tile's main loop writes the LDS that this epilogue still reads.
                block_sync_lds();
            }
            const Space space{args.workspace, pairs ? blocks * slots_per_block : tiles};
            stream<loop>(
                args, space, Shares{(tiles - whole) * steps, blocks}, whole, steps, shared);
        }
    }

    private:
    /// What one workgroup does for one tile: the steps [begin, end) along K, part `part` of `parts`.
    struct Piece
    {
        index_t tile, begin, end, part, parts;
    };

    template <Loop* loop>
    CK_TILE_DEVICE static void stream(const Args& args,
                                      const Space& space,
                                      const Shares& shares,
                                      index_t whole,
                                      index_t steps,
                                      char* shared)
    {
        using namespace ck_tile;

        const index_t block = amd_wave_read_first_lane(blockIdx.x);
        const index_t last  = amd_wave_read_first_lane(shares.begin(block + 1));
        index_t step        = amd_wave_read_first_lane(shares.begin(block));
        while(step < last)
        {
            const index_t tile  = amd_wave_read_first_lane(step / steps);
            const index_t first = tile * steps;
            const index_t end   = ck_tile::min(last, first + steps);
            const index_t from  = amd_wave_read_first_lane(shares.holder(first));
            const index_t to    = amd_wave_read_first_lane(shares.holder(first + steps - 1));
            const Piece piece{whole + tile, step - first, end - first, block - from, to - from + 1};
            // Only the first block of a tile comes to it last of its own tiles.
            const auto slot = [&](index_t part) {
                return (from + part) * slots_per_block + (part == 0 ? 1 : 0);
            };
            compute<loop>(args, space, piece, slot, shared);
            step = end;
            // The next tile's main loop writes the LDS that this epilogue still reads.
            block_sync_lds();
        }
    }

    template <Loop* loop, typename Slot>
    CK_TILE_DEVICE static void
    compute(const Args& args, const Space& space, const Piece& piece, const Slot& slot, char* shared)
    {
        using namespace ck_tile;

        DataType sums[Acc::size];
        const index_t end = ck_tile::min(args.K, piece.end * Shape::kK);
        Gemm::template sum<loop>(args, piece.tile, piece.begin * Shape::kK, end, sums, shared);
        if(piece.parts > 1)
        {
            auto* flag       = reinterpret_cast<uint32_t*>(shared);
            const bool whole = pairs ? climb(space, piece, slot, sums, flag)
                                     : gather(space, piece, slot, sums, flag);
            if(!whole)
                return;
        }
        Gemm::store(args, piece.tile, sums, shared);
    }

    /// Leave this piece's sums; whether they are the last, and `sums` now those of the tile.
    template <typename Slot>
    CK_TILE_DEVICE static bool
    gather(const Space& space, const Piece& piece, const Slot& slot, DataType* sums, uint32_t* flag)
    {
        constexpr bool together = reduction == Reduction::atomic;
        const auto own          = together ? piece.tile : slot(piece.part);
        leave<reduction, Acc::size, block_size>(space.thread(own), sums);
        if(!last_to_arrive(space.counter(piece.tile), piece.parts, flag))
            return false;
        collect<false, Acc::size, block_size>(sums, space.thread(together ? piece.tile : slot(0)));
        if constexpr(reduction == Reduction::workspace)
            for(index_t part = 1; part < piece.parts; ++part)
                collect<true, Acc::size, block_size>(sums, space.thread(slot(part)));
        return true;
    }

    /// The same in a tree: pieces [first, first + size) and as many from `other` on meet at the
    /// counter of `other`'s slot, and the second to come goes on with both sums.
    template <typename Slot>
    CK_TILE_DEVICE static bool
    climb(const Space& space, const Piece& piece, const Slot& slot, DataType* sums, uint32_t* flag)
    {
        index_t first = piece.part; // of the pieces that `sums` has
        for(index_t size = 1; size < piece.parts; size *= 2)
        {
            const index_t left  = first & ~size;
            const index_t other = left + size;
            if(other >= piece.parts)
                continue;
            leave<reduction, Acc::size, block_size>(space.thread(slot(first)), sums);
            if(!last_to_arrive(space.counter(slot(other)), 2, flag))
                return false;
            collect<true, Acc::size, block_size>(sums,
                                                 space.thread(slot(first == left ? other : left)));
            first = left;
        }
        return true;
    }
};

} // namespace cklang
