// CK Tile convolution made by cklang: sums as in a GEMM, of
// 1-dimensional images.
// Key: {"algorithm": {"block_per_cu": 1, "double_buffer": false, "epilogue": "cshuffle", "groups_merged": 1, "num_wave_groups": 1, "pad_k": true, "pad_m": true, "pad_n": true, "persistent": false, "pipeline": "compv3", "reduction": "none", "scheduler": "intrawave", "special": "default", "split_k": 1, "stream_k": false, "tile": [64, 64, 32], "transpose_c": false, "vector_a": 8, "vector_b": 8, "vector_d": [8], "vector_e": 8, "warp_tile": [16, 16, 32], "warps": [2, 2, 1]}, "arch": "gfx942", "family": "conv", "signature": {"a": [], "b": [], "d": [{"dtype": "f16", "kind": "row"}], "dtype_a": "f16", "dtype_acc": "f32", "dtype_b": "f16", "dtype_e": "f16", "functions": "", "kind": "conv", "layout_a": "r", "layout_b": "c", "layout_e": "r", "scale_a": null, "scale_b": null, "sparse": false, "spatial": 1}, "version": 3}

// Loads beyond K are moved out of the buffer's range, where they give zeros.
#define CK_TILE_EXPERIMENTAL_USE_BUFFER_LOAD_OOB_CHECK_OFFSET_TRICK 1
#include "cklang/conv.hpp"

using Row    = ck_tile::tensor_layout::gemm::RowMajor;
using Column = ck_tile::tensor_layout::gemm::ColumnMajor;

// Signature: what is computed.
using A       = ck_tile::half_t;
using B       = ck_tile::half_t;
using AccType = float;
using E       = ck_tile::half_t;

using ALayout = Row;
using BLayout = Column;
using ELayout = Row;
using D0 = cklang::Operand<ck_tile::half_t, cklang::Kind::row, 8>;

// Algorithm: how.
using Shape = ck_tile::TileGemmShape<ck_tile::sequence<64, 64, 32>,  // tile
                                     ck_tile::sequence<2, 2, 1>,  // warps
                                     ck_tile::sequence<16, 16, 32>>; // warp_tile

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
                                    cklang::Special::ordinary>; // special
using Direction = cklang::Forward<ConvShape, A, B, E, 1>;
using ASource   = Direction::ASource;
using BSource   = Direction::BSource;

// The kernel's two halves are compiled side by side; other passes see both.
extern "C" __device__ cklang::LoopFunction<AccType, ASource, BSource>
    ck_conv_f16_f16_f16_rcr_64x64x32_mainloop;

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

extern "C" __device__ void ck_conv_f16_f16_f16_rcr_64x64x32_mainloop(
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
                                     32, // warp_tile k
                                     false, // transpose_c
                                     ck_tile::memory_operation_enum::set,
                                     1,     // num_wave_groups
                                     true,  // the vector size below holds
                                     8>;   // vector_e

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
using Gemm = cklang::ConvKernel<Partitioner, Traits, Acc, Direction, Epilogue, D0>;
using Kernel = Gemm;

#if defined(__HIP_DEVICE_COMPILE__)

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size, 1) void
ck_conv_f16_f16_f16_rcr_64x64x32(Kernel::Args args)
{
    constexpr auto loop_lds = cklang::mainloop_lds<Shape, A, B>;
    Kernel::run<loop_lds, ck_conv_f16_f16_f16_rcr_64x64x32_mainloop>(args);
}

#else

// The host shim.
#define CKLANG_GFX_MAJOR 9
#include "cklang/describe_conv.hpp"
#include "cklang/describe_masked_conv.hpp"

using HostKernel = ck_tile::UniversalGemmKernel<Partitioner, Pipeline, Epilogue>;
using Unmasked   = cklang::DescribeConv<Gemm,
                                       HostKernel,
                                       Pipeline,
                                       false, // persistent
                                       cklang::Work::tiles,
                                       cklang::Reduction::none, D0>;
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

CK_FUNCTION float ck_epilogue(float acc, float d0)
{
#line 2 "<mini-IR>"
    const float vd0w = d0;
#line 3 "<mini-IR>"
    const float vsum0 = acc + vd0w;
    return vsum0;
}
