// SPDX-License-Identifier: MIT
// Two equal devices: a kernel of one reads the memory of the other, copies go between them, events order them.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <numeric>
#include <vector>

static int failed = 0;
#define CHECK(condition) \
    if(!(condition))     \
        ++failed, printf("FAILED at %d: %s\n", __LINE__, #condition);
#define OK(call) CHECK((call) == hipSuccess)

constexpr int kCount = 1000;

__global__ void add(const float* mine, const float* theirs, float* sum)
{
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if(n < kCount)
        sum[n] = mine[n] + theirs[n];
}

int main()
{
    int devices = 0, can = 0;
    OK(hipGetDeviceCount(&devices))
    CHECK(devices == 2)
    float *memory[2], *sum;
    hipStream_t stream[2];
    hipEvent_t copied;
    std::vector<float> values(kCount), result(kCount);
    std::iota(values.begin(), values.end(), 1.0f);
    for(int device = 0; device < 2; ++device)
    {
        OK(hipSetDevice(device))
        OK(hipStreamCreate(&stream[device]))
        OK(hipMalloc(&memory[device], kCount * sizeof(float)))
        OK(hipMemsetAsync(memory[device], 0, kCount * sizeof(float), stream[device]))
        OK(hipStreamSynchronize(stream[device]))
        OK(hipDeviceCanAccessPeer(&can, device, 1 - device))
        CHECK(can == 1)
        OK(hipDeviceEnablePeerAccess(1 - device, 0))
        CHECK(hipDeviceEnablePeerAccess(1 - device, 0) == hipErrorPeerAccessAlreadyEnabled)
        hipDeviceProp_t properties;
        OK(hipGetDeviceProperties(&properties, device))
        CHECK(properties.gcnArchName[0] == 'g')
    }
    int access = 0;
    OK(hipDeviceGetP2PAttribute(&access, hipDevP2PAttrAccessSupported, 0, 1))
    CHECK(access == 1)
    OK(hipSetDevice(0))
    OK(hipMalloc(&sum, kCount * sizeof(float)))
    OK(hipEventCreateWithFlags(&copied, hipEventDisableTiming))
    OK(hipMemcpyAsync(memory[0], values.data(), kCount * sizeof(float), hipMemcpyHostToDevice, stream[0]))
    OK(hipMemcpyPeerAsync(memory[1], 1, memory[0], 0, kCount * sizeof(float), stream[0]))
    OK(hipEventRecord(copied, stream[0]))
    OK(hipSetDevice(1))
    OK(hipStreamWaitEvent(stream[1], copied, 0))
    add<<<(kCount + 255) / 256, 256, 0, stream[1]>>>(memory[1], memory[0], sum);
    OK(hipStreamSynchronize(stream[1]))
    OK(hipMemcpyPeer(memory[1], 1, sum, 0, kCount * sizeof(float)))
    OK(hipMemcpy(result.data(), memory[1], kCount * sizeof(float), hipMemcpyDefault))
    for(int n = 0; n < kCount; ++n)
        CHECK(result[n] == 2 * values[n])
    for(int device = 0; device < 2; ++device)
    {
        OK(hipSetDevice(device))
        OK(hipDeviceDisablePeerAccess(1 - device))
        CHECK(hipDeviceDisablePeerAccess(1 - device) == hipErrorPeerAccessNotEnabled)
        OK(hipFree(memory[device]))
        OK(hipStreamDestroy(stream[device]))
    }
    OK(hipFree(sum))
    OK(hipEventDestroy(copied))
    (void)hipGetLastError();
    printf("%d failed\n", failed);
    return failed != 0;
}
