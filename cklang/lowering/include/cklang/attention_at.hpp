// SPDX-License-Identifier: MIT
// How a kernel calls the user's functions: with its place and the tensors that they read.
#pragma once

#include "cklang/ck_tile_attention.hpp"

#include "cklang/attention_args.hpp"
#include "cklang/attention_hole.h"

#define CK_OPERAND_ARGS(t)                                                                         \
    (const CK_GLOBAL void*)(t).data, (t).extent[0], (t).extent[1], (t).extent[2], (t).extent[3],   \
        (t).stride[0], (t).stride[1], (t).stride[2], (t).stride[3]
#define CK_ATTENTION_ARGS(at, i, j)                                                                \
    (at).batch, (at).head, i, j, (at).seqlen_q, (at).seqlen_k,                                     \
        CK_OPERAND_ARGS((at).operands[0]), CK_OPERAND_ARGS((at).operands[1]),                      \
        CK_OPERAND_ARGS((at).operands[2]), CK_OPERAND_ARGS((at).operands[3]),                      \
        CK_OPERAND_ARGS((at).operands[4]), CK_OPERAND_ARGS((at).operands[5]),                      \
        CK_OPERAND_ARGS((at).operands[6]), CK_OPERAND_ARGS((at).operands[7])

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
    const AttentionOperand* operands;
};

} // namespace cklang
