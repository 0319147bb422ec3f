// SPDX-License-Identifier: MIT
// The host shim of a kernel that reduces rows: a workgroup has as many rows as its threads allow.
#pragma once

#include <cstring>

#include "cklang/rowwise_args.hpp"

namespace cklang {

/// What the host knows of such a kernel.
struct RowwiseShape
{
    int64_t threads; // of a row
    int64_t vector;  // elements that one access loads
    int64_t bytes;   // of an element of x
};

class DescribeRowwise
{
    public:
    DescribeRowwise(const RowwiseShape& shape, const ck_rowwise_problem& problem)
        : shape_(shape), p_(problem)
    {
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        const RowwiseArgs args = arguments();
        static_assert(sizeof(args) <= CK_GEMM_MAX_KERNARG);
        const int64_t rows = rowwise_threads / shape_.threads; // of a workgroup
        launch.grid[0]     = static_cast<uint32_t>((args.count - 1) / rows + 1);
        launch.block[0]    = rowwise_threads;
        launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
        launch.lds_bytes                                                    = 0;
        launch.workspace_bytes = launch.zeroed_bytes = 0;
        launch.kernarg_bytes                         = sizeof(args);
        std::memcpy(launch.kernarg, &args, sizeof(args));
    }

    private:
    static constexpr int64_t most = INT32_MAX;

    const char* refuse() const
    {
        int64_t count = 1;
        for(const int64_t extent : p_.rows)
        {
            if(extent < 1 || extent > most / count)
                return "there must be a row or more, and fewer than 2^31";
            count *= extent;
        }
        if(p_.length < 0)
            return "the length of a row must be 0 or more";
        if(shape_.vector > 1 && p_.length > 1 && !contiguous())
            return "rows must be contiguous and begin at whole dwords for the kernel's vectors";
        return refuse_operands();
    }

    bool contiguous() const
    {
        bool fits = p_.x_step == 1 && reinterpret_cast<uintptr_t>(p_.x) % 4 == 0;
        for(int axis = 0; axis < CK_ROWWISE_MAX_AXES; ++axis)
            fits = fits && (p_.rows[axis] == 1 || p_.x_stride[axis] * shape_.bytes % 4 == 0);
        return fits;
    }

    const char* refuse_operands() const
    {
        for(const auto& operand : p_.operands)
        {
            int64_t last = 0;
            for(int axis = 0; operand.data && axis < CK_ROWWISE_MAX_AXES; ++axis)
            {
                const int64_t extent = operand.extent[axis], stride = operand.stride[axis];
                if(extent < 1 || extent > most || stride < -most || stride > most)
                    return "a tensor of the function has extents or strides beyond 2^31";
                last += (extent - 1) * (stride < 0 ? -stride : stride);
            }
            if(last > most)
                return "a tensor of the function spans more than 2^31 elements";
        }
        return nullptr;
    }

    RowwiseArgs arguments() const
    {
        RowwiseArgs args{};
        args.x      = p_.x;
        args.y      = p_.y;
        args.x_step = p_.x_step;
        args.length = p_.length;
        args.count  = 1;
        for(int axis = 0; axis < CK_ROWWISE_MAX_AXES; ++axis)
        {
            args.rows[axis]     = static_cast<uint32_t>(p_.rows[axis]);
            args.x_stride[axis] = p_.x_stride[axis];
            args.y_stride[axis] = p_.y_stride[axis];
            args.count *= args.rows[axis];
        }
        for(int place = 0; place < CK_ROWWISE_MAX_OPERANDS; ++place)
        {
            args.operands[place].data = p_.operands[place].data;
            for(int axis = 0; axis < CK_ROWWISE_MAX_AXES; ++axis)
            {
                args.operands[place].extent[axis] =
                    static_cast<int32_t>(p_.operands[place].extent[axis]);
                args.operands[place].stride[axis] =
                    static_cast<int32_t>(p_.operands[place].stride[axis]);
            }
        }
        return args;
    }

    RowwiseShape shape_;
    ck_rowwise_problem p_;
};

} // namespace cklang
