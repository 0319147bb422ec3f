// Made by cklang: products summed along rows, around the gradient of attention.
// Key: {"algorithm": null, "arch": "gfx950", "family": "reduce", "signature": {"dot": true, "dtype": "bf16", "parts": "f32"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_reduce.hpp"

CK_REDUCE_WIDE_HOST_SHIM(true)

#else

#include "cklang/attention_reduce.hpp"

using Kernel = cklang::DotKernel<ck_tile::bf16_t>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_dot_bf16(cklang::ReduceArgs args)
{
    Kernel::run(args);
}

#endif

