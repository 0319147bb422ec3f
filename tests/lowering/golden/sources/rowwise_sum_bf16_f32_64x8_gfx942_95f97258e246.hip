// Made by cklang: rows of a tensor reduced to a number each, by RowSum.
// Key: {"algorithm": {"threads": 64, "vector": 8}, "arch": "gfx942", "family": "rowwise", "signature": {"dtype": "bf16", "dtype_o": "f32", "functions": "", "output": false, "reduction": "sum"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_rowwise.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_rowwise_describe(const ck_rowwise_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeRowwise(
        {.threads = 64, .vector = 8, .bytes = 2}, *problem)
        .run(*launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_rowwise_host_version()
{
    return CK_ROWWISE_HOST_VERSION;
}

#else

#include "cklang/rowwise.hpp"

using Kernel = cklang::RowwiseKernel<ck_tile::bf16_t, // x
                                     float, // y
                                     cklang::RowSum,
                                     64, // threads of a row
                                     8, // elements that one access loads
                                     false>; // what is stored: a function

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_row_sum_bf16_f32_64x8(cklang::RowwiseArgs args)
{
    Kernel::run(args);
}

#endif

