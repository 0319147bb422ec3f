// Made by cklang: inside of windows of 1x3x3, f32 to f32, pixels contiguous.
// Key: {"algorithm": {"columns": 1, "rows": 8, "threads": 256, "vector": 1}, "arch": "gfx1201", "family": "windows", "signature": {"channels": 1, "d": [], "dilation": [1, 1, 1], "dtype_a": "f32", "dtype_b": "f32", "dtype_e": "f32", "features": 1, "functions": "", "how": "inside", "neighbours": false, "stride": [1, 2, 2], "window": [1, 3, 3]}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_windows.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_conv_describe(const ck_conv_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeWindows({.threads = 256,
                             .vector  = 1,
                             .columns = 1,
                             .rows    = 8,
                             .planes  = 1,
                             .block   = 0,
                             .a_bytes = 4,
                             .e_bytes = 4,
                             .d_bytes = {0}},
                            *problem)
        .run(*launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_conv_host_version()
{
    return CK_CONV_HOST_VERSION;
}

#else

#include "cklang/windows.hpp"

extern "C" __device__ float ck_epilogue(float);

struct Function
{
    CK_TILE_DEVICE auto operator()(float sum) const { return ck_epilogue(sum); }
};

using Kernel = cklang::WindowKernel<
    float, float, float, // image, weights, result
    // window, stride and dilation along z, y and x; channels and features of a group
    cklang::Window<1, 3, 3, 1, 2, 2, 1, 1, 1, 1, 1>,
    // channels, columns, rows and planes of a thread, threads, whether channels are neighbours, chiplets
    cklang::WindowTile<1, 1, 8, 1, 256, false, 1>,
    cklang::Windowed::inside,
    Function>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_windows_inside_f32_f32_1x3x3_d0_1x1x8(ck_window_args args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"

CK_FUNCTION float ck_epilogue(float acc)
{
    return acc;
}
