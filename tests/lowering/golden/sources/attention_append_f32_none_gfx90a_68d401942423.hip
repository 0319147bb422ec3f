// Made by cklang: rows written behind those of a cache, turned by their positions.
// Key: {"arch": "gfx90a", "dtype": "f32", "kind": "attention_append", "paged": false, "rotary": "none", "version": 2}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host face.
#include "cklang/describe_append.hpp"

CK_APPEND_HOST_FACE(
    .rotary = cklang::Rotary::none,
    .paged  = false)

#else

#include "cklang/attention_append.hpp"

using Kernel = cklang::AppendKernel<float,
                                    cklang::Rotary::none, // rotary
                                    false>; // paged

// The device face.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_append_f32(cklang::AppendArgs args)
{
    Kernel::run(args);
}

#endif

