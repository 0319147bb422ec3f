// SPDX-License-Identifier: MIT
// The host shim of kernels of lines: how many workgroups there are.
#pragma once

#include <cstring>

#include "cklang/lines_host.h"

namespace cklang {

/// What the host knows of such a kernel.
struct LinesShape
{
    int64_t threads; // of a workgroup
    int64_t lines;   // that a workgroup has at once
    int64_t part;    // elements of a line that a workgroup has; 0 for all
    int64_t longest; // elements that a line may have; 0 for any number
};

class DescribeLines
{
    public:
    DescribeLines(const LinesShape& shape, const ck_lines_problem& problem)
        : shape_(shape), p_(problem)
    {
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        static_assert(sizeof(p_) <= CK_GEMM_MAX_KERNARG);
        const int64_t count = product(p_.outer), length = product(p_.inner);
        launch.grid[0]  = static_cast<uint32_t>((count - 1) / shape_.lines + 1);
        launch.grid[1]  = shape_.part ? static_cast<uint32_t>((length - 1) / shape_.part + 1) : 1;
        launch.block[0] = static_cast<uint32_t>(shape_.threads);
        launch.grid[2] = launch.block[1] = launch.block[2] = 1;
        launch.lds_bytes                                   = 0;
        launch.workspace_bytes = launch.zeroed_bytes = 0;
        launch.kernarg_bytes                         = sizeof(p_);
        std::memcpy(launch.kernarg, &p_, sizeof(p_));
    }

    private:
    static constexpr int64_t most = INT32_MAX;

    const char* refuse() const
    {
        const int64_t count = product(p_.outer), length = product(p_.inner);
        if(count < 1 || count > most || length < 1 || length > most)
            return "there must be a line and an element or more, and fewer than 2^31 of each";
        if(shape_.part && (length - 1) / shape_.part >= 65535)
            return "a line has more parts than a grid";
        if(shape_.longest && length > shape_.longest)
            return "a line has more elements than the kernel holds";
        return nullptr;
    }

    static int64_t product(const int64_t* extents)
    {
        int64_t result = 1;
        for(int axis = 0; axis < CK_LINES_AXES; ++axis)
        {
            if(extents[axis] < 0 || (extents[axis] && result > most / extents[axis]))
                return -1;
            result *= extents[axis];
        }
        return result;
    }

    LinesShape shape_;
    ck_lines_problem p_;
};

} // namespace cklang

#define CK_LINES_HOST_SHIM(...)                                                                 \
    extern "C" __attribute__((visibility("default"))) void ck_lines_describe(                   \
        const ck_lines_problem* problem, ck_gemm_launch* launch)                                \
    {                                                                                           \
        cklang::DescribeLines({__VA_ARGS__}, *problem).run(*launch);                            \
    }                                                                                           \
    extern "C" __attribute__((visibility("default"))) uint32_t ck_lines_host_version()          \
    {                                                                                           \
        return CK_LINES_HOST_VERSION;                                                           \
    }
