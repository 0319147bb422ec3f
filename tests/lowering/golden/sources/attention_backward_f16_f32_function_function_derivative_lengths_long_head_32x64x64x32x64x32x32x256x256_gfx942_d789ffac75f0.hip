// CK Tile attention backwards, made by cklang: the gradients of q, k and v.
// Key: {"algorithm": {"block_per_cu": 1, "pipeline": "long_head", "tile": [32, 64, 64, 32, 64, 32, 32, 256, 256], "vector": 8, "warp_tiles": [[16, 16, 32], [16, 16, 16], [16, 16, 32]], "warps": [[1, 4, 1], [4, 1, 1], [1, 4, 1]]}, "arch": "gfx942", "family": "attention_backward", "signature": {"bias_grad": false, "derivative": true, "deterministic": false, "forward": {"dropout": false, "dtype": "f16", "dtype_bias": "f16", "dtype_o": "f32", "functions": "", "lse": true, "mask": "function", "output": false, "packed": false, "paged": false, "score": "function", "split": false}, "functions": "", "lengths": true}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention_grad_long.hpp"

CK_HOST_SHIM(ck_attention_grad, cklang::DescribeLongHeadsGrad,
    .forward      = {.tile_q     = 32,
                     .tile_k     = 64,
                     .tile_d     = 256,
                     .tile_dv    = 256,
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
                     .mask       = cklang::Mask::function,
                     .lse        = true,
                     .dropout    = false,
                     .packed     = false,
                     .split      = false,
                     .paged      = false},
    .bytes_grad_k = 4,
    .bytes_grad_v = 4,
    .bias_grad    = false,
    .whole        = false)

#else

#include "cklang/attention_grad_long.hpp"
#include "cklang/attention_grad_derived.hpp"
#include "cklang/attention_grad_lengths.hpp"

// Signature: what is computed.
using Type = ck_tile::half_t; // q, k, v, the gradient of o, and what goes into the products
using Grad = float; // the gradients of k and v

constexpr auto score = cklang::Score::function;
constexpr auto mask  = cklang::Mask::function;

// Algorithm: how.
using Shape = ck_tile::TileFmhaBwdShape<ck_tile::sequence<32, 64, 64, 32, 64, 32, 32, 64, 64>, // tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 32>, // warp_tile
                                        ck_tile::sequence<4, 1, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 32>, // warp_tile
                                        ck_tile::sequence<4, 1, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 32>, // warp_tile
                                        0>; // most queries of a head, 0: any number

using Traits = ck_tile::TileFmhaBwdTraits<8, // head sizes of q and k pad, whole vectors
                                          8,
                                          ck_tile::BlockAttentionBiasEnum::ALIBI, // score
                                          false, // gradient of the bias
                                          1>; // block_per_cu

using Problem = ck_tile::BlockFmhaBwdPipelineProblem<Type,
                                                     Type,
                                                     Type,
                                                     Type,
                                                     float,
                                                     float,
                                                     float,
                                                     ck_tile::half_t, // bias
                                                     uint8_t,
                                                     Type,
                                                     Type,
                                                     float,
                                                     Grad,
                                                     Grad,
                                                     ck_tile::half_t,
                                                     Shape,
                                                     false, // packed sequences
                                                     false, // deterministic
                                                     cklang::GradMaskType<mask, score>,
                                                     ck_tile::BlockDropoutBwd<false, false, false>,
                                                     false, // transposed loads
                                                     Traits>;

using Pipeline = cklang::DerivedScores<cklang::LongHeadsGrad<Problem, 256, cklang::DerivedPolicy<ck_tile::BlockFmhaBwdPipelineDefaultPolicy>>>;
using Kernel   = cklang::KeyLengths<cklang::LongHeadsGradKernel<Pipeline, mask, score, 8>>;

static_assert(Kernel::block_size == 256);

// ck_score and ck_mask and ck_derivative: open in a stencil, defined at the end of this file otherwise.
// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_attention_grad_f16_f32_32x64x64x32x64x32x32x256x256(cklang::AttentionGradArgs args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS) { return s + 0.25f * (float)(j - i); }
CK_FUNCTION float ck_derivative(float s, CK_ATTENTION_PARAMS) { return 1.0f + 0.5f * s; }
CK_FUNCTION int ck_mask(CK_ATTENTION_PARAMS) { return (i + j + h) % 3 != 0; }
