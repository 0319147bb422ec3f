// CK Tile GEMM made by cklang. E[m, n] = f(sum over k of A[m, k] * B[k, n], D0[m, n]).
// Key: {"algorithm": {"block_per_cu": 1, "double_buffer": false, "epilogue": "cshuffle", "groups_merged": 1, "num_wave_groups": 1, "pad_k": true, "pad_m": true, "pad_n": true, "persistent": true, "pipeline": "compv3", "reduction": "none", "scheduler": "intrawave", "special": "default", "split_k": 1, "stream_k": false, "tile": [64, 64, 32], "transpose_c": false, "vector_a": 8, "vector_b": 8, "vector_d": [1], "vector_e": 1, "warp_tile": [16, 16, 16], "warps": [2, 2, 1]}, "arch": "gfx950", "family": "gemm", "signature": {"a": [], "b": [], "d": [{"dtype": "f32", "kind": "scalar"}], "dtype_a": "bf16", "dtype_acc": "f32", "dtype_b": "bf16", "dtype_e": "bf16", "functions": "", "kind": "segmented_k", "layout_a": "c", "layout_b": "r", "layout_e": "r", "scale_a": null, "scale_b": null, "sparse": false, "spatial": 0}, "version": 3}

#include "cklang/segmented_k.hpp"

using Row    = ck_tile::tensor_layout::gemm::RowMajor;
using Column = ck_tile::tensor_layout::gemm::ColumnMajor;

// Signature: what is computed.
using A       = ck_tile::bf16_t;
using B       = ck_tile::bf16_t;
using AccType = float;
using E       = ck_tile::bf16_t;

using ALayout = Column;
using BLayout = Row;
using ELayout = Row;
using D0 = cklang::Operand<float, cklang::Kind::scalar, 1>;

// Algorithm: how.
using Shape = ck_tile::TileGemmShape<ck_tile::sequence<64, 64, 32>,  // tile
                                     ck_tile::sequence<2, 2, 1>,  // warps
                                     ck_tile::sequence<16, 16, 16>>; // warp_tile

using Partitioner = ck_tile::GemmSpatiallyLocalTilePartitioner<Shape, 8, 4>;

using Traits = ck_tile::TileGemmUniversalTraits<true,  // pad_m
                                                true,  // pad_n
                                                true,  // pad_k
                                                false, // double_buffer
                                                ALayout,
                                                BLayout,
                                                ELayout,
                                                false, // transpose_c
                                                false, // structured sparsity
                                                true, // persistent
                                                1>;    // num_wave_groups

using Acc = cklang::AccTile<Shape, A, B, AccType, false, 1>;

// Where A and B come from.
using ASource = cklang::Strided<A>;
using BSource = cklang::Strided<B>;

// The kernel's two halves are compiled side by side; other passes see both.
extern "C" __device__ cklang::LoopFunction<AccType, ASource, BSource>
    ck_gemm_bf16_bf16_bf16_crr_64x64x32_mainloop;

#if !defined(CKLANG_ONLY_EPILOGUE)

using PipelineProblem =
    ck_tile::UniversalGemmPipelineProblem<A,
                                          B,
                                          AccType,
                                          Shape,
                                          Traits,
                                          ck_tile::GemmPipelineScheduler::Intrawave, // scheduler
                                          true,                      // hot loop
                                          ck_tile::TailNumber::Full, // one tail
                                          ck_tile::element_wise::PassThrough,
                                          ck_tile::element_wise::PassThrough,
                                          A,
                                          true, // the vector sizes below hold
                                          8,    // vector_a
                                          8>;   // vector_b

using Policy = cklang::VectorPolicy<ck_tile::UniversalGemmPipelineAgBgCrPolicy>;

using Pipeline =
    ck_tile::GemmPipelineAgBgCrCompV3<PipelineProblem, Policy>; // pipeline

#if defined(__HIP_DEVICE_COMPILE__)

extern "C" __device__ void ck_gemm_bf16_bf16_bf16_crr_64x64x32_mainloop(
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
    cklang::Mainloop<Pipeline, Acc, 1, ASource, BSource>::run(
        acc, a, b, M, N, K, m, n, k, shared);
}

#endif
#endif

#if !defined(CKLANG_ONLY_MAINLOOP)

using EpilogueProblem =
    ck_tile::CShuffleEpilogueProblem<A,
                                     B,
                                     ck_tile::tuple<D0::DataType>,
                                     AccType,
                                     E,
                                     ck_tile::tuple<Row>,
                                     ELayout,
                                     ck_tile::element_wise::PassThrough,
                                     Shape::kM,
                                     Shape::kN,
                                     2, // warps m
                                     2, // warps n
                                     16, // warp_tile m
                                     16, // warp_tile n
                                     16, // warp_tile k
                                     false, // transpose_c
                                     ck_tile::memory_operation_enum::set,
                                     1,     // num_wave_groups
                                     true,  // the vector size below holds
                                     1>;   // vector_e

// The user's function: an open hole in a stencil, defined at the end of this file otherwise.
extern "C" __device__ float ck_epilogue(float, float);

struct Function
{
    __device__ float operator()(float acc, float d0) const
    {
        return ck_epilogue(acc, d0);
    }
};

using Epilogue = cklang::Epilogue<EpilogueProblem, Function, D0>;
using Gemm =
    cklang::GemmKernel<Partitioner, Traits, Acc, ASource, BSource, Epilogue, D0>;
using Kernel = cklang::SegmentedKKernel<Gemm, true, D0>;

#if defined(__HIP_DEVICE_COMPILE__)

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_gemm_bf16_bf16_bf16_crr_64x64x32(Kernel::Args args)
{
    constexpr auto loop_lds = cklang::mainloop_lds<Shape, A, B>;
    Kernel::run<loop_lds, ck_gemm_bf16_bf16_bf16_crr_64x64x32_mainloop>(args);
}

#else

// The host shim.
#define CKLANG_GFX_MAJOR 9
#include "cklang/describe_segmented.hpp"

using HostKernel =
    cklang::HostKernel<Partitioner, Pipeline, ASource, BSource, Epilogue, D0>;
using Single     = cklang::Describe<HostKernel,
                                true, // persistent
                                cklang::Work::tiles,
                                cklang::Reduction::none>;

extern "C" __attribute__((visibility("default"))) void
ck_gemm_describe(const ck_gemm_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeSegmented<Single, Partitioner, true, true>::run(*problem, *launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_gemm_host_version()
{
    return CK_GEMM_HOST_VERSION;
}

#endif
#endif

#include "cklang/math.h"

CK_FUNCTION float ck_epilogue(float acc, float d0)
{
#line 2 "<mini-IR>"
    const float vsum0 = acc + d0;
    return vsum0;
}
