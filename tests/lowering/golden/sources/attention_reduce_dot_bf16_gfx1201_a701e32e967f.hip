// Made by cklang: products summed along rows, around the gradient of attention.
// Key: {"arch": "gfx1201", "dot": true, "dtype": "bf16", "kind": "attention_reduce", "parts": "f32", "version": 2}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host face.
#include "cklang/describe_attention_grad.hpp"

CK_REDUCE_HOST_FACE(true)

#else

#include "cklang/attention_reduce.hpp"

using Kernel = cklang::DotKernel<ck_tile::bf16_t>;

// The device face.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_attention_dot_bf16(cklang::ReduceArgs args)
{
    Kernel::run(args);
}

#endif

