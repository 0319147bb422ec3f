// SPDX-License-Identifier: MIT
// A token of each row of logits, drawn by a workgroup. Weights are integers, multiples of 2^-40, so
// that sums are the same in whatever order. For a threshold, logits are counted into bins, or their
// weights are added up there: first into bins of equal width, since few of those meet in one; then
// those of one bin digit by digit, in LDS if they fit.
#pragma once

#include "cklang/lines.hpp"
#include "cklang/math.h"
#include "cklang/sample_host.h"

namespace cklang {

template <typename L, typename Seed, typename Offset, int threads_>
struct SampleKernel
{
    static constexpr int threads = threads_;

    __attribute__((always_inline)) CK_TILE_DEVICE static void run(const ck_sample_problem& args)
    {
        const Numbers numbers(args);
        const ck_lines_tensor& to = args.more[3];
        int32_t* const result     = static_cast<int32_t*>(const_cast<void*>(to.data)) +
                                line_place(args.lines.outer, to.outer, blockIdx.x);
        Row row(args);
        row.most = of_block(row.most_of_thread(), [](float a, float b) { return ck_max(a, b); });
        const uint32_t token = row.most == none                          ? 0
                               : numbers.temperature >= least_temperature ? drawn(numbers, row)
                                                                          : row.first_of_most();
        if(threadIdx.x == 0)
            *result = static_cast<int32_t>(token);
    }

    private:
    static constexpr uint32_t lanes  = ck_tile::get_warp_size();
    static constexpr uint32_t waves  = threads / lanes;
    static constexpr uint32_t vector = 4;
    static constexpr uint32_t depth  = 4; // vectors of a lane that are loaded at once
    static constexpr uint32_t chunk  = lanes * vector * depth;
    static constexpr uint32_t most_bins = 2048;
    static constexpr uint32_t listed    = 1024; // logits in LDS
    static constexpr float none      = -__builtin_inff();
    static constexpr float least_temperature = 1e-5f; // below it the greatest logit is taken

    CK_TILE_DEVICE static const ck_lines_tensor& tensor(const ck_sample_problem& args, int place)
    {
        return place < CK_LINES_TENSORS ? args.lines.tensors[place]
                                        : args.more[place - CK_LINES_TENSORS];
    }

    CK_TILE_DEVICE static int64_t place_of_line(const ck_sample_problem& args, int place)
    {
        return line_place(args.lines.outer, tensor(args, place).outer, blockIdx.x);
    }

    /// A number of the row of this workgroup.
    template <typename E>
    CK_TILE_DEVICE static E number(const ck_sample_problem& args, int place)
    {
        return static_cast<const E*>(tensor(args, place).data)[place_of_line(args, place)];
    }

    /// What a token is drawn by.
    struct Numbers
    {
        float temperature, top_p, min_p;
        int32_t top_k;
        uint64_t bits; // random ones

        CK_TILE_DEVICE explicit Numbers(const ck_sample_problem& args)
            : temperature(number<float>(args, 3)),
              top_p(number<float>(args, 5)),
              min_p(number<float>(args, 6)),
              top_k(number<int32_t>(args, 4)),
              bits(random(static_cast<int64_t>(number<Seed>(args, 1)),
                          static_cast<int64_t>(number<Offset>(args, 2)),
                          place_of_line(args, 8)))
        {
        }
    };

    /// Of a range that waves share, each has neighbouring elements: the number of them.
    CK_TILE_DEVICE static uint32_t part_of(uint32_t length)
    {
        const uint32_t unit = length > waves * chunk ? chunk : lanes;
        return ((length - 1) / waves / unit + 1) * unit;
    }

    /// A row of logits, and the weights of those that may be drawn.
    struct Row
    {
        const L* data;
        int64_t step;
        uint32_t count;
        float most    = none;
        float least   = none; // that may be drawn
        float inverse = 0.0f; // log2(e) / temperature

