// SPDX-License-Identifier: MIT
// The host shim of products of segments: that of one product of all rows, or of all K, and the
// segments behind it. The table of a problem is the array of their ends, and the last two batch
// strides of an operand are its steps: from one row, or place along K, and from one segment, to the
// next.
#pragma once

#include "cklang/describe.hpp"
#include "cklang/segmented.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes one product; its tiles are `Partitioner`'s. Rows are in segments, or K.
template <typename One, typename Partitioner, bool persistent, bool along_k = false>
struct DescribeSegmented
{
    using Gemm = typename One::Args;
    using Args = SegmentedArgs<Gemm>;

    static_assert(sizeof(Args) <= CK_GEMM_MAX_KERNARG);
    static_assert(std::is_trivially_copyable_v<Args>);

    static void run(const ck_gemm_problem& problem, ck_gemm_launch& launch)
    {
        constexpr int64_t rows = Partitioner::BlockGemmShape::kM;
        // The tiles of all segments are counted, however few workgroups a persistent kernel has.
        ck_gemm_problem whole = problem;
        whole.blocks          = INT32_MAX;
        One::run(whole, launch);
        if(launch.refusal)
            return;
        const int64_t tiles_n = Partitioner::GridSize(1, static_cast<index_t>(problem.n));
        const int64_t tiles_m = along_k ? (problem.m + rows - 1) / rows * problem.group_count
                                        : problem.m / rows + problem.group_count + 1;
        const int64_t tiles   = tiles_m * tiles_n;
        if(problem.group_count < along_k || tiles > INT32_MAX)
        {
            launch.refusal = "the segments have no tile, or 2^31 tiles or more";
            return;
        }
        Args args{};
        std::memcpy(&args.gemm, launch.kernarg, sizeof(args.gemm));
        args.ends     = static_cast<const int32_t*>(problem.groups);
        args.segments = static_cast<index_t>(problem.group_count);
        args.tiles_n  = static_cast<index_t>(tiles_n);
        args.tiles    = static_cast<index_t>(tiles);
        for(int i = 0; i < Gemm::ASource::arrays; ++i)
            args.a[i] = steps(problem.a[i]);
        for(int i = 0; i < Gemm::BSource::arrays; ++i)
            args.b[i] = steps(problem.b[i]);
        for(int i = 0; i < Gemm::operands; ++i)
            args.d[i] = steps(problem.d[i]);
        args.e = steps(problem.e);

        const int64_t blocks = persistent ? std::min(problem.blocks, tiles) : tiles;
        launch.grid[0]       = static_cast<uint32_t>(blocks);
        launch.kernarg_bytes = sizeof(Args);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }

    private:
    static SegmentSteps steps(const ck_gemm_operand& operand)
    {
        return {operand.batch[CK_GEMM_MAX_BATCH - 2], operand.batch[CK_GEMM_MAX_BATCH - 1]};
    }
};

} // namespace cklang

#endif
