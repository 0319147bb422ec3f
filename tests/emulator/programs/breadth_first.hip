// SPDX-License-Identifier: MIT
// Distances in a graph, level by level: compare-and-swap claims nodes, an atomic counter makes the next frontier.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <queue>
#include <random>
#include <utility>
#include <vector>

constexpr int kNodes = 3000, kUnreached = -1;

__global__ void expand(const int* begins, const int* targets, const int* frontier, int size, int* next, int* next_size, int* distances, int level)
{
    const int stride = static_cast<int>(gridDim.x * blockDim.x);
    for(int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); n < size; n += stride)
    {
        const int node = frontier[n];
        for(int edge = begins[node]; edge < begins[node + 1]; ++edge)
        {
            const int target = targets[edge];
            if(atomicCAS(&distances[target], kUnreached, level) == kUnreached)
                next[atomicAdd(next_size, 1)] = target;
        }
    }
}

int main()
{
    std::mt19937 generator(3);
    std::vector<std::vector<int>> edges(kNodes);
    for(int n = 0; n < kNodes - 100; ++n)  // the last hundred cannot be reached
        for(int k = 0; k < 3; ++k)
            edges[n].push_back(static_cast<int>(generator() % (kNodes - 100)));
    std::vector<int> begins{0}, targets, expected(kNodes, kUnreached);
    for(const auto& list : edges)
    {
        targets.insert(targets.end(), list.begin(), list.end());
        begins.push_back(static_cast<int>(targets.size()));
    }
    std::queue<int> waiting;
    waiting.push(0);
    expected[0] = 0;
    for(; !waiting.empty(); waiting.pop())
        for(const int target : edges[waiting.front()])
            if(expected[target] == kUnreached)
            {
                expected[target] = expected[waiting.front()] + 1;
                waiting.push(target);
            }

    int *device_begins, *device_targets, *frontier, *next, *distances, *sizes;
    int failed = hipMalloc(&device_begins, begins.size() * 4) + hipMalloc(&device_targets, targets.size() * 4);
    failed += hipMalloc(&frontier, kNodes * 4) + hipMalloc(&next, kNodes * 4) + hipMallocManaged(&distances, kNodes * 4) + hipMallocManaged(&sizes, 8);
    failed += hipMemcpy(device_begins, begins.data(), begins.size() * 4, hipMemcpyHostToDevice);
    failed += hipMemcpy(device_targets, targets.data(), targets.size() * 4, hipMemcpyHostToDevice);
    std::fill(distances, distances + kNodes, kUnreached);
    distances[0] = 0;
    failed += hipMemset(frontier, 0, 4);
    for(int level = 1, size = 1; size > 0; ++level)
    {
        *sizes = 0;
        expand<<<4, 128>>>(device_begins, device_targets, frontier, size, next, sizes, distances, level);
        failed += hipDeviceSynchronize();
        size = *sizes;
        std::swap(frontier, next);
    }
    int wrong = 0;
    for(int n = 0; n < kNodes; ++n)
        wrong += distances[n] != expected[n];
    printf("%d failed, %d wrong\n", failed, wrong);
    for(int* memory : {device_begins, device_targets, frontier, next, distances, sizes})
        failed += hipFree(memory);
    return failed + wrong;
}
