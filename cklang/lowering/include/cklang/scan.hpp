// SPDX-License-Identifier: MIT
// Cumulative sums or products of lines: of a wave or of a workgroup together, or each by a thread where lines are
// neighbours in memory. Long lines are summed piece by piece; the sum so far goes on.
#pragma once

#include "cklang/lines.hpp"

namespace cklang {

enum class Scan
{
    wave,  // a wave has a line
    block, // a workgroup has one
    lane,  // a thread has one
};

/// How two elements, or two sums, become one; i32 wraps.
struct Added
{
    static constexpr int none = 0; // what changes nothing
    template <typename V>
    CK_TILE_DEVICE static V join(V a, V b)
    {
        if constexpr(std::is_same_v<V, int32_t>)
            return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
        else
            return a + b;
    }
};

struct Multiplied
{
    static constexpr int none = 1;
    template <typename V>
    CK_TILE_DEVICE static V join(V a, V b)
    {
        if constexpr(std::is_same_v<V, int32_t>)
            return static_cast<int32_t>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
        else
            return a * b;
    }
};

constexpr int scan_threads = 256;
constexpr int scan_vector  = 4;

/// The source: tensors[0]; the result: tensors[1].
template <typename E, typename S, Scan who, typename Join = Added>
struct ScanKernel
{
    static constexpr int threads   = scan_threads;
    static constexpr uint32_t wave = ck_tile::get_warp_size();
    static constexpr uint32_t span = who == Scan::block ? threads : who == Scan::wave ? wave : 1;
    using Value                    = LineValue<S>;

    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_lines_problem& args)
    {
        const uint32_t line = blockIdx.x * (threads / span) + threadIdx.x / span;
        if(line >= line_count(args.outer))
            return; // all threads of a workgroup, where they meet
        const ck_lines_tensor &from = args.tensors[0], &to = args.tensors[1];
        const S* source =
            static_cast<const S*>(from.data) + line_place(args.outer, from.outer, line);
        E* result = static_cast<E*>(const_cast<void*>(to.data)) +
                    line_place(args.outer, to.outer, line);
        const uint32_t length = line_count(args.inner);
        const int64_t step    = from.inner[CK_LINES_AXES - 1];
        const int64_t stride  = to.inner[CK_LINES_AXES - 1];
        if constexpr(who == Scan::lane)
            alone(source, step, result, stride, length);
        else
            together(source, step, result, stride, length);
    }

    private:
    static constexpr Value none = Join::none;

    CK_TILE_DEVICE static Value add(Value a, Value b) { return Join::join(a, b); }

    CK_TILE_DEVICE static void
    alone(const S* source, int64_t step, E* result, int64_t stride, uint32_t length)
    {
        Value sum = none;
        for(uint32_t j = 0; j < length; ++j)
        {
            sum                = add(sum, line_value<S>(source[j * step]));
            result[j * stride] = narrow<E>(sum);
        }
    }

    CK_TILE_DEVICE static void
    together(const S* source, int64_t step, E* result, int64_t stride, uint32_t length)
    {
        const uint32_t lane = threadIdx.x % span;
        Value before        = none; // the sum of all pieces before
        for(uint32_t first = 0, turn = 0; first < length; first += span * scan_vector, turn ^= 1)
        {
            const uint32_t j = first + lane * scan_vector;
            Value sums[scan_vector];
            load(sums, source, step, j, length);
#pragma unroll
            for(int e = 1; e < scan_vector; ++e)
                sums[e] = add(sums[e - 1], sums[e]);
            Value all;
            const Value earlier = add(before, of_earlier(sums[scan_vector - 1], turn, all));
#pragma unroll
            for(int e = 0; e < scan_vector; ++e)
                if(j + e < length)
                    result[(j + e) * stride] = narrow<E>(add(earlier, sums[e]));
            before = add(before, all);
        }
    }

    CK_TILE_DEVICE static void
    load(Value* values, const S* source, int64_t step, uint32_t j, uint32_t length)
    {
        using Vector = S __attribute__((ext_vector_type(scan_vector), aligned(sizeof(S))));
        if(step == 1 && j + scan_vector <= length)
        {
            const Vector vector = *reinterpret_cast<const Vector*>(source + j);
#pragma unroll
            for(int e = 0; e < scan_vector; ++e)
                values[e] = line_value<S>(vector[e]);
            return;
        }
#pragma unroll
        for(int e = 0; e < scan_vector; ++e)
            values[e] = j + e < length ? line_value<S>(source[(j + e) * step]) : none;
    }

    /// The sum of what earlier threads of the line have; `all` becomes the sum of all threads.
    CK_TILE_DEVICE static Value of_earlier(Value own, uint32_t turn, Value& all)
    {
        const uint32_t lane = threadIdx.x % wave;
        Value sum           = own;
#pragma unroll
        for(uint32_t distance = 1; distance < wave; distance *= 2)
        {
            const Value other = from_lane(sum, lane - distance);
            sum               = lane < distance ? sum : add(other, sum);
        }
        const Value shifted = from_lane(sum, lane - 1);
        Value earlier       = lane == 0 ? none : shifted;
        all                 = from_lane(sum, wave - 1);
        if constexpr(who == Scan::block)
        {
            // Two turns have places of their own, so one barrier a turn is enough.
            __shared__ Value of_waves[2][threads / wave];
            const uint32_t mine = threadIdx.x / wave;
            if(lane == wave - 1)
                of_waves[turn][mine] = sum;
            __syncthreads();
            Value waves = none, until = none;
#pragma unroll
            for(uint32_t each = 0; each < threads / wave; ++each)
            {
                until = each == mine ? waves : until;
                waves = add(waves, of_waves[turn][each]);
            }
            earlier = add(until, earlier);
            all     = waves;
        }
        return earlier;
    }

    CK_TILE_DEVICE static Value from_lane(Value value, uint32_t lane)
    {
        const int bits = __builtin_bit_cast(int, value);
        return __builtin_bit_cast(Value, __builtin_amdgcn_ds_bpermute(lane % wave * 4, bits));
    }
};

} // namespace cklang
