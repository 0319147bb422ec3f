// SPDX-License-Identifier: MIT
// The host shim of a grouped GEMM. For a problem without a table it makes the table's row; for one
// with a table, the launch of all its groups.
#pragma once

#include "cklang/describe.hpp"
#include "cklang/grouped.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes one product.
template <typename One, bool persistent>
struct DescribeGrouped
{
    using Row  = Group<typename One::Args>;
    using Args = GroupedArgs<typename One::Args>;

    static_assert(sizeof(Row) <= CK_GEMM_MAX_KERNARG);
    static_assert(std::is_trivially_copyable_v<Row>);

    static void run(const ck_gemm_problem& problem, ck_gemm_launch& launch)
    {
        // All of its tiles are counted, however few workgroups a persistent kernel has.
        ck_gemm_problem whole = problem;
        whole.blocks          = INT32_MAX;
        One::run(whole, launch);
        if(launch.refusal)
            return;
        if(problem.groups)
            all(problem, launch);
        else
            row(problem, launch);
    }

    private:
    static void row(const ck_gemm_problem& problem, ck_gemm_launch& launch)
    {
        if(problem.first_tile < 0 || problem.first_tile + launch.grid[0] > INT32_MAX)
        {
            launch.refusal = "the groups have 2^31 tiles or more";
            return;
        }
        const auto first = static_cast<index_t>(problem.first_tile);
        // The arguments of the product stand there already.
        std::memset(launch.kernarg + sizeof(Row::gemm), 0, sizeof(Row) - sizeof(Row::gemm));
        std::memcpy(launch.kernarg + offsetof(Row, first), &first, sizeof(first));
        launch.kernarg_bytes = sizeof(Row);
    }

    static void all(const ck_gemm_problem& problem, ck_gemm_launch& launch)
    {
        const auto tiles = static_cast<uint32_t>(problem.first_tile);
        const Args args{static_cast<const Row*>(problem.groups),
                        static_cast<index_t>(problem.group_count),
                        static_cast<index_t>(tiles)};
        const auto blocks    = static_cast<uint32_t>(problem.blocks);
        launch.grid[0]       = persistent && blocks < tiles ? blocks : tiles;
        launch.kernarg_bytes = sizeof(Args);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }
};

} // namespace cklang

#endif
