// SPDX-License-Identifier: MIT
// How a kernel calls the user's functions: with its place and the tensors that they read.
#pragma once

#include "cklang/ck_tile_attention.hpp"

#include <cstddef>

#include "cklang/attention_args.hpp"
#include "cklang/attention_hole.h"

#define CK_ATTENTION_ARGS(at, i, j)                                                                \
    (at).batch, (at).head, i, j, (at).seqlen_q, (at).seqlen_k, (at).operands

// The user's functions: open holes in a stencil.
extern "C" __device__ float ck_score(float s, CK_ATTENTION_PARAMS);
extern "C" __device__ int ck_mask(CK_ATTENTION_PARAMS);
extern "C" __device__ float ck_output(float o, CK_ATTENTION_PARAMS);

namespace cklang {

using ck_tile::index_t;
using ck_tile::number;

/// Where a workgroup is: what the user's functions are told beside i and j.
struct At
{
    index_t batch;
    index_t head;
    index_t kv_head;
    index_t seqlen_q;
    index_t seqlen_k;
    const CK_CONSTANT ck_attention_tensor* operands;
};

static_assert(sizeof(ck_attention_tensor) == sizeof(AttentionOperand) &&
              offsetof(ck_attention_tensor, extent) == offsetof(AttentionOperand, extent) &&
              offsetof(ck_attention_tensor, stride) == offsetof(AttentionOperand, stride));

/// The tensors of the user's functions, where the argument of every kernel that calls one begins as
/// an AttentionArgs: in memory that nobody writes, so that what several calls read is read once.
CK_TILE_DEVICE const CK_CONSTANT ck_attention_tensor* function_tensors()
{
    const auto* args = (const CK_CONSTANT char*)__builtin_amdgcn_kernarg_segment_ptr();
    return reinterpret_cast<const CK_CONSTANT ck_attention_tensor*>(
        args + offsetof(AttentionArgs, operands));
}

} // namespace cklang
