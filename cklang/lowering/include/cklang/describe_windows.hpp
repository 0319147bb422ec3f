// SPDX-License-Identifier: MIT
// The host shim of kernels that move a window over images: their argument and their grid.
#pragma once

#include <cstring>

#include "cklang/windows_args.h"

namespace cklang {

/// What the host knows of such a kernel.
struct WindowShape
{
    int64_t threads;
    int64_t vector; // channels of a thread
    int64_t columns, rows, planes;
    int64_t block; // vectors of channels of a workgroup at most; 0: one channel
    int64_t a_bytes, e_bytes, d_bytes[CK_GEMM_MAX_OPERANDS + 1]; // of an element
};

class DescribeWindows
{
    public:
    DescribeWindows(const WindowShape& shape, const ck_conv_problem& problem)
        : shape_(shape), p_(problem)
    {
    }

    void run(ck_gemm_launch& launch) const
    {
        ck_window_args args{};
        launch.refusal = fill(args);
        if(launch.refusal)
            return;
        static_assert(sizeof(args) <= CK_GEMM_MAX_KERNARG);
        launch.grid[0]  = static_cast<uint32_t>(p_.n * deep() * args.blocks * args.parts);
        launch.block[0] = static_cast<uint32_t>(shape_.threads);
        launch.grid[1] = launch.grid[2] = launch.block[1] = launch.block[2] = 1;
        launch.lds_bytes                  = 0;
        launch.workspace_bytes = launch.zeroed_bytes = 0;
        launch.kernarg_bytes                         = sizeof(args);
        std::memcpy(launch.kernarg, &args, sizeof(args));
    }

    private:
    static constexpr int64_t most = INT32_MAX;

    static int64_t over(int64_t a, int64_t b) { return (a - 1) / b + 1; }

    int64_t deep() const { return over(p_.out[0], shape_.planes); }

    const char* fill(ck_window_args& args) const
    {
        const int64_t channels = p_.g * p_.k;
        if(p_.n < 1 || channels < 1 || p_.out[0] < 1 || p_.out[1] < 1 || p_.out[2] < 1)
            return "there must be an image, a channel and a pixel or more";
        if(channels % shape_.vector)
            return "the channels must be a multiple of the vector";
        args.a = p_.a;
        args.b = p_.b;
        args.e = p_.e;
        bool fits = image(p_.input_strides, p_.in, p_.g, p_.c, shape_.a_bytes, args.a_step, args.a_bytes);
        fits &= image(p_.output_strides, p_.out, p_.g, p_.k, shape_.e_bytes, args.e_step, args.e_bytes);
        args.a_image = p_.input_strides[0];
        args.e_image = p_.output_strides[0];
        for(int i = 0; shape_.d_bytes[i]; ++i)
        {
            args.d[i]       = p_.d[i];
            args.d_image[i] = p_.d_strides[i][0];
            fits &= image(p_.d_strides[i], p_.out, p_.g, p_.k, shape_.d_bytes[i], args.d_step[i], args.d_bytes[i]);
        }
        if(!fits)
            return "an image must have fewer than 2^30 bytes";
        for(int axis = 0; axis < 3; ++axis)
        {
            args.in[axis]     = static_cast<int32_t>(p_.in[axis]);
            args.out[axis]    = static_cast<int32_t>(p_.out[axis]);
            args.before[axis] = static_cast<int32_t>(p_.pad_before[axis]);
        }
        for(int axis = 0; axis < 6; ++axis)
        {
            const auto step   = static_cast<int32_t>(p_.weight_strides[axis]);
            args.b_step[axis] = step;
            if(step < 0) // taps in the opposite order
                args.b_begin -= step * static_cast<int32_t>(p_.window[axis - 2] - 1);
        }
        const int64_t vectors = channels / shape_.vector;
        args.channels         = static_cast<int32_t>(channels);
        args.block            = static_cast<int32_t>(
            shape_.block ? over(vectors, over(vectors, shape_.block)) : 1);
        args.across = static_cast<int32_t>(over(p_.out[2], shape_.columns));
        args.down   = static_cast<int32_t>(over(p_.out[1], shape_.rows));
        args.blocks = static_cast<int32_t>(over(vectors, args.block));
        args.parts  = static_cast<int32_t>(
            over(int64_t{args.across} * args.down * args.block, shape_.threads));
        if(p_.n * deep() * args.blocks > most / args.parts)
            return "there are more workgroups than a grid has";
        return nullptr;
    }

    /// Write the strides and the bytes of one image; tell whether it is small enough.
    static bool image(const int64_t* strides,
                      const int64_t* space,
                      int64_t groups,
                      int64_t channels,
                      int64_t size,
                      int32_t* steps,
                      uint32_t& bytes)
    {
        const int64_t extents[5] = {space[0], space[1], space[2], groups, channels};
        int64_t last             = 0;
        for(int axis = 0; axis < 5; ++axis)
        {
            const int64_t stride = extents[axis] == 1 ? 0 : strides[axis + 1];
            last += (extents[axis] - 1) * stride;
            if(stride < 0 || last >= CK_WINDOW_REACH / size)
                return false;
            steps[axis] = static_cast<int32_t>(stride);
        }
        bytes = static_cast<uint32_t>((last + 1) * size);
        return true;
    }

    WindowShape shape_;
    ck_conv_problem p_;
};

} // namespace cklang
