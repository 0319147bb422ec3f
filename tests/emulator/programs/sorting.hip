// SPDX-License-Identifier: MIT
// Radix sort of keys with values: ballots count digits in a wave, LDS in a workgroup, three kernels a digit.
#include <hip/hip_runtime.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

constexpr int kDigits = 16, kBits = 4, kThreads = 256, kItems = 5000;
constexpr int kBlocks = (kItems + kThreads - 1) / kThreads;

__global__ void count(const unsigned* keys, int shift, unsigned* counts)
{
    __shared__ unsigned histogram[kDigits];
    if(threadIdx.x < kDigits)
        histogram[threadIdx.x] = 0;
    __syncthreads();
    const int n = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
    if(n < kItems)
        atomicAdd(&histogram[keys[n] >> shift & (kDigits - 1)], 1u);
    __syncthreads();
    if(threadIdx.x < kDigits)
        counts[threadIdx.x * kBlocks + blockIdx.x] = histogram[threadIdx.x];
}

__global__ void scan(unsigned* counts)
{
    extern __shared__ unsigned values[];
    constexpr int all = kDigits * kBlocks;
    const int n       = static_cast<int>(threadIdx.x);
    values[n]         = n < all ? counts[n] : 0;
    for(int distance = 1; distance < static_cast<int>(blockDim.x); distance *= 2)
    {
        __syncthreads();
        const unsigned before = n >= distance ? values[n - distance] : 0;
        __syncthreads();
        values[n] += before;
    }
    __syncthreads();
    if(n < all)
        counts[n] = n > 0 ? values[n - 1] : 0;
}

__global__ void scatter(const unsigned* keys, const int* items, int shift, const unsigned* offsets, unsigned* sorted_keys, int* sorted_items)
{
    __shared__ unsigned in_wave[kThreads / 32 + 1][kDigits];
    const int n = static_cast<int>(blockIdx.x * kThreads + threadIdx.x), wave = static_cast<int>(threadIdx.x) / warpSize;
    const int lane       = static_cast<int>(threadIdx.x) % warpSize;
    const bool active    = n < kItems;
    const unsigned digit = active ? keys[n] >> shift & (kDigits - 1) : 0;
    unsigned rank        = 0;
    for(unsigned d = 0; d < kDigits; ++d)
    {
        const unsigned long long same = __ballot(active && digit == d);
        if(digit == d)
            rank = static_cast<unsigned>(__popcll(same & ((1ull << lane) - 1)));
        if(lane == 0)
            in_wave[wave][d] = static_cast<unsigned>(__popcll(same));
    }
    __syncthreads();
    if(!active)
        return;
    for(int before = 0; before < wave; ++before)
        rank += in_wave[before][digit];
    const unsigned place = offsets[digit * kBlocks + blockIdx.x] + rank;
    sorted_keys[place]   = keys[n];
    sorted_items[place]  = items[n];
}

int main()
{
    std::vector<unsigned> keys(kItems);
    std::vector<int> items(kItems), order(kItems);
    std::mt19937 generator(7);
    for(unsigned& key : keys)
        key = generator() % 3 == 0 ? generator() & 0xff : generator();
    std::iota(items.begin(), items.end(), 0);
    order = items;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return keys[a] < keys[b]; });
    unsigned *key[2], *counts;
    int* item[2];
    int failed = hipMalloc(&counts, kDigits * kBlocks * sizeof *counts) != hipSuccess;
    for(int side = 0; side < 2; ++side)
    {
        failed += hipMalloc(&key[side], kItems * sizeof(unsigned)) != hipSuccess;
        failed += hipMalloc(&item[side], kItems * sizeof(int)) != hipSuccess;
    }
    failed += hipMemcpy(key[0], keys.data(), kItems * sizeof(unsigned), hipMemcpyHostToDevice) != hipSuccess;
    failed += hipMemcpy(item[0], items.data(), kItems * sizeof(int), hipMemcpyHostToDevice) != hipSuccess;
    for(int shift = 0, side = 0; shift < 32; shift += kBits, side ^= 1)
    {
        count<<<kBlocks, kThreads>>>(key[side], shift, counts);
        scan<<<1, 512, 512 * sizeof(unsigned)>>>(counts);
        scatter<<<kBlocks, kThreads>>>(key[side], item[side], shift, counts, key[side ^ 1], item[side ^ 1]);
    }
    failed += hipMemcpy(items.data(), item[0], kItems * sizeof(int), hipMemcpyDeviceToHost) != hipSuccess;
    printf("%d failed, %s\n", failed, items == order ? "sorted" : "not sorted");
    for(int side = 0; side < 2; ++side)
        failed += hipFree(key[side]) + hipFree(item[side]);
    return failed + hipFree(counts);
}