        CK_TILE_DEVICE explicit Row(const ck_sample_problem& args)
            : data(static_cast<const L*>(tensor(args, 0).data) + place_of_line(args, 0)),
              step(tensor(args, 0).inner[CK_LINES_AXES - 1]),
              count(line_count(args.lines.inner))
        {
        }

        /// nan is -inf, and inf the largest number.
        CK_TILE_DEVICE static float logit(L element)
        {
            return __builtin_fminf(__builtin_fmaxf(line_value<L>(element), none), __FLT_MAX__);
        }

        CK_TILE_DEVICE uint64_t at(uint32_t j) const { return amount(logit(data[j * step])); }

        /// Its weight in units of 2^-40; 0 if it is not to be drawn.
        CK_TILE_DEVICE uint64_t amount(float x) const
        {
            const float weight = ck_near_exp2((x - most) * inverse) * 0x1p40f;
            return x >= least ? static_cast<uint64_t>(weight) : 0;
        }

        /// The bin of a logit; the last one has all whose weight is 0.
        CK_TILE_DEVICE uint32_t bin(float x) const
        {
            const float place = (most - x) * (inverse * (most_bins / 41.0f));
            return place < most_bins - 1 ? static_cast<uint32_t>(place) : most_bins - 1;
        }

        CK_TILE_DEVICE float most_of_thread() const
        {
            float result = none;
            each(0, count, [&](uint32_t, float x) { result = ck_max(result, x); });
            return result;
        }

        CK_TILE_DEVICE uint32_t first_of_most() const
        {
            uint32_t first = count;
            each(0, count, [&](uint32_t j, float x) { first = x == most && j < first ? j : first; });
            return of_block(first, [](uint32_t a, uint32_t b) { return a < b ? a : b; });
        }

        CK_TILE_DEVICE uint64_t sum(uint32_t first, uint32_t last) const
        {
            uint64_t result = 0;
            each(first, last, [&](uint32_t, float x) { result += amount(x); });
            return result;
        }

        /// Call a function with the logits of a range; all threads of the workgroup share it.
        template <typename Visit>
        CK_TILE_DEVICE void each(uint32_t first, uint32_t last, Visit visit) const
        {
            using Vector         = L __attribute__((ext_vector_type(vector), aligned(sizeof(L))));
            const uint32_t part  = part_of(last - first);
            const uint32_t lane  = threadIdx.x % lanes;
            uint32_t j           = first + threadIdx.x / lanes * part;
            const uint32_t end   = j + part < last ? j + part : last;
            for(; step == 1 && j + chunk <= end; j += chunk)
            {
                Vector loaded[depth];
#pragma unroll
                for(uint32_t d = 0; d < depth; ++d)
                    loaded[d] = *reinterpret_cast<const Vector*>(data + j + (d * lanes + lane) * vector);
#pragma unroll
                for(uint32_t d = 0; d < depth; ++d)
#pragma unroll
                    for(uint32_t e = 0; e < vector; ++e)
                        visit(j + (d * lanes + lane) * vector + e, logit(loaded[d][e]));
            }
            for(j += lane; j < end; j += lanes)
                visit(j, logit(data[j * step]));
        }
    };

    /// The logits of a row that are in one bin.
    struct Part
    {
        Row row;
        uint32_t place;

        template <typename Visit>
        CK_TILE_DEVICE void each(Visit visit) const
        {
            row.each(0, row.count, [&](uint32_t, float x) {
                if(row.bin(x) == place)
                    visit(x);
            });
        }
    };

    /// Logits in LDS.
    struct List
    {
        const float* logits;
        uint32_t count;

        template <typename Visit>
        CK_TILE_DEVICE void each(Visit visit) const
        {
            for(uint32_t t = threadIdx.x; t < count; t += threads)
                visit(logits[t]);
        }
    };

    struct Bins
    {
        const uint64_t* amounts;

        CK_TILE_DEVICE uint64_t at(uint32_t j) const { return amounts[j]; }

