// Made by cklang: rows of elements, no reduction; writes f32.
// Key: {"algorithm": {"chunks": 0, "threads": 256, "vector": 8}, "arch": "gfx90a", "family": "rowwise", "signature": {"common": 0, "elements": ["f32"], "functions": "", "integers": [], "kept": 0, "reductions": [], "row_axes": 1, "rows": []}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_rowwise.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_rowwise_describe(const ck_rowwise_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeRowwise({.threads  = 256,
                             .vector   = 8,
                             .chunks   = 0,
                             .axes     = 1,
                             .elements = 1,
                             .is_map   = true,
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
    cklang::RowShape<256, 8, 0, 0, 0, 1>,
    cklang::RowOutputs<float>, // an element for each of a row's
    cklang::RowOutputs<>>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block) void
ck_rowwise_map_f32_256x8x0(ck_row_args args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/rowwise_hole.h"

__attribute__((always_inline))
CK_FUNCTION void ck_row_store(float *out, CK_ROW_PARAMS)
{
    typedef float c0_vector __attribute__((ext_vector_type(8), aligned(4)));
    const c0_vector c0_e = *(const CK_GLOBAL c0_vector *)((const CK_GLOBAL float *)args->reads[0].data + (long)i0 * args->reads[0].row_stride[4] + j);
#pragma unroll
    for (int e = 0; e < 8; ++e)
    {
        const float c0 = (float)c0_e[e];
        out[0 + e] = c0;
    }
}
