// SPDX-License-Identifier: MIT
// What the host shim of a kernel around the gradient of attention answers.
#pragma once

#include "cklang/describe_attention_grad.hpp"
#include "cklang/reduce_wide.hpp"

namespace cklang {

/// Threads of sums have several elements where they can.
class DescribeReduceWide
{
    public:
    DescribeReduceWide(bool dot, const ck_reduce_problem& problem)
        : dot_(dot), p_(problem), narrow_(dot, problem)
    {
    }

    void run(ck_gemm_launch& launch) const
    {
        narrow_.run(launch);
        if(launch.refusal || dot_)
            return;
        const int64_t rows = p_.batch * p_.heads * p_.rows;
        const int64_t work = rows * p_.width / elements_of_thread(rows, p_.width);
        launch.grid[0]     = static_cast<uint32_t>((work - 1) / reduce_threads + 1);
    }

    private:
    bool dot_;
    ck_reduce_problem p_;
    DescribeReduce narrow_;
};

} // namespace cklang

#define CK_REDUCE_WIDE_HOST_SHIM(...)                                                              \
    CK_HOST_SHIM(ck_reduce, cklang::DescribeReduceWide, __VA_ARGS__)
