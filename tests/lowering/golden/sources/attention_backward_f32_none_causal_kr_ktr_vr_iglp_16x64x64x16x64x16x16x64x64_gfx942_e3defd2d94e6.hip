// CK Tile attention backwards, made by cklang: the gradients of q, k and v.
// Key: {"algorithm": {"block_per_cu": 1, "pipeline": "kr_ktr_vr_iglp", "tile": [16, 64, 64, 16, 64, 16, 16, 64, 64], "vector": 4, "warp_tiles": [[16, 16, 16], [16, 16, 16], [16, 16, 16]], "warps": [[1, 4, 1], [4, 1, 1], [1, 4, 1]]}, "arch": "gfx942", "family": "attention_backward", "signature": {"bias_grad": false, "deterministic": true, "forward": {"dropout": false, "dtype": "f32", "dtype_bias": "f32", "dtype_o": "f32", "functions": "", "lse": true, "mask": "causal", "output": false, "packed": true, "paged": false, "score": "none", "split": false}, "functions": ""}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_attention_grad.hpp"

CK_ATTENTION_GRAD_HOST_SHIM(
    .forward      = {.tile_q     = 16,
                     .tile_k     = 64,
                     .tile_d     = 64,
                     .tile_dv    = 64,
                     .pad_q      = true,
                     .pad_k      = true,
                     .pad_d      = true,
                     .pad_dv     = true,
                     .vector     = 4,
                     .bytes      = 4,
                     .bytes_o    = 4,
                     .bytes_bias = 4,
                     .threads    = 256,
                     .score      = cklang::Score::none,
                     .mask       = cklang::Mask::causal,
                     .lse        = true,
                     .dropout    = false,
                     .packed     = true,
                     .split      = false,
                     .paged      = false},
    .bytes_grad_k = 4,
    .bytes_grad_v = 4,
    .bias_grad    = false,
    .whole        = false)

#else

#include "cklang/attention_grad.hpp"
#include "ck_tile/ops/fmha/pipeline/block_fmha_bwd_dq_dk_dv_pipeline_kr_ktr_vr_iglp.hpp"

// Signature: what is computed.
using Type = float; // q, k, v, the gradient of o, and what goes into the products
using Grad = float; // the gradients of k and v

constexpr auto score = cklang::Score::none;
constexpr auto mask  = cklang::Mask::causal;

// Algorithm: how.
constexpr bool whole = false; // a workgroup has all queries of a head

using Shape = ck_tile::TileFmhaBwdShape<ck_tile::sequence<16, 64, 64, 16, 64, 16, 16, 64, 64>, // tile
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
                                          ck_tile::BlockAttentionBiasEnum::NO_BIAS, // score
                                          false, // gradient of the bias
                                          1>; // block_per_cu

using Problem = ck_tile::BlockFmhaBwdPipelineProblem<Type,
                                                     Type,
                                                     Type,
                                                     Type,
                                                     float,
                                                     float,
                                                     float,
                                                     float, // bias
                                                     uint8_t,
                                                     Type,
                                                     Type,
                                                     float,
                                                     Grad,
                                                     Grad,
                                                     float,
                                                     Shape,
                                                     true, // packed sequences
                                                     true, // deterministic
                                                     cklang::GradMaskType<mask, score>,
                                                     ck_tile::BlockDropoutBwd<false, false, false>,
                                                     false, // transposed loads
                                                     Traits>;

using Pipeline = ck_tile::BlockFmhaBwdDQDKDVPipelineKRKTRVRIGLP<Problem>;
using Kernel   = cklang::AttentionGradKernel<Pipeline, mask, score, 4, whole>;

static_assert(Kernel::block_size == 256);

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_attention_grad_f32_f32_16x64x64x16x64x16x16x64x64(cklang::AttentionGradArgs args)
{
    Kernel::run(args);
}

#endif

