// SPDX-License-Identifier: MIT
// Surfaces, and copies between arrays and memory of one, two and three dimensions.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

constexpr int kWidth = 11, kHeight = 7, kDepth = 3;

static int failed = 0;
#define CHECK(condition) \
    if(!(condition))     \
        ++failed, printf("FAILED at %d: %s\n", __LINE__, #condition);
#define OK(call) CHECK((call) == hipSuccess)

static hipSurfaceObject_t surface_of(hipArray_t array)
{
    hipResourceDesc resource{};
    resource.resType         = hipResourceTypeArray;
    resource.res.array.array = array;
    hipSurfaceObject_t surface = nullptr;
    OK(hipCreateSurfaceObject(&surface, &resource))
    return surface;
}

static hipArray_t array_of(const hipChannelFormatDesc& channels, const hipExtent& extent, unsigned flags = hipArraySurfaceLoadStore)
{
    hipArray_t array = nullptr;
    OK(hipMalloc3DArray(&array, &channels, extent, flags))
    return array;
}

// The first coordinate counts bytes. Outside nothing is written, and zeros are read.
__global__ void turn(hipSurfaceObject_t from, hipSurfaceObject_t to)
{
    const int x = static_cast<int>(threadIdx.x) - 2, y = static_cast<int>(threadIdx.y) - 2;
    const int size = sizeof(ushort2);
    ushort2 pixel = make_ushort2(9, 9);
    surf2Dread(&pixel, from, x * size, y);
    const bool outside = x < 0 || y < 0 || x >= kWidth || y >= kHeight;
    if(outside && (pixel.x != 0 || pixel.y != 0))
        surf2Dwrite(make_ushort2(1, 1), to, 0, 0);
    surf2Dwrite(make_ushort2(pixel.y, pixel.x + outside), to, (kWidth - 1 - x) * size, kHeight - 1 - y);
}

static void planes()
{
    const hipChannelFormatDesc channels = hipCreateChannelDesc<ushort2>();
    hipArray_t from = array_of(channels, make_hipExtent(kWidth, kHeight, 0)), to = array_of(channels, make_hipExtent(kWidth, kHeight, 0));
    std::vector<ushort2> pixels(kWidth * kHeight), back(pixels.size());
    for(size_t n = 0; n < pixels.size(); ++n)
        pixels[n] = make_ushort2(static_cast<unsigned short>(n * 331), static_cast<unsigned short>(n + 1));
    const size_t row = kWidth * sizeof(ushort2);
    OK(hipMemcpy2DToArray(from, 0, 0, pixels.data(), row, row, kHeight, hipMemcpyHostToDevice))
    hipSurfaceObject_t input = surface_of(from), output = surface_of(to);
    turn<<<1, dim3(kWidth + 4, kHeight + 4)>>>(input, output);
    OK(hipMemcpy2DFromArray(back.data(), row, to, 0, 0, row, kHeight, hipMemcpyDeviceToHost))
    for(int n = 0; n < kWidth * kHeight; ++n)
    {
        const ushort2 pixel = pixels[pixels.size() - 1 - n];
        CHECK(back[n].x == pixel.y && back[n].y == pixel.x)
    }
    OK(hipDestroySurfaceObject(input))
    OK(hipDestroySurfaceObject(output))
    CHECK(hipDestroySurfaceObject(output) != hipSuccess)
    OK(hipFreeArray(from))
    OK(hipFreeArray(to))
    CHECK(hipFreeArray(to) != hipSuccess)
}

__global__ void line(hipSurfaceObject_t row, hipSurfaceObject_t bytes)
{
    const int n = static_cast<int>(threadIdx.x);
    float value = 0;
    surf1Dread(&value, row, n * 2);  // elements are halves
    surf1Dwrite(value * 2, row, n * 2);
    char small = 0;
    surf1Dread(&small, bytes, n);
    surf1Dwrite(static_cast<char>(-small), bytes, n);
}

template <bool layered>
__global__ void volume(hipSurfaceObject_t surface)
{
    const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y), z = static_cast<int>(threadIdx.z);
    const int at = x * static_cast<int>(sizeof(float4));
    float4 value;
    if constexpr(layered)
        surf2DLayeredread(&value, surface, at, y, z);
    else
        surf3Dread(&value, surface, at, y, z);
    value.w += 1;
    if constexpr(layered)
        surf2DLayeredwrite(value, surface, at, y, z);
    else
        surf3Dwrite(value, surface, at, y, z);
}

__global__ void rows(hipSurfaceObject_t surface)
{
    unsigned value;
    const int x = static_cast<int>(threadIdx.x) * 4, layer = static_cast<int>(threadIdx.y);
    surf1DLayeredread(&value, surface, x, layer);
    surf1DLayeredwrite(value + layer, surface, x, layer);
}

