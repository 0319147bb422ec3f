// Made by cklang: CK Tile's layernorm2d of f16 to f16.
// Key: {"algorithm": {"repeats": 2, "threads": 256, "two_pass": false, "vector": 8}, "arch": "gfx942", "family": "ck_rows", "signature": {"dtype": "f16", "functions": "", "kernel": "layernorm2d", "result": "f16"}, "version": 3}

#if !defined(__HIP_DEVICE_COMPILE__)

// The host shim.
#include "cklang/describe_lines.hpp"

CK_LINES_HOST_SHIM(.threads = 256, .lines = 1, .part = 0, .longest = 0)

#else

// Round to nearest even, as everything here does; CK Tile truncates by default.
#define CK_TILE_FLOAT_TO_BFLOAT16_DEFAULT CK_TILE_FLOAT_TO_BFLOAT16_STANDARD
#include <ck_tile/core.hpp>
#include <ck_tile/ops/epilogue.hpp>
#include <ck_tile/ops/layernorm2d.hpp>

#include "cklang/lines_host.h"

namespace ct = ck_tile;

using X = ck_tile::half_t;
using Y = ck_tile::half_t;

using Shape = ct::Generic2dBlockShape<ct::sequence<1, 4096>,  // rows, elements
                                      ct::sequence<1, 256>, // threads
                                      ct::sequence<1, 8>>; // vector
using Store = ct::Default2DEpilogue<ct::Default2DEpilogueProblem<float, Y, false, true, false>>;
using Traits = ct::Layernorm2dFwdTraits<true,  // elements beyond the row are none
                                        false, // nothing else is stored
                                        true,  // fast division
                                        true,  // Welford
                                        false, // two passes
                                        ct::Layernorm2dXBiasEnum::NO_BIAS,
                                        ct::Layernorm2dFusedAddEnum::NO_ADD,
                                        ct::Layernorm2dFusedQuantEnum::NO_SWEEP>;
using Problem =
    ct::Layernorm2dFwdPipelineProblem<X, X, X, X, float, Y, X, X, float, float, Shape, Traits>;
using Kernel = ct::Layernorm2dFwd<ct::Layernorm2dFwdPipelineOnePass<Problem>, Store>;

// The kernel.
extern "C" __global__ __launch_bounds__(256) void
ck_ck_rows_layernorm2d_f16_f16_256x8x2(ck_lines_problem args)
{
    const void* x = args.tensors[0].data;
    constexpr int last = CK_LINES_AXES - 1;
    const auto rows    = static_cast<ct::index_t>(args.outer[last]);
    const auto length  = static_cast<ct::index_t>(args.inner[last]);
    constexpr int result = 3;
    Kernel::Kargs kargs{};
    kargs.p_x     = x;
    kargs.p_gamma = args.tensors[1].data;
    kargs.p_beta = args.tensors[2].data;
    kargs.p_y      = const_cast<void*>(args.tensors[result].data);
    kargs.epsilon  = __builtin_bit_cast(float, static_cast<int32_t>(args.step));
    kargs.m        = rows;
    kargs.n        = length;
    kargs.x_stride = static_cast<ct::index_t>(args.tensors[0].outer[last]);
    kargs.y_stride = static_cast<ct::index_t>(args.tensors[result].outer[last]);
    Kernel{}(kargs);
}

#endif

