// Made by cklang: experts of rows of f32 by sigmoids.
// Key: {"algorithm": null, "arch": "gfx942", "family": "moe_gate", "signature": {"bias": "f32", "grouped": true, "logits": "f32", "renormalised": true, "scale": 2.5, "sigmoid": true, "size": 256}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(
    .threads = 256,
    .lines   = 1,
    .part    = 0,
    .longest = 256)

#else

#include "cklang/moe_gate.hpp"

using Kernel = cklang::MoeGateKernel<float,
                                     float, // added for the choice
                                     256, // experts in LDS
                                     256,
                                     true, // scores, else the softmax
                                     true, // experts
                                     true>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_moe_gate_256(ck_lines_problem args)
{
    Kernel::run(args, 2.5f);
}

#endif