static void lines()
{
    hipArray_t halves = array_of(hipCreateChannelDescHalf(), make_hipExtent(kWidth, 0, 0));
    hipArray_t bytes = array_of(hipCreateChannelDesc<char>(), make_hipExtent(kWidth, 0, 0));
    std::vector<_Float16> values(kWidth);
    std::vector<signed char> small(kWidth);
    for(int n = 0; n < kWidth; ++n)
    {
        values[n] = static_cast<_Float16>(n - 3.5f);
        small[n]  = static_cast<signed char>(n - 5);
    }
    OK(hipMemcpyToArray(halves, 0, 0, values.data(), kWidth * 2, hipMemcpyHostToDevice))
    OK(hipMemcpyHtoA(bytes, 0, small.data(), kWidth))
    hipSurfaceObject_t first = surface_of(halves), second = surface_of(bytes);
    line<<<1, kWidth + 3>>>(first, second);
    OK(hipMemcpyFromArray(values.data(), halves, 0, 0, kWidth * 2, hipMemcpyDeviceToHost))
    OK(hipMemcpyAtoH(small.data(), bytes, 0, kWidth))
    for(int n = 0; n < kWidth; ++n)
        CHECK(static_cast<float>(values[n]) == 2 * (n - 3.5f) && small[n] == 5 - n)
    OK(hipDestroySurfaceObject(first))
    OK(hipDestroySurfaceObject(second))
    OK(hipFreeArray(halves))
    OK(hipFreeArray(bytes))
    hipArray_t layers = array_of(hipCreateChannelDesc<unsigned>(), make_hipExtent(kWidth, 0, kDepth), hipArrayLayered);
    std::vector<unsigned> numbers(kWidth * kDepth);
    for(size_t n = 0; n < numbers.size(); ++n)
        numbers[n] = static_cast<unsigned>(n);
    hipMemcpy3DParms copy{};
    copy.srcPtr   = make_hipPitchedPtr(numbers.data(), kWidth * 4, kWidth * 4, 1);
    copy.dstArray = layers;
    copy.extent   = make_hipExtent(kWidth, 1, kDepth);
    copy.kind     = hipMemcpyHostToDevice;
    OK(hipMemcpy3D(&copy))
    hipSurfaceObject_t all = surface_of(layers);
    rows<<<1, dim3(kWidth, kDepth + 1)>>>(all);
    std::swap(copy.srcPtr, copy.dstPtr);
    std::swap(copy.srcArray, copy.dstArray);
    copy.kind = hipMemcpyDeviceToHost;
    OK(hipMemcpy3DAsync(&copy))
    for(size_t n = 0; n < numbers.size(); ++n)
        CHECK(numbers[n] == n + n / kWidth)
    OK(hipDestroySurfaceObject(all))
    OK(hipFreeArray(layers))
}

template <bool layered>
static void volumes()
{
    hipArray_t array = array_of(hipCreateChannelDesc<float4>(), make_hipExtent(kWidth, kHeight, kDepth), layered ? hipArrayLayered : hipArraySurfaceLoadStore);
    hipPitchedPtr memory;
    OK(hipMalloc3D(&memory, make_hipExtent(kWidth * sizeof(float4), kHeight, kDepth)))
    std::vector<float4> values(kWidth * kHeight * kDepth);
    for(size_t n = 0; n < values.size(); ++n)
        values[n] = make_float4(n, n + 0.25f, -1.0f * n, n);
    hipMemcpy3DParms copy{};
    copy.srcPtr = make_hipPitchedPtr(values.data(), kWidth * sizeof(float4), kWidth, kHeight);
    copy.dstPtr = memory;
    copy.extent = make_hipExtent(kWidth * sizeof(float4), kHeight, kDepth);
    copy.kind   = hipMemcpyHostToDevice;
    OK(hipMemcpy3D(&copy))
    // From memory to the array in two parts: positions and extents are in elements of the array.
    for(int part = 0; part < 2; ++part)
    {
        hipMemcpy3DParms half{};
        half.srcPtr   = memory;
        half.srcPos   = make_hipPos(part * 4 * sizeof(float4), 0, 0);
        half.dstArray = array;
        half.dstPos   = make_hipPos(part * 4, 0, 0);
        half.extent   = make_hipExtent(part == 0 ? 4 : kWidth - 4, kHeight, kDepth);
        half.kind     = hipMemcpyDeviceToDevice;
        OK(hipMemcpy3D(&half))
        half.dstPos.x = kWidth - 2;
        CHECK(hipMemcpy3D(&half) == hipErrorInvalidValue)
    }
    hipSurfaceObject_t surface = surface_of(array);
    volume<layered><<<1, dim3(kWidth, kHeight, kDepth + 1)>>>(surface);
    HIP_MEMCPY3D driver{};
    driver.srcMemoryType = hipMemoryTypeArray;
    driver.srcArray      = array;
    driver.srcY          = 1;
    driver.dstMemoryType = hipMemoryTypeHost;
    driver.dstHost       = values.data();
    driver.dstY          = 1;
    driver.dstPitch      = kWidth * sizeof(float4);
    driver.dstHeight     = kHeight;
    driver.WidthInBytes  = kWidth * sizeof(float4);
    driver.Height        = kHeight - 1;
    driver.Depth         = kDepth;
    OK(hipDrvMemcpy3D(&driver))
    for(int n = 0; n < static_cast<int>(values.size()); ++n)
    {
        const float expected = n + (n / kWidth % kHeight != 0 ? 1.0f : 0.0f);
        CHECK(values[n].x == n && values[n].w == expected)
    }
    OK(hipDestroySurfaceObject(surface))
    OK(hipFreeArray(array))
    OK(hipFree(memory.ptr))
}

