// SPDX-License-Identifier: MIT
// Device functions beyond those that cklang's kernels call: `device_functions NAME IN OUT` applies one to the
// doubles in a file; without words it checks the others itself and prints what is wrong.
#include <hip/hip_complex.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

__device__ unsigned failures[4];
#define CHECK(condition)                                                                   \
    if(!(condition))                                                                       \
        atomicAdd(&failures[0], 1u), printf("FAILED at %d: %s\n", __LINE__, #condition);

__global__ void lanes()
{
    const int lane      = static_cast<int>(__lane_id());
    const uint64_t all  = warpSize == 64 ? ~0ull : 0xffffffffull;
    const uint64_t even = 0x5555555555555555ull & all;
    int same            = 0;
    CHECK(__popcll(__lanemask_lt()) == lane && __popcll(__lanemask_le()) == lane + 1)
    CHECK(__popcll(__lanemask_gt()) == warpSize - 1 - lane && (__lanemask_ge() & __lanemask_eq()))
    CHECK(__match_any(lane % 2) == (lane % 2 ? all & ~even : even))
    CHECK(__match_any_sync(all, 1.5 * (lane / 8)) == 0xffull << lane / 8 * 8)
    CHECK(__match_all(7ll, &same) == all && same)
    CHECK(__match_all(lane == 5, &same) == 0 && !same)
    CHECK(__reduce_add_sync(all, lane) == warpSize * (warpSize - 1) / 2)
    CHECK(__reduce_max_sync(all, lane ^ 3) == warpSize - 1)
    CHECK(__reduce_min_sync(0xf0ull, 100 - lane) == 93)
    CHECK(__reduce_and_sync(all, ~0u ^ (1u << lane % 32)) == 0)
    CHECK(__reduce_or_sync(0xffull, 1u << lane % 32) == 0xff)
    CHECK(__reduce_xor_sync(all, 1u) == 0)
    CHECK(__hip_ds_bpermute(4 * (lane ^ 1), lane) == (lane ^ 1))
    CHECK(__hip_ds_swizzle_N<0x041f>(lane) == (lane ^ 1))
    CHECK((__hip_move_dpp_N<0xb1, 0xf, 0xf, true>(lane)) == (lane ^ 1))
}

__global__ void integers(const int* table)
{
    CHECK(__sad(-5, 7, 1) == 13 && __sad(-2147483647 - 1, 2147483647, 0) == ~0u)
    CHECK(__usad(3, 10, 2) == 9 && __hadd(-3, 6) == 1 && __rhadd(-3, 6) == 2)
    CHECK(__uhadd(~0u, ~0u - 1) == ~0u - 1 && __urhadd(~0u, ~0u - 1) == ~0u)
    CHECK(__bitextract_u32(0xabcd1234, 8, 12) == 0xd12 && __bitextract_u32(0xabcd1234, 28, 12) == 0xa)
    CHECK(__bitextract_u32(5, 3, 0) == 0 && __bitextract_u64(0x123456789abcdef0, 36, 16) == 0x4567)
    CHECK(__bitinsert_u32(0xffffffff, 0x12, 8, 8) == 0xffff12ff)
    CHECK(__bitinsert_u64(0, 0xfff, 40, 8) == 0xff0000000000ull)
    CHECK(__lastbit_u32_u32(8) == 3 && __lastbit_u32_u64(1ull << 40) == 40)
    CHECK(__funnelshift_lc(0x80000000, 1, 1) == 3 && __funnelshift_lc(7, 1, 40) == 7)
    CHECK(__funnelshift_rc(7, 1, 32) == 1 && __funnelshift_rc(2, 1, 1) == 0x80000001)
    CHECK(__ldg(table + 2) == 30)
    CHECK(clock64() <= __clock())
}

__global__ void floats()
{
    CHECK(llrint(2.5) == 2 && llrintf(-3.5f) == -4 && llround(2.5) == 3 && llroundf(-2.5f) == -3)
    CHECK(nextafterf(1.0f, 2.0f) == 0x1.000002p0f && nextafter(0.0, -1.0) == -0x1p-1074)
    CHECK(nextafter(1.0, 0.0) == 0x1.fffffffffffffp-1 && nextafter(2.0f, 2.0f) == 2.0f)
    CHECK(scalbln(3.0, 4) == 48 && scalblnf(1.0f, 1000000) == __builtin_inff())
    CHECK(isnan(nan("")) && isnan(nanf("1")))
    CHECK(norm4d(1, 2, 2, 4) == 5 && norm4df(1, 2, 2, 4) == 5 && rnorm3d(1, 2, 2) == 1.0 / 3)
    const double wide[3] = {2, 3, 6};
    const float narrow[3] = {2, 3, 6};
    CHECK(norm(3, wide) > 7 - 1e-14 && norm(3, wide) < 7 + 1e-14 && normf(3, narrow) == 7)
    CHECK(rhypot(3, 4) == 0.2 && rhypotf(3, 4) == 0.2f && rnormf(3, narrow) == 1 / 7.0f)
    int quotient = 0;
    CHECK(remquo(17.0, 5.0, &quotient) == 2 && (quotient & 7) == 3)
    CHECK(remquof(-18.0f, 5.0f, &quotient) == 2 && quotient == -4)
    float s = 0, c = 0;
    sincospif(0.5f, &s, &c);
    CHECK(s == 1 && fabsf(c) < 1e-7f && powif(2.0f, -3) == 0.125f && fdividef(1, 4) == 0.25f)
}

__global__ void conversions()
{
    CHECK(__float2int_rn(2.5f) == 2 && __float2int_rz(-2.5f) == -2 && __float2int_ru(2.1f) == 3)
    CHECK(__float2int_rd(-2.1f) == -3 && __float2int_rn(3e9f) == 2147483647)
    CHECK(__float2uint_rz(-1.0f) == 0 && __float2uint_rn(4e9f) == 4000000000u)
    CHECK(__float2ll_rd(-1.5f) == -2 && __float2ull_rn(1e30f) == ~0ull)
    CHECK(__double2int_rn(-0.5) == 0 && __double2int_ru(1e-9) == 1 && __double2uint_rd(7.9) == 7)
    CHECK(__double2ll_rz(-1e18) == -1000000000000000000ll && __double2ll_rn(-1e19) == -9223372036854775807ll - 1)
    CHECK(__double2ull_rn(18446744073709551615.0) == ~0ull && __double2int_rn(__builtin_nan("")) == 0)
    CHECK(__int2float_rn(16777217) == 16777216.0f && __int2float_ru(16777217) == 16777218.0f)
    CHECK(__int2float_rz(-16777217) == -16777216.0f && __int2float_rd(-16777217) == -16777218.0f)
    CHECK(__uint2float_rd(~0u) == 4294967040.0f && __uint2float_ru(~0u) == 4294967296.0f)
    CHECK(__ll2float_rn(9007199791611905ll) == 9007200328482816.0f) // a tie, and one more
    CHECK(__ull2float_rz(~0ull) == 0x1.fffffep63f && __ull2float_rn(~0ull) == 0x1p64f)
    CHECK(__ll2double_rn(9007199254740993ll) == 9007199254740992.0)
    CHECK(__ll2double_ru(9007199254740993ll) == 9007199254740994.0)
    CHECK(__ll2double_rz(-9007199254740993ll) == -9007199254740992.0)
    CHECK(__ull2double_rd(~0ull) == 0x1.fffffffffffffp63 && __ull2double_ru(~0ull) == 0x1p64)
    CHECK(__ll2double_rz(9223372036854775807ll) == 0x1.fffffffffffffp62)
    CHECK(__double2float_rn(0.1) == 0.1f && __double2float_rd(0.1) == nextafterf(0.1f, 0))
    CHECK(__double2float_ru(0.1) == 0.1f && __double2float_rz(1e40) == 0x1.fffffep127f)
    CHECK(__int2double_rn(-7) == -7 && __uint2double_rn(~0u) == 4294967295.0)
}

namespace cg = cooperative_groups;

// 96 threads: a wave and a half, or three of 32 lanes.
__global__ void groups(unsigned* shared)
{
    const cg::thread_block block = cg::this_thread_block();
    const cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
    const unsigned rank = block.thread_rank(), in_tile = rank % 16;
    CHECK(block.size() == 96 && rank == threadIdx.x && block.group_index().x == blockIdx.x)
    CHECK(tile.size() == 16 && tile.thread_rank() == in_tile)
    CHECK(tile.meta_group_rank() == rank / 16 && tile.meta_group_size() == 6)
    unsigned sum = rank;
    for(unsigned step = 8; step != 0; step /= 2)
        sum += tile.shfl_xor(sum, step);
    CHECK(sum == 16 * (rank - in_tile) + 120 && tile.shfl(rank, 3) == rank - in_tile + 3)
    CHECK(tile.shfl_down(in_tile, 2) == (in_tile < 14 ? in_tile + 2 : in_tile))
    CHECK(tile.shfl_up(in_tile, 1) == (in_tile > 0 ? in_tile - 1 : 0))
    CHECK(tile.ballot(in_tile % 4 == 1) == 0x2222 && tile.any(in_tile == 9) && !tile.all(in_tile == 9))
    CHECK(tile.match_any(in_tile / 8) == 0xffull << in_tile / 8 * 8)
    const cg::thread_block_tile<4> part = cg::tiled_partition<4>(cg::tiled_partition<16>(block));
    CHECK(part.meta_group_rank() == in_tile / 4 && part.meta_group_size() == 4)
    const cg::thread_group four = cg::tiled_partition(block, 4);
    CHECK(four.size() == 4 && four.thread_rank() == rank % 4 && cg::group_size(four) == 4)
    if(in_tile % 2 == 1)
    {
        const cg::coalesced_group odd = cg::coalesced_threads();
        CHECK(odd.meta_group_rank() == 0 && odd.meta_group_size() == 1)
        CHECK(odd.thread_rank() == __lane_id() / 2 && odd.shfl(rank, 0) % warpSize == 1)
        CHECK(odd.ballot(in_tile % 4 == 1) & 1 && odd.any(in_tile == 1) && odd.all(in_tile != 0))
        CHECK(odd.shfl_down(rank, 1) == (odd.thread_rank() + 1 < odd.size() ? rank + 2 : rank))
    }
    const cg::grid_group grid = cg::this_grid();
    CHECK(grid.size() == 96 * gridDim.x && grid.thread_rank() == 96 * blockIdx.x + rank)
    for(unsigned round = 1; round <= 3; ++round)
    {
        if(rank == 0)
            atomicAdd(shared, 1u);
        grid.sync();
        CHECK(__hip_atomic_load(shared, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == round * gridDim.x)
        cg::sync(grid);
    }
}

__global__ void complex_numbers()
{
    const hipFloatComplex p = make_hipFloatComplex(3, 4), q = make_hipComplex(1, -2);
    const hipFloatComplex product = hipCmulf(p, q), ratio = hipCdivf(product, q);
    CHECK(product.x == 11 && product.y == -2 && ratio.x == 3 && ratio.y == 4)
    CHECK(hipCabsf(p) == 5 && hipCsqabsf(q) == 5 && hipConjf(q).y == 2 && hipCrealf(p) == 3)
    const hipDoubleComplex wide = hipCfma(hipComplexFloatToDouble(p), make_hipDoubleComplex(0, 1), {1, 1});
    CHECK(wide.x == -3 && wide.y == 4 && hipCsub(wide, hipCadd(wide, wide)).x == 3 && hipCimag(wide) == 4)
}

template <class Function>
__global__ void apply(const double* from, double* to, int count, Function function)
{
    for(int n = threadIdx.x + blockIdx.x * blockDim.x; n < count; n += gridDim.x * blockDim.x)
        to[n] = function(from[n]);
}
template <class Function>
int run(const char* in, const char* out, Function function)
{
    std::vector<double> values(1 << 16);
    std::FILE* file = std::fopen(in, "rb");
    values.resize(std::fread(values.data(), 8, values.size(), file));
    std::fclose(file);
    double *from, *to;
    (void)hipMalloc(&from, values.size() * 8);
    (void)hipMalloc(&to, values.size() * 8);
    (void)hipMemcpy(from, values.data(), values.size() * 8, hipMemcpyHostToDevice);
    apply<<<8, 64>>>(from, to, static_cast<int>(values.size()), function);
    if(hipMemcpy(values.data(), to, values.size() * 8, hipMemcpyDeviceToHost) != hipSuccess)
        return 3;
    file = std::fopen(out, "wb");
    std::fwrite(values.data(), 8, values.size(), file);
    return std::fclose(file);
}
#define APPLY(name, ...)              \
    if(std::strcmp(words[1], #name) == 0) \
        return run(words[2], words[3], [] __device__(double x) -> double { return __VA_ARGS__; });

int main(int count, char** words)
{
    if(count > 1)
    {
        APPLY(erfinv, erfinv(x))
        APPLY(erfcinv, erfcinv(x))
        APPLY(erfcx, erfcx(x))
        APPLY(normcdf, normcdf(x))
        APPLY(normcdfinv, normcdfinv(x))
        APPLY(j0, j0(x))
        APPLY(j1, j1(x))
        APPLY(jn, jn(5, x))
        APPLY(y0, y0(x))
        APPLY(y1, y1(x))
        APPLY(yn, yn(3, x))
        APPLY(cyl_bessel_i0, cyl_bessel_i0(x))
        APPLY(cyl_bessel_i1, cyl_bessel_i1(x))
        return 9;
    }
    int* table;
    const int values[4] = {10, 20, 30, 40};
    (void)hipMalloc(&table, sizeof values);
    (void)hipMemcpy(table, values, sizeof values, hipMemcpyHostToDevice);
    lanes<<<1, 64>>>();
    integers<<<1, 1>>>(table);
    floats<<<1, 1>>>();
    conversions<<<1, 1>>>();
    complex_numbers<<<1, 1>>>();
    unsigned* shared;
    (void)hipMalloc(&shared, sizeof *shared);
    (void)hipMemset(shared, 0, sizeof *shared);
    void* arguments[] = {&shared};
    if(hipLaunchCooperativeKernel(groups, 5, 96, arguments, 0, nullptr) != hipSuccess)
        return 4;
    unsigned failed[4] = {};
    (void)hipMemcpyFromSymbol(failed, HIP_SYMBOL(failures), sizeof failed);
    std::printf("%u failed\n", failed[0]);
    return failed[0] != 0;
}
