// Made by cklang: rows of bf16 added at indices of i32, as f16.
// Key: {"algorithm": null, "arch": "gfx942", "family": "scatter", "signature": {"how": "add", "index": "i32", "linked": true, "result": "f16", "rows": "bf16"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(
    .threads = 256,
    .lines   = 1,
    .part    = 1024,
    .longest = 0)

#else

#include "cklang/scatter.hpp"

using Kernel = cklang::ScatterKernel<ck_tile::half_t, // element of the result
                                     ck_tile::bf16_t, // element of the rows
                                     int32_t, // index
                                     cklang::Scatter::add,
                                     true>; // rows of one index are known

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_scatter_add_i32_bf16_f16_linked(ck_lines_problem args)
{
    Kernel::run(args);
}

#endif