static void copies()
{
    HIP_ARRAY_DESCRIPTOR wanted{kWidth, kHeight, HIP_AD_FORMAT_SIGNED_INT16, 1}, told{};
    hipArray_t first, second;
    OK(hipArrayCreate(&first, &wanted))
    const hipChannelFormatDesc channels = hipCreateChannelDesc<short>();
    OK(hipMallocArray(&second, &channels, kWidth, kHeight))
    std::vector<short> values(kWidth * kHeight), back(values.size());
    for(size_t n = 0; n < values.size(); ++n)
        values[n] = static_cast<short>(1000 - 7 * n);
    const size_t row = kWidth * 2;
    OK(hipMemcpy2DToArrayAsync(first, 0, 0, values.data(), row, row, kHeight, hipMemcpyHostToDevice))
    OK(hipMemcpy2DArrayToArray(second, 2, 1, first, 0, 0, row - 2, kHeight - 1, hipMemcpyDeviceToDevice))
    OK(hipMemcpy2DFromArrayAsync(back.data() + kWidth + 1, row, second, 2, 1, row - 2, kHeight - 1, hipMemcpyDeviceToHost))
    OK(hipDeviceSynchronize())
    for(int y = 1; y < kHeight; ++y)
        for(int x = 1; x < kWidth; ++x)
            CHECK(back[y * kWidth + x] == values[(y - 1) * kWidth + x - 1])
    hip_Memcpy2D driver{};
    driver.srcMemoryType = hipMemoryTypeArray;
    driver.srcArray      = first;
    driver.srcXInBytes   = 4;
    driver.dstMemoryType = hipMemoryTypeHost;
    driver.dstHost       = back.data();
    driver.WidthInBytes  = 6;
    driver.Height        = 2;
    OK(hipMemcpyParam2D(&driver))
    CHECK(back[0] == values[2] && back[2] == values[4] && back[3] == values[kWidth + 2])
    driver.WidthInBytes = row;
    CHECK(hipMemcpyParam2D(&driver) == hipErrorInvalidValue)
    CHECK(hipMemcpy2DToArray(first, 4, 0, values.data(), row, row, kHeight, hipMemcpyHostToDevice) == hipErrorInvalidValue)
    CHECK(hipMemcpyToArray(first, 0, 1, values.data(), row * kHeight, hipMemcpyHostToDevice) == hipErrorInvalidValue)
    OK(hipArrayGetDescriptor(&told, first))
    CHECK(told.Width == kWidth && told.Height == kHeight && told.Format == HIP_AD_FORMAT_SIGNED_INT16 && told.NumChannels == 1)
    hipChannelFormatDesc kind{};
    OK(hipGetChannelDesc(&kind, second))
    CHECK(kind.x == 16 && kind.y == 0 && kind.f == hipChannelFormatKindSigned)
    OK(hipArrayDestroy(first))
    OK(hipFreeArray(second))
}

static void described()
{
    HIP_ARRAY3D_DESCRIPTOR wanted{4, 5, 6, HIP_AD_FORMAT_HALF, 4, hipArrayLayered}, told{};
    hipArray_t array;
    OK(hipArray3DCreate(&array, &wanted))
    OK(hipArray3DGetDescriptor(&told, array))
    CHECK(std::memcmp(&wanted, &told, sizeof told) == 0)
    hipChannelFormatDesc channels{};
    hipExtent extent{};
    unsigned flags = 0;
    OK(hipArrayGetInfo(&channels, &extent, &flags, array))
    CHECK(channels.w == 16 && channels.f == hipChannelFormatKindFloat && extent.depth == 6 && flags == hipArrayLayered)
    OK(hipFreeArray(array))
    // What no array is.
    const hipChannelFormatDesc one = hipCreateChannelDesc<int>(), three = hipCreateChannelDesc<int3>();
    hipDeviceProp_t properties;
    OK(hipGetDeviceProperties(&properties, 0))
    const size_t most = properties.maxTexture2D[0];
    CHECK(hipMallocArray(&array, &three, 4, 4) == hipErrorInvalidValue)
    CHECK(hipMallocArray(&array, &one, most + 1, 1) == hipErrorInvalidValue)
    CHECK(hipMallocArray(&array, &one, 0, 1) == hipErrorInvalidValue)
    CHECK(hipMalloc3DArray(&array, &one, make_hipExtent(4, 4, 6), hipArrayCubemap) == hipErrorNotSupported)
    wanted.Format = static_cast<hipArray_Format>(5);
    CHECK(hipArray3DCreate(&array, &wanted) == hipErrorInvalidValue)
}

int main()
{
    planes();
    lines();
    volumes<false>();
    volumes<true>();
    copies();
    described();
    (void)hipGetLastError();
    printf("%d failed\n", failed);
    return failed != 0;
}
