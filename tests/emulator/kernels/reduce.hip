// SPDX-License-Identifier: MIT
//
// CK Tile's reductions of a tensor x[n, h, w, c]: over h and w, where a wave adds up by itself, and
// over all but n, where the waves of a block share their results through LDS.
#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/reduce.hpp"

using Half = ck_tile::half_t;

template <class Op, class Warps, class Block, class Warp, class Vector>
using Reduce = ck_tile::Reduce<ck_tile::
                                   Reduce2dProblem<Half,
                                                   float,
                                                   Half,
                                                   ck_tile::Reduce2dShape<Warps, Block, Warp, Vector>,
                                                   Op>>;

template <class Kernel, class Kept, class Gone>
__device__ void run(const Half* x, Half* y, int n, int h, int w, int c, Kept kept, Gone gone)
{
    Kernel{}(x,
             y,
             ck_tile::make_tuple(n, h, w, c),
             ck_tile::make_tuple(h * w * c, w * c, c, 1),
             kept,
             gone);
}

extern "C" __global__ __launch_bounds__(256) void
sum_of_images(const Half* x, Half* y, int n, int h, int w, int c)
{
    using Kernel = Reduce<ck_tile::ReduceOp::Add,
                          ck_tile::sequence<4, 1>,
                          ck_tile::sequence<128, 128>,
                          ck_tile::sequence<32, 128>,
                          ck_tile::sequence<8, 8>>;
    run<Kernel>(x, y, n, h, w, c, ck_tile::sequence<0, 3>{}, ck_tile::sequence<1, 2>{});
}

extern "C" __global__ __launch_bounds__(256) void
largest(const Half* x, Half* y, int n, int h, int w, int c)
{
    using Kernel = Reduce<ck_tile::ReduceOp::Max,
                          ck_tile::sequence<2, 2>,
                          ck_tile::sequence<2, 1024>,
                          ck_tile::sequence<1, 512>,
                          ck_tile::sequence<1, 8>>;
    run<Kernel>(x, y, n, h, w, c, ck_tile::sequence<0>{}, ck_tile::sequence<1, 2, 3>{});
}
