// SPDX-License-Identifier: MIT
//
// CK Tile's policy for tiles of K and V in LDS, with another order of buffers.
#pragma once

#include "ck_tile/core.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs_async_default_policy.hpp"

namespace cklang {

/// The buffer of each step of K, then of V. For some numbers of steps CK Tile's own order gives the first step
/// of V the buffer of the last one of K, which other waves may still read.
template <ck_tile::index_t... Buffers>
struct BufferOrder : ck_tile::BlockFmhaPipelineQRKSVSAsyncDefaultPolicy
{
    template <typename>
    CK_TILE_HOST_DEVICE static constexpr auto GetLdsBufferSequence()
    {
        return ck_tile::sequence<Buffers...>{};
    }
};

} // namespace cklang
