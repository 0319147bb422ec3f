// SPDX-License-Identifier: MIT
// A lattice-Boltzmann flow (D2Q9, BGK) around a block, on two streams with pinned memory: mass is conserved, and the
// field is that of the same steps on the host.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

constexpr int kWidth = 48, kHeight = 32, kSteps = 12, kCells = kWidth * kHeight;
constexpr float kOmega = 1.2f;
__constant__ const int kX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1};
__constant__ const int kY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
static const int host_x[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, host_y[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};

__host__ __device__ constexpr float weight(int q) { return q == 0 ? 4.0f / 9 : q < 5 ? 1.0f / 9 : 1.0f / 36; }
__host__ __device__ constexpr int opposite(int q) { return q == 0 ? 0 : q < 5 ? (q + 1) % 4 + 1 : (q - 3) % 4 + 5; }
__host__ __device__ inline bool solid(int x, int y) { return x >= 10 && x < 14 && y >= 12 && y < 20; }

__host__ __device__ inline void step(const float* from, float* to, int x, int y, const int* cx, const int* cy)
{
    float f[9], density = 0, u = 0, v = 0;
    for(int q = 0; q < 9; ++q)
    {
        const int source_x = (x - cx[q] + kWidth) % kWidth, source_y = (y - cy[q] + kHeight) % kHeight;
        f[q] = from[q * kCells + source_y * kWidth + source_x];
        density += f[q];
        u += f[q] * static_cast<float>(cx[q]);
        v += f[q] * static_cast<float>(cy[q]);
    }
    const int cell = y * kWidth + x;
    if(solid(x, y))
    {
        for(int q = 0; q < 9; ++q)
            to[opposite(q) * kCells + cell] = f[q];
        return;
    }
    u /= density;
    v /= density;
    for(int q = 0; q < 9; ++q)
    {
        const float along = static_cast<float>(cx[q]) * u + static_cast<float>(cy[q]) * v;
        const float rest  = weight(q) * density * (1 + 3 * along + 4.5f * along * along - 1.5f * (u * u + v * v));
        to[q * kCells + cell] = f[q] + kOmega * (rest - f[q]);
    }
}

__global__ void flow(const float* from, float* to)
{
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
    if(x < kWidth && y < kHeight)
        step(from, to, x, y, kX, kY);
}

int main()
{
    constexpr size_t bytes = 9 * kCells * sizeof(float);
    float *pinned, *device[2], milliseconds = -1;
    hipStream_t stream, other;
    hipEvent_t begin, end;
    int failed = hipHostMalloc(&pinned, bytes) + hipMalloc(&device[0], bytes) + hipMalloc(&device[1], bytes);
    failed += hipStreamCreateWithFlags(&stream, hipStreamNonBlocking) + hipStreamCreate(&other) + hipEventCreate(&begin) + hipEventCreate(&end);
    std::vector<float> now(9 * kCells), next(now.size());
    double mass = 0;
    for(int q = 0; q < 9; ++q)
        for(int cell = 0; cell < kCells; ++cell)
        {
            now[q * kCells + cell] = pinned[q * kCells + cell] = weight(q) * (1 + 0.1f * static_cast<float>(q == 1) + 0.01f * static_cast<float>(cell % 5));
            mass += now[q * kCells + cell];
        }
    failed += hipMemcpyAsync(device[0], pinned, bytes, hipMemcpyHostToDevice, stream);
    failed += hipEventRecord(begin, stream);
    for(int n = 0; n < kSteps; ++n)
    {
        flow<<<dim3(kWidth / 16, kHeight / 8), dim3(16, 8), 0, stream>>>(device[0], device[1]);
        std::swap(device[0], device[1]);
        for(int cell = 0; cell < kCells; ++cell)
            step(now.data(), next.data(), cell % kWidth, cell / kWidth, host_x, host_y);
        std::swap(now, next);
    }
    failed += hipEventRecord(end, stream);
    failed += hipStreamWaitEvent(other, end, 0);
    failed += hipMemcpyAsync(pinned, device[0], bytes, hipMemcpyDeviceToHost, other);
    failed += hipStreamSynchronize(other) + hipEventElapsedTime(&milliseconds, begin, end);
    int wrong = milliseconds < 0;
    for(size_t n = 0; n < now.size(); ++n)
    {
        wrong += !(std::fabs(pinned[n] - now[n]) < 1e-6f);
        mass -= pinned[n];
    }
    printf("%d failed, %d wrong, mass %s\n", failed, wrong, std::fabs(mass) < 1e-2 ? "kept" : "lost");
    failed += hipStreamDestroy(stream) + hipStreamDestroy(other) + hipEventDestroy(begin) + hipEventDestroy(end);
    return failed + hipFree(device[0]) + hipFree(device[1]) + hipHostFree(pinned);
}
