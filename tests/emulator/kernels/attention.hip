// SPDX-License-Identifier: MIT
//
// CK Tile's FMHA forward kernel in batch mode, heads of 128, as its own generator would name it.
// ELEMENT is the type of Q, K, V and O; MASKED chooses the instance that can mask.
#include <hip/hip_runtime.h>

#include "ck_tile/core.hpp"
#include "ck_tile/ops/epilogue.hpp"
#include "ck_tile/ops/fmha.hpp"

using Tile     = ck_tile::sequence<128, 128, 32, 128, 32, 128>;
using Warps    = ck_tile::sequence<4, 1, 1>;
using WarpTile = ck_tile::sequence<32, 32, 16>;
using Shape    = ck_tile::TileFmhaShape<Tile, Warps, WarpTile, Warps, WarpTile, true>;
using Traits   = ck_tile::TileFmhaTraits<true,  // pad Q's length
                                       false,
                                       true, // pad both head dimensions
                                       true,
                                       false,
                                       ck_tile::BlockAttentionBiasEnum::NO_BIAS,
                                       false,
                                       true, // store the log of the sum
                                       false,
                                       false>;
using Variant  = ck_tile::ComposedAttention<0, true>;
using Mask     = ck_tile::GenericAttentionMask<MASKED, false>;
using Problem  = ck_tile::BlockFmhaPipelineProblem<ELEMENT,
                                                  ELEMENT,
                                                  ELEMENT,
                                                  float,
                                                  float,
                                                  ELEMENT,
                                                  unsigned char,
                                                  float,
                                                  ELEMENT,
                                                  float,
                                                  ELEMENT,
                                                  Shape,
                                                  false,
                                                  Variant,
                                                  Mask,
                                                  false,
                                                  Traits>;
using Pipeline = ck_tile::BlockFmhaPipelineQRKSVSAsync<Problem>;
using Epilogue = ck_tile::Default2DEpilogue<
    ck_tile::Default2DEpilogueProblem<float, ELEMENT, true, true>>;
using Kernel = ck_tile::FmhaFwdKernel<Pipeline, Epilogue>;

#if defined(__HIP_DEVICE_COMPILE__)
extern "C" __global__ __launch_bounds__(Kernel::kBlockSize, Kernel::kBlockPerCu) void
attention(Kernel::Kargs kargs)
{
    Kernel{}(kargs);
}
#else
/// Q, K, V, O[batch, heads, length, 128] in that order in memory, and the logs of the sums.
struct Sizes
{
    const void *q, *k, *v;
    void *o, *log_sums;
    int batch, heads, length, causal;
    float scale;
};

/// Writes the kernel's argument bytes and its grid, and returns how many bytes; the block is next
/// to the grid.
extern "C" __attribute__((visibility("default"))) int
describe(const Sizes* s, unsigned char* bytes, unsigned int* shape)
{
    const int depth = 128, head = s->length * depth, batch = s->heads * head;
    const int sums       = s->heads * s->length;
    const auto kargs     = Kernel::MakeKargs(s->q,
                                         s->k,
                                         s->v,
                                         nullptr,
                                         nullptr,
                                         s->log_sums,
                                         s->o,
                                         s->length,
                                         s->length,
                                         depth,
                                         depth,
                                         s->heads,
                                         1,
                                         s->scale,
                                         1.f,
                                         1.f,
                                         0.f,
                                         depth,
                                         depth,
                                         depth,
                                         0,
                                         0,
                                         depth,
                                         head,
                                         head,
                                         head,
                                         0,
                                         0,
                                         s->length,
                                         head,
                                         batch,
                                         batch,
                                         batch,
                                         0,
                                         0,
                                         sums,
                                         batch,
                                         -1,
                                         s->causal ? 0 : -1,
                                         s->causal ? 1 : 0,
                                         0.f,
                                         false,
                                         std::tuple<unsigned long, unsigned long>{0, 0});
    const dim3 grid      = Kernel::GridSize(s->batch, s->heads, s->length, depth);
    const unsigned all[] = {grid.x, grid.y, grid.z, Kernel::kBlockSize, 1, 1};
    __builtin_memcpy(bytes, &kargs, sizeof kargs);
    __builtin_memcpy(shape, all, sizeof all);
    return sizeof kargs;
}
#endif