        CK_TILE_DEVICE uint64_t sum(uint32_t first, uint32_t last) const
        {
            const uint32_t part  = part_of(last - first);
            const uint32_t begin = first + threadIdx.x / lanes * part;
            uint64_t result      = 0;
            for(uint32_t j = begin + threadIdx.x % lanes; j < begin + part && j < last; j += lanes)
                result += amounts[j];
            return result;
        }
    };

    /// A number that has the order of floats; there is one zero.
    CK_TILE_DEVICE static uint32_t key_of(float x)
    {
        const uint32_t bits = __builtin_bit_cast(uint32_t, x + 0.0f);
        return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    }

    CK_TILE_DEVICE static float with_key(uint32_t key)
    {
        return __builtin_bit_cast(float, key & 0x80000000u ? key ^ 0x80000000u : ~key);
    }

    CK_TILE_DEVICE static uint32_t drawn(const Numbers& n, Row& row)
    {
        const float coldest = 0x1p-100f; // of infinite temperatures; -inf times it is -inf
        const float inverse = 1.44269504f / n.temperature;
        row.inverse         = inverse < coldest ? coldest : inverse;
        if(n.min_p > 0.0f)
            row.least = row.most + __builtin_log2f(n.min_p < 1.0f ? n.min_p : 1.0f) / row.inverse;
        const bool by_count = n.top_k > 0 && static_cast<uint32_t>(n.top_k) < row.count;
#pragma nounroll
        for(int weighted = 0; weighted < 2; ++weighted) // one copy of the code serves both
            if(weighted ? n.top_p < 1.0f : by_count)
                row.least = ck_max(row.least, threshold(row, weighted, n.top_k, n.top_p));
        return pick(row, row.count, [&](uint64_t total) {
                   return static_cast<uint64_t>((static_cast<unsigned __int128>(n.bits) * total) >> 64);
               }).place;
    }

