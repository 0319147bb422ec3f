// SPDX-License-Identifier: MIT
// What the host shim of a kernel for the gradient of attention with heads of any size answers.
#pragma once

#include "cklang/describe_attention_grad.hpp"

namespace cklang {

/// No tile limits heads: workgroups along the second axis of the grid share the columns of the
/// gradients, of which each has as many as the tile.
class DescribeLongHeadsGrad
{
    public:
    DescribeLongHeadsGrad(const AttentionGradShape& shape, const ck_attention_grad_problem& problem)
        : columns_(shape.forward.tile_d), problem_(problem), any_head_(shape)
    {
        any_head_.forward.tile_d = any_head_.forward.tile_dv = INT32_MAX;
    }

    void run(ck_gemm_launch& launch) const
    {
        DescribeAttentionGrad(any_head_, problem_).run(launch);
        const auto& f        = problem_.forward;
        const int64_t widest = f.hdim_q > f.hdim_v ? f.hdim_q : f.hdim_v;
        const int64_t slices = (widest - 1) / columns_ + 1;
        if(!launch.refusal && slices > most_slices)
            launch.refusal = "a head has more columns than the workgroups along an axis of a grid";
        if(!launch.refusal)
            launch.grid[1] = static_cast<uint32_t>(slices);
    }

    private:
    static constexpr int64_t most_slices = 65535;

    int64_t columns_;
    const ck_attention_grad_problem& problem_;
    AttentionGradShape any_head_;
};

} // namespace cklang
