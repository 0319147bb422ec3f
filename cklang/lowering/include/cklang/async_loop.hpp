// SPDX-License-Identifier: MIT
// The main loop over a pipeline that loads memory straight into LDS.
#pragma once

#include "cklang/mainloop.hpp"

namespace cklang {

/// It loads ahead of what it computes, beyond K at last, and returns before these loads have landed
/// in LDS, which is the epilogue's or the next tile's from then on.
template <typename Pipeline, typename Acc, index_t step, typename ASource, typename BSource>
struct AsyncLoop
{
    template <typename... Args>
    CK_TILE_DEVICE static void run(const Args&... args)
    {
        Mainloop<Pipeline, Acc, step, ASource, BSource>::run(args...);
        // Whoever writes LDS next has a barrier first, which waves reach without loads under way.
        ck_tile::s_waitcnt<0>();
    }
};

} // namespace cklang
