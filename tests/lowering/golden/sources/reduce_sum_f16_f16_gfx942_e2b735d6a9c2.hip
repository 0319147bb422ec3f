// Made by cklang: parts summed, around the gradient of attention.
// Key: {"algorithm": null, "arch": "gfx942", "family": "reduce", "signature": {"dot": false, "dtype": "f16", "parts": "f16"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_reduce.hpp"

CK_REDUCE_WIDE_HOST_SHIM(false)

#else

#include "cklang/attention_reduce.hpp"

using Kernel = cklang::SumKernel<ck_tile::half_t, ck_tile::half_t>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_sum_f16(cklang::ReduceArgs args)
{
    Kernel::run(args);
}

#endif

