// SPDX-License-Identifier: MIT
// C[m, n] = sum over k of A[m, k] B[n, k]: CK Tile's universal GEMM straight from its headers, with
// warp tiles of 16 x 16 x 16, which on RDNA are WMMA.
#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/elementwise/unary_element_wise_operation.hpp"
#include "ck_tile/ops/epilogue/cshuffle_epilogue.hpp"
#include "ck_tile/ops/gemm/block/block_gemm_asmem_bsmem_creg_v1_custom_policy.hpp"
#include "ck_tile/ops/gemm/block/block_universal_gemm_as_bs_cr.hpp"
#include "ck_tile/ops/gemm/kernel/gemm_tile_partitioner.hpp"
#include "ck_tile/ops/gemm/kernel/universal_gemm_kernel.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_ag_bg_cr_comp_v3.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_pipeline_problem.hpp"
#include "ck_tile/ops/gemm/pipeline/gemm_universal_pipeline_ag_bg_cr_policy.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_shape.hpp"
#include "ck_tile/ops/gemm/pipeline/tile_gemm_traits.hpp"

using Row    = ck_tile::tensor_layout::gemm::RowMajor;
using Column = ck_tile::tensor_layout::gemm::ColumnMajor;

using Shape = ck_tile::TileGemmShape<ck_tile::sequence<64, 64, 32>,
                                     ck_tile::sequence<2, 2, 1>,
                                     ck_tile::sequence<16, 16, 16>>;

using Partitioner = ck_tile::GemmTile1DPartitioner<Shape>;
using Traits = ck_tile::TileGemmUniversalTraits<true, true, true, false, Row, Column, Row, false>;

template <class In, class Acc, class Out>
struct Gemm
{
    using Problem = ck_tile::UniversalGemmPipelineProblem<In,
                                                          In,
                                                          Acc,
                                                          Shape,
                                                          Traits,
                                                          ck_tile::GemmPipelineScheduler::Intrawave,
                                                          true,
                                                          ck_tile::TailNumber::Full>;
    using Pipeline = ck_tile::GemmPipelineAgBgCrCompV3<Problem>;
    using Epilogue = ck_tile::CShuffleEpilogue<
        ck_tile::CShuffleEpilogueProblem<In,
                                         In,
                                         ck_tile::tuple<>,
                                         Acc,
                                         Out,
                                         ck_tile::tuple<>,
                                         Row,
                                         ck_tile::element_wise::PassThrough,
                                         64,
                                         64,
                                         2,
                                         2,
                                         16,
                                         16,
                                         16,
                                         false,
                                         ck_tile::memory_operation_enum::set>>;
    using Kernel = ck_tile::UniversalGemmKernel<Partitioner, Pipeline, Epilogue>;

    __device__ static void run(const void* a, const void* b, void* c, int m, int n, int k)
    {
        Kernel{}(typename Kernel::KernelArgs{{a}, {b}, {}, c, m, n, k, {k}, {k}, {}, n, 1});
    }
};

#ifndef TYPES
#define TYPES ck_tile::half_t, float, ck_tile::half_t
#endif

extern "C" __global__ __launch_bounds__(128) void gemm(
    const void* a, const void* b, void* c, int m, int n, int k)
{
    Gemm<TYPES>::run(a, b, c, m, n, k);
}
