// SPDX-License-Identifier: MIT
// Rows reduced to a number each, in f32 and in one order: each thread reduces its elements as it
// loads them, the lanes of a wave exchange what they have, and waves that share a row meet in LDS.
#pragma once

#include <hip/hip_runtime.h>

#include "cklang/narrow.hpp"

#include <cstddef>

#include "cklang/attention_hole.h"
#include "cklang/rowwise_args.hpp"

// The user's function: an open hole in a stencil. The indices are the axes of the result.
extern "C" __device__ float ck_output(float o, CK_ATTENTION_PARAMS);

namespace cklang {

using ck_tile::index_t;

struct RowSum
{
    static constexpr float identity = 0;

    CK_TILE_DEVICE static float join(float a, float b) { return a + b; }
};

struct RowMax
{
    static constexpr float identity = -__builtin_inff();

    /// NaN if either is NaN, as NumPy has it.
    CK_TILE_DEVICE static float join(float a, float b) { return a < b || b != b ? b : a; }
};

/// `row_threads` threads reduce a row of T to an element of E; one access loads `vector` elements.
/// With `output` the user's function makes of the number what is stored.
template <typename T, typename E, typename Reduction, index_t row_threads, index_t vector, bool output>
struct RowwiseKernel
{
    static constexpr index_t threads = rowwise_threads;
    static constexpr index_t wave    = ck_tile::get_warp_size();

    CK_TILE_DEVICE static void run(const RowwiseArgs& args)
    {
        const uint32_t lane = threadIdx.x % row_threads;
        const uint32_t row  = blockIdx.x * (threads / row_threads) + threadIdx.x / row_threads;
        const bool is_row   = row < args.count;

        uint32_t place[CK_ROWWISE_MAX_AXES];
        uint32_t rest = is_row ? row : 0;
#pragma unroll
        for(index_t axis = CK_ROWWISE_MAX_AXES - 1; axis >= 0; --axis)
        {
            place[axis] = rest % args.rows[axis];
            rest /= args.rows[axis];
        }
        // Threads without a row have the first one's place and no element: all meet at the barrier.
        const T* const x   = static_cast<const T*>(args.x) + at(place, args.x_stride);
        const float result = joined(elements(x, args.x_step, is_row ? args.length : 0, lane));
        if(!is_row || lane != 0)
            return;
        static_cast<E*>(args.y)[at(place, args.y_stride)] = narrow<E>(stored(result, place));
    }

    private:
    CK_TILE_DEVICE static int64_t at(const uint32_t* place, const int64_t* stride)
    {
        int64_t offset = 0;
#pragma unroll
        for(index_t axis = 0; axis < CK_ROWWISE_MAX_AXES; ++axis)
            offset += place[axis] * stride[axis];
        return offset;
    }

    /// What one thread has of a row.
    CK_TILE_DEVICE static float elements(const T* x, int64_t step, int64_t length, uint32_t lane)
    {
        float parts[vector];
#pragma unroll
        for(index_t e = 0; e < vector; ++e)
            parts[e] = Reduction::identity;

        int64_t first = 0;
        if constexpr(vector > 1)
        {
            const int64_t vectors = length / vector;
#pragma unroll 4
            for(int64_t i = lane; i < vectors; i += row_threads)
            {
                const Vector loaded = __builtin_bit_cast(Vector, *words_at(x + i * vector));
#pragma unroll
                for(index_t e = 0; e < vector; ++e)
                    parts[e] = Reduction::join(parts[e], ck_tile::type_convert<float>(loaded.element[e]));
            }
            first = vectors * vector;
            step  = 1;
        }
#pragma unroll 4
        for(int64_t i = first + lane; i < length; i += row_threads)
            parts[0] = Reduction::join(parts[0], ck_tile::type_convert<float>(x[i * step]));

        float result = parts[0];
#pragma unroll
        for(index_t e = 1; e < vector; ++e)
            result = Reduction::join(result, parts[e]);
        return result;
    }

    struct Vector
    {
        T element[vector];
    };

    static constexpr index_t words = vector * sizeof(T) / 4 > 0 ? vector * sizeof(T) / 4 : 1;
    using Words = uint32_t __attribute__((ext_vector_type(words), aligned(4)));

    CK_TILE_DEVICE static const Words* words_at(const T* x)
    {
        return reinterpret_cast<const Words*>(x);
    }

    /// What the threads of a row have together: the same in all of them.
    CK_TILE_DEVICE static float joined(float part)
    {
        constexpr index_t lanes = row_threads < wave ? row_threads : wave;
#pragma unroll
        for(index_t distance = lanes / 2; distance > 0; distance /= 2)
            part = Reduction::join(part, from_lane(part, (threadIdx.x % wave) ^ distance));
        if constexpr(row_threads > wave)
        {
            __shared__ float of_waves[threads / wave];
            of_waves[threadIdx.x / wave] = part;
            __syncthreads();
            const index_t first = threadIdx.x / row_threads * (row_threads / wave);
            part                = of_waves[first];
#pragma unroll
            for(index_t other = 1; other < row_threads / wave; ++other)
                part = Reduction::join(part, of_waves[first + other]);
        }
        return part;
    }

    CK_TILE_DEVICE static float from_lane(float value, uint32_t lane)
    {
        const int bits = __builtin_bit_cast(int, value);
        return __builtin_bit_cast(float, __builtin_amdgcn_ds_bpermute(lane * 4, bits));
    }

    CK_TILE_DEVICE static float stored(float result, const uint32_t* place)
    {
        if constexpr(output)
            return ck_output(result, place[0], place[1], place[2], place[3], 0, 0, tensors());
        else
            return result;
    }

    static_assert(sizeof(ck_attention_tensor) == sizeof(RowwiseOperand) &&
                  offsetof(ck_attention_tensor, extent) == offsetof(RowwiseOperand, extent) &&
                  offsetof(ck_attention_tensor, stride) == offsetof(RowwiseOperand, stride));

    /// The tensors of the user's function, in memory that nobody writes.
    CK_TILE_DEVICE static const CK_CONSTANT ck_attention_tensor* tensors()
    {
        const auto* args = (const CK_CONSTANT char*)__builtin_amdgcn_kernarg_segment_ptr();
        return reinterpret_cast<const CK_CONSTANT ck_attention_tensor*>(
            args + offsetof(RowwiseArgs, operands));
    }
};

} // namespace cklang
