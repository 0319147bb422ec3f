// SPDX-License-Identifier: MIT
//
// The helpers of division for lanes in which something special may happen, for translated code.
#pragma once

#include "core/base.h"

namespace ckemu {

/// Writes the result of each enabled lane; of v_div_scale_f32 the value is which lanes it flags. `mask` has the
/// lanes that v_div_fmas_f32 scales back.
u32 scale_lanes(u32* result, const u32* a, const u32* b, const u32* c, u32 enabled, u32 mask);
u32 fuse_lanes(u32* result, const u32* a, const u32* b, const u32* c, u32 enabled, u32 mask);
u32 fix_lanes(u32* result, const u32* a, const u32* b, const u32* c, u32 enabled, u32 mask);

}  // namespace ckemu
