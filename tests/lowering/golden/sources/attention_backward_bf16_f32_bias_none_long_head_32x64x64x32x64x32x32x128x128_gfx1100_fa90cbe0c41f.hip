// CK Tile attention backwards, made by cklang: the gradients of q, k and v.
// Key: {"algorithm": {"block_per_cu": 1, "pipeline": "long_head", "tile": [32, 64, 64, 32, 64, 32, 32, 128, 128], "vector": 8, "warp_tiles": [[16, 16, 16], [16, 16, 16], [16, 16, 16]], "warps": [[1, 4, 1], [4, 1, 1], [1, 4, 1]]}, "arch": "gfx1100", "family": "attention_backward", "signature": {"bias_grad": true, "deterministic": true, "forward": {"dropout": false, "dtype": "bf16", "dtype_bias": "bf16", "dtype_o": "f32", "functions": "", "lse": true, "mask": "none", "output": false, "packed": true, "paged": false, "score": "bias", "split": false}, "functions": ""}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention_grad_long.hpp"

CK_HOST_SHIM(ck_attention_grad, cklang::DescribeLongHeadsGrad,
    .forward      = {.tile_q     = 32,
                     .tile_k     = 64,
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
                     .threads    = 128,
                     .score      = cklang::Score::bias,
                     .mask       = cklang::Mask::none,
                     .lse        = true,
                     .dropout    = false,
                     .packed     = true,
                     .split      = false,
                     .paged      = false},
    .bytes_grad_k = 4,
    .bytes_grad_v = 4,
    .bias_grad    = true,
    .whole        = false)

#else

#include "cklang/attention_grad_long.hpp"
#include "cklang/attention_grad_rdna3.hpp"

// Signature: what is computed.
using Type = ck_tile::bf16_t; // q, k, v, the gradient of o, and what goes into the products
using Grad = float; // the gradients of k and v

constexpr auto score = cklang::Score::bias;
constexpr auto mask  = cklang::Mask::none;

// Algorithm: how.
using Shape = ck_tile::TileFmhaBwdShape<ck_tile::sequence<32, 64, 64, 32, 64, 32, 32, 64, 64>, // tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<4, 1, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<4, 1, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        ck_tile::sequence<1, 4, 1>, // warps
                                        ck_tile::sequence<16, 16, 16>, // warp_tile
                                        0>; // most queries of a head, 0: any number

using Traits = ck_tile::TileFmhaBwdTraits<8, // head sizes of q and k pad, whole vectors
                                          8,
                                          ck_tile::BlockAttentionBiasEnum::ELEMENTWISE_BIAS, // score
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
                                                     true, // packed sequences
                                                     true, // deterministic
                                                     cklang::GradMaskType<mask, score>,
                                                     ck_tile::BlockDropoutBwd<false, false, false>,
                                                     false, // transposed loads
                                                     Traits>;

using Pipeline = cklang::PaddedQueries<cklang::LongHeadsGrad<Problem, 128>>;
using Kernel   = cklang::LongHeadsGradKernel<Pipeline, mask, score, 8>;

static_assert(Kernel::block_size == 128);

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_attention_grad_bf16_f32_32x64x64x32x64x32x32x128x128(cklang::AttentionGradArgs args)
{
    Kernel::run(args);
}

#endif

