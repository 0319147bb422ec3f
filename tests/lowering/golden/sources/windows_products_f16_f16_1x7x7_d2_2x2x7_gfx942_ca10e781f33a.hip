// Made by cklang: products of windows of 1x7x7, f16 to f16, channels contiguous.
// Key: {"algorithm": {"columns": 2, "rows": 7, "threads": 256, "vector": 2}, "arch": "gfx942", "family": "windows", "signature": {"channels": 1, "d": [{"common": true, "contiguous": true, "dtype": "f16"}, {"common": false, "contiguous": false, "dtype": "f32"}], "dilation": [1, 1, 1], "dtype_a": "f16", "dtype_b": "f16", "dtype_e": "f16", "features": 1, "functions": "", "how": "products", "neighbours": true, "stride": [1, 1, 1], "window": [1, 7, 7]}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_windows.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_conv_describe(const ck_conv_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeWindows({.threads = 256,
                             .vector  = 2,
                             .columns = 2,
                             .rows    = 7,
                             .planes  = 1,
                             .block   = 32,
                             .a_bytes = 2,
                             .e_bytes = 2,
                             .d_bytes = {2, 4, 0}},
                            *problem)
        .run(*launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_conv_host_version()
{
    return CK_CONV_HOST_VERSION;
}

#else

#include "cklang/windows.hpp"

extern "C" __device__ float ck_epilogue(float, float, float);

struct Function
{
    CK_TILE_DEVICE auto operator()(float sum, float d0, float d1) const { return ck_epilogue(sum, d0, d1); }
};

using Kernel = cklang::WindowKernel<
    ck_tile::half_t, ck_tile::half_t, ck_tile::half_t, // image, weights, result
    // window, stride and dilation along z, y and x; channels and features of a group
    cklang::Window<1, 7, 7, 1, 1, 1, 1, 1, 1, 1, 1>,
    // channels, columns, rows and planes of a thread, threads, whether channels are neighbours, chiplets
    cklang::WindowTile<2, 2, 7, 1, 256, true, 8>,
    cklang::Windowed::products,
    Function,
    cklang::WindowOperand<ck_tile::half_t, true, true>,
    cklang::WindowOperand<float, false, false>>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_windows_products_f16_f16_1x7x7_d2_2x2x7(ck_window_args args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"

CK_FUNCTION float ck_epilogue(float acc, float d0, float d1)
{
#line 2 "<mini-IR>"
    const float vd0w = d0;
#line 3 "<mini-IR>"
    const float vsum0 = acc + vd0w;
#line 4 "<mini-IR>"
    const float vsum1 = vsum0 + d1;
    return vsum1;
}
