// Made by cklang: parts summed, around the gradient of attention.
// Key: {"arch": "gfx942", "dot": false, "dtype": "f16", "kind": "attention_reduce", "parts": "f16", "version": 2}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host face.
#include "cklang/describe_attention_grad.hpp"

CK_REDUCE_HOST_FACE(false)

#else

#include "cklang/attention_reduce.hpp"

using Kernel = cklang::SumKernel<ck_tile::half_t, ck_tile::half_t>;

// The device face.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_sum_f16(cklang::ReduceArgs args)
{
    Kernel::run(args);
}

#endif

