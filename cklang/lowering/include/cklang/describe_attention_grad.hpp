// SPDX-License-Identifier: MIT
// What the host shim of a kernel for the gradient of attention answers.
#pragma once

#include "cklang/attention_grad_args.hpp"
#include "cklang/attention_grad_host.h"
#include "cklang/describe_attention.hpp"

namespace cklang {

/// What the host knows of such a kernel; the forward fields are those that both have.
struct AttentionGradShape
{
    AttentionShape forward; // tile_k: the keys of a workgroup
    int64_t bytes_grad_k;
    int64_t bytes_grad_v;
    bool bias_grad;
    bool whole; // a workgroup has all queries of a head, of which there are tile_q at most
};

class DescribeAttentionGrad
{
    public:
    DescribeAttentionGrad(const AttentionGradShape& shape, const ck_attention_grad_problem& problem)
        : shape_(shape), p_(problem)
    {
        // What stands for o where the forward checks look: the tensor that has its shape.
        p_.forward.o = p_.grad_o;
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        const auto& f = p_.forward;
        AttentionGradArgs args{DescribeAttention::arguments(f, 1)};
        args.tiles          = tiles(f.seqlen_k);
        args.grad_o         = DescribeAttention::tensor(p_.grad_o);
        args.d              = DescribeAttention::tensor(p_.d);
        args.grad_q         = DescribeAttention::tensor(p_.grad_q);
        args.grad_k         = DescribeAttention::tensor(p_.grad_k);
        args.grad_v         = DescribeAttention::tensor(p_.grad_v);
        args.grad_bias      = DescribeAttention::tensor(p_.grad_bias);
        args.stride_split_q = p_.stride_split_q;
        DescribeAttention::answer(
            launch, f.batch * f.heads * args.tiles, shape_.forward.threads, args);
    }

    private:
    int32_t tiles(int64_t keys) const
    {
        return shape_.whole ? 1 : static_cast<int32_t>((keys - 1) / shape_.forward.tile_k + 1);
    }

    const char* refuse() const
    {
        if(p_.forward.seqlen_k < 1)
            return "there is no kernel to launch for the gradient of no keys";
        if(shape_.whole && p_.forward.seqlen_q > shape_.forward.tile_q)
            return "this kernel holds all queries of a head in one tile, and there are more";
        if(const char* reason = DescribeAttention(shape_.forward, p_.forward).refuse())
            return reason;
        if(!p_.d.data || !p_.grad_q.data || !p_.grad_k.data || !p_.grad_v.data || !p_.grad_o.data)
            return "this kernel needs d, the gradient of o, and places for those of q, k and v";
        if(shape_.bias_grad && !p_.grad_bias.data)
            return "this kernel needs a place for the gradient of the bias";
        const auto& f        = p_.forward;
        const int64_t vector = shape_.forward.vector;
        if(!DescribeAttention::rows(p_.grad_q, f.seqlen_q, f.hdim_q, 4) ||
           !DescribeAttention::rows(p_.grad_k, f.seqlen_k, f.hdim_q, shape_.bytes_grad_k) ||
           !DescribeAttention::rows(p_.grad_v, f.seqlen_k, f.hdim_v, shape_.bytes_grad_v) ||
           !DescribeAttention::rows(p_.d, f.seqlen_q, 1, 4))
            return "one head of a gradient spans more than 2^31 bytes or has a negative stride";
        if(!DescribeAttention::aligned(p_.grad_k, shape_.bytes_grad_k, vector) ||
           !DescribeAttention::aligned(p_.grad_v, shape_.bytes_grad_v, vector))
            return "an address or stride of a gradient is not aligned for vector accesses";
        return nullptr;
    }

    AttentionGradShape shape_;
    ck_attention_grad_problem p_;
};

class DescribeReduce
{
    public:
    DescribeReduce(bool dot, const ck_reduce_problem& problem) : dot_(dot), p_(problem) {}

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
        ReduceArgs args{};
        args.a           = DescribeAttention::tensor(p_.a);
        args.b           = DescribeAttention::tensor(p_.b);
        args.result      = DescribeAttention::tensor(p_.result);
        args.stride_part = p_.stride_part;
        args.factor      = static_cast<float>(p_.factor);
        args.batch       = i32(p_.batch);
        args.heads       = i32(p_.heads);
        args.rows        = i32(p_.rows);
        args.width       = i32(p_.width);
        args.count       = i32(p_.count);
        DescribeAttention::answer(launch, (work() - 1) / reduce_threads + 1, reduce_threads, args);
    }

    private:
    int64_t work() const { return p_.batch * p_.heads * p_.rows * (dot_ ? 1 : p_.width); }

    const char* refuse() const
    {
        constexpr int64_t most = INT32_MAX;
        if(p_.batch < 1 || p_.heads < 1 || p_.rows < 1 || p_.width < 1 || p_.width > most ||
           p_.count < 0 || p_.count > most)
            return "batch, heads, rows and width must be 1 or more, all below 2^31";
        if(p_.heads > most / p_.batch || p_.rows > most / (p_.batch * p_.heads) ||
           work() / reduce_threads >= most)
            return "the problem has more than 2^31 rows or workgroups";
        return nullptr;
    }

    bool dot_;
    ck_reduce_problem p_;
};

} // namespace cklang

#define CK_ATTENTION_GRAD_HOST_SHIM(...)                                                           \
    CK_HOST_SHIM(ck_attention_grad, cklang::DescribeAttentionGrad, __VA_ARGS__)
#define CK_REDUCE_HOST_SHIM(...) CK_HOST_SHIM(ck_reduce, cklang::DescribeReduce, __VA_ARGS__)
