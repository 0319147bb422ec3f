// SPDX-License-Identifier: MIT
// The host shim of the kernel that combines splits: the argument of attention, one thread for every
// few elements of o.
#pragma once

#include "cklang/describe_attention.hpp"

namespace cklang {

/// What the host knows of a kernel that combines.
struct CombineShape
{
    int64_t bytes_o;
    bool lse;
};

class DescribeCombine
{
    public:
    DescribeCombine(const CombineShape& shape, const ck_attention_problem& problem)
        : shape_(shape), p_(problem)
    {
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        const int64_t blocks = (work() - 1) / combine_threads + 1;
        DescribeAttention::answer(
            launch, blocks, combine_threads, DescribeAttention::arguments(p_, 1));
    }

    private:
    int64_t work() const { return p_.batch * p_.heads * p_.seqlen_q * vectors(); }

    int64_t vectors() const { return (p_.hdim_v - 1) / combine_vector + 1; }

    const char* refuse() const
    {
        constexpr int64_t most = INT32_MAX;
        if(p_.batch < 1 || p_.heads < 1 || p_.kv_heads < 1 || p_.seqlen_q < 1 || p_.hdim_v < 1)
            return "batch, heads, queries and head sizes must be 1 or more";
        if(p_.splits < 1 || p_.splits > most)
            return "there must be a split or more";
        if(p_.heads > most / p_.batch || p_.seqlen_q > most / (p_.batch * p_.heads) ||
           work() / combine_threads >= most)
            return "the problem has more than 2^31 rows or workgroups";
        if(!p_.partial_o.data || !p_.partial_lse.data || !p_.o.data ||
           (shape_.lse && !p_.lse.data))
            return "this kernel needs the parts of o and lse, and places for the results";
        return nullptr;
    }

    CombineShape shape_;
    ck_attention_problem p_;
};

} // namespace cklang

#define CK_COMBINE_HOST_SHIM(...)                                                                  \
    CK_HOST_SHIM(ck_attention, cklang::DescribeCombine, __VA_ARGS__)
