// SPDX-License-Identifier: MIT
// Lines in order: a workgroup sorts a line in LDS, by element and then by index, so equal elements
// stay in their order. Of longer lines it keeps the first `extent` and sorts them with the next piece.
#pragma once

#include "cklang/lines.hpp"

namespace cklang {

/// The source: tensors[0]; its elements in order: tensors[1]; their indices: tensors[2]. `extent` of
/// them are written.
template <typename S, int size, int threads_, bool values, bool indices, bool descending>
struct SortKernel
{
    static constexpr int threads = threads_;

    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_lines_problem& args)
    {
        __shared__ uint64_t items[size];
        const uint32_t line         = blockIdx.x;
        const ck_lines_tensor& from = args.tensors[0];
        const S* source =
            static_cast<const S*>(from.data) + line_place(args.outer, from.outer, line);
        const uint32_t length = line_count(args.inner);
        const int64_t step    = from.inner[CK_LINES_AXES - 1];
        const uint32_t wanted = static_cast<uint32_t>(args.extent);
        uint32_t kept = 0;
        for(uint32_t first = 0; first < length;)
        {
            for(uint32_t t = kept + threadIdx.x; t < size; t += threads)
            {
                const uint32_t j = first + t - kept;
                items[t]         = j < length ? item(source[j * step], j) : ~uint64_t{0};
            }
            __syncthreads();
            sort(items);
            first += size - kept;
            kept = wanted;
        }
        for(uint32_t t = threadIdx.x; t < wanted; t += threads)
        {
            const uint32_t j = static_cast<uint32_t>(items[t]);
            if constexpr(values)
                put<S>(args, 1, line, t, source[j * step]);
            if constexpr(indices)
                put<int32_t>(args, 2, line, t, static_cast<int32_t>(j));
        }
    }

    private:
    template <typename E>
    CK_TILE_DEVICE static void
    put(const ck_lines_problem& args, int tensor, uint32_t line, uint32_t t, E element)
    {
        const ck_lines_tensor& to = args.tensors[tensor];
        E* const result           = static_cast<E*>(const_cast<void*>(to.data));
        result[line_place(args.outer, to.outer, line) + t * to.inner[CK_LINES_AXES - 1]] = element;
    }

    /// An element and its index as a number: of two, the less comes first.
    CK_TILE_DEVICE static uint64_t item(S element, uint32_t j)
    {
        uint32_t key;
        if constexpr(std::is_same_v<S, int32_t>)
            key = static_cast<uint32_t>(element) ^ 0x80000000u;
        else
        {
            // Adding 0 leaves one zero; nan is the greatest, whatever its sign.
            const float number  = ck_tile::type_convert<float>(element) + 0.0f;
            const uint32_t bits = __builtin_bit_cast(uint32_t, number);
            key                 = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
            key                 = number == number ? key : 0xffffffffu;
        }
        return static_cast<uint64_t>(descending ? ~key : key) << 32 | j;
    }

    __attribute__((always_inline)) CK_TILE_DEVICE static void sort(uint64_t* items)
    {
        for(uint32_t run = 2; run <= size; run *= 2)
            for(uint32_t gap = run / 2; gap > 0; gap /= 2)
            {
                for(uint32_t t = threadIdx.x; t < size / 2; t += threads)
                {
                    const uint32_t a = 2 * t - (t & (gap - 1)), b = a + gap;
                    const uint64_t x = items[a], y = items[b];
                    const bool swaps = (x > y) == ((a & run) == 0);
                    items[a]         = swaps ? y : x;
                    items[b]         = swaps ? x : y;
                }
                __syncthreads();
            }
    }
};

} // namespace cklang
