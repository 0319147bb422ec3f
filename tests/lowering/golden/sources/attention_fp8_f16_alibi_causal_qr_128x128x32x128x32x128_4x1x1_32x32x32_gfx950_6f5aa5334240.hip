// CK Tile attention made by cklang: o = softmax(score(scale * q k')) v.
// Key: {"algorithm": {"block_per_cu": 1, "pad_d": false, "pad_dv": false, "pad_k": true, "pad_q": true, "pipeline": "qr", "tile": [128, 128, 32, 128, 32, 128], "vector": 8, "warp_tile": [32, 32, 32], "warps": [4, 1, 1]}, "arch": "gfx950", "family": "attention", "signature": {"dropout": false, "dtype": "fp8", "dtype_bias": "fp8", "dtype_o": "f16", "functions": "", "lse": true, "mask": "causal", "output": false, "packed": false, "paged": true, "score": "alibi", "split": false}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention.hpp"

CK_ATTENTION_HOST_SHIM(
    .tile_q     = 128,
    .tile_k     = 128,
    .tile_d     = 128,
    .tile_dv    = 128,
    .pad_q      = true,
    .pad_k      = true,
    .pad_d      = false,
    .pad_dv     = false,
    .vector     = 8,
    .bytes      = 1,
    .bytes_o    = 2,
    .bytes_bias = 1,
    .threads    = 256,
    .score      = cklang::Score::alibi,
    .mask       = cklang::Mask::causal,
    .lse        = true,
    .dropout    = false,
    .packed     = false,
    .split      = false,
    .paged      = true)

#else

#include "cklang/attention.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_pipeline_qr_ks_vs.hpp"

// Signature: what is computed.
using Type  = ck_tile::fp8_t; // q, k, v and the weights
using TypeO = ck_tile::half_t;

constexpr auto score = cklang::Score::alibi;
constexpr auto mask  = cklang::Mask::causal;
constexpr bool split = false; // workgroups share the keys of a row
constexpr bool paged = true; // K and V lie in pages
constexpr bool output = false; // a function makes of o what is stored

// Algorithm: how.
using Shape = ck_tile::TileFmhaShape<ck_tile::sequence<128, 128, 32, 128, 32, 128>, // tile: m0, n0, k0, n1, k1, k0max
                                     ck_tile::sequence<4, 1, 1>, // warps
                                     ck_tile::sequence<32, 32, 32>, // warp_tile
                                     ck_tile::sequence<4, 1, 1>,
                                     ck_tile::sequence<32, 32, 32>,
                                     true>; // rows of V are contiguous

using Traits = ck_tile::TileFmhaTraits<true, // pad_q
                                       true, // pad_k
                                       false, // pad_d
                                       false, // pad_dv
                                       false, // soft cap
                                       ck_tile::BlockAttentionBiasEnum::ALIBI, // score
                                       false,
                                       true, // lse
                                       false, // dropout
                                       true, // 8-bit types are scaled
                                       1>; // block_per_cu

using Problem = ck_tile::BlockFmhaPipelineProblem<Type,
                                                  Type,
                                                  Type,
                                                  float,
                                                  float,
                                                  ck_tile::fp8_t, // bias
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

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_attention_fp8_f16_128x128x32x128x32x128(cklang::AttentionArgs args)
{
    Kernel::run(args);
}

#endif

