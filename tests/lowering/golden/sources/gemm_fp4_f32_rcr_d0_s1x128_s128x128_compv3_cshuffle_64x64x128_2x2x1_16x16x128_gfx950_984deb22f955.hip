// CK Tile GEMM made by cklang. E[m, n] = f(sum over k of A[m, k] * B[k, n]).
// Key: {"algorithm": {"block_per_cu": 1, "double_buffer": false, "epilogue": "cshuffle", "groups_merged": 1, "num_wave_groups": 1, "pad_k": true, "pad_m": true, "pad_n": true, "persistent": false, "pipeline": "compv3", "reduction": "none", "scheduler": "intrawave", "special": "default", "split_k": 1, "stream_k": false, "tile": [64, 64, 128], "transpose_c": false, "vector_a": 32, "vector_b": 32, "vector_d": [], "vector_e": 4, "warp_tile": [16, 16, 128], "warps": [2, 2, 1]}, "arch": "gfx950", "family": "gemm", "signature": {"a": [], "b": [], "d": [], "dtype_a": "fp4", "dtype_acc": "f32", "dtype_b": "fp4", "dtype_e": "f32", "functions": "", "kind": "gemm", "layout_a": "r", "layout_b": "c", "layout_e": "r", "scale_a": {"block": [1, 128], "dtype": "f32"}, "scale_b": {"block": [128, 128], "dtype": "f32"}, "sparse": false, "spatial": 0}, "version": 3}

// Loads beyond K are moved out of the buffer's range, where they give zeros.
#define CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK 1
#include "cklang/gemm.hpp"
#include "cklang/block_scale_loop.hpp"
#include "cklang/packed.hpp"

using Row    = ck_tile::tensor_layout::gemm::RowMajor;
using Column = ck_tile::tensor_layout::gemm::ColumnMajor;

// Signature: what is computed.
using A       = ck_tile::pk_fp4_t;
using B       = ck_tile::pk_fp4_t;
using AccType = float;
using E       = float;

using ALayout = Row;
using BLayout = Column;
using ELayout = Row;

// Algorithm: how.
using Shape = ck_tile::TileGemmShape<ck_tile::sequence<64, 64, 128>,  // tile
                                     ck_tile::sequence<2, 2, 1>,  // warps
                                     ck_tile::sequence<16, 16, 128>>; // warp_tile

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
                                                false, // persistent
                                                1>;    // num_wave_groups

using Acc = cklang::AccTile<Shape, A, B, AccType, false, 1>;

// Where A and B come from.
using AElements = cklang::PackedRows<A, 32>;
using AScale  = cklang::BlockScale<cklang::F32Scale, 1, 128>; // block, block along K
using ASource = cklang::Scaled<AElements, AScale, true>; // K is inner
using BElements = cklang::PackedRows<B, 32>;
using BScale  = cklang::BlockScale<cklang::F32Scale, 128, 128>; // block, block along K
using BSource = cklang::Scaled<BElements, BScale, true>; // K is inner

// The kernel's two halves are compiled side by side; other passes see both.
extern "C" __device__ cklang::LoopFunction<AccType, ASource, BSource>
    ck_gemm_fp4_fp4_f32_rcr_64x64x128_mainloop;

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
                                          32,    // vector_a
                                          32>;   // vector_b

using Policy = cklang::MxPolicy<ck_tile::UniversalGemmPipelineAgBgCrPolicy>;

using Pipeline =
    ck_tile::GemmPipelineAgBgCrCompV3<PipelineProblem, Policy>; // pipeline

#if defined(__HIP_DEVICE_COMPILE__)

extern "C" __device__ void ck_gemm_fp4_fp4_f32_rcr_64x64x128_mainloop(
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
    cklang::BlockScaleLoop<Pipeline, Acc, 1, ASource, BSource>::run(
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
                                     2, // warps n
                                     16, // warp_tile m
                                     16, // warp_tile n
                                     128, // warp_tile k
                                     false, // transpose_c
                                     ck_tile::memory_operation_enum::set,
                                     1,     // num_wave_groups
                                     true,  // the vector size below holds
                                     4>;   // vector_e

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
using Kernel = Gemm;

#if defined(__HIP_DEVICE_COMPILE__)

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_gemm_fp4_fp4_f32_rcr_64x64x128(Kernel::Args args)
{
    constexpr auto loop_lds = cklang::mainloop_lds<Shape, A, B>;
    Kernel::run<loop_lds, ck_gemm_fp4_fp4_f32_rcr_64x64x128_mainloop>(args);
}

#else

// The host shim.
#define CKLANG_GFX_MAJOR 9
#include "cklang/describe.hpp"
#include "cklang/describe_masked.hpp"

using HostKernel =
    cklang::HostKernel<Partitioner, Pipeline, ASource, BSource, Epilogue>;
using Unmasked     = cklang::Describe<HostKernel,
                                false, // persistent
                                cklang::Work::tiles,
                                cklang::Reduction::none>;
using Single     = cklang::DescribeMasked<Unmasked, A, B, 128>; // tile_k

extern "C" __attribute__((visibility("default"))) void
ck_gemm_describe(const ck_gemm_problem* problem, ck_gemm_launch* launch)
{
    Single::run(*problem, *launch);
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
