// SPDX-License-Identifier: MIT
// The host shim of products whose K is in segments: that of one product of all K, and the segments
// behind it. The table of a problem is the array of their ends. The last batch stride of A and B is
// their step along K, and that of others their step from one product to the next.
#pragma once

#include "cklang/describe.hpp"
#include "cklang/segmented_k.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes one product; its tiles are `Partitioner`'s.
template <typename One, typename Partitioner, bool persistent>
struct DescribeSegmentedK
{
    using Gemm = typename One::Args;
    using Args = SegmentedKArgs<Gemm>;

    static_assert(sizeof(Args) <= CK_GEMM_MAX_KERNARG);
    static_assert(std::is_trivially_copyable_v<Args>);

    static void run(const ck_gemm_problem& problem, ck_gemm_launch& launch)
    {
        // The tiles of all products are counted, however few workgroups a persistent kernel has.
        ck_gemm_problem whole = problem;
        whole.blocks          = INT32_MAX;
        One::run(whole, launch);
        if(launch.refusal)
            return;
        const int64_t one = Partitioner::GridSize(static_cast<index_t>(problem.m),
                                                  static_cast<index_t>(problem.n));
        if(problem.group_count < 1 || one * problem.group_count > INT32_MAX)
        {
            launch.refusal = "the segments have no tile, or 2^31 tiles or more";
            return;
        }
        const int64_t tiles = one * problem.group_count;
        Args args{};
        std::memcpy(&args.gemm, launch.kernarg, sizeof(args.gemm));
        args.ends  = static_cast<const int32_t*>(problem.groups);
        args.tiles = static_cast<index_t>(tiles);
        for(int i = 0; i < Gemm::ASource::arrays; ++i)
            args.a[i] = step(problem.a[i]);
        for(int i = 0; i < Gemm::BSource::arrays; ++i)
            args.b[i] = step(problem.b[i]);
        for(int i = 0; i < Gemm::operands; ++i)
            args.d[i] = step(problem.d[i]);
        args.e = step(problem.e);

        launch.grid[0]       = static_cast<uint32_t>(persistent ? std::min(problem.blocks, tiles) : tiles);
        launch.kernarg_bytes = sizeof(Args);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }

    private:
    static int64_t step(const ck_gemm_operand& operand)
    {
        return operand.batch[CK_GEMM_MAX_BATCH - 1];
    }
};

} // namespace cklang

#endif
