// Made by cklang: the parts of attention that splits of the keys gave, combined.
// Key: {"algorithm": null, "arch": "gfx1201", "family": "combine", "signature": {"dtype_o": "f16", "functions": "", "lse": false, "output": true}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_combine.hpp"

CK_COMBINE_HOST_SHIM(
    .bytes_o = 2,
    .lse     = false)

#else

#include "cklang/attention_combine.hpp"

using Kernel = cklang::CombineKernel<ck_tile::half_t, // o
                                     false, // lse
                                    true>; // what is stored of o: a function

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_combine_f16(cklang::AttentionArgs args)
{
    Kernel::run(args);
}

#endif

#include "cklang/math.h"
#include "cklang/attention_hole.h"
CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS) { return o + (float)j; }
