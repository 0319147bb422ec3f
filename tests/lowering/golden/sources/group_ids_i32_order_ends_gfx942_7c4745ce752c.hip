// Made by cklang: order and ends of groups of ids of i32.
// Key: {"algorithm": null, "arch": "gfx942", "family": "group_ids", "signature": {"ends": true, "ids": "i32", "order": true}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(
    .threads = 256,
    .lines   = 1,
    .part    = 0,
    .longest = 0)

#else

#include "cklang/group_ids.hpp"

using Kernel = cklang::GroupIdsKernel<int32_t,
                                      256,
                                      true, // places in the order of their groups
                                      true>; // of groups

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_group_ids_i32_order_ends(ck_lines_problem args)
{
    Kernel::run(args);
}

#endif

