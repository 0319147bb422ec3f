// CK Tile attention backwards, made by cklang: the gradients of q, k and v.
// Key: {"algorithm": {"block_per_cu": 1, "pipeline": "kr_ktr_vr_iglp", "tile": [32, 64, 32, 32, 32, 32, 64, 32, 32], "vector": 8, "warp_tiles": [[16, 16, 16], [16, 16, 16], [16, 16, 16]], "warps": [[1, 4, 1], [4, 1, 1], [2, 2, 1]]}, "arch": "gfx1100", "family": "attention_backward", "signature": {"bias_grad": true, "derivative": true, "deterministic": true, "forward": {"dropout": true, "dtype": "bf16", "dtype_bias": "bf16", "dtype_o": "bf16", "functions": "", "lse": true, "mask": "none", "output": false, "packed": false, "paged": false, "score": "function", "split": false}, "functions": ""}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention_grad.hpp"

CK_ATTENTION_GRAD_HOST_SHIM(
    .forward      = {.tile_q     = 32,
                     .tile_k     = 64,
                     .tile_d     = 32,
                     .tile_dv    = 32,
                     .pad_q      = true,
                     .pad_k      = true,
                     .pad_d      = true,
                     .pad_dv     = true,
                     .vector     = 8,
                     .bytes      = 2,
                     .bytes_o    = 2,
                     .bytes_bias = 2,
                     .threads    = 128,
                     .score      = cklang::Score::function,
                     .mask       = cklang::Mask::none,
                     .lse        = true,
                     .dropout    = true,
                     .packed     = false,
                     .split      = false,
                     .paged      = false},
    .bytes_grad_k = 2,
    .bytes_grad_v = 2,
    .bias_grad    = true,
    .whole        = false)

#else

#include "cklang/attention_grad.hpp"
#include "cklang/attention_grad_derived.hpp"
#include "cklang/attention_grad_rdna3.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr_iglp.hpp"

// Signature: what is computed.
using Type = ck_tile::bf16_t; // q, k, v, the gradient of o, and what goes into the products
using Grad = ck_tile::bf16_t; // the gradients of k and v

constexpr auto score = cklang::Score::function;
constexpr auto mask  = cklang::Mask::none;

// Algorithm: how.
constexpr bool whole = false; // a workgroup has all queries of a head

using Shape = ck_tile::TileFmhaBwdShape<ck_tile::sequence<32, 64, 32, 32, 32, 32, 64, 32, 32>, // tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<4, 1, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<4, 1, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<2, 2, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        0>; // most queries of a head, 0: any number

using Traits = ck_tile::TileFmhaBwdTraits<8, // head sizes of q and k pad, whole vectors
                                          8,
                                          ck_tile::BlockAttentionBiasEnum::ALIBI, // score
                                          true, // gradient of the bias
                                          1>; // block_per_cu

using Problem = ck_tile::BlockFmhaBwdPipelineProblem<Type,
                                                     Type,
                                                     Type,
                                                     Type,
                                                     float,
                                                     float,
                                                     float,
                                                     ck_tile::bf16_t, // bias
                                                     uint8_t,
                                                     Type,
                                                     Type,
                                                     float,
                                                     Grad,
                                                     Grad,
                                                     ck_tile::bf16_t,
                                                     Shape,
                                                     false, // packed sequences
                                                     true, // deterministic
                                                     cklang::GradMaskType<mask, score>,
                                                     ck_tile::BlockDropoutBwd<true, false, false>,
                                                     false, // transposed loads
                                                     Traits>;

using Pipeline = cklang::PaddedQueries<cklang::DerivedScores<ck_tile::BlockFmhaBwdDQDKDVPipelineKRKTRVRIGLP<Problem, cklang::DerivedPolicy<ck_tile::BlockFmhaBwdPipelineDefaultPolicy>>>>;
using Kernel   = cklang::AttentionGradKernel<Pipeline, mask, score, 8, whole>;

static_assert(Kernel::block_size == 128);

// ck_score and ck_derivative: open in a stencil, defined at the end of this file otherwise.
// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_attention_grad_bf16_bf16_32x64x32x32x32x32x64x32x32(cklang::AttentionGradArgs args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS) { return s + 0.25f * (float)(j - i); }
CK_FUNCTION float ck_derivative(float s, CK_ATTENTION_PARAMS) { return 1.0f + 0.5f * s; }
