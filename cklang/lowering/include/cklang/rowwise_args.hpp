// SPDX-License-Identifier: MIT
// The argument of a kernel that reduces rows, as the host shim writes it and the device reads it.
#pragma once

#include <cstdint>

#include "cklang/rowwise_host.h"

namespace cklang {

constexpr int32_t rowwise_threads = 256; // of a workgroup

/// A tensor that the user's function reads: a ck_attention_tensor of attention_hole.h.
struct RowwiseOperand
{
    const void* data;
    int32_t extent[CK_ROWWISE_MAX_AXES];
    int32_t stride[CK_ROWWISE_MAX_AXES];
};

struct RowwiseArgs
{
    const void* x;
    void* y;
    int64_t x_stride[CK_ROWWISE_MAX_AXES];
    int64_t y_stride[CK_ROWWISE_MAX_AXES];
    int64_t x_step;
    int64_t length;
    uint32_t rows[CK_ROWWISE_MAX_AXES];
    uint32_t count; // of all rows
    RowwiseOperand operands[CK_ROWWISE_MAX_OPERANDS];
};

} // namespace cklang