    /// The greatest logit that is one of the `top_k` greatest, or reaches the share `top_p` of all
    /// weights, together with all greater ones.
    CK_TILE_DEVICE static float threshold(const Row& row, bool weighted, int32_t top_k, float top_p)
    {
        __shared__ uint64_t bins[most_bins];
        __shared__ float logits[listed];
        __shared__ uint32_t count;
        clear(bins, most_bins);
        if(weighted)
            row.each(0, row.count, [&](uint32_t, float x) {
                if(row.bin(x) < most_bins - 1 && x >= row.least)
                    add_to(&bins[row.bin(x)], row.amount(x));
            });
        else
        {
            uint32_t of_last = 0; // a bin of many
            row.each(0, row.count, [&](uint32_t, float x) {
                if(row.bin(x) < most_bins - 1)
                    add_to(&bins[row.bin(x)], 1);
                else
                    ++of_last;
            });
            add_to(&bins[most_bins - 1], of_last);
        }
        if(threadIdx.x == 0)
            count = 0;
        __syncthreads();
        const Picked bin = pick(Bins{bins}, most_bins, [&](uint64_t total) {
            const double wanted = __builtin_ceil(double(top_p) * double(total));
            return !weighted       ? static_cast<uint64_t>(top_k) - 1
                   : wanted < 1.0 ? 0
                                  : static_cast<uint64_t>(wanted) - 1;
        });
        row.each(0, row.count, [&](uint32_t, float x) {
            if(row.bin(x) != bin.place)
                return;
            const uint32_t place =
                __hip_atomic_fetch_add(&count, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
            if(place < listed)
                logits[place] = x;
        });
        __syncthreads();
        return count <= listed ? digits(row, weighted, List{logits, count}, bins, bin.rest)
                               : digits(row, weighted, Part{row, bin.place}, bins, bin.rest);
    }

    /// The same of some logits, of which `rest` is to be passed.
    template <typename Logits>
    CK_TILE_DEVICE static float digits(
        const Row& row, bool weighted, const Logits& logits, uint64_t* bins, uint64_t rest)
    {
        uint32_t known = 0, mask = 0; // the digits so far
#pragma nounroll
        for(uint32_t above = 32, below = 21; above > 0; above = below, below = below == 21 ? 10 : 0)
        {
            const uint32_t count = 1u << (above - below);
            clear(bins, count);
            logits.each([&](float x) {
                const uint32_t key = key_of(x);
                if((key & mask) == known)
                    add_to(&bins[~(key >> below) & (count - 1)], weighted ? row.amount(x) : 1);
            });
            __syncthreads();
            const Picked bin = pick(Bins{bins}, count, [&](uint64_t) { return rest; });
            known |= (~bin.place & (count - 1)) << below;
            mask = ~0u << below;
            rest = bin.rest;
        }
        return with_key(known);
    }

    CK_TILE_DEVICE static void clear(uint64_t* bins, uint32_t count)
    {
        __syncthreads(); // all waves have read what was there
        for(uint32_t t = threadIdx.x; t < count; t += threads)
            bins[t] = 0;
        __syncthreads();
    }

    CK_TILE_DEVICE static void add_to(uint64_t* bin, uint64_t amount)
    {
        __hip_atomic_fetch_add(bin, amount, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
    }

    struct Picked
    {
        uint32_t place;
        uint64_t rest; // of what was to be passed
    };

    /// The first place at which the amounts up to it pass `target(total)`.
    template <typename Source, typename Target>
    CK_TILE_DEVICE static Picked pick(const Source& source, uint32_t count, Target target)
    {
        __shared__ uint64_t sums[waves];
        const uint32_t lane = threadIdx.x % lanes;
        uint32_t first = 0, last = count;
        uint64_t rest = 0;
        do
        {
            const uint32_t part = part_of(last - first);
            const uint64_t sum  = of_wave(source.sum(first, last), add);
            if(lane == 0)
                sums[threadIdx.x / lanes] = sum;
            __syncthreads();
            if(last - first == count)
            {
                uint64_t total = 0;
                for(uint32_t w = 0; w < waves; ++w)
                    total += sums[w];
                rest = target(total);
            }
            uint32_t wave = 0;
            for(; wave + 1 < waves && rest >= sums[wave]; ++wave)
                rest -= sums[wave];
            __syncthreads();
            first += wave * part;
            last = first + part < last ? first + part : last;
        } while(last - first > lanes);
        const uint64_t own = first + lane < last ? source.at(first + lane) : 0;
        uint64_t until     = own;
#pragma unroll
        for(uint32_t distance = 1; distance < lanes; distance *= 2)
        {
            const uint64_t other = __shfl_up(until, distance);
            until += lane < distance ? 0 : other;
        }
        const int place = __builtin_ctzll(__ballot(until > rest));
        return {first + place, rest - __shfl(until - own, place)};
    }

    CK_TILE_DEVICE static uint64_t add(uint64_t a, uint64_t b) { return a + b; }

    template <typename V, typename F>
    CK_TILE_DEVICE static V of_wave(V value, F join)
    {
#pragma unroll
        for(uint32_t distance = lanes / 2; distance > 0; distance /= 2)
            value = join(value, __shfl_xor(value, distance));
        return value;
    }

    template <typename V, typename F>
    CK_TILE_DEVICE static V of_block(V value, F join)
    {
        __shared__ V partial[waves];
        const V own = of_wave(value, join);
        if(threadIdx.x % lanes == 0)
            partial[threadIdx.x / lanes] = own;
        __syncthreads();
        V result = partial[0];
        for(uint32_t w = 1; w < waves; ++w)
            result = join(result, partial[w]);
        return result;
    }

    /// 64 bits of Philox 4x32 with seven rounds, as dropout draws them.
    CK_TILE_DEVICE static uint64_t random(uint64_t seed, uint64_t counter, uint64_t stream)
    {
        const uint4 words = ck_tile::philox(seed, counter).get_philox_4x32(stream);
        return uint64_t{words.y} << 32 | words.x;
    }
};

} // namespace cklang
