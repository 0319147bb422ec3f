// SPDX-License-Identifier: MIT
// The experts of a token: a workgroup has a row of logits. The place of an expert is the number of
// those that come before it, so no order of threads decides, and equal experts keep theirs.
#pragma once

#include "cklang/lines.hpp"
#include "cklang/math.h"

namespace cklang {

/// The logits: tensors[0]; the bias: tensors[1]; weights: tensors[2]; experts: tensors[3]. A result
/// without an address is not written. `extent` experts are chosen; the lower half of `step` of the
/// groups that its upper half counts are allowed.
template <typename L,
          typename B,
          int size,
          int threads_,
          bool sigmoid,
          bool grouped,
          bool renormalised>
struct MoeGateKernel
{
    static constexpr int threads = threads_;
    static constexpr bool biased = !std::is_void_v<B>;

    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_lines_problem& args,
                                                                  float scale)
    {
        __shared__ float scores[size];
        __shared__ uint64_t items[size];
        __shared__ uint32_t experts[size];
        const uint32_t count  = line_count(args.inner);
        const uint32_t chosen = static_cast<uint32_t>(args.extent);
        score(args, count, scores);
        for(uint32_t j = threadIdx.x; j < count; j += threads)
            items[j] = item(key(args, scores, j), j);
        __syncthreads();
        if constexpr(grouped)
            bar(args, count, scores, items);
        for(uint32_t j = threadIdx.x; j < count; j += threads)
        {
            const uint32_t place = place_of(items, count, items[j]);
            if(place < chosen)
                experts[place] = j;
        }
        __syncthreads();
        float total = 1.0f;
        if constexpr(renormalised)
        {
            total = 0.0f;
            for(uint32_t t = 0; t < chosen; ++t)
                total += scores[experts[t]];
            total += 1e-20f;
        }
        for(uint32_t t = threadIdx.x; t < chosen; t += threads)
        {
            put<float>(args, 2, t, scores[experts[t]] / total * scale);
            put<int32_t>(args, 3, t, static_cast<int32_t>(experts[t]));
        }
    }

    private:
    static constexpr uint64_t none = ~uint64_t{0};

    CK_TILE_DEVICE static float logit(const ck_lines_problem& args, uint32_t j)
    {
        const ck_lines_tensor& from = args.tensors[0];
        const int64_t line          = line_place(args.outer, from.outer, blockIdx.x);
        return line_value(
            static_cast<const L*>(from.data)[line + j * from.inner[CK_LINES_AXES - 1]]);
    }

    /// What decides: the score with its bias, else the logit, which is in the order of the score.
    CK_TILE_DEVICE static float key(const ck_lines_problem& args, const float* scores, uint32_t j)
    {
        if constexpr(biased)
        {
            const ck_lines_tensor& bias = args.tensors[1];
            const int64_t step          = bias.inner[CK_LINES_AXES - 1];
            return scores[j] + line_value(static_cast<const B*>(bias.data)[j * step]);
        }
        else
            return logit(args, j);
    }

    CK_TILE_DEVICE static void score(const ck_lines_problem& args, uint32_t count, float* scores)
    {
        if constexpr(sigmoid)
        {
            for(uint32_t j = threadIdx.x; j < count; j += threads)
                scores[j] = 1.0f / (1.0f + ck_exp(-logit(args, j)));
        }
        else
        {
            __shared__ float partial[threads];
            float most = -__builtin_inff();
            for(uint32_t j = threadIdx.x; j < count; j += threads)
                most = ck_max(most, logit(args, j));
            most = of_all(partial, most, [](float a, float b) { return ck_max(a, b); });
            float sum = 0.0f;
            for(uint32_t j = threadIdx.x; j < count; j += threads)
            {
                scores[j] = ck_exp(logit(args, j) - most);
                sum += scores[j];
            }
            sum = of_all(partial, sum, [](float a, float b) { return a + b; });
            for(uint32_t j = threadIdx.x; j < count; j += threads)
                scores[j] /= sum;
        }
        __syncthreads();
    }

    template <typename F>
    CK_TILE_DEVICE static float of_all(float* partial, float own, F function)
    {
        __syncthreads();
        partial[threadIdx.x] = own;
        __syncthreads();
        float result = partial[0];
        for(int t = 1; t < threads; ++t)
            result = function(result, partial[t]);
        return result;
    }

    /// Leave only experts of the best groups.
    CK_TILE_DEVICE static void
    bar(const ck_lines_problem& args, uint32_t count, const float* scores, uint64_t* items)
    {
        __shared__ uint64_t best[size];
        const uint32_t groups = static_cast<uint32_t>(args.step >> 32);
        const uint32_t kept   = static_cast<uint32_t>(args.step);
        const uint32_t width  = count / groups;
        for(uint32_t g = threadIdx.x; g < groups; g += threads)
        {
            uint64_t first = none, second = none;
            for(uint32_t j = g * width; j < (g + 1) * width; ++j)
            {
                const uint64_t own = items[j];
                second             = own < first ? first : own < second ? own : second;
                first              = own < first ? own : first;
            }
            float value = key(args, scores, static_cast<uint32_t>(first));
            if(biased && second != none)
                value += key(args, scores, static_cast<uint32_t>(second));
            best[g] = item(value, g);
        }
        __syncthreads();
        for(uint32_t j = threadIdx.x; j < count; j += threads)
            if(place_of(best, groups, best[j / width]) >= kept)
                items[j] = none;
        __syncthreads();
    }

    /// How many items come before one.
    CK_TILE_DEVICE static uint32_t place_of(const uint64_t* items, uint32_t count, uint64_t own)
    {
        uint32_t place = 0;
        for(uint32_t i = 0; i < count; ++i)
            place += items[i] < own;
        return own == none ? count : place;
    }

    /// A number and its index as one: the greatest number comes first, nan before all.
    CK_TILE_DEVICE static uint64_t item(float number, uint32_t j)
    {
        // Adding 0 leaves one zero.
        const uint32_t bits = __builtin_bit_cast(uint32_t, number + 0.0f);
        const uint32_t key  = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        return static_cast<uint64_t>(number == number ? ~key : 0u) << 32 | j;
    }

    template <typename E>
    CK_TILE_DEVICE static void put(const ck_lines_problem& args, int tensor, uint32_t t, E element)
    {
        const ck_lines_tensor& to = args.tensors[tensor];
        E* const result           = static_cast<E*>(const_cast<void*>(to.data));
        const int64_t line        = line_place(args.outer, to.outer, blockIdx.x);
        if(result != nullptr)
            result[line + t * to.inner[CK_LINES_AXES - 1]] = element;
    }
};

} // namespace cklang
