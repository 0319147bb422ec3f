// SPDX-License-Identifier: MIT
// Rows written or added at indices, in one order: no two workgroups write the same elements.
//
// Of the rows with one index, the workgroups of the last one write it, or those of the first one add
// them all, one after the other. Which rows have the same index is found by comparing indices, a wave
// at a time: by each workgroup, or where there are many rows by a kernel of its own before.
#pragma once

#include "cklang/lines.hpp"

namespace cklang {

enum class Scatter
{
    set,
    add,
    link, // notes for each row which later one is the next of its index, and which have an earlier one
};

constexpr int scatter_threads = 256;
constexpr int scatter_vector  = 4;
constexpr int scatter_part    = scatter_threads * scatter_vector; // elements of a workgroup

/// The indices: tensors[0]; the rows: tensors[1]; the result: tensors[2], its axis has `extent`
/// elements, `step` apart; the notes: tensors[3], first the next rows, 0 for none, then whether there
/// is an earlier one.
template <typename Index>
struct ScatterIndices
{
    static constexpr uint32_t wave = ck_tile::get_warp_size();

    const ck_lines_problem& args;
    uint32_t count;

    CK_TILE_DEVICE int64_t at(uint32_t row) const
    {
        const ck_lines_tensor& ids = args.tensors[0];
        return static_cast<const Index*>(ids.data)[line_place(args.outer, ids.outer, row)];
    }

    /// The first row from `first` up to `end` that has an index; `end` if none has. All lanes of a
    /// wave ask for the same.
    CK_TILE_DEVICE uint32_t find(int64_t index, uint32_t first, uint32_t end) const
    {
        const uint32_t lane = threadIdx.x % wave;
        for(uint32_t row = first; row < end; row += wave)
        {
            const bool is_same  = row + lane < end && at(row + lane) == index;
            const uint64_t same = __ballot(is_same);
            if(same)
                return row + __builtin_ctzll(same);
        }
        return end;
    }
};

template <typename E, typename R, typename Index, Scatter how, bool linked>
struct ScatterKernel
{
    static constexpr int threads = scatter_threads;
    using Value                  = LineValue<E>;

    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_lines_problem& args)
    {
        const ScatterIndices<Index> indices{args, line_count(args.outer)};
        if constexpr(how == Scatter::link)
            link(indices, static_cast<int32_t*>(const_cast<void*>(args.tensors[3].data)));
        else
            write(indices, static_cast<const int32_t*>(args.tensors[3].data));
    }

    private:
    CK_TILE_DEVICE static void link(const ScatterIndices<Index>& indices, int32_t* links)
    {
        constexpr uint32_t wave = ScatterIndices<Index>::wave;
        const uint32_t row      = blockIdx.x * (threads / wave) + threadIdx.x / wave;
        if(row >= indices.count)
            return;
        const uint32_t next = indices.find(indices.at(row), row + 1, indices.count);
        if(next < indices.count && threadIdx.x % wave == 0)
        {
            links[row]                  = static_cast<int32_t>(next);
            links[indices.count + next] = 1;
        }
    }

    CK_TILE_DEVICE static uint32_t
    next(const ScatterIndices<Index>& indices, const int32_t* links, int64_t index, uint32_t row)
    {
        if constexpr(!linked)
            return indices.find(index, row + 1, indices.count);
        const uint32_t later = static_cast<uint32_t>(links[row]);
        return later ? later : indices.count;
    }

    CK_TILE_DEVICE static bool
    is_first(const ScatterIndices<Index>& indices, const int32_t* links, int64_t index, uint32_t row)
    {
        return linked ? !links[indices.count + row] : indices.find(index, 0, row) == row;
    }

    CK_TILE_DEVICE static void write(const ScatterIndices<Index>& indices, const int32_t* links)
    {
        const ck_lines_problem& args = indices.args;
        const uint32_t row           = blockIdx.x;
        const int64_t index          = indices.at(row);
        if(index < 0 || index >= args.extent)
            return;
        if constexpr(how == Scatter::add)
        {
            if(!is_first(indices, links, index, row))
                return;
        }
        else if(next(indices, links, index, row) < indices.count)
            return;

        const uint32_t length = line_count(args.inner);
        const bool is_linear  = args.inner[0] * args.inner[1] * args.inner[2] == 1;
        const bool contiguous = is_linear && args.tensors[1].inner[CK_LINES_AXES - 1] == 1 &&
                                args.tensors[2].inner[CK_LINES_AXES - 1] == 1;
        // All lanes of a wave look for rows together, with and without elements.
        constexpr uint32_t wave = ScatterIndices<Index>::wave;
        const uint32_t lane     = threadIdx.x % wave;
        const uint32_t begin    = blockIdx.y * scatter_part + (threadIdx.x - lane) * scatter_vector;
        if(begin >= length)
            return;
        if(contiguous && length % scatter_vector == 0)
            elements<scatter_vector>(indices, links, index, row, begin + lane * scatter_vector, length);
        else
            for(uint32_t first = begin; first < begin + wave * scatter_vector && first < length;
                first += wave)
                elements<1>(indices, links, index, row, first + lane, length);
    }

    /// Write `width` neighbours from j on; beyond the length, only look for rows.
    template <int width>
    CK_TILE_DEVICE static void elements(const ScatterIndices<Index>& indices,
                                        const int32_t* links,
                                        int64_t index,
                                        uint32_t row,
                                        uint32_t j,
                                        uint32_t length)
    {
        const bool is_inside = j < length;
        using Source = R __attribute__((ext_vector_type(width), aligned(sizeof(R))));
        using Target = E __attribute__((ext_vector_type(width), aligned(sizeof(E))));
        const ck_lines_problem& args = indices.args;
        const ck_lines_tensor &from = args.tensors[1], &to = args.tensors[2];
        const R* rows = static_cast<const R*>(from.data) +
                        line_place(args.inner, from.inner, is_inside ? j : 0);
        E* result = static_cast<E*>(const_cast<void*>(to.data)) + index * args.step +
                    line_place(args.inner, to.inner, is_inside ? j : 0);
        const auto row_of = [&](uint32_t place) {
            return *reinterpret_cast<const Source*>(rows + line_place(args.outer, from.outer, place));
        };
        Target written;
        if constexpr(how == Scatter::set)
            written = row_of(row);
        else
        {
            const Target before = *reinterpret_cast<const Target*>(result);
            Value sums[width];
#pragma unroll
            for(int e = 0; e < width; ++e)
                sums[e] = line_value<E>(before[e]);
            for(uint32_t place = row; place < indices.count;
                place          = next(indices, links, index, place))
            {
                const Source terms = row_of(place);
#pragma unroll
                for(int e = 0; e < width; ++e)
                    sums[e] = added(sums[e], line_value<R>(terms[e]));
            }
#pragma unroll
            for(int e = 0; e < width; ++e)
                written[e] = narrow<E>(sums[e]);
        }
        if(is_inside)
            *reinterpret_cast<Target*>(result) = written;
    }

    CK_TILE_DEVICE static Value added(Value a, Value b)
    {
        if constexpr(std::is_same_v<Value, int32_t>)
            return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
        else
            return a + b;
    }
};

} // namespace cklang
