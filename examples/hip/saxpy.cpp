// SPDX-License-Identifier: MIT
// A HIP program as one writes it for ROCm; without a GPU it runs on an emulated one:
//
//     cklang hipcc examples/hip/saxpy.cpp -o saxpy && ./saxpy
#include <cstdio>
#include <vector>

#include <hip/hip_runtime.h>

#define CHECK(call)                                                                               \
    do                                                                                            \
    {                                                                                             \
        const hipError_t status = (call);                                                         \
        if(status != hipSuccess)                                                                  \
        {                                                                                         \
            std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(status));                   \
            return 1;                                                                             \
        }                                                                                         \
    } while(0)

__global__ void saxpy(float a, const float* x, float* y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if(i < n)
        y[i] = a * x[i] + y[i];
}

int main()
{
    hipDeviceProp_t device;
    CHECK(hipGetDeviceProperties(&device, 0));

    const int n = 1'000'000;
    std::vector<float> x(n), y(n, 0.5f);
    for(int i = 0; i < n; ++i)
        x[i] = static_cast<float>(i % 1024);

    float *dx, *dy;
    CHECK(hipMalloc(&dx, n * sizeof(float)));
    CHECK(hipMalloc(&dy, n * sizeof(float)));
    CHECK(hipMemcpy(dx, x.data(), n * sizeof(float), hipMemcpyHostToDevice));
    CHECK(hipMemcpy(dy, y.data(), n * sizeof(float), hipMemcpyHostToDevice));

    hipEvent_t start, stop;
    CHECK(hipEventCreate(&start));
    CHECK(hipEventCreate(&stop));
    CHECK(hipEventRecord(start));
    saxpy<<<(n + 255) / 256, 256>>>(2.0f, dx, dy, n);
    CHECK(hipGetLastError());
    CHECK(hipEventRecord(stop));
    CHECK(hipEventSynchronize(stop));
    float milliseconds;
    CHECK(hipEventElapsedTime(&milliseconds, start, stop));

    CHECK(hipMemcpy(y.data(), dy, n * sizeof(float), hipMemcpyDeviceToHost));
    int wrong = 0;
    for(int i = 0; i < n; ++i)
        wrong += y[i] != 2.0f * x[i] + 0.5f;
    std::printf("%s: %d of %d elements are wrong, %.2f ms\n", device.name, wrong, n, milliseconds);

    CHECK(hipFree(dx));
    CHECK(hipFree(dy));
    return wrong != 0;
}
