// Made by cklang: values and indices of lines of bf16 in descending order.
// Key: {"algorithm": null, "arch": "gfx1201", "family": "sort", "signature": {"descending": true, "indices": true, "size": 256, "source": "bf16", "values": true}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(
    .threads = 128,
    .lines   = 1,
    .part    = 0,
    .longest = 0)

#else

#include "cklang/sort.hpp"

using Kernel = cklang::SortKernel<ck_tile::bf16_t, // element
                                  256, // items in LDS
                                  128,
                                  true, // elements in order
                                  true, // their indices
                                  true>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_sort_bf16_256_values_indices_descending(ck_lines_problem args)
{
    Kernel::run(args);
}

#endif

