// SPDX-License-Identifier: MIT
// The argument of an attention kernel, as the host shim writes it and the device reads it.
#pragma once

#include <cstdint>

namespace cklang {

/// What happens to the product of query and key after it has been scaled.
enum class Score
{
    none,
    soft_cap, // CK Tile's own
    alibi,    // minus slope[b, h] times the distance of the positions; CK Tile's own
    bias,     // plus bias[b, h, i, j]; CK Tile's own
    function, // the user's
};

/// Which keys a query sees.
enum class Mask
{
    none,
    causal,   // keys up to i + shift; CK Tile's own
    window,   // keys from i + shift - left to i + shift + right, and the first `sink` keys
    function, // those of the window that the user's function lets through
};

/// A tensor of batch, head and sequence, whose last axis (if it has one) is contiguous. Strides
/// count elements. Tensors of packed sequences have one batch.
struct AttentionTensor
{
    void* data;
    int64_t stride_batch;
    int64_t stride_head;
    int64_t stride_seq;
};

/// Where keys and values lie that are kept in pages: row j of a sequence is row j % size of page
/// table[j / size].
struct Pages
{
    const int32_t* table;
    const int32_t* starts; // where the table of each sequence begins, or null: every `stride` pages
    int64_t stride;
    int32_t size;
};

/// A tensor that the user's score or mask function reads.
struct AttentionOperand
{
    const void* data;
    int32_t extent[4];
    int32_t stride[4];
};

constexpr int max_attention_operands = 8;

// A workgroup that combines splits, and the neighbours that one thread of it has.
constexpr int32_t combine_threads = 256;
constexpr int32_t combine_vector  = 4;

struct AttentionArgs
{
    AttentionTensor q, k, v, o;
    AttentionTensor bias;   // [b, h, i, j]
    AttentionTensor lse;    // [b, h, i]
    AttentionTensor random; // [b, h, i, j]: the bytes that dropout compared
    AttentionTensor slopes; // [b, h]

    const int32_t* starts_q; // of packed sequences: where each begins, and where the last one ends
    const int32_t* starts_k;
    const int32_t* lengths_k; // keys of each sequence; may be null
    Pages pages;              // of k and v, whose stride_batch then is that of a page

    AttentionTensor partial_o;   // of a kernel that shares the keys: f32 [b, h, i, dv]
    AttentionTensor partial_lse; // [b, h, i]
    int64_t stride_split_o;      // elements from the results of one split to those of the next
    int64_t stride_split_lse;
    int32_t splits;

    int32_t batch;
    int32_t heads;
    int32_t heads_per_kv;
    int32_t seqlen_q; // the longest one of packed sequences
    int32_t seqlen_k;
    int32_t hdim_q;
    int32_t hdim_v;
    int32_t tiles; // workgroups along the queries of one head

    float scale; // of the product of query and key
    float soft_cap;
    float scale_p; // of the weights before they are rounded to 8 bits
    float scale_o;

    int32_t left; // keys that query i sees: from i + shift - left, or below sink, ...
    int32_t right; // ... to i + shift + right; -1 for no limit
    int32_t from_bottom_right; // whether shift is T - S rather than 0
    int32_t sink;

    float keep_scale; // 1 / the probability that a weight is kept
    int32_t keep;     // a weight is kept if its random byte is not above this
    const int32_t* seed;   // in device memory
    const int32_t* offset;
    const int32_t* min_seqlen_q; // packed sequences of up to so many queries are skipped; or null

    AttentionOperand operands[max_attention_operands];
};

} // namespace cklang
