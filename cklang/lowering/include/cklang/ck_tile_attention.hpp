// SPDX-License-Identifier: MIT
// The CK Tile headers that attention needs, and the choices among CK Tile's ways to compute: exp2
// in place of exp, and conversions that round to nearest even.
#pragma once

#define CK_TILE_FMHA_FWD_FAST_EXP2 1
#define CK_TILE_FMHA_FLOAT_TO_FLOAT16_RTN 1
#define CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT 0 // CK_TILE_FLOAT_TO_BFLOAT16_STANDARD

#include <hip/hip_runtime.h>

namespace ck_tile {
// What CK Tile's exp2 calls: the instruction alone. The library's function takes five more for
// results below 2^-126, which no sum of weights with a largest of 1 can show; upstream's build
// avoids them by flushing all denormals.
__device__ inline float exp2f(float x) { return __builtin_amdgcn_exp2f(x); }
}

#include "cklang/core.hpp"

#include "ck_tile/ops/common/tensor_layout.hpp"
#include "ck_tile/ops/fmha/block/block_masking.hpp"
#include "ck_tile/ops/fmha/block/block_position_encoding.hpp"
#include "ck_tile/ops/fmha/block/variants.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_problem.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs.hpp"
#include "ck_tile/ops/fmha/pipeline/tile_fmha_shape.hpp"
#include "ck_tile/ops/fmha/pipeline/tile_fmha_traits.hpp"
