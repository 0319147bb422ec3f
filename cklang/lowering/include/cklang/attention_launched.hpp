// SPDX-License-Identifier: MIT
// What a pipeline asks of the kernel's argument that its caller does not hand on.
#pragma once

#include "cklang/attention_at.hpp"

namespace cklang {

/// The kernel's argument as it was launched.
CK_TILE_DEVICE const CK_CONSTANT AttentionArgs& launched()
{
    return *reinterpret_cast<const CK_CONSTANT AttentionArgs*>(
        (const CK_CONSTANT char*)__builtin_amdgcn_kernarg_segment_ptr());
}

} // namespace cklang
