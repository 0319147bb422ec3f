// CK Tile attention made by cklang: o = softmax(score(scale * q k')) v.
// Key: {"algorithm": {"block_per_cu": 2, "pad_d": false, "pad_dv": false, "pad_k": true, "pad_q": false, "pipeline": "qs", "tile": [128, 128, 32, 128, 32, 96], "vector": 8, "warp_tile": [32, 32, 16], "warps": [4, 1, 1]}, "arch": "gfx90a", "family": "attention", "signature": {"dropout": false, "dtype": "bf16", "dtype_bias": "bf16", "dtype_o": "bf16", "functions": "", "lse": false, "mask": "none", "output": false, "packed": false, "paged": false, "score": "none", "split": true}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention.hpp"

CK_ATTENTION_HOST_SHIM(
    .tile_q     = 128,
    .tile_k     = 128,
    .tile_d     = 96,
    .tile_dv    = 128,
    .pad_q      = false,
    .pad_k      = true,
    .pad_d      = false,
    .pad_dv     = false,
    .vector     = 8,
    .bytes      = 2,
    .bytes_o    = 4,
    .bytes_bias = 2,
    .threads    = 256,
    .score      = cklang::Score::none,
    .mask       = cklang::Mask::none,
    .lse        = true,
    .dropout    = false,
    .packed     = false,
    .split      = true,
    .paged      = false)

#else

#include "cklang/attention.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qs_ks_vs.hpp"

// Signature: what is computed.
using Type  = ck_tile::bf16_t; // q, k, v and the weights
using TypeO = float;

constexpr auto score = cklang::Score::none;
constexpr auto mask  = cklang::Mask::none;
constexpr bool split = true; // workgroups share the keys of a row
constexpr bool paged = false; // K and V lie in pages
constexpr bool output = false; // a function makes of o what is stored

// Algorithm: how.
using Shape = ck_tile::TileFmhaShape<ck_tile::sequence<128, 128, 32, 128, 32, 96>, // tile: m0, n0, k0, n1, k1, k0max
                                     ck_tile::sequence<4, 1, 1>, // warps
                                     ck_tile::sequence<32, 32, 16>, // warp_tile
                                     ck_tile::sequence<4, 1, 1>,
                                     ck_tile::sequence<32, 32, 16>,
                                     true>; // rows of V are contiguous

using Traits = ck_tile::TileFmhaTraits<false, // pad_q
                                       true, // pad_k
                                       false, // pad_d
                                       false, // pad_dv
                                       false, // soft cap
                                       ck_tile::BlockAttentionBiasEnum::NO_BIAS, // score
                                       false,
                                       true, // lse
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

using Pipeline = ck_tile::BlockFmhaPipelineQSKSVS<Problem>;
using Kernel   = cklang::AttentionKernel<Pipeline, mask, score, 8, split, paged, output>;

static_assert(Kernel::block_size == 256);

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 2) void
ck_attention_bf16_bf16_128x128x32x128x32x96(cklang::AttentionArgs args)
{
    Kernel::run(args);
}

#endif

