// SPDX-License-Identifier: MIT
// The host shim of a kernel that transposes: one workgroup for each tile of each matrix.
#pragma once

#include "cklang/transpose_args.hpp"

#if !defined(__HIP_DEVICE_COMPILE__)

#include <algorithm>
#include <cstring>

namespace cklang {

/// What the host knows of a kernel that transposes.
struct TransposeShape
{
    int64_t bytes, source_vector, target_vector;
};

class DescribeTranspose
{
    public:
    DescribeTranspose(const TransposeShape& shape, const ck_transpose_problem& problem)
        : shape_(shape), p_(problem), tile_(TransposeTile::of(problem.rows, problem.columns, i32(shape.bytes)))
    {
    }

    void run(ck_gemm_launch& launch) const
    {
        launch.refusal = refuse();
        if(launch.refusal)
            return;
        TransposeArgs args{};
        args.rows    = i32(p_.rows);
        args.columns = i32(p_.columns);
        args.tile    = tile_;
        args.source  = side(p_.source);
        args.target  = side(p_.target);
        for(int axis = 0; axis < CK_TRANSPOSE_MAX_BATCH; ++axis)
            args.places.extents[axis] = Divisor::of(i32(p_.batch[axis]));
        args.places.extents[CK_TRANSPOSE_MAX_BATCH]     = Divisor::of(i32(tiles_m()));
        args.places.extents[CK_TRANSPOSE_MAX_BATCH + 1] = Divisor::of(i32(tiles_n()));
        static_assert(sizeof(args) <= CK_GEMM_MAX_KERNARG);
        std::memcpy(launch.kernarg, &args, sizeof(args));
        launch.kernarg_bytes = sizeof(args);
        const uint32_t grid[] = {static_cast<uint32_t>(tiles_m() * tiles_n() * matrices()), 1, 1};
        const uint32_t block[] = {transpose_threads, 1, 1};
        std::copy(grid, grid + 3, launch.grid);
        std::copy(block, block + 3, launch.block);
        launch.lds_bytes       = 0;
        launch.workspace_bytes = 0;
        launch.zeroed_bytes    = 0;
    }

    private:
    static index_t i32(int64_t value) { return static_cast<index_t>(value); }

    int64_t tiles_m() const { return (p_.rows - 1) / tile_.rows() + 1; }
    int64_t tiles_n() const { return (p_.columns - 1) / tile_.columns() + 1; }

    int64_t matrices() const
    {
        int64_t count = 1;
        for(const int64_t extent : p_.batch)
            count *= extent;
        return count;
    }

    TransposeSide side(const ck_transpose_tensor& given) const
    {
        TransposeSide made{const_cast<void*>(given.data),
                           i32(p_.rows == 1 ? 0 : given.row),
                           i32(p_.columns == 1 ? 0 : given.column),
                           {}};
        for(int axis = 0; axis < CK_TRANSPOSE_MAX_BATCH; ++axis)
            made.batch[axis] = p_.batch[axis] == 1 ? 0 : given.batch[axis];
        return made;
    }

    const char* refuse() const
    {
        constexpr int64_t most = INT32_MAX;
        int64_t count          = 1;
        for(const int64_t extent : {p_.rows, p_.columns, p_.batch[0], p_.batch[1], p_.batch[2], p_.batch[3]})
            if(extent < 1 || extent > most)
                return "every extent must be 1 or more and below 2^31";
        for(const int64_t factor :
            {tiles_m(), tiles_n(), p_.batch[0], p_.batch[1], p_.batch[2], p_.batch[3]})
        {
            if(factor > most / count)
                return "there are more than 2^31 tiles";
            count *= factor;
        }
        if(!reaches(p_.source) || !reaches(p_.target))
            return "a tile spans more than 2^31 bytes or has a negative stride";
        if(!vectors(p_.source, shape_.source_vector, p_.columns, p_.source.column, p_.rows, p_.source.row) ||
           !vectors(p_.target, shape_.target_vector, p_.rows, p_.target.row, p_.columns, p_.target.column))
            return "an extent, a stride or an address does not fit the kernel's vector accesses";
        return nullptr;
    }

    bool reaches(const ck_transpose_tensor& given) const
    {
        const int64_t rows    = std::min<int64_t>(p_.rows, tile_.rows()) - 1;
        const int64_t columns = std::min<int64_t>(p_.columns, tile_.columns()) - 1;
        const int64_t most    = (int64_t{1} << 31) / shape_.bytes;
        const auto fits       = [&](int64_t steps, int64_t stride) {
            return steps == 0 || (stride >= 0 && stride <= most / steps);
        };
        return fits(rows, given.row) && fits(columns, given.column) &&
               rows * given.row + columns * given.column < most;
    }

    /// Vectors of `width` elements along an axis of `extent` and `stride`.
    bool vectors(const ck_transpose_tensor& given,
                 int64_t width,
                 int64_t extent,
                 int64_t stride,
                 int64_t others,
                 int64_t step) const
    {
        if(width == 1)
            return true;
        const auto whole = [&](int64_t elements) { return elements * shape_.bytes % 4 == 0; };
        bool fits = extent % width == 0 && stride == 1 && (others == 1 || whole(step)) &&
                    reinterpret_cast<uintptr_t>(given.data) % 4 == 0;
        for(int axis = 0; axis < CK_TRANSPOSE_MAX_BATCH; ++axis)
            fits = fits && (p_.batch[axis] == 1 || whole(given.batch[axis]));
        return fits;
    }

    TransposeShape shape_;
    ck_transpose_problem p_;
    TransposeTile tile_;
};

} // namespace cklang

#endif
