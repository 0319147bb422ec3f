// Made by cklang: the rows that have the same index of i64.
// Key: {"algorithm": null, "arch": "gfx1201", "family": "scatter", "signature": {"how": "link", "index": "i64", "linked": false, "result": "i32", "rows": "i32"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(
    .threads = 256,
    .lines   = 8,
    .part    = 0,
    .longest = 0)

#else

#include "cklang/scatter.hpp"

using Kernel = cklang::ScatterKernel<int32_t, // element of the result
                                     int32_t, // element of the rows
                                     int64_t, // index
                                     cklang::Scatter::link,
                                     false>; // rows of one index are known

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_scatter_link_i64(ck_lines_problem args)
{
    Kernel::run(args);
}

#endif

