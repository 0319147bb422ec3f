// Made by cklang: rows written behind those of a cache, turned by their positions.
// Key: {"algorithm": null, "arch": "gfx942", "family": "append", "signature": {"dtype": "f16", "dtype_cache": "bf8_fnuz", "paged": true, "rotary": "half"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_append.hpp"

CK_APPEND_HOST_SHIM(
    .rotary = cklang::Rotary::half,
    .paged  = true)

#else

#include "cklang/attention_append.hpp"

using Kernel = cklang::AppendKernel<ck_tile::half_t, // of the new rows
                                    ck_tile::bf8_t, // of the cache
                                    cklang::Rotary::half, // rotary
                                    true>; // paged

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_append_f16(cklang::AppendArgs args)
{
    Kernel::run(args);
}

#endif

