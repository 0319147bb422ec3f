// SPDX-License-Identifier: MIT
// What the host shim of a kernel for heads of any size answers: its tile limits no head, and
// workgroups along the second axis of the grid share the columns of v.
#pragma once

#include "cklang/describe_attention.hpp"

namespace cklang {

class DescribeLongHeads
{
    public:
    DescribeLongHeads(const AttentionShape& shape, const ck_attention_problem& problem)
        : columns_(shape.tile_dv), problem_(problem), any_head_(shape)
    {
        any_head_.tile_d = any_head_.tile_dv = INT32_MAX;
    }

    void run(ck_gemm_launch& launch) const
    {
        DescribeAttention(any_head_, problem_).run(launch);
        if(!launch.refusal)
            launch.grid[1] = static_cast<uint32_t>((problem_.hdim_v - 1) / columns_ + 1);
    }

    private:
    int64_t columns_;
    const ck_attention_problem& problem_;
    AttentionShape any_head_;
};

} // namespace cklang

#define CK_LONG_ATTENTION_HOST_SHIM(...)                                                           \
    CK_HOST_SHIM(ck_attention, cklang::DescribeLongHeads, __VA_ARGS__)
