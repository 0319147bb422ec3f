// SPDX-License-Identifier: MIT
// What the host shim of a kernel that writes rows behind those of a cache answers.
#pragma once

#include "cklang/append_args.hpp"
#include "cklang/append_host.h"
#include "cklang/describe_attention.hpp"

namespace cklang {

/// What the host knows of such a kernel.
struct AppendShape
{
    Rotary rotary;
    bool paged;
};

class DescribeAppend
{
    public:
    DescribeAppend(const AppendShape& shape, const ck_append_problem& problem)
        : shape_(shape), p_(problem)
    {
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        const int64_t blocks = (work() - 1) / append_threads + 1;
        DescribeAttention::answer(launch, blocks, append_threads, arguments());
    }

    private:
    int64_t work() const { return p_.batch * p_.heads * p_.rows * ((p_.width + 1) / 2); }

    const char* refuse() const
    {
        constexpr int64_t most = INT32_MAX;
        if(p_.batch < 1 || p_.heads < 1 || p_.rows < 1 || p_.width < 1)
            return "batch, heads, rows and the width of a row must be 1 or more";
        if(p_.heads > most / p_.batch || p_.rows > most / (p_.batch * p_.heads) ||
           work() / append_threads >= most)
            return "the problem has more than 2^31 rows or workgroups";
        if(shape_.rotary != Rotary::none && (p_.rotary_width < 0 || p_.rotary_width % 2 != 0 ||
                                             p_.rotary_width > p_.width || !p_.cosine || !p_.sine))
            return "turned rows need tables of cosine and sine, and a width for them that is even "
                   "and within the row";
        if(shape_.rotary != Rotary::none && p_.positions < 1)
            return "the tables of cosine and sine must have a row";
        if(shape_.paged && (!p_.pages || p_.page_size < 1 || p_.page_size > most))
            return "rows in pages need a table and a page size";
        return nullptr;
    }

    AppendArgs arguments() const
    {
        const auto i32 = [](int64_t value) { return static_cast<int32_t>(value); };
        AppendArgs args{};
        args.from         = DescribeAttention::tensor(p_.from);
        args.to           = DescribeAttention::tensor(p_.to);
        args.pages        = {static_cast<const int32_t*>(p_.pages),
                             static_cast<const int32_t*>(p_.page_starts),
                             p_.pages_stride,
                             i32(p_.page_size)};
        args.starts       = static_cast<const int32_t*>(p_.starts);
        args.cosine       = p_.cosine;
        args.sine         = p_.sine;
        args.batch        = i32(p_.batch);
        args.heads        = i32(p_.heads);
        args.rows         = i32(p_.rows);
        args.width        = i32(p_.width);
        args.rotary_width = i32(p_.rotary_width);
        args.advance      = i32(p_.advance);
        args.behind       = i32(p_.behind);
        args.capacity     = p_.capacity;
        args.positions    = p_.positions;
        args.scales       = static_cast<const float*>(p_.scales);
        args.stride_scale = p_.stride_scale;
        args.scale        = static_cast<float>(p_.scale);
        return args;
    }

    AppendShape shape_;
    ck_append_problem p_;
};

} // namespace cklang

#define CK_APPEND_HOST_SHIM(...) CK_HOST_SHIM(ck_append, cklang::DescribeAppend, __VA_ARGS__)
