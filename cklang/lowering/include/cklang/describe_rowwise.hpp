// SPDX-License-Identifier: MIT
// The host shim of a kernel of rows: a workgroup has as many rows at once as its threads allow.
#pragma once

#include <cstring>

#include "cklang/rowwise_host.h"

namespace cklang {

/// What the host knows of such a kernel.
struct RowwiseShape
{
    int64_t threads; // of a row
    int64_t vector;  // elements that a thread computes at once
    int64_t chunks;  // vectors that a thread keeps; 0 for rows of any length
    int64_t axes;    // that count rows
    int64_t elements; // outputs that have an element for each of a row's
    bool is_map;      // nothing is reduced
    bool goes_on;     // a workgroup computes more rows, whose common values it keeps
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
        const ck_row_args args = arguments();
        static_assert(sizeof(args) <= CK_GEMM_MAX_KERNARG);
        const int64_t block = shape_.threads < 256 ? 256 : shape_.threads;
        const int64_t rows  = block / shape_.threads; // of a workgroup
        launch.grid[0]      = groups((args.count - 1) / rows + 1, block);
        launch.grid[1]      = shape_.is_map ? shares(launch.grid[0], args.length) : 1;
        launch.block[0]     = static_cast<uint32_t>(block);
        launch.grid[2] = launch.block[1] = launch.block[2] = 1;
        launch.lds_bytes                                   = 0;
        launch.workspace_bytes = launch.zeroed_bytes = 0;
        launch.kernarg_bytes                         = sizeof(args);
        std::memcpy(launch.kernarg, &args, sizeof(args));
    }

    private:
    static constexpr int64_t most = INT32_MAX;

    const char* refuse() const
    {
        const int64_t count = product(p_.rows), length = product(p_.elements);
        if(count < 1 || count > most)
            return "there must be a row or more, and fewer than 2^31";
        if(length < 0 || length > most)
            return "a row must have fewer than 2^31 elements";
        for(int axis = 0; axis < CK_ROWWISE_MAX_AXES - shape_.axes; ++axis)
            if(p_.rows[axis] != 1)
                return "there are more axes of rows than the kernel was built for";
        if(length > 0 && length < shape_.vector)
            return "a row must have as many elements as the kernel's vectors";
        if(shape_.chunks && length > capacity())
            return "a row has more elements than the kernel keeps";
        return nullptr;
    }

    static int64_t product(const int64_t* extents)
    {
        int64_t result = 1;
        for(int axis = 0; axis < CK_ROWWISE_MAX_AXES; ++axis)
        {
            if(extents[axis] < 0 || (extents[axis] && result > most / extents[axis]))
                return -1;
            result *= extents[axis];
        }
        return result;
    }

    /// How many workgroups there are for so many groups of rows: each has one, or as many as the
    /// next, with all workgroups on the GPU at once.
    uint32_t groups(int64_t count, int64_t block) const
    {
        const int64_t resident = p_.compute_units * (4 * 256 / block); // with 128 registers a thread
        const int64_t rounds   = shape_.goes_on ? (count - 1) / resident + 1 : 1;
        return static_cast<uint32_t>((count - 1) / rounds + 1);
    }

    /// How many workgroups share the rows of a map: as many as the GPU runs at once.
    uint32_t shares(int64_t groups, int64_t length) const
    {
        const int64_t step    = shape_.threads * shape_.vector;
        const int64_t vectors = length ? (length - 1) / step + 1 : 1;
        const int64_t fitting = p_.compute_units * 8 / groups;
        const int64_t wanted  = fitting ? fitting : 1;
        const int64_t shares  = vectors < wanted ? vectors : wanted;
        return static_cast<uint32_t>(shares < 65535 ? shares : 65535);
    }

    /// The elements of a row that registers hold.
    int64_t capacity() const { return shape_.threads * shape_.vector * shape_.chunks; }

    /// Whether outputs are contiguous and rows are what the kernel has code without branches for.
    bool is_whole(int64_t length) const
    {
        for(int place = 0; place < shape_.elements; ++place)
            if(!is_vector(p_.outputs[place]))
                return false;
        return shape_.is_map ? length % shape_.vector == 0 : shape_.chunks && length == capacity();
    }

    bool is_linear() const
    {
        for(int axis = 0; axis < CK_ROWWISE_MAX_AXES - 1; ++axis)
            if(p_.elements[axis] != 1)
                return false;
        return true;
    }

    bool is_vector(const ck_rowwise_operand& tensor) const
    {
        return is_linear() && tensor.stride[CK_ROWWISE_MAX_AXES - 1] == 1;
    }

    static void copy(const ck_rowwise_operand& from, ck_row_tensor& to)
    {
        to.data = reinterpret_cast<uintptr_t>(from.data);
        std::memcpy(to.row_stride, from.row_stride, sizeof(to.row_stride));
        std::memcpy(to.stride, from.stride, sizeof(to.stride));
    }

    ck_row_args arguments() const
    {
        ck_row_args args{};
        args.length = product(p_.elements);
        args.count  = static_cast<uint32_t>(product(p_.rows));
        for(int axis = 0; axis < CK_ROWWISE_MAX_AXES; ++axis)
        {
            args.rows[axis]     = static_cast<uint32_t>(p_.rows[axis]);
            args.elements[axis] = static_cast<uint32_t>(p_.elements[axis]);
        }
        for(int place = 0; place < CK_ROWWISE_MAX_READS; ++place)
            copy(p_.reads[place], args.reads[place]);
        for(int place = 0; place < CK_ROWWISE_MAX_OUTPUTS; ++place)
        {
            const ck_rowwise_operand& output = p_.outputs[place];
            copy(output, args.outputs[place]);
            if(place < shape_.elements)
            {
                args.vectors |= uint32_t(is_vector(output)) << place;
                args.linear |= uint32_t(is_linear()) << place;
            }
        }
        args.whole = is_whole(args.length);
        return args;
    }

    RowwiseShape shape_;
    ck_rowwise_problem p_;
};

} // namespace cklang
