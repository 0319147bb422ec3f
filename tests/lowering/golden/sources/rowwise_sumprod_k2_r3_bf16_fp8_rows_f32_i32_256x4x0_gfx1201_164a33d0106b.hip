// Made by cklang: rows of elements, sum and prod; writes bf16, fp8, f32 a row, i32 a row.
// Key: {"algorithm": {"chunks": 0, "threads": 256, "vector": 4}, "arch": "gfx1201", "family": "rowwise", "signature": {"common": 0, "elements": ["bf16", "fp8"], "functions": "", "integers": [1], "kept": 2, "reductions": [["sum", "prod"]], "row_axes": 3, "rows": ["f32", "i32"]}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_rowwise.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_rowwise_describe(const ck_rowwise_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeRowwise({.threads  = 256,
                             .vector   = 4,
                             .chunks   = 0,
                             .axes     = 3,
                             .elements = 2,
                             .is_map   = false,
                             .goes_on  = false},
                            *problem)
        .run(*launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_rowwise_host_version()
{
    return CK_ROWWISE_HOST_VERSION;
}

#else

#include "cklang/rowwise.hpp"

using Kernel = cklang::RowwiseKernel<
    // threads of a row, elements of a vector, vectors that are kept, values of each: of a row, and of
    // all rows; axes of rows
    cklang::RowShape<256, 4, 0, 2, 0, 3>,
    cklang::RowOutputs<ck_tile::bf16_t, ck_tile::fp8_t>, // an element for each of a row's
    cklang::RowOutputs<float, int32_t>, // one for each row
    cklang::RowStage<cklang::RowSum, cklang::RowIntProd>>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block) void
ck_rowwise_sumprod_k2_r3_bf16_fp8_rows_f32_i32_256x4x0(ck_row_args args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/rowwise_hole.h"

__attribute__((always_inline))
CK_FUNCTION void ck_row_part0(float *out, CK_ROW_PARAMS)
{
#pragma unroll
    for (int e = 0; e < 4; ++e)
    {
        const float k0 = kept[0 + e];
        const float k1 = kept[4 + e];
        out[0 + e] = k0;
        out[4 + e] = k0;
    }
}

__attribute__((always_inline))
CK_FUNCTION void ck_row_load(float *out, CK_ROW_PARAMS)
{
    typedef float c0_vector __attribute__((ext_vector_type(4), aligned(4)));
    const c0_vector c0_e = *(const CK_GLOBAL c0_vector *)((const CK_GLOBAL float *)args->reads[0].data + (long)i0 * args->reads[0].row_stride[2] + (long)i1 * args->reads[0].row_stride[3] + (long)i2 * args->reads[0].row_stride[4] + j);
#pragma unroll
    for (int e = 0; e < 4; ++e)
    {
        const float c0 = (float)c0_e[e];
        out[0 + e] = c0;
        out[4 + e] = c0;
    }
}

__attribute__((always_inline))
CK_FUNCTION void ck_row_store(float *out, CK_ROW_PARAMS)
{
#pragma unroll
    for (int e = 0; e < 4; ++e)
    {
        const float k0 = kept[0 + e];
        const float k1 = kept[4 + e];
        out[0 + e] = k0;
        out[4 + e] = k0;
    }
}

__attribute__((always_inline))
CK_FUNCTION void ck_row_finish(float *out, CK_ROW_PARAMS)
{
    const float r0 = reduced[0];
#pragma unroll
    for (int e = 0; e < 1; ++e)
    {
        out[0 + e] = r0;
        out[1 + e] = r0;
    }
}
