// CK Tile attention made by cklang: o = softmax(score(scale * q k')) v.
// Key: {"algorithm": {"block_per_cu": 1, "pad_d": true, "pad_dv": true, "pad_k": true, "pad_q": true, "pipeline": "v3", "tile": [256, 32, 128, 128, 32, 128], "vector": 8, "warp_tile": [32, 32, 16], "warps": [8, 1, 1]}, "arch": "gfx950", "family": "attention", "signature": {"dropout": false, "dtype": "bf16", "dtype_bias": "bf16", "dtype_o": "bf16", "functions": "", "lse": false, "mask": "function", "output": true, "packed": false, "paged": false, "score": "none", "split": false}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention.hpp"

CK_ATTENTION_HOST_SHIM(
    .tile_q     = 256,
    .tile_k     = 32,
    .tile_d     = 128,
    .tile_dv    = 128,
    .pad_q      = true,
    .pad_k      = true,
    .pad_d      = true,
    .pad_dv     = true,
    .vector     = 8,
    .bytes      = 2,
    .bytes_o    = 2,
    .bytes_bias = 2,
    .threads    = 512,
    .score      = cklang::Score::none,
    .mask       = cklang::Mask::function,
    .lse        = false,
    .dropout    = false,
    .packed     = false,
    .split      = false,
    .paged      = false)

#else

#include "cklang/attention_transposed.hpp"
#include "cklang/attention_second_tile.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_fwd_v3_pipeline.hpp"

// Signature: what is computed.
using Type  = ck_tile::bf16_t; // q, k, v and the weights
using TypeO = ck_tile::bf16_t;

constexpr auto score = cklang::Score::none;
constexpr auto mask  = cklang::Mask::function;
constexpr bool split = false; // workgroups share the keys of a row
constexpr bool paged = false; // K and V lie in pages
constexpr bool output = true; // a function makes of o what is stored

// Algorithm: how.
using Shape = ck_tile::TileFmhaShape<ck_tile::sequence<256, 32, 128, 128, 32, 128>, // tile: m0, n0, k0, n1, k1, k0max
                                     ck_tile::sequence<8, 1, 1>, // warps
                                     ck_tile::sequence<32, 32, 16>, // warp_tile
                                     ck_tile::sequence<8, 1, 1>,
                                     ck_tile::sequence<32, 32, 16>,
                                     true>; // rows of V are contiguous

using Traits = ck_tile::TileFmhaTraits<true, // pad_q
                                       true, // pad_k
                                       true, // pad_d
                                       true, // pad_dv
                                       false, // soft cap
                                       ck_tile::BlockAttentionBiasEnum::NO_BIAS, // score
                                       false,
                                       false, // lse
                                       false, // dropout
                                       false, // 8-bit types are scaled
                                       1>; // block_per_cu

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
                                                  cklang::SecondTile<cklang::PlacedMaskType<mask, score, split>>,
                                                  true,
                                                  Traits>;

using Pipeline = cklang::WaveGroups<ck_tile::BlockFmhaFwdV3Pipeline<Problem>>;
using Kernel   = cklang::AttentionKernel<Pipeline, mask, score, 8, split, paged, output>;

static_assert(Kernel::block_size == 512);

// ck_mask and ck_output: open in a stencil, defined at the end of this file otherwise.
// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_attention_bf16_bf16_256x32x128x128x32x128(cklang::AttentionArgs args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION int ck_mask(CK_ATTENTION_PARAMS) { return (i + j + h) % 3 != 0; }
CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS) { return o + (float)j; }
