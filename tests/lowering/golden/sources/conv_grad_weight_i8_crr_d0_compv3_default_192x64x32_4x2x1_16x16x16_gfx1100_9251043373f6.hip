// CK Tile gradient of a convolution's weights made by cklang: sums as in a GEMM, of
// 1-dimensional images.
// Key: {"algorithm": {"block_per_cu": 1, "double_buffer": false, "epilogue": "default", "groups_merged": 1, "num_wave_groups": 1, "pad_k": true, "pad_m": true, "pad_n": true, "persistent": false, "pipeline": "compv3", "reduction": "atomic", "scheduler": "intrawave", "special": "pointwise", "split_k": 1, "stream_k": true, "tile": [192, 64, 32], "transpose_c": false, "vector_a": 1, "vector_b": 1, "vector_d": [], "vector_e": 16, "warp_tile": [16, 16, 16], "warps": [4, 2, 1]}, "arch": "gfx1100", "family": "conv", "signature": {"a": [], "b": [], "d": [], "dtype_a": "i8", "dtype_acc": "i32", "dtype_b": "i8", "dtype_e": "i8", "functions": "", "kind": "conv_grad_weight", "layout_a": "c", "layout_b": "r", "layout_e": "r", "scale_a": null, "scale_b": null, "sparse": false, "spatial": 1}, "version": 3}

// Loads beyond K are moved out of the buffer's range, where they give zeros.
#define CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK 1
#include "cklang/conv.hpp"
#include "cklang/shared_gemm.hpp"
#include "cklang/byte_tiles.hpp"

using Row    = ck_tile::tensor_layout::gemm::RowMajor;
using Column = ck_tile::tensor_layout::gemm::ColumnMajor;

// Signature: what is computed.
using A       = ck_tile::int8_t;
using B       = ck_tile::int8_t;
using AccType = int32_t;
using E       = ck_tile::int8_t;

using ALayout = Column;
using BLayout = Row;
using ELayout = Row;

// Algorithm: how.
using Shape = ck_tile::TileGemmShape<ck_tile::sequence<192, 64, 32>,  // tile
                                     ck_tile::sequence<4, 2, 1>,  // warps
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
                                                false, // persistent
                                                1>;    // num_wave_groups

using Acc = cklang::AccTile<Shape, A, B, AccType, false, 1>;

// The matrices: tensors of many axes, each behind a lattice.
using ConvShape = cklang::ConvShape<1,  // axes in space
                                    1,  // groups in a tile
                                    cklang::Special::pointwise>; // special
using Direction = cklang::GradWeight<ConvShape, A, B, E, 0>;
using ASource   = Direction::ASource;
using BSource   = Direction::BSource;

// The kernel's two halves are compiled side by side; other passes see both.
extern "C" __device__ cklang::LoopFunction<AccType, ASource, BSource>
    ck_conv_grad_weight_i8_i8_i8_crr_192x64x32_mainloop;

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
                                          1,    // vector_a
                                          1>;   // vector_b

using Policy = cklang::VectorPolicy<ck_tile::UniversalGemmPipelineAgBgCrPolicy>;

using Pipeline =
    ck_tile::GemmPipelineAgBgCrCompV3<PipelineProblem, Policy>; // pipeline

#if defined(__HIP_DEVICE_COMPILE__)

extern "C" __device__ void ck_conv_grad_weight_i8_i8_i8_crr_192x64x32_mainloop(
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
    ck_tile::DefaultGemm2DEpilogueProblem<A,
                                          B,
                                          ck_tile::tuple<>,
                                          AccType,
                                          E,
                                          ck_tile::tuple<>,
                                          ELayout,
                                          ck_tile::element_wise::PassThrough,
                                          Shape::kM,
                                          Shape::kN,
                                          true, // pad_m
                                          true, // pad_n
                                          16, // warp_tile m
                                          16, // warp_tile n
                                          16, // warp_tile k
                                          false>; // transpose_c

// The user's function: an open hole in a stencil, defined at the end of this file otherwise.
extern "C" __device__ int ck_epilogue(int);

struct Function
{
    __device__ int operator()(int acc) const
    {
        return ck_epilogue(acc);
    }
};

using Epilogue = cklang::DirectEpilogue<EpilogueProblem, 16, Function>;
using Gemm = cklang::ConvKernel<Partitioner, Traits, Acc, Direction, Epilogue>;
using Kernel = cklang::SharedGemm<Gemm,
                                  cklang::Work::stream_k,
                                  cklang::Reduction::atomic, // reduction
                                  false>; // whole tiles first

#if defined(__HIP_DEVICE_COMPILE__)

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_conv_grad_weight_i8_i8_i8_crr_192x64x32(Kernel::Args args)
{
    constexpr auto loop_lds = cklang::mainloop_lds<Shape, A, B>;
    Kernel::run<loop_lds, ck_conv_grad_weight_i8_i8_i8_crr_192x64x32_mainloop>(args);
}

#else

// The host shim.
#define CKLANG_GFX_MAJOR 11
#include "cklang/describe_conv.hpp"
#include "cklang/describe_masked_conv.hpp"

using HostKernel = ck_tile::UniversalGemmKernel<Partitioner, Pipeline, Epilogue>;
using Unmasked   = cklang::DescribeConv<Gemm,
                                       HostKernel,
                                       Pipeline,
                                       false, // persistent
                                       cklang::Work::stream_k,
                                       cklang::Reduction::atomic>;
using Described  = cklang::DescribeMaskedConv<Unmasked, 32>; // tile_k

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

CK_FUNCTION int ck_epilogue(int acc)
{
    return acc;
}
