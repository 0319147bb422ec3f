// SPDX-License-Identifier: MIT
// A rank of AITER's custom all-reduce, as its class launches it: `aiter_ranks FOLDER COUNT`. The class asks torch for
// nothing but addresses of tensors, which a class of that name has here.
#include <cstdint>
#include <tuple>

namespace torch
{
struct Tensor
{
    void* address;
    void* data_ptr() const { return address; }
};
} // namespace torch

#define CUDA_SUCCESS hipSuccess // as torch translates it
#include "custom_all_reduce.cuh"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

static std::string folder;

static std::string path_of(const char* name, int rank) { return folder + "/" + name + std::to_string(rank); }
template <class T>
static void put(const char* name, int rank, const T* values, size_t count)
{
    const std::string path = path_of(name, rank), draft = path + ".draft";
    std::ofstream(draft, std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof(T) * count);
    rename(draft.c_str(), path.c_str());
}
template <class T>
static std::vector<T> get(const char* name, int rank, size_t count)
{
    std::vector<T> values(count);
    while(access(path_of(name, rank).c_str(), R_OK) != 0)
        usleep(1000);
    std::ifstream(path_of(name, rank), std::ios::binary)
        .read(reinterpret_cast<char*>(values.data()), sizeof(T) * count);
    return values;
}

int main(int, char** words)
{
    folder = words[1];
    const int count = atoi(words[2]), rank = atoi(getenv("RANK")), ranks = atoi(getenv("WORLD_SIZE"));
    HIP_CALL(hipSetDevice(rank));
    const size_t bytes = sizeof(half) * count;
    aiter::Signal* signals; // and behind them room for the second stage
    half *input, *output;
    void* data;
    HIP_CALL(hipExtMallocWithFlags(reinterpret_cast<void**>(&signals), sizeof(aiter::Signal) + bytes, hipDeviceMallocUncached));
    HIP_CALL(hipMemset(signals, 0, sizeof(aiter::Signal) + bytes));
    HIP_CALL(hipMalloc(&input, bytes));
    HIP_CALL(hipMalloc(&output, bytes));
    HIP_CALL(hipMalloc(&data, 1 << 16));
    hipIpcMemHandle_t mine[2];
    HIP_CALL(hipIpcGetMemHandle(&mine[0], signals));
    HIP_CALL(hipIpcGetMemHandle(&mine[1], input));
    put("handle", rank, mine, 2);
    std::vector<hipIpcMemHandle_t> signal_handles(ranks), input_handles(ranks);
    std::vector<torch::Tensor> tensors(ranks);
    for(int peer = 0; peer < ranks; ++peer)
    {
        const auto theirs    = get<hipIpcMemHandle_t>("handle", peer, 2);
        signal_handles[peer] = theirs[0];
        input_handles[peer]  = theirs[1];
        tensors[peer]        = {&input_handles[peer]};
    }
    const std::vector<int64_t> offsets(ranks);
    {
        aiter::CustomAllreduce all_reduce(signals, data, 1 << 16, signal_handles.data(), offsets, rank);
        all_reduce.register_buffer(tensors, offsets, input);
        for(int round = 0; round < 2; ++round)
        {
            const auto numbers = get<half>(round == 0 ? "first" : "second", rank, count);
            HIP_CALL(hipMemcpy(input, numbers.data(), bytes, hipMemcpyHostToDevice));
            all_reduce.allreduce<half>(nullptr, input, output, count);
            HIP_CALL(hipDeviceSynchronize());
        }
        put("closing", rank, &rank, 1);
        for(int peer = 0; peer < ranks; ++peer)
            (void)get<int>("closing", peer, 1);
    }
    std::vector<half> sums(count);
    HIP_CALL(hipMemcpy(sums.data(), output, bytes, hipMemcpyDeviceToHost));
    put("sum", rank, sums.data(), count);
    for(void* memory : {static_cast<void*>(signals), static_cast<void*>(input), static_cast<void*>(output), data})
        HIP_CALL(hipFree(memory));
}
