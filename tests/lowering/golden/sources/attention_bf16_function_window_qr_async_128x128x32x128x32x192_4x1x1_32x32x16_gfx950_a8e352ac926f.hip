// CK Tile attention made by cklang: o = softmax(score(scale * q k')) v.
// Key: {"algorithm": {"block_per_cu": 2, "pad_d": true, "pad_dv": true, "pad_k": true, "pad_q": true, "pipeline": "qr_async", "tile": [128, 128, 32, 128, 32, 192], "vector": 8, "warp_tile": [32, 32, 16], "warps": [4, 1, 1]}, "arch": "gfx950", "family": "attention", "signature": {"dropout": true, "dtype": "bf16", "dtype_bias": "bf16", "dtype_o": "bf16", "functions": "", "lse": false, "mask": "window", "output": true, "packed": true, "paged": false, "score": "function", "split": false}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention.hpp"

CK_ATTENTION_HOST_SHIM(
    .tile_q     = 128,
    .tile_k     = 128,
    .tile_d     = 192,
    .tile_dv    = 128,
    .pad_q      = true,
    .pad_k      = true,
    .pad_d      = true,
    .pad_dv     = true,
    .vector     = 8,
    .bytes      = 2,
    .bytes_o    = 2,
    .bytes_bias = 2,
    .threads    = 256,
    .score      = cklang::Score::function,
    .mask       = cklang::Mask::window,
    .lse        = false,
    .dropout    = true,
    .packed     = true,
    .split      = false,
    .paged      = false)

#else

#include "cklang/attention.hpp"
#include "cklang/attention_buffers.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs_async.hpp"

// Signature: what is computed.
using Type  = ck_tile::bf16_t; // q, k, v and the weights
using TypeO = ck_tile::bf16_t;

constexpr auto score = cklang::Score::function;
constexpr auto mask  = cklang::Mask::window;
constexpr bool split = false; // workgroups share the keys of a row
constexpr bool paged = false; // K and V lie in pages
constexpr bool output = true; // a function makes of o what is stored

// Algorithm: how.
using Shape = ck_tile::TileFmhaShape<ck_tile::sequence<128, 128, 32, 128, 32, 192>, // tile: m0, n0, k0, n1, k1, k0max
                                     ck_tile::sequence<4, 1, 1>, // warps
                                     ck_tile::sequence<32, 32, 16>, // warp_tile
                                     ck_tile::sequence<4, 1, 1>,
                                     ck_tile::sequence<32, 32, 16>,
                                     true>; // rows of V are contiguous

using Traits = ck_tile::TileFmhaTraits<true, // pad_q
                                       true, // pad_k
                                       true, // pad_d
                                       true, // pad_dv
                                       false, // soft cap
                                       ck_tile::BlockAttentionBiasEnum::ALIBI, // score
                                       false,
                                       false, // lse
                                       true, // dropout
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
                                                  true, // packed sequences
                                                  cklang::Variant<mask, score>,
                                                  cklang::MaskType<mask, score, split>,
                                                  false,
                                                  Traits>;

using Pipeline = ck_tile::BlockFmhaPipelineQRKSVSAsync<Problem, cklang::BufferOrder<0, 1, 2, 0, 1, 2, 1, 2, 1, 2>>;
using Kernel   = cklang::AttentionKernel<Pipeline, mask, score, 8, split, paged, output>;

static_assert(Kernel::block_size == 256);

// ck_score and ck_output: open in a stencil, defined at the end of this file otherwise.
// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 2) void
ck_attention_bf16_bf16_128x128x32x128x32x192(cklang::AttentionArgs args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS) { return s + 0.25f * (float)(j - i); }
CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS) { return o + (float)j; }
