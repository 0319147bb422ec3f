// SPDX-License-Identifier: MIT
// An image scaled, filtered and turned: read as normalised colours from a texture, written to a surface by a second kernel.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

constexpr int kWidth = 40, kHeight = 24;

__global__ void sharpen(hipTextureObject_t image, float4* result)
{
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(threadIdx.y);
    const float u = static_cast<float>(x) + 0.5f, v = static_cast<float>(y) + 0.5f;
    float4 sum = 5.0f * tex2D<float4>(image, u, v);
    sum -= tex2D<float4>(image, u - 1, v) + tex2D<float4>(image, u + 1, v);
    sum -= tex2D<float4>(image, u, v - 1) + tex2D<float4>(image, u, v + 1);
    result[y * kWidth + x] = sum;
}

__global__ void turn(const float4* pixels, hipSurfaceObject_t surface)
{
    const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), y = static_cast<int>(threadIdx.y);
    const float4 p     = pixels[y * kWidth + x];
    const auto rounded = [](float value) { return static_cast<unsigned char>(fminf(fmaxf(value, 0.0f), 1.0f) * 255.0f + 0.5f); };
    surf2Dwrite(make_uchar4(rounded(p.x), rounded(p.y), rounded(p.z), rounded(p.w)), surface, y * static_cast<int>(sizeof(uchar4)), kWidth - 1 - x);
}

int main()
{
    std::vector<uchar4> pixels(kWidth * kHeight), result(pixels.size());
    for(int n = 0; n < kWidth * kHeight; ++n)
        pixels[n] = make_uchar4(n * 7 % 251, n * n % 241, n / 5 % 256, 255);
    const hipChannelFormatDesc channels = hipCreateChannelDesc<uchar4>();
    hipArray_t input, output;
    float4* filtered;
    int failed = hipMallocArray(&input, &channels, kWidth, kHeight) + hipMallocArray(&output, &channels, kHeight, kWidth, hipArraySurfaceLoadStore);
    failed += hipMalloc(&filtered, pixels.size() * sizeof(float4));
    failed += hipMemcpy2DToArray(input, 0, 0, pixels.data(), kWidth * 4, kWidth * 4, kHeight, hipMemcpyHostToDevice);
    hipResourceDesc resource{};
    resource.resType         = hipResourceTypeArray;
    resource.res.array.array = input;
    hipTextureDesc description{};
    description.addressMode[0] = description.addressMode[1] = hipAddressModeClamp;
    description.filterMode                                  = hipFilterModeLinear;
    description.readMode                                    = hipReadModeNormalizedFloat;
    hipTextureObject_t texture;
    hipSurfaceObject_t surface;
    failed += hipCreateTextureObject(&texture, &resource, &description, nullptr);
    resource.res.array.array = output;
    failed += hipCreateSurfaceObject(&surface, &resource);
    sharpen<<<kWidth / 8, dim3(8, kHeight)>>>(texture, filtered);
    turn<<<kWidth / 8, dim3(8, kHeight)>>>(filtered, surface);
    failed += hipMemcpy2DFromArray(result.data(), kHeight * 4, output, 0, 0, kHeight * 4, kWidth, hipMemcpyDeviceToHost);
    int wrong = 0;
    const auto red = [&](int x, int y) { return pixels[std::min(std::max(y, 0), kHeight - 1) * kWidth + std::min(std::max(x, 0), kWidth - 1)].x; };
    for(int y = 0; y < kHeight; ++y)
        for(int x = 0; x < kWidth; ++x)
        {
            const int sum = 5 * red(x, y) - red(x - 1, y) - red(x + 1, y) - red(x, y - 1) - red(x, y + 1);
            wrong += std::abs(result[(kWidth - 1 - x) * kHeight + y].x - std::min(std::max(sum, 0), 255)) > 1;
        }
    printf("%d failed, %d wrong\n", failed, wrong);
    failed += hipDestroyTextureObject(texture) + hipDestroySurfaceObject(surface) + hipFreeArray(input) + hipFreeArray(output);
    return failed + hipFree(filtered);
}
