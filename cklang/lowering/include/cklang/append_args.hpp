// SPDX-License-Identifier: MIT
// The argument of a kernel that writes rows behind those of a cache.
#pragma once

#include "cklang/attention_args.hpp"

namespace cklang {

/// How the first elements of a row are turned by its position.
enum class Rotary
{
    none,
    interleaved, // neighbours turn together
    half,        // an element turns with that half of the turned width further
};

constexpr int32_t append_threads = 256;

struct AppendArgs
{
    AttentionTensor from; // [batch, head, row, width]
    AttentionTensor to;   // the cache; its stride_batch is that of a page where there are pages
    Pages pages;
    const int32_t* starts; // rows that the cache of each sequence holds; may be null
    const void* cosine;    // [position, rotary_width / 2]
    const void* sine;
    int32_t batch;
    int32_t heads;
    int32_t rows; // new ones of each sequence
    int32_t width;
    int32_t rotary_width;
    int32_t advance; // whether row i has position start + i, or all have position start
    int32_t behind;  // whether row i goes to row start + i, or to row i
    int64_t capacity;  // rows that a sequence has a place for; others are not written
    int64_t positions; // rows of the tables
    const float* scales; // what a cache of another type than the rows is divided by; may be null
    int64_t stride_scale; // from one head to the next
    float scale;          // of all heads, where there are no scales
};

} // namespace cklang
