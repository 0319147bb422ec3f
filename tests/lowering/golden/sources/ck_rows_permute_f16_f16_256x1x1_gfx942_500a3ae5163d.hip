// Made by cklang: CK Tile's permute of f16 to f16.
// Key: {"algorithm": {"repeats": 1, "threads": 256, "two_pass": false, "vector": 1}, "arch": "gfx942", "family": "ck_rows", "signature": {"dtype": "f16", "functions": "", "kernel": "permute", "result": "f16"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

extern "C" __attribute__((visibility("default"))) void
ck_lines_describe(const ck_lines_problem* problem, ck_gemm_launch* launch)
{
    // Lines are counted for what is refused; workgroups share all elements.
    cklang::DescribeLines({256, 1, 0, 0}, *problem).run(*launch);
    int64_t elements = 1;
    for(int axis = 0; axis < CK_LINES_AXES; ++axis)
        elements *= problem->outer[axis] * problem->inner[axis];
    if(!launch->refusal && elements > INT32_MAX)
        launch->refusal = "there are 2^31 elements or more";
    if(!launch->refusal)
        launch->grid[0] = static_cast<uint32_t>((elements - 1) / 256 + 1);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_lines_host_version()
{
    return CK_LINES_HOST_VERSION;
}

#else

// Round to nearest even, as everything here does; CK Tile truncates by default.
#define CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT CK_TILE_FLOAT_TO_BFLOAT16_STANDARD
#include <ck_tile/core.hpp>
#include <ck_tile/ops/permute.hpp>

#include "cklang/lines_host.h"

namespace ct = ck_tile;

using X = ck_tile::half_t;
using Y = ck_tile::half_t;

using Problem = ct::GenericPermuteProblem<X, 256, 2 * CK_LINES_AXES>;
using Kernel  = ct::GenericPermute<Problem>;

// The kernel.
extern "C" __global__ __launch_bounds__(256) void
ck_ck_rows_permute_f16_f16_256x1x1(ck_lines_problem args)
{
    const void* x = args.tensors[0].data;
    Kernel::Kargs kargs{};
    kargs.p_src        = x;
    kargs.p_dst        = const_cast<void*>(args.tensors[1].data);
    kargs.num_elements = 1;
    for(int axis = 0; axis < CK_LINES_AXES; ++axis)
    {
        const int inner          = CK_LINES_AXES + axis;
        kargs.perm_length[axis]  = static_cast<ct::index_t>(args.outer[axis]);
        kargs.perm_stride[axis]  = static_cast<ct::index_t>(args.tensors[0].outer[axis]);
        kargs.perm_length[inner] = static_cast<ct::index_t>(args.inner[axis]);
        kargs.perm_stride[inner] = static_cast<ct::index_t>(args.tensors[0].inner[axis]);
        kargs.num_elements *= kargs.perm_length[axis] * kargs.perm_length[inner];
    }
    Kernel{}(kargs);
}

#endif

