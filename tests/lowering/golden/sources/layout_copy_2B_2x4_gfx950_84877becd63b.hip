// Made by cklang: a copy of 2-byte elements in which rows and columns change places.
// Key: {"algorithm": null, "arch": "gfx950", "family": "layout_copy", "signature": {"bytes": 2, "source_vector": 2, "target_vector": 4}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_transpose.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_transpose_describe(const ck_transpose_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeTranspose({.bytes         = 2,
                               .source_vector = 2,
                               .target_vector = 4},
                              *problem)
        .run(*launch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_transpose_host_version()
{
    return CK_TRANSPOSE_HOST_VERSION;
}

#else

#include "cklang/transpose.hpp"

using Kernel = cklang::TransposeKernel<ck_tile::fp16_t, // moved as they are
                                       2, // elements that a load moves
                                       4>; // elements that a store moves

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::block_size) void
ck_transpose_2_2_4(cklang::TransposeArgs args)
{
    Kernel::run(args);
}

#endif

