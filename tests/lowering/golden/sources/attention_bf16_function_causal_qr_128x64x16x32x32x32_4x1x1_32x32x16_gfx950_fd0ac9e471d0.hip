// CK Tile attention made by cklang: o = softmax(score(scale * q k')) v.
// Key: {"algorithm": {"block_per_cu": 2, "pad_d": true, "pad_dv": true, "pad_k": false, "pad_q": false, "pipeline": "qr", "tile": [128, 64, 16, 32, 32, 32], "vector": 8, "warp_tile": [32, 32, 16], "warps": [4, 1, 1]}, "arch": "gfx950", "family": "attention", "signature": {"dropout": false, "dtype": "bf16", "dtype_bias": "bf16", "dtype_o": "bf16", "functions": "", "lse": false, "mask": "causal", "output": true, "packed": false, "paged": false, "score": "function", "split": false}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention.hpp"

CK_ATTENTION_HOST_SHIM(
    .tile_q     = 128,
    .tile_k     = 64,
    .tile_d     = 32,
    .tile_dv    = 32,
    .pad_q      = false,
    .pad_k      = false,
    .pad_d      = true,
    .pad_dv     = true,
    .vector     = 8,
    .bytes      = 2,
    .bytes_o    = 2,
    .bytes_bias = 2,
    .threads    = 256,
    .score      = cklang::Score::function,
    .mask       = cklang::Mask::causal,
    .lse        = false,
    .dropout    = false,
    .packed     = false,
    .split      = false,
    .paged      = false)

#else

#include "cklang/attention.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs.hpp"

// Signature: what is computed.
using Type  = ck_tile::bf16_t; // q, k, v and the weights
using TypeO = ck_tile::bf16_t;

constexpr auto score = cklang::Score::function;
constexpr auto mask  = cklang::Mask::causal;
constexpr bool split = false; // workgroups share the keys of a row
constexpr bool paged = false; // K and V lie in pages
constexpr bool output = true; // a function makes of o what is stored

// Algorithm: how.
using Shape = ck_tile::TileFmhaShape<ck_tile::sequence<128, 64, 16, 32, 32, 32>, // tile: m0, n0, k0, n1, k1, k0max
                                     ck_tile::sequence<4, 1, 1>, // warps
                                     ck_tile::sequence<32, 32, 16>, // warp_tile
                                     ck_tile::sequence<4, 1, 1>,
                                     ck_tile::sequence<32, 32, 16>,
                                     true>; // rows of V are contiguous

using Traits = ck_tile::TileFmhaTraits<false, // pad_q
                                       false, // pad_k
                                       true, // pad_d
                                       true, // pad_dv
                                       false, // soft cap
                                       ck_tile::BlockAttentionBiasEnum::ALIBI, // score
                                       false,
                                       false, // lse
                                       false, // dropout
                                       false, // 8-bit types are scaled
                                       2>; // block_per_cu

using Problem = ck_tile::BlockFmhaPipelineProblem<Type,
                                                  Type,
                                                  Type,
                                                  float,
                                                  float,
                                                  ck_tile::bf16_t, // bias
                                                  uint8_t,
                                                  float,
                                                  Type,
                                                  float,
                                                  TypeO,
                                                  Shape,
                                                  false, // packed sequences
                                                  cklang::Variant<mask, score>,
                                                  cklang::MaskType<mask, score, split>,
                                                  false,
                                                  Traits>;

using Pipeline = ck_tile::BlockFmhaPipelineQRKSVS<Problem>;
using Kernel   = cklang::AttentionKernel<Pipeline, mask, score, 8, split, paged, output>;

static_assert(Kernel::block_size == 256);

// ck_score and ck_output: open in a stencil, defined at the end of this file otherwise.
// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 2) void
ck_attention_bf16_bf16_128x64x16x32x32x32(cklang::AttentionArgs args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS) { return s + 0.25f * (float)(j - i); }
CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS) { return o + (float)j; }
