// Made by cklang: rows of a tensor reduced to a number each, by RowMax.
// Key: {"algorithm": {"threads": 256, "vector": 1}, "arch": "gfx1201", "family": "rowwise", "signature": {"dtype": "f32", "dtype_o": "f16", "functions": "", "output": true, "reduction": "max"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_rowwise.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_rowwise_describe(const ck_rowwise_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeRowwise(
        {.threads = 256, .vector = 1, .bytes = 4}, *problem)
        .run(*launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_rowwise_host_version()
{
    return CK_ROWWISE_HOST_VERSION;
}

#else

#include "cklang/rowwise.hpp"

using Kernel = cklang::RowwiseKernel<float, // x
                                     ck_tile::half_t, // y
                                     cklang::RowMax,
                                     256, // threads of a row
                                     1, // elements that one access loads
                                     true>; // what is stored: a function

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_row_max_f32_f16_256x1(cklang::RowwiseArgs args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS) { return o + (float)j; }
