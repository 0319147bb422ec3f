// Made by cklang: CK Tile's reduce_max of f16 to f32.
// Key: {"algorithm": {"repeats": 1, "threads": 256, "two_pass": false, "vector": 8}, "arch": "gfx942", "family": "ck_rows", "signature": {"dtype": "f16", "functions": "", "kernel": "reduce_max", "result": "f32"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(.threads = 256, .lines = 1, .part = 0, .longest = 0)

#else

// Round to nearest even, as everything here does; CK Tile truncates by default.
#define CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT CK_TILE_FLOAT_TO_BFLOAT16_STANDARD
#include <ck_tile/core.hpp>
#include <ck_tile/ops/reduce.hpp>

#include "cklang/lines_host.h"

namespace ct = ck_tile;

using X = ck_tile::half_t;
using Y = float;

using Shape = ct::Reduce2dShape<ct::sequence<1, 4>,     // waves
                                ct::sequence<1, 2048>,  // rows, elements
                                ct::sequence<1, 512>,  // of a wave
                                ct::sequence<1, 8>>;    // of a thread
// CK Tile's own maximum loses nan, and that of a row of -inf is a finite number.
struct Operation
{
    template <typename T>
    CK_TILE_HOST_DEVICE static constexpr T GetIdentityValue()
    {
        return -ct::numeric<T>::infinity();
    }

    template <typename T>
    CK_TILE_HOST_DEVICE constexpr T operator()(const T& one, const T other) const
    {
        return one > other || one != one ? one : other;
    }
};
using Problem = ct::Reduce2dProblem<X, float, Y, Shape, Operation>;
using Kernel  = ct::Reduce<Problem>;

// The kernel.
extern "C" __global__ __launch_bounds__(256) void
ck_ck_rows_reduce_max_f16_f32_256x8x1(ck_lines_problem args)
{
    const void* x = args.tensors[0].data;
    constexpr int last = CK_LINES_AXES - 1;
    const auto rows    = static_cast<ct::index_t>(args.outer[last]);
    const auto length  = static_cast<ct::index_t>(args.inner[last]);
    const auto stride = static_cast<ct::index_t>(args.tensors[0].outer[last]);
    Kernel{}(static_cast<const X*>(x),
             static_cast<Y*>(const_cast<void*>(args.tensors[1].data)),
             ct::make_tuple(rows, length),
             ct::make_tuple(stride, ct::number<1>{}),
             ct::sequence<0>{},
             ct::sequence<1>{});
}

#endif

