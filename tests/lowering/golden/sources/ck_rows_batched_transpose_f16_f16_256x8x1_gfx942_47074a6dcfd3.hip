// Made by cklang: CK Tile's batched_transpose of f16 to f16.
// Key: {"algorithm": {"repeats": 1, "threads": 256, "two_pass": false, "vector": 8}, "arch": "gfx942", "family": "ck_rows", "signature": {"dtype": "f16", "functions": "", "kernel": "batched_transpose", "result": "f16"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

namespace {

/// The extents of the last axes, and how many matrices there are.
struct Matrices
{
    int64_t height, width, batch;

    explicit Matrices(const ck_lines_problem& p)
        : height(p.inner[CK_LINES_AXES - 1]),
          width(p.outer[CK_LINES_AXES - 1]),
          batch(p.outer[CK_LINES_AXES - 2])
    {
    }
};

} // namespace

extern "C" __attribute__((visibility("default"))) void
ck_lines_describe(const ck_lines_problem* problem, ck_gemm_launch* launch)
{
    // Lines are counted for what is refused; the grid is that of CK Tile's kernel.
    cklang::DescribeLines({256, 1, 0, 0}, *problem).run(*launch);
    const Matrices all(*problem);
    const auto tiles = [](int64_t extent) { return (extent - 1) / 64 + 1; };
    if(!launch->refusal && (tiles(all.width) > 65535 || all.batch > 65535))
        launch->refusal = "there are more tiles or matrices than a grid has";
    if(launch->refusal)
        return;
    launch->grid[0] = static_cast<uint32_t>(tiles(all.height));
    launch->grid[1] = static_cast<uint32_t>(tiles(all.width));
    launch->grid[2] = static_cast<uint32_t>(all.batch);
}

extern "C" __attribute__((visibility("default"))) uint32_t ck_lines_host_version()
{
    return CK_LINES_HOST_VERSION;
}

#else

// Round to nearest even, as everything here does; CK Tile truncates by default.
#define CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT CK_TILE_FLOAT_TO_BFLOAT16_STANDARD
#include <ck_tile/core.hpp>
#include <ck_tile/ops/batched_transpose.hpp>

#include "cklang/lines_host.h"

namespace ct = ck_tile;

using X = ck_tile::half_t;
using Y = ck_tile::half_t;

using Problem = ct::BatchedTransposeProblem<X,
                                            ct::sequence<64, 64>, // tile
                                            ct::sequence<1, 4>, // waves
                                            false,
                                            false>;
using Kernel = ct::BatchedTransposeKernel<ct::BatchedTransposePipeline<Problem>>;

// The kernel.
extern "C" __global__ __launch_bounds__(256) void
ck_ck_rows_batched_transpose_f16_f16_256x8x1(ck_lines_problem args)
{
    const void* x = args.tensors[0].data;
    constexpr int last = CK_LINES_AXES - 1;
    const auto rows    = static_cast<ct::index_t>(args.outer[last]);
    const auto length  = static_cast<ct::index_t>(args.inner[last]);
    Kernel::Kargs kargs{};
    kargs.p_input  = x;
    kargs.p_output = const_cast<void*>(args.tensors[1].data);
    kargs.batch    = static_cast<ct::index_t>(args.outer[last - 1]);
    kargs.height   = length;
    kargs.width    = rows;
    Kernel{}(kargs);
}

#endif

