// SPDX-License-Identifier: MIT
// The arguments of the kernels that the gradient of attention is made of.
#pragma once

#include "cklang/attention_args.hpp"

namespace cklang {

/// Of the kernel between the others: its tiles are those of the keys.
struct AttentionGradArgs : AttentionArgs
{
    AttentionTensor grad_o;
    AttentionTensor d;         // [b, h, i]: what the first kernel made of o and its gradient
    AttentionTensor grad_q;    // f32 [b, h, i, d], 0 before the launch
    AttentionTensor grad_k;    // [b, h, j, d] with as many heads as q
    AttentionTensor grad_v;
    AttentionTensor grad_bias; // [b, h, i, j]
    int64_t stride_split_q;    // elements from what one tile of keys gives to the next
};

// A workgroup of the first and of the last kernel.
constexpr int32_t reduce_threads = 256;

/// Of the first kernel, result[b, h, i] = factor * sum of a[b, h, i, :] * b[b, h, i, :], and of the
/// last one, result[b, h, i, :] = the sum of `count` parts of a.
struct ReduceArgs
{
    AttentionTensor a;
    AttentionTensor b;
    AttentionTensor result;
    int64_t stride_part; // elements of a from one part to the next
    float factor;
    int32_t batch;
    int32_t heads;
    int32_t rows;
    int32_t width;
    int32_t count;
};

} // namespace cklang
