// CK Tile gradient of a convolution's weights made by cklang: sums as in a GEMM, of
// 2-dimensional images.
// Key: {"algorithm": {"block_per_cu": 2, "double_buffer": true, "epilogue": "cshuffle", "groups_merged": 1, "num_wave_groups": 1, "pad_k": true, "pad_m": true, "pad_n": true, "persistent": false, "pipeline": "compv4", "reduction": "none", "scheduler": "intrawave", "special": "default", "split_k": 1, "stream_k": false, "tile": [128, 256, 16], "transpose_c": false, "vector_a": 4, "vector_b": 1, "vector_d": [], "vector_e": 1, "warp_tile": [32, 32, 16], "warps": [1, 2, 1]}, "arch": "gfx950", "family": "conv", "signature": {"a": [], "b": [], "d": [], "dtype_a": "bf8", "dtype_acc": "f32", "dtype_b": "fp8", "dtype_e": "f32", "functions": "", "kind": "conv_grad_weight", "layout_a": "c", "layout_b": "r", "layout_e": "r", "scale_a": null, "scale_b": null, "sparse": false, "spatial": 2}, "version": 3}

#include "cklang/conv.hpp"
#include "cklang/byte_tiles.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v4.hpp"

using Row    = ck_tile::tensor_layout::gemm::RowMajor;
using Column = ck_tile::tensor_layout::gemm::ColumnMajor;

// Signature: what is computed.
using A       = ck_tile::bf8_t;
using B       = ck_tile::fp8_t;
using AccType = float;
using E       = float;

using ALayout = Column;
using BLayout = Row;
using ELayout = Row;

// Algorithm: how.
using Shape = ck_tile::TileGemmShape<ck_tile::sequence<128, 256, 16>,  // tile
                                     ck_tile::sequence<1, 2, 1>,  // warps
                                     ck_tile::sequence<32, 32, 16>>; // warp_tile

using Partitioner = ck_tile::GemmSpatiallyLocalTilePartitioner<Shape, 8, 4>;

using Traits = ck_tile::TileGemmUniversalTraits<true,  // pad_m
                                                true,  // pad_n
                                                true,  // pad_k
                                                true, // double_buffer
                                                ALayout,
                                                BLayout,
                                                ELayout,
                                                false, // transpose_c
                                                false, // structured sparsity
                                                false, // persistent
                                                1>;    // num_wave_groups

using Acc = cklang::AccTile<Shape, A, B, AccType, false, 1>;

// The matrices: tensors of many axes, each behind a lattice.
using ConvShape = cklang::ConvShape<2,  // axes in space
                                    1,  // groups in a tile
                                    cklang::Special::ordinary>; // special
using Direction = cklang::GradWeight<ConvShape, A, B, E, 0>;
using ASource   = Direction::ASource;
using BSource   = Direction::BSource;

// The kernel's two halves are compiled side by side; other passes see both.
extern "C" __device__ cklang::LoopFunction<AccType, ASource, BSource>
    ck_conv_grad_weight_bf8_fp8_f32_crr_128x256x16_mainloop;

#if !defined(CKLANG_ONLY_EPILOGUE)

using PipelineProblem =
    ck_tile::UniversalGemmPipelineProblem<A,
                                          B,
                                          AccType,
                                          Shape,
                                          Traits,
                                          ck_tile::GemmPipelineScheduler::Intrawave, // scheduler
                                          true,                      // hot loop
                                          ck_tile::TailNumber::Two, // one tail
                                          ck_tile::element_wise::PassThrough,
                                          ck_tile::element_wise::PassThrough,
                                          A,
                                          true, // the vector sizes below hold
                                          4,    // vector_a
                                          1>;   // vector_b

using Policy = cklang::VectorPolicy<ck_tile::GemmPipelineAgBgCrCompV4DefaultPolicy>;

using Pipeline =
    ck_tile::GemmPipelineAgBgCrCompV4<PipelineProblem, Policy>; // pipeline

#if defined(__HIP_DEVICE_COMPILE__)

extern "C" __device__ void ck_conv_grad_weight_bf8_fp8_f32_crr_128x256x16_mainloop(
    AccType* acc,
    const ASource& a,
    const BSource& b,
    cklang::index_t M,
    cklang::index_t N,
    cklang::index_t K,
    cklang::index_t m,
    cklang::index_t n,
    cklang::index_t k,
    CK_TILE_LDS_ADDR char* shared)
{
    cklang::Mainloop<Pipeline, Acc, 2, ASource, BSource>::run(
        acc, a, b, M, N, K, m, n, k, shared);
}

#endif
#endif

#if !defined(CKLANG_ONLY_MAINLOOP)

using EpilogueProblem =
    ck_tile::CShuffleEpilogueProblem<A,
                                     B,
                                     ck_tile::tuple<>,
                                     AccType,
                                     E,
                                     ck_tile::tuple<>,
                                     ELayout,
                                     ck_tile::element_wise::PassThrough,
                                     Shape::kM,
                                     Shape::kN,
                                     1, // warps m
                                     2, // warps n
                                     32, // warp_tile m
                                     32, // warp_tile n
                                     16, // warp_tile k
                                     false, // transpose_c
                                     ck_tile::memory_operation_enum::set,
                                     1,     // num_wave_groups
                                     true,  // the vector size below holds
                                     1>;   // vector_e

// The user's function: an open hole in a stencil, defined at the end of this file otherwise.
extern "C" __device__ float ck_epilogue(float);

struct Function
{
    __device__ float operator()(float acc) const
    {
        return ck_epilogue(acc);
    }
};

using Epilogue = cklang::Epilogue<EpilogueProblem, Function>;
using Gemm = cklang::ConvKernel<Partitioner, Traits, Acc, Direction, Epilogue>;
using Kernel = Gemm;

#if defined(__HIP_DEVICE_COMPILE__)

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 2) void
ck_conv_grad_weight_bf8_fp8_f32_crr_128x256x16(Kernel::Args args)
{
    constexpr auto loop_lds = 2 * cklang::mainloop_lds<Shape, A, B>;
    Kernel::run<loop_lds, ck_conv_grad_weight_bf8_fp8_f32_crr_128x256x16_mainloop>(args);
}

#else

// The host shim.
#define CKLANG_GFX_MAJOR 9
#include "cklang/describe_conv.hpp"

using HostKernel = ck_tile::UniversalGemmKernel<Partitioner, Pipeline, Epilogue>;
using Described  = cklang::DescribeConv<Gemm,
                                       HostKernel,
                                       Pipeline,
                                       false, // persistent
                                       cklang::Work::tiles,
                                       cklang::Reduction::none>;

extern "C" __attribute__((visibility("default"))) void
ck_conv_describe(const ck_conv_problem* problem, ck_gemm_launch* launch)
{
    Described::run(*problem, *launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_conv_host_version()
{
    return CK_CONV_HOST_VERSION;
}

#endif
#endif

#include "cklang/math.h"

CK_FUNCTION float ck_epilogue(float acc)
{
    return acc;
}
