// SPDX-License-Identifier: MIT
// The gradient of attention whose sequences have a number of keys each.
#pragma once

#include "cklang/attention_grad.hpp"

namespace cklang {

/// A kernel whose workgroups take the length of their sequence for that of all. Tiles of keys behind
/// it end at once: their gradients are 0 before the launch.
template <typename Base>
struct KeyLengths : Base
{
    CK_TILE_DEVICE static void run(const AttentionGradArgs& args)
    {
        const index_t rest  = blockIdx.x / args.heads;
        const index_t batch = ck_tile::amd_wave_read_first_lane(rest / args.tiles);
        AttentionGradArgs own = args;
        own.seqlen_k          = ck_tile::amd_wave_read_first_lane(args.lengths_k[batch]);
        Base::run(own);
    }
};

} // namespace cklang
