// Made by cklang: cumulative sums of f16 as f32, a block a line.
// Key: {"algorithm": null, "arch": "gfx942", "family": "scan", "signature": {"result": "f32", "source": "f16", "who": "block"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(
    .threads = 256,
    .lines   = 1,
    .part    = 0,
    .longest = 0)

#else

#include "cklang/scan.hpp"

using Kernel = cklang::ScanKernel<float, // element of the result
                                  ck_tile::half_t, // element of the source
                                  cklang::Scan::block>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_scan_f16_f32_block(ck_lines_problem args)
{
    Kernel::run(args);
}

#endif

