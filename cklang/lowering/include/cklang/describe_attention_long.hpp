// SPDX-License-Identifier: MIT
// What host shims of attention answer that take what others refuse: heads of any size, and a v whose
// keys are contiguous.
#pragma once

#include "cklang/describe_attention.hpp"

namespace cklang {

/// Heads of any size: no tile limits them, and workgroups along the second axis of the grid share
/// the columns of v.
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
        const int64_t slices = (problem_.hdim_v - 1) / columns_ + 1;
        if(!launch.refusal && slices > most_slices)
            launch.refusal = "v has more tiles of columns than a grid has workgroups along an axis";
        if(!launch.refusal)
            launch.grid[1] = static_cast<uint32_t>(slices);
    }

    private:
    static constexpr int64_t most_slices = 65535;

    int64_t columns_;
    const ck_attention_problem& problem_;
    AttentionShape any_head_;
};

/// A v whose keys are contiguous: its stride_seq is from one element of a head to the next.
template <typename Base>
class DescribeTransposedV
{
    public:
    DescribeTransposedV(const AttentionShape& shape, const ck_attention_problem& problem)
        : shape_(shape), p_(problem), rest_(problem)
    {
        rest_.v.stride_seq = 0;
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        Base(shape_, rest_).run(launch);
        if(launch.refusal)
            return;
        AttentionArgs args;
        std::memcpy(&args, launch.kernarg, sizeof(args));
        args.v.stride_seq = p_.v.stride_seq;
        std::memcpy(launch.kernarg, &args, sizeof(args));
    }

    private:
    const char* refuse() const
    {
        if(shape_.packed || shape_.paged || p_.lengths_k)
            return "a v whose keys are contiguous needs sequences of one length";
        if(p_.seqlen_k % shape_.vector != 0)
            return "the number of keys is not a multiple of the kernel's vector loads";
        const int64_t unit = shape_.vector * shape_.bytes < 4 ? shape_.vector * shape_.bytes : 4;
        if(p_.v.stride_seq < 0 || p_.v.stride_seq > INT32_MAX ||
           ((p_.hdim_v - 1) * p_.v.stride_seq + p_.seqlen_k) * shape_.bytes > INT32_MAX ||
           p_.v.stride_seq * shape_.bytes % unit != 0)
            return "the columns of v are not aligned, or a head of it spans more than 2^31 bytes";
        return nullptr;
    }

    AttentionShape shape_;
    const ck_attention_problem& p_;
    ck_attention_problem rest_;
};

} // namespace cklang
