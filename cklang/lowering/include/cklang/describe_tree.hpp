// SPDX-License-Identifier: MIT
// What the host shim says of a product whose sums are added in a tree: a counter for each slot of
// the workspace, as the kernel has them, and not for each tile.
#pragma once

#include "cklang/describe.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes the product, with a counter for each tile.
template <typename One, Work work>
struct DescribeTree : One
{
    using Space = typename One::Space;

    static_assert(work != Work::tiles);

    static void run(const ck_gemm_problem& given, ck_gemm_launch& launch)
    {
        One::run(given, launch);
        if(launch.refusal)
            return;
        const int64_t blocks   = launch.grid[0];
        const int64_t slots    = blocks * (work == Work::split_k ? launch.grid[2] : slots_per_block);
        launch.workspace_bytes = Space::bytes(slots, slots);
        launch.zeroed_bytes    = Space::counter_bytes(slots);
    }
};

} // namespace cklang

#endif
