// SPDX-License-Identifier: MIT
// Rows written behind those that a cache holds, turned by their positions on the way: what decoding
// does with new keys (turned), new values (not turned) and queries (turned, to a place of their own).
#pragma once

#include "cklang/ck_tile_attention.hpp"

#include "cklang/append_args.hpp"
#include "cklang/narrow.hpp"

namespace cklang {

/// A thread has two elements of one row: those that turn together, or neighbours behind them. Where
/// the cache has another type than the rows, they are divided by a scale and rounded once.
template <typename T, typename Stored, Rotary rotary, bool paged>
struct AppendKernel
{
    static constexpr int32_t threads = append_threads;

    CK_TILE_DEVICE static void run(const AppendArgs& args)
    {
        const int32_t pairs = (args.width + 1) / 2;
        const int64_t index = static_cast<int64_t>(blockIdx.x) * threads + threadIdx.x;
        const int32_t pair  = static_cast<int32_t>(index % pairs);
        int64_t row         = index / pairs;
        const int32_t i     = static_cast<int32_t>(row % args.rows);
        row /= args.rows;
        const int32_t head  = static_cast<int32_t>(row % args.heads);
        const int64_t batch = row / args.heads;
        if(batch < args.batch)
            two(args, batch, head, i, pair);
    }

    private:
    CK_TILE_DEVICE static void
    two(const AppendArgs& args, int64_t batch, int32_t head, int32_t i, int32_t pair)
    {
        const int32_t start    = args.starts ? args.starts[batch] : 0;
        const int32_t position = start + (args.advance ? i : 0);
        const T* from          = static_cast<const T*>(args.from.data) +
                        batch * args.from.stride_batch + head * args.from.stride_head +
                        i * args.from.stride_seq;
        const int32_t row = args.behind ? start + i : i;
        if(row < 0 || row >= args.capacity)
            return;
        Stored* to        = place(args, batch, head, row);
        const float scale = scale_of(args, head);

        const int32_t half = args.rotary_width / 2;
        const bool turns   = rotary != Rotary::none && pair < half;
        const bool apart   = rotary == Rotary::half && turns;
        const int32_t a    = apart ? pair : 2 * pair;
        const int32_t b    = apart ? pair + half : a + 1;
        if(turns)
        {
            const int64_t turn  = ck_tile::min(static_cast<int64_t>(position), args.positions - 1);
            const int64_t angle = turn * half + pair;
            const float c       = value(static_cast<const T*>(args.cosine)[angle]);
            const float s       = value(static_cast<const T*>(args.sine)[angle]);
            const float x = value(from[a]), y = value(from[b]);
            to[a] = stored(x * c - y * s, scale);
            to[b] = stored(y * c + x * s, scale);
        }
        else
        {
            to[a] = copied(from[a], scale);
            if(b < args.width)
                to[b] = copied(from[b], scale);
        }
    }

    static constexpr bool scaled = !std::is_same_v<T, Stored>;

    CK_TILE_DEVICE static float scale_of(const AppendArgs& args, int32_t head)
    {
        if constexpr(scaled)
            return args.scales ? args.scales[head * args.stride_scale] : args.scale;
        else
            return 1.0f;
    }

    CK_TILE_DEVICE static Stored stored(float x, float scale)
    {
        return narrow<Stored>(scaled ? x / scale : x);
    }

    CK_TILE_DEVICE static Stored copied(T x, float scale)
    {
        if constexpr(scaled)
            return stored(value(x), scale);
        else
            return x;
    }

    CK_TILE_DEVICE static Stored*
    place(const AppendArgs& args, int64_t batch, int32_t head, int32_t row)
    {
        Stored* data = static_cast<Stored*>(args.to.data) + head * args.to.stride_head;
        if constexpr(paged)
        {
            const Pages& pages  = args.pages;
            const int64_t first = pages.starts ? pages.starts[batch] : batch * pages.stride;
            return data + pages.table[first + row / pages.size] * args.to.stride_batch +
                   row % pages.size * args.to.stride_seq;
        }
        else
            return data + batch * args.to.stride_batch + row * args.to.stride_seq;
    }

    CK_TILE_DEVICE static float value(T x) { return ck_tile::type_convert<float>(x); }
};

} // namespace cklang
