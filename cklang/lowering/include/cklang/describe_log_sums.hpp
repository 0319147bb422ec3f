// SPDX-License-Identifier: MIT
// What the host shim says of a product of which log-sum-exps are stored: E has a column for each
// block of columns.
#pragma once

#include "cklang/describe.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes the product, as if it were stored.
template <typename One, index_t columns>
struct DescribeLogSums
{
    using Args = typename One::Args;

    static void run(const ck_gemm_problem& given, ck_gemm_launch& launch)
    {
        ck_gemm_problem stored = given;
        const int64_t blocks   = (given.n + columns - 1) / columns;
        const int64_t stride   = given.m == 1 ? blocks : given.e.outer;
        stored.e.outer         = given.n;
        One::run(stored, launch);
        if(launch.refusal)
            return;
        launch.refusal = stride < blocks ? "rows of E overlap: its stride is less than its blocks"
                                         : nullptr;
        if(!launch.refusal && !addressable(given.m, blocks, stride, sizeof(float)))
            launch.refusal = "E spans more than 2^31 bytes or has a negative stride";
        Args args{};
        std::memcpy(&args, launch.kernarg, sizeof(Args));
        args.stride_e = static_cast<index_t>(stride);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }
};

} // namespace cklang

#endif
