// CK Tile GEMM made by cklang. E[m, n] = f(sum over k of A[m, k] * B[k, n]).
// Key: {"algorithm": {"block_per_cu": 2, "double_buffer": true, "epilogue": "cshuffle", "groups_merged": 1, "num_wave_groups": 1, "pad_k": true, "pad_m": true, "pad_n": true, "persistent": false, "pipeline": "compv4", "reduction": "none", "scheduler": "intrawave", "special": "default", "split_k": 1, "stream_k": false, "tile": [64, 64, 128], "transpose_c": false, "vector_a": 4, "vector_b": 4, "vector_d": [], "vector_e": 1, "warp_tile": [16, 16, 16], "warps": [2, 4, 1]}, "arch": "gfx1201", "family": "gemm", "signature": {"a": [], "b": [{"dtype": "bf16", "kind": "full"}], "d": [], "dtype_a": "fp8", "dtype_acc": "f32", "dtype_b": "bf8", "dtype_e": "bf8", "functions": "", "kind": "batched", "layout_a": "c", "layout_b": "c", "layout_e": "r", "scale_a": null, "scale_b": null, "sparse": false, "spatial": 0}, "version": 3}

#include "cklang/batched.hpp"
#include "cklang/byte_tiles.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_areg_breg_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v4.hpp"

using Row    = ck_tile::tensor_layout::gemm::RowMajor;
using Column = ck_tile::tensor_layout::gemm::ColumnMajor;

// Signature: what is computed.
using A       = ck_tile::fp8_t;
using B       = ck_tile::bf8_t;
using AccType = float;
using E       = ck_tile::bf8_t;

using ALayout = Column;
using BLayout = Column;
using ELayout = Row;

// Algorithm: how.
using Shape = ck_tile::TileGemmShape<ck_tile::sequence<64, 64, 128>,  // tile
                                     ck_tile::sequence<2, 4, 1>,  // warps
                                     ck_tile::sequence<16, 16, 16>>; // warp_tile

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

// Where A and B come from.
using ASource = cklang::Strided<A>;
extern "C" __device__ float ck_prologue_b(float);

struct FunctionB
{
    __device__ float operator()(float x0) const
    {
        return ck_prologue_b(x0);
    }
};

using B0 = cklang::Operand<ck_tile::bf16_t, cklang::Kind::full, 4>;
using BSource = cklang::Computed<B, FunctionB, B0>;

// The kernel's two halves are compiled side by side; other passes see both.
extern "C" __device__ cklang::LoopFunction<AccType, ASource, BSource>
    ck_gemm_fp8_bf8_bf8_ccr_64x64x128_mainloop;

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
                                          4>;   // vector_b

using Policy = cklang::VectorPolicy<ck_tile::GemmPipelineAgBgCrCompV4DefaultPolicy>;

using Pipeline =
    ck_tile::GemmPipelineAgBgCrCompV4<PipelineProblem, Policy>; // pipeline

#if defined(__HIP_DEVICE_COMPILE__)

extern "C" __device__ void ck_gemm_fp8_bf8_bf8_ccr_64x64x128_mainloop(
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
                                     2, // warps m
                                     4, // warps n
                                     16, // warp_tile m
                                     16, // warp_tile n
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
using Gemm =
    cklang::GemmKernel<Partitioner, Traits, Acc, ASource, BSource, Epilogue>;
using Kernel = cklang::BatchedKernel<Gemm>;

#if defined(__HIP_DEVICE_COMPILE__)

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 2) void
ck_gemm_fp8_bf8_bf8_ccr_64x64x128(Kernel::Args args)
{
    constexpr auto loop_lds = 2 * cklang::mainloop_lds<Shape, A, B>;
    Kernel::run<loop_lds, ck_gemm_fp8_bf8_bf8_ccr_64x64x128_mainloop>(args);
}

#else

// The host shim.
#define CKLANG_GFX_MAJOR 12
#include "cklang/describe_batched.hpp"

using HostKernel =
    cklang::HostKernel<Partitioner, Pipeline, ASource, BSource, Epilogue>;
using Single     = cklang::Describe<HostKernel,
                                false, // persistent
                                cklang::Work::tiles,
                                cklang::Reduction::none>;

extern "C" __attribute__((visibility("default"))) void
ck_gemm_describe(const ck_gemm_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeBatched<Single>::run(*problem, *launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_gemm_host_version()
{
    return CK_GEMM_HOST_VERSION;
}

#endif
#endif

#include "cklang/math.h"

CK_FUNCTION float ck_epilogue(float acc)
{
    return acc;
}

CK_FUNCTION float ck_prologue_b(float b0)
{
#line 2 "<mini-IR>"
    const float vb0w = b0;
#line 3 "<mini-IR>"
    const float vbf = -vb0w;
#line 4 "<mini-IR>"
    const float vbr = ck_round_bf8(vbf);
    return vbr;
}
