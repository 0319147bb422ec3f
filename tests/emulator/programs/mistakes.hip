// SPDX-License-Identifier: MIT
// Mistakes that checks find, and what looks like one: argv[1] says which.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>

constexpr int kCount = 256;

__global__ void reverse(int* out)
{
    __shared__ int s[kCount];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[kCount - 1 - threadIdx.x]; // no barrier between
}
__global__ void reverse_unwritten(int* out)
{
    __shared__ int s[kCount];
    if(threadIdx.x < 128)
        s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[kCount - 1 - threadIdx.x]; // half of it is not written
}
__global__ void reverse_beyond(int* out)
{
    __shared__ int s[kCount];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[kCount - 2 - threadIdx.x]; // the last thread reads s[-1]
}
__global__ void reverse_right(int* out)
{
    __shared__ int s[kCount];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[kCount - 1 - threadIdx.x];
}
__global__ void shared_volatile(int* out)
{
    __shared__ volatile int s[kCount];
    s[threadIdx.x] = threadIdx.x;
    out[threadIdx.x] = s[(threadIdx.x + 64) % kCount]; // no barrier between
}
__global__ void shared_volatile_right(int* out)
{
    __shared__ volatile int s[kCount];
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = s[(threadIdx.x + 64) % kCount];
}

/// Adds to 16 bits by comparing and swapping: the first load may be wrong.
__global__ void add_halves(unsigned short* sums)
{
    unsigned short* at = &sums[threadIdx.x % 5];
    unsigned short old = *at, expected;
    do
    {
        expected = old;
        old      = atomicCAS(at, expected, (unsigned short)(expected + 1));
    } while(old != expected);
}
__global__ void add_wide(unsigned long long* sum)
{
    unsigned long long old = *sum, expected;
    do
    {
        expected = old;
        old      = atomicCAS(sum, expected, expected + 1);
    } while(old != expected);
}
/// A load that races: what is swapped is something else.
__global__ void add_elsewhere(unsigned short* sums)
{
    const unsigned short seen = sums[threadIdx.x % 5];
    unsigned short* at = &sums[8 + seen % 5];
    atomicCAS(at, seen, (unsigned short)(seen + 1));
    sums[threadIdx.x % 5] = blockIdx.x + 1;
}

__global__ void private_array(int* out, const int* in)
{
    int own[64];
    for(int n = 1; n < 64; ++n)
        own[(n * in[0]) & 63] = n;
    out[threadIdx.x] = own[in[threadIdx.x] & 63]; // own[0] is not written
}
__global__ void private_array_right(int* out, const int* in)
{
    int own[64];
    for(int n = 0; n < 64; ++n)
        own[(n * in[0]) & 63] = n;
    out[threadIdx.x] = own[in[threadIdx.x] & 63];
}
__global__ void private_registers(int* out, const int* in)
{
    int window[4]; // in registers, unless the compiler keeps memory as it is written
    for(int n = 0; n < 3; ++n)
        window[n] = in[(threadIdx.x + n) % kCount];
    out[threadIdx.x] = window[0] + window[1] + window[2] + window[3];
}

__global__ void barrier_of_lanes(int* out)
{
    if(threadIdx.x % 32 < 16)
        __syncthreads(); // half of each wave
    out[threadIdx.x] = 1;
}
__global__ void barrier_of_waves(int* out)
{
    if(threadIdx.x < 128)
        __syncthreads(); // half of the waves
    out[threadIdx.x] = 1;
}
__global__ void barriers_of_all(int* out)
{
    for(int n = 0; n < 3; ++n)
        __syncthreads();
    out[threadIdx.x] = 1;
}

int main(int, char** words)
{
    const char* what = words[1];
    const auto is = [what](const char* word) { return std::strcmp(what, word) == 0; };
    int *out = nullptr, *in = nullptr, *pinned = nullptr, host[kCount];
    hipStream_t stream = nullptr;
    for(int n = 0; n < kCount; ++n)
        host[n] = n + 1;
    (void)hipMalloc(&out, sizeof host);
    (void)hipMalloc(&in, sizeof host);
    (void)hipHostMalloc(&pinned, sizeof host, 0);
    (void)hipMemset(out, 0, sizeof host);
    (void)hipMemcpy(in, host, sizeof host, hipMemcpyHostToDevice);
    const auto run = [&](const char* word, auto launch) {
        if(!is(word))
            return;
        launch();
        (void)hipDeviceSynchronize();
    };
    run("reverse", [&] { reverse<<<1, kCount>>>(out); });
    run("reverse_unwritten", [&] { reverse_unwritten<<<1, kCount>>>(out); });
    run("reverse_beyond", [&] { reverse_beyond<<<1, kCount>>>(out); });
    run("reverse_right", [&] { reverse_right<<<1, kCount>>>(out); });
    run("shared_volatile", [&] { shared_volatile<<<1, kCount>>>(out); });
    run("shared_volatile_right", [&] { shared_volatile_right<<<1, kCount>>>(out); });
    run("add_halves", [&] { add_halves<<<8, kCount>>>(reinterpret_cast<unsigned short*>(out)); });
    run("add_wide", [&] { add_wide<<<8, kCount>>>(reinterpret_cast<unsigned long long*>(out)); });
    run("add_elsewhere", [&] { add_elsewhere<<<8, kCount>>>(reinterpret_cast<unsigned short*>(out)); });
    run("private_array", [&] { private_array<<<1, kCount>>>(out, in); });
    run("private_array_right", [&] { private_array_right<<<1, kCount>>>(out, in); });
    run("private_registers", [&] { private_registers<<<1, kCount>>>(out, in); });
    run("barrier_of_lanes", [&] { barrier_of_lanes<<<1, kCount>>>(out); });
    run("barrier_of_waves", [&] { barrier_of_waves<<<1, kCount>>>(out); });
    run("barriers_of_all", [&] { barriers_of_all<<<1, kCount>>>(out); });
    if(is("stream"))
        (void)hipStreamCreate(&stream);
    if(is("freed twice"))
        (void)hipFree(in);
    if(is("to the host"))
        (void)hipMemcpy(in, host, sizeof host, hipMemcpyDeviceToHost);
    if(is("from the device"))
        (void)hipMemcpy(out, host, sizeof host, hipMemcpyDeviceToDevice);
    if(is("pinned")) // of the host and of the device
    {
        (void)hipMemcpy(pinned, in, sizeof host, hipMemcpyDeviceToDevice);
        (void)hipMemcpy(out, pinned, sizeof host, hipMemcpyHostToDevice);
    }
    (void)hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost);
    std::printf("%d\n", host[1]);
    (void)hipFree(in);
    (void)hipHostFree(pinned);
    if(!is("leak"))
        (void)hipFree(out);
}
