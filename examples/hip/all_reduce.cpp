// SPDX-License-Identifier: MIT
// One rank of an all-reduce whose kernel loads from every GPU. Each rank shares its numbers and flags by a handle, which
// a file in a common folder takes to the others:
//
//     cklang hipcc --offload-arch=gfx942 examples/hip/all_reduce.cpp -o all_reduce
//     export CKLANG_GPUS='gfx942*4' FOLDER=$(mktemp -d)
//     torchrun --standalone --no-python --nproc-per-node 4 ./all_reduce $FOLDER
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <hip/hip_runtime.h>

#define CHECK(call)                                                                              \
    do                                                                                           \
    {                                                                                            \
        const hipError_t status = (call);                                                        \
        if(status != hipSuccess)                                                                 \
        {                                                                                        \
            std::fprintf(stderr, "rank %d: %s: %s\n", rank, #call, hipGetErrorString(status));   \
            std::exit(1);                                                                        \
        }                                                                                        \
    } while(0)

constexpr int kMostRanks = 16, kBlocks = 8, kThreads = 256, kCount = 100'000;

// What a rank shares. A flag is the number of the round that a block of another rank has reached.
struct Shared
{
    unsigned ready[kBlocks][kMostRanks];
    float numbers[kCount];
};
struct Peers
{
    Shared* of[kMostRanks];
};

__global__ void all_reduce(Peers peers, float* sum, int rank, int ranks, unsigned round)
{
    const int peer = threadIdx.x;
    if(peer < ranks)
    {
        unsigned* theirs = &peers.of[peer]->ready[blockIdx.x][rank];
        unsigned* mine   = &peers.of[rank]->ready[blockIdx.x][peer];
        __hip_atomic_store(theirs, round, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
        while(__hip_atomic_load(mine, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) < round)
            __builtin_amdgcn_s_sleep(1);
    }
    __syncthreads();
    for(int n = blockIdx.x * blockDim.x + threadIdx.x; n < kCount; n += gridDim.x * blockDim.x)
    {
        float total = peers.of[0]->numbers[n]; // in the same order on each rank: the same bits
        for(int other = 1; other < ranks; ++other)
            total += peers.of[other]->numbers[n];
        sum[n] = total;
    }
}

template <class T>
void put(const std::filesystem::path& path, const T* values, size_t count)
{
    const std::filesystem::path draft = path.string() + ".draft";
    std::ofstream(draft, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof(T) * count);
    std::filesystem::rename(draft, path);
}
template <class T>
void get(const std::filesystem::path& path, T* values, size_t count)
{
    while(!std::filesystem::exists(path))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(values), sizeof(T) * count);
}

int main(int count, char** words)
{
    const int rank = std::atoi(std::getenv("RANK")), ranks = std::atoi(std::getenv("WORLD_SIZE"));
    const std::filesystem::path folder = count > 1 ? words[1] : ".";
    const auto file = [&](const char* name, int of) { return folder / (name + std::to_string(of)); };
    CHECK(hipSetDevice(rank));

    Shared* shared;
    float* sum;
    CHECK(hipExtMallocWithFlags(reinterpret_cast<void**>(&shared), sizeof(Shared), hipDeviceMallocFinegrained));
    CHECK(hipMalloc(&sum, kCount * sizeof(float)));
    CHECK(hipMemset(shared, 0, sizeof(Shared)));
    std::vector<float> numbers(kCount, 0.5f + rank);
    if(std::filesystem::exists(file("numbers", rank)))
        get(file("numbers", rank), numbers.data(), kCount);
    CHECK(hipMemcpy(shared->numbers, numbers.data(), kCount * sizeof(float), hipMemcpyHostToDevice));

    hipIpcMemHandle_t handle;
    CHECK(hipIpcGetMemHandle(&handle, shared));
    put(file("handle", rank), &handle, 1);
    Peers peers;
    for(int peer = 0; peer < ranks; ++peer)
    {
        peers.of[peer] = shared;
        if(peer == rank)
            continue;
        get(file("handle", peer), &handle, 1);
        void* memory;
        CHECK(hipIpcOpenMemHandle(&memory, handle, hipIpcMemLazyEnablePeerAccess));
        peers.of[peer] = static_cast<Shared*>(memory);
    }

    all_reduce<<<kBlocks, kThreads>>>(peers, sum, rank, ranks, 1);
    CHECK(hipGetLastError());
    CHECK(hipMemcpy(numbers.data(), sum, kCount * sizeof(float), hipMemcpyDeviceToHost));
    put(file("sum", rank), numbers.data(), kCount);
    std::printf("rank %d of %d: the sum begins with %g\n", rank, ranks, numbers[0]);
}
