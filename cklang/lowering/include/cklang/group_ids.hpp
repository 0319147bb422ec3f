// SPDX-License-Identifier: MIT
// Places of ids in the order of their groups. A workgroup has a group, and reads all ids twice: it
// counts those of groups before its own, and writes the places of its own behind them, in order.
// Ids of no group are a group too, the last one.
#pragma once

#include "cklang/lines.hpp"

namespace cklang {

/// The ids: tensors[0]; their places in order: tensors[1]; where groups end: tensors[2]. There are
/// `step` ids and `extent` groups.
template <typename Id, int threads_, bool order, bool ends>
struct GroupIdsKernel
{
    static constexpr int threads = threads_;

    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_lines_problem& args)
    {
        __shared__ uint32_t before, own;
        if(threadIdx.x == 0)
            before = own = 0;
        __syncthreads();
        const Ids ids{args};
        const uint32_t group = blockIdx.x;
        uint32_t less = 0, equal = 0;
        for(uint32_t i = threadIdx.x; i < ids.count; i += threads)
        {
            const uint32_t other = ids.group(i);
            less += other < group;
            equal += other == group;
        }
        atomicAdd(&before, less);
        atomicAdd(&own, equal);
        __syncthreads();
        if constexpr(ends)
            if(threadIdx.x == 0 && group < ids.groups)
                element(args.tensors[2], args.tensors[2].outer, group) = before + own;
        if constexpr(order)
            if(own)
                write(args, ids, group, before);
    }

    private:
    static constexpr uint32_t rounds = 4; // ids of a thread at once

    struct Ids
    {
        const Id* data;
        int64_t step;
        uint32_t count, groups;

        CK_TILE_DEVICE explicit Ids(const ck_lines_problem& args)
            : data(static_cast<const Id*>(args.tensors[0].data)),
              step(args.tensors[0].inner[CK_LINES_AXES - 1]),
              count(static_cast<uint32_t>(args.step)),
              groups(static_cast<uint32_t>(args.extent))
        {
        }

        CK_TILE_DEVICE uint32_t group(uint32_t i) const
        {
            const Id id = data[i * step];
            return id < 0 || id >= static_cast<Id>(groups) ? groups : static_cast<uint32_t>(id);
        }
    };

    CK_TILE_DEVICE static int32_t&
    element(const ck_lines_tensor& tensor, const int64_t* strides, uint32_t i)
    {
        return static_cast<int32_t*>(const_cast<void*>(tensor.data))[i * strides[CK_LINES_AXES - 1]];
    }

    /// Write the places of the ids of a group, from `place` on. A wave has neighbouring ids.
    CK_TILE_DEVICE static void
    write(const ck_lines_problem& args, const Ids& ids, uint32_t group, uint32_t place)
    {
        constexpr uint32_t lanes = ck_tile::get_warp_size();
        constexpr uint32_t waves = threads / lanes;
        __shared__ uint32_t counts[2][waves]; // in turn, so that one barrier does
        const uint32_t wave = threadIdx.x / lanes, lane = threadIdx.x % lanes;
        uint32_t turn = 0;
        for(uint32_t first = 0; first < ids.count; first += threads * rounds)
        {
            uint64_t own[rounds];
            uint32_t count = 0;
#pragma unroll
            for(uint32_t round = 0; round < rounds; ++round)
            {
                const uint32_t i = first + (wave * rounds + round) * lanes + lane;
                own[round]       = __ballot(i < ids.count && ids.group(i) == group);
                count += __popcll(own[round]);
            }
            counts[turn][wave] = count;
            __syncthreads();
            uint32_t to = place;
            for(uint32_t other = 0; other < waves; ++other)
            {
                to += other < wave ? counts[turn][other] : 0;
                place += counts[turn][other];
            }
#pragma unroll
            for(uint32_t round = 0; round < rounds; ++round)
            {
                const uint64_t below = (uint64_t{1} << lane) - 1;
                if(own[round] >> lane & 1)
                    element(args.tensors[1],
                            args.tensors[1].inner,
                            to + __popcll(own[round] & below)) =
                        static_cast<int32_t>(first + (wave * rounds + round) * lanes + lane);
                to += __popcll(own[round]);
            }
            turn ^= 1;
        }
    }
};

} // namespace cklang
