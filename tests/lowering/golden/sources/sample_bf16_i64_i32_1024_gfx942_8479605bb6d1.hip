// Made by cklang: tokens of rows of bf16.
// Key: {"algorithm": null, "arch": "gfx942", "family": "sample", "signature": {"logits": "bf16", "offset": "i32", "seed": "i64", "threads": 1024}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"
#include "cklang/sample_host.h"

extern "C" __attribute__((visibility("default"))) void
ck_lines_describe(const ck_lines_problem* problem, ck_gemm_launch* launch)
{
    cklang::DescribeLines({1024, 1, 0, 1 << 23}, *problem).run(*launch);
    static_assert(sizeof(ck_sample_problem) <= CK_GEMM_MAX_KERNARG);
    if(launch->refusal)
        return;
    launch->kernarg_bytes = sizeof(ck_sample_problem);
    std::memcpy(launch->kernarg, problem, sizeof(ck_sample_problem));
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_lines_host_version()
{
    return CK_LINES_HOST_VERSION;
}

#else

#include "cklang/sample.hpp"

using Kernel = cklang::SampleKernel<ck_tile::bf16_t,
                                    int64_t,
                                    int32_t,
                                    1024>;

// The kernel.
extern "C" __global__ __launch_bounds__(Kernel::threads) void
ck_sample_bf16_i64_i32_1024(ck_sample_problem args)
{
    Kernel::run(args);
}

#endif

