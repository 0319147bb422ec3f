// SPDX-License-Identifier: MIT
// Scales of rows or columns along K. A lane loads those of several blocks of K at once: one by one
// they would read as many cache lines as the operands do.
#pragma once

#include "cklang/core.hpp"

namespace cklang {

/// The scales of some rows from one block of K to the next. `Rows` says how many rows there are, and
/// how many elements after `data` each begins.
template <typename Stored, typename Rows>
struct ScaleRuns
{
    using Run = ck_tile::int32x4_t;

    static constexpr index_t run    = sizeof(Run) / sizeof(Stored); // blocks
    static constexpr index_t repeat = Rows::count;

    const Stored* data;
    index_t stride_k;
    Rows rows;
    index_t block, blocks; // of K: where the runs begin, and all
    index_t used = 0, beyond = 0;
    std::array<Run, repeat> runs{};

    /// Load runs. Nothing here uses them, so no wave waits before the next tile. Scales beyond K, where
    /// the operands are zeros, are not nan.
    CK_TILE_DEVICE void load()
    {
        if(stride_k == 1 && blocks >= run)
        {
            beyond = ck_tile::max(block + run - blocks, 0);
#pragma unroll
            for(index_t i = 0; i < repeat; ++i)
                __builtin_memcpy(&runs[i], data + (block - beyond) + rows(i), sizeof(Run));
            return;
        }
#pragma unroll
        for(index_t i = 0; i < repeat; ++i)
        {
            runs[i] = Run{};
#pragma unroll
            for(index_t b = 0; b < run; ++b)
            {
                constexpr index_t per_word = 4 / sizeof(Stored);
                const index_t place = ck_tile::min(block + b, blocks - 1);
                const unsigned word = word_of((data + int64_t{place} * stride_k)[rows(i)]);
                const unsigned mask = block + b < blocks ? ~0u : 0; // no branch, which would wait
                runs[i][b / per_word] |= (word & mask) << 32 / per_word * (b % per_word);
            }
            __builtin_amdgcn_sched_barrier(0); // else it takes registers for all
        }
    }

    /// The next `step` blocks' scales, in the lowest words of each run, before it goes on to those after.
    template <index_t step>
    CK_TILE_DEVICE auto take()
    {
        static_assert(run % step == 0);
#pragma unroll 1
        for(index_t left = used == 0 ? beyond : 0; left > 0; --left)
            shift<1>();
        const auto taken = runs;
        used += step;
        if(used == run)
        {
            used = 0;
            block += run;
            load();
        }
        else if constexpr(step < run)
            shift<step>();
        return taken;
    }

    private:
    CK_TILE_DEVICE static unsigned word_of(Stored scale)
    {
        if constexpr(sizeof(Stored) == 4)
            return __builtin_bit_cast(unsigned, scale);
        else
            return static_cast<unsigned char>(scale);
    }

    template <index_t by>
    CK_TILE_DEVICE void shift()
    {
        constexpr index_t words = by * sizeof(Stored) / 4, bits = by * sizeof(Stored) % 4 * 8;
#pragma unroll
        for(index_t i = 0; i < repeat; ++i)
        {
            auto& all = runs[i];
#pragma unroll
            for(index_t word = 0; word < 4; ++word)
            {
                const unsigned low  = word + words < 4 ? all[word + words] : 0;
                const unsigned high = word + words < 3 ? all[word + words + 1] : 0;
                if constexpr(bits == 0)
                    all[word] = low;
                else
                    all[word] = low >> bits | high << (32 - bits);
            }
        }
    }
};

} // namespace cklang
