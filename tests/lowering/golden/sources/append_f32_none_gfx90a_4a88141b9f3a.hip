// Made by cklang: rows written behind those of a cache, turned by their positions.
// Key: {"algorithm": null, "arch": "gfx90a", "family": "append", "signature": {"dtype": "f32", "dtype_cache": "f32", "paged": false, "rotary": "none"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_append.hpp"

CK_APPEND_HOST_SHIM(
    .rotary = cklang::Rotary::none,
    .paged  = false)

#else

#include "cklang/attention_append.hpp"

using Kernel = cklang::AppendKernel<float, // of the new rows
                                    float, // of the cache
                                    cklang::Rotary::none, // rotary
                                    false>; // paged

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_append_f32(cklang::AppendArgs args)
{
    Kernel::run(args);
}

#endif

