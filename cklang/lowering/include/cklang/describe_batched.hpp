// SPDX-License-Identifier: MIT
// The host shim of a batched GEMM: that of one product, and the batch behind it.
#pragma once

#include "cklang/batched.hpp"
#include "cklang/describe.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

namespace cklang {

/// `One` describes one product of the batch.
template <typename One>
struct DescribeBatched
{
    using Gemm = typename One::Args;
    using Args = BatchedArgs<Gemm>;

    static_assert(sizeof(Args) <= CK_GEMM_MAX_KERNARG);
    static_assert(std::is_trivially_copyable_v<Args>);

    static void run(const ck_gemm_problem& problem, ck_gemm_launch& launch)
    {
        constexpr int64_t most = 65535; // workgroups along y of a grid
        int64_t count          = 1;
        for(int64_t extent : problem.batch)
        {
            if(extent < 1 || extent > most || (count *= extent) > most)
            {
                launch.refusal = "the batch must be from 1 to 65535 products";
                return;
            }
        }
        One::run(problem, launch);
        if(launch.refusal)
            return;
        Args args{};
        std::memcpy(&args.gemm, launch.kernarg, sizeof(args.gemm));
        for(int axis = 0; axis < batch_axes; ++axis)
            args.batch[axis] = static_cast<index_t>(problem.batch[axis]);
        for(int i = 0; i < Gemm::ASource::arrays; ++i)
            args.a[i] = std::to_array(problem.a[i].batch);
        for(int i = 0; i < Gemm::BSource::arrays; ++i)
            args.b[i] = std::to_array(problem.b[i].batch);
        args.e = std::to_array(problem.e.batch);
        for(int i = 0; i < Gemm::operands; ++i)
            args.d[i] = std::to_array(problem.d[i].batch);
        launch.grid[1]       = static_cast<uint32_t>(count);
        launch.kernarg_bytes = sizeof(Args);
        std::memcpy(launch.kernarg, &args, sizeof(Args));
    }
};

} // namespace cklang

#endif
