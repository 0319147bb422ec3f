// Made by cklang: rows written behind those of a cache, turned by their positions.
// Key: {"algorithm": null, "arch": "gfx942", "family": "append", "signature": {"dtype": "bf8_fnuz", "paged": true, "rotary": "half"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_append.hpp"

CK_APPEND_HOST_SHIM(
    .rotary = cklang::Rotary::half,
    .paged  = true)

#else

#include "cklang/attention_append.hpp"

using Kernel = cklang::AppendKernel<ck_tile::bf8_t,
                                    cklang::Rotary::half, // rotary
                                    true>; // paged

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_append_bf8_fnuz(cklang::AppendArgs args)
{
    Kernel::run(args);
}

#endif

