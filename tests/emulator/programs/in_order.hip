// SPDX-License-Identifier: MIT
// Streams, events, a graph, memory of every kind and printf: each with the order that HIP promises.
#include <cstdio>
#include <vector>

#include <hip/hip_runtime.h>

static int failed = 0;
#define CHECK(condition)                                         \
    do                                                           \
        if(!(condition))                                         \
        {                                                        \
            std::printf("FAILED at %d: %s\n", __LINE__, #condition); \
            ++failed;                                            \
        }                                                        \
    while(0)
#define CALL(call) CHECK((call) == hipSuccess)

constexpr int count = 1 << 14, threads = 256;

__global__ void add(int* values, int what)
{
    values[blockIdx.x * blockDim.x + threadIdx.x] += what;
}

__global__ void reverse(int* values)
{
    extern __shared__ int shared[];
    shared[threadIdx.x] = values[threadIdx.x];
    __syncthreads();
    values[threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

__global__ void say(float what)
{
    if(threadIdx.x == 3)
        printf("%.1f from thread %d\n", what, static_cast<int>(threadIdx.x));
}

static bool all(const int* device, int expected)
{
    std::vector<int> host(count);
    CALL(hipMemcpy(host.data(), device, count * sizeof(int), hipMemcpyDeviceToHost));
    for(const int value : host)
        if(value != expected)
            return false;
    return true;
}

int main()
{
    hipStream_t first, second;
    hipEvent_t begin, end;
    CALL(hipStreamCreate(&first));
    CALL(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    CALL(hipEventCreate(&begin));
    CALL(hipEventCreate(&end));
    int* values = nullptr;
    CALL(hipMallocAsync(reinterpret_cast<void**>(&values), count * sizeof(int), first));
    CALL(hipMemsetAsync(values, 0, count * sizeof(int), first));
    CALL(hipEventRecord(begin, first));
    for(int n = 0; n < 10; ++n)
        add<<<count / threads, threads, 0, first>>>(values, 1);
    CALL(hipEventRecord(end, first));
    CALL(hipStreamWaitEvent(second, end, 0));
    add<<<count / threads, threads, 0, second>>>(values, 100);
    CALL(hipStreamSynchronize(second));
    float milliseconds = 0;
    CALL(hipEventElapsedTime(&milliseconds, begin, end));
    CHECK(milliseconds > 0);
    CHECK(all(values, 110));

    hipGraph_t graph;
    hipGraphExec_t launches;
    CALL(hipStreamBeginCapture(first, hipStreamCaptureModeGlobal));
    for(int n = 0; n < 3; ++n)
        add<<<count / threads, threads, 0, first>>>(values, 2);
    CALL(hipStreamEndCapture(first, &graph));
    CALL(hipGraphInstantiate(&launches, graph, nullptr, nullptr, 0));
    CALL(hipGraphLaunch(launches, first));
    CALL(hipGraphLaunch(launches, first));
    CALL(hipStreamSynchronize(first));
    CHECK(all(values, 122));
    CALL(hipGraphExecDestroy(launches));
    CALL(hipGraphDestroy(graph));

    int *managed = nullptr, *host = nullptr;
    CALL(hipMallocManaged(reinterpret_cast<void**>(&managed), threads * sizeof(int)));
    CALL(hipHostMalloc(reinterpret_cast<void**>(&host), threads * sizeof(int)));
    for(int n = 0; n < threads; ++n)
        managed[n] = host[n] = n;
    reverse<<<1, threads, threads * sizeof(int)>>>(managed);
    reverse<<<1, threads, threads * sizeof(int)>>>(host);
    CALL(hipDeviceSynchronize());
    CHECK(managed[0] == threads - 1 && host[threads - 1] == 0);
    say<<<1, 64>>>(1.5f);
    CALL(hipDeviceSynchronize());
    CALL(hipFree(managed));
    CALL(hipHostFree(host));
    CALL(hipFreeAsync(values, first));
    CALL(hipStreamSynchronize(first));
    CALL(hipEventDestroy(begin));
    CALL(hipEventDestroy(end));
    CALL(hipStreamDestroy(first));
    CALL(hipStreamDestroy(second));
    std::printf("%d failed\n", failed);
}
