// SPDX-License-Identifier: MIT
// What ordinary HIP programs do, one check each; prints the checks that fail and how many passed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

#include "scale.h"

static int passed = 0, failed = 0;
static void check(const char* what, bool good)
{
    ++(good ? passed : failed);
    if(!good)
        std::printf("FAILED: %s\n", what);
}
#define OK(call) check(#call, (call) == hipSuccess)

__device__ int counter;
__device__ float values[4] = {1, 2, 3, 4};
__constant__ int table[8];
__managed__ int managed = 5;

__global__ void count_threads(int limit)
{
    if(threadIdx.x + blockIdx.x * blockDim.x < limit)
        atomicAdd(&counter, table[threadIdx.x & 7]);
}

template <typename T, int Block>
__global__ void __launch_bounds__(Block) block_sums(const T* in, T* out)
{
    extern __shared__ char raw[];
    T* partial = reinterpret_cast<T*>(raw);
    __shared__ T first;
    if(threadIdx.x == 0)
        first = in[blockIdx.x * Block];
    partial[threadIdx.x] = in[blockIdx.x * Block + threadIdx.x];
    for(int half = Block / 2; half > 0; half /= 2)
    {
        __syncthreads();
        if(threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
    }
    if(threadIdx.x == 0)
        out[blockIdx.x] = partial[0] + first - first;
}

__global__ void wave_sum(const int* in, int* out)
{
    int sum = in[threadIdx.x];
    for(int lane = warpSize / 2; lane > 0; lane /= 2)
        sum += __shfl_xor(sum, lane);
    const unsigned long long odd = __ballot(in[threadIdx.x] & 1);
    const bool votes = __shfl_down(sum, 1) == sum && __any(threadIdx.x == 3) && !__all(odd == 0);
    if(threadIdx.x == 0)
    {
        out[0] = sum;
        out[1] = __popcll(odd);
        out[2] = votes;
    }
}

__global__ void atomics(unsigned int* x, float* f)
{
    atomicMax(&x[0], threadIdx.x);
    atomicMin(&x[1], threadIdx.x);
    atomicOr(&x[2], 1u << (threadIdx.x & 31));
    atomicInc(&x[3], 9);
    for(unsigned int seen = x[4], old; ; seen = old)
        if((old = atomicCAS(&x[4], seen, seen + 2)) == seen)
            break;
    atomicAdd(f, 0.5f);
}

__global__ void vectors(float4* v, dim3* where)
{
    v[0] = v[0] * 2.0f + make_float4(1, 1, 1, 1);
    int3 i(1, -2, 7);
    const int3 before = i++;
    v[1] = float4((~before).y, (--i).z, float2(0.5f).y, HIP_vector_type<float, 2>(4, 6).data[1]);
    if(blockIdx.x == 1 && threadIdx.y == 1)
        *where = dim3(gridDim.x, blockDim.y, threadIdx.z);
}

__global__ void narrow(const float* in, float* half, float* bf16, unsigned char* fp8)
{
    const float x = in[threadIdx.x];
    half[threadIdx.x] = __half2float(__hfma(__float2half(x), __float2half(2.0f), hsqrt(__half(4))));
    bf16[threadIdx.x] = __bfloat162float(__hmul(__float2bfloat16(x), __float2bfloat16(0.5f)));
    fp8[threadIdx.x]  = __hip_fp8_e4m3_fnuz(x).__x;
}

__global__ void math(const double* in, double* out, float* narrow_out)
{
    const double x         = in[threadIdx.x];
    const float y          = static_cast<float>(x);
    out[threadIdx.x]        = std::sin(x) + pow(fabs(x), 0.75) + log1p(exp(-x * x)) + cbrt(x);
    narrow_out[threadIdx.x] = std::sin(y) + std::atan2(y, 2.0f) + fmodf(y, 0.7f) + max(y, 0.25f);
}

static void variables()
{
    std::vector<int> numbers(8);
    std::iota(numbers.begin(), numbers.end(), 1);
    OK(hipMemcpyToSymbol(HIP_SYMBOL(table), numbers.data(), sizeof(int) * 8));
    count_threads<<<3, 64>>>(150);
    int result = 0;
    OK(hipMemcpyFromSymbol(&result, counter, sizeof result));
    check("150 threads add 1 to 8", result == 18 * 36 + 1 + 2 + 3 + 4 + 5 + 6);
    float* address = nullptr;
    size_t bytes   = 0;
    OK(hipGetSymbolAddress(reinterpret_cast<void**>(&address), values));
    OK(hipGetSymbolSize(&bytes, values));
    float last = 0;
    if(address != nullptr)
        OK(hipMemcpy(&last, address + 3, sizeof last, hipMemcpyDeviceToHost));
    check("initialised device variable", bytes == 16 && last == 4);
    check("managed variable from the host", managed == 5);
    set_managed(&managed, 7);
    OK(hipDeviceSynchronize());
    check("managed variable from the device", managed == 7);
}

static void templates_and_lds()
{
    std::vector<double> in(512), out(4);
    for(int i = 0; i < 512; ++i)
        in[i] = i;
    double *a, *b;
    OK(hipMalloc(&a, in.size() * sizeof(double)));
    OK(hipMalloc(&b, out.size() * sizeof(double)));
    OK(hipMemcpy(a, in.data(), in.size() * sizeof(double), hipMemcpyHostToDevice));
    hipLaunchKernelGGL(HIP_KERNEL_NAME(block_sums<double, 128>), dim3(4), dim3(128),
                       128 * sizeof(double), nullptr, a, b);
    OK(hipGetLastError());
    OK(hipMemcpy(out.data(), b, out.size() * sizeof(double), hipMemcpyDeviceToHost));
    check("sums of blocks", out[0] == 8128 && out[3] == 8128 + 3 * 128 * 128);
    int blocks = 0;
    OK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, block_sums<double, 128>, 128, 1024));
    check("occupancy", blocks > 0);
    hipFuncAttributes facts;
    OK(hipFuncGetAttributes(&facts, block_sums<double, 128>));
    check("static LDS", facts.sharedSizeBytes == sizeof(double));
    OK(hipFree(a));
    OK(hipFree(b));
}

static void lanes_and_atomics()
{
    int device, width;
    OK(hipGetDevice(&device));
    OK(hipDeviceGetAttribute(&width, hipDeviceAttributeWarpSize, device));
    int *in, *out;
    OK(hipMallocManaged(&in, width * sizeof(int)));
    OK(hipMallocManaged(&out, 3 * sizeof(int)));
    for(int i = 0; i < width; ++i)
        in[i] = i;
    wave_sum<<<1, width>>>(in, out);
    OK(hipDeviceSynchronize());
    check("sum over a wave", out[0] == width * (width - 1) / 2);
    check("ballot", out[1] == width / 2 && out[2] == 1);

    unsigned int* x;
    float* f;
    OK(hipHostMalloc(&x, 5 * sizeof(int)));
    OK(hipHostMalloc(&f, sizeof(float)));
    const unsigned int start[5] = {0, 99, 0, 0, 0};
    std::memcpy(x, start, sizeof start);
    *f = 1;
    atomics<<<2, 64>>>(x, f);
    OK(hipStreamSynchronize(nullptr));
    check("atomicMax, atomicMin", x[0] == 63 && x[1] == 0);
    check("atomicOr, atomicInc", x[2] == 0xffffffffu && x[3] == 128 % 10);
    check("atomicCAS, atomicAdd of floats", x[4] == 256 && *f == 65);
    OK(hipHostFree(x));
    OK(hipHostFree(f));
}

static void vector_types()
{
    float4* v;
    dim3* where;
    OK(hipMallocManaged(&v, 2 * sizeof(float4)));
    OK(hipMallocManaged(&where, sizeof(dim3)));
    *v = make_float4(1, 2, 3, 4);
    vectors<<<dim3(2), dim3(1, 2, 1)>>>(v, where);
    OK(hipDeviceSynchronize());
    check("float4", *v != make_float4(1, 2, 3, 4) && v->w >= 9);
    check("constructors and steps of vectors", v[1] == float4(1, 7, 0.5f, 6));
    check("dim3", where->x == 2 && where->y == 2 && where->z == 0);
}

static void narrow_floats()
{
    float *in, *half, *bf16;
    unsigned char* fp8;
    OK(hipMallocManaged(&in, 64 * sizeof(float)));
    OK(hipMallocManaged(&half, 64 * sizeof(float)));
    OK(hipMallocManaged(&bf16, 64 * sizeof(float)));
    OK(hipMallocManaged(&fp8, 64));
    for(int i = 0; i < 64; ++i)
        in[i] = (i - 20) * 1.37f;
    narrow<<<1, 64>>>(in, half, bf16, fp8);
    OK(hipDeviceSynchronize());
    bool halves = true, bf16s = true, codes = true;
    for(int i = 0; i < 64; ++i)
    {
        halves = halves && half[i] == float(_Float16(float(_Float16(in[i])) * 2 + 2));
        bf16s  = bf16s && bf16[i] == float(__bf16(float(__bf16(in[i])) * 0.5f));
        codes  = codes && fp8[i] == __hip_fp8_e4m3_fnuz(in[i]).__x;
    }
    check("half", halves);
    check("bfloat16", bf16s);
    check("fp8 on host and device", codes);
}

static void device_math()
{
    double *in, *out;
    float* single;
    OK(hipMallocManaged(&in, 64 * sizeof(double)));
    OK(hipMallocManaged(&out, 64 * sizeof(double)));
    OK(hipMallocManaged(&single, 64 * sizeof(float)));
    for(int i = 0; i < 64; ++i)
        in[i] = (i - 31.5) * 0.37 * (i % 7 == 0 ? 1e5 : 1);
    math<<<1, 64>>>(in, out, single);
    OK(hipDeviceSynchronize());
    double worst = 0, worst_single = 0;
    for(int i = 0; i < 64; ++i)
    {
        const double x    = in[i];
        const float y     = static_cast<float>(x);
        const double want = std::sin(x) + std::pow(std::fabs(x), 0.75) +
                            std::log1p(std::exp(-x * x)) + std::cbrt(x);
        const float want_single =
            std::sin(y) + std::atan2(y, 2.0f) + std::fmod(y, 0.7f) + std::fmax(y, 0.25f);
        worst        = std::fmax(worst, std::fabs(out[i] - want) / (1 + std::fabs(want)));
        worst_single = std::fmax(
            worst_single, std::fabs(single[i] - want_single) / (1 + std::fabs(want_single)));
    }
    check("double precision", worst < 1e-14);
    check("single precision", worst_single < 1e-6);
}

static void streams_and_errors()
{
    hipStream_t stream;
    hipEvent_t start, stop;
    OK(hipStreamCreate(&stream));
    OK(hipEventCreate(&start));
    OK(hipEventCreate(&stop));
    int* data;
    OK(hipMalloc(&data, 1024));
    OK(hipEventRecord(start, stream));
    OK(hipMemsetAsync(data, 0x11, 1024, stream));
    scale(data, 256, 3, stream);
    OK(hipEventRecord(stop, stream));
    OK(hipStreamSynchronize(stream));
    int last = 0;
    OK(hipMemcpy(&last, data + 255, 4, hipMemcpyDeviceToHost));
    check("kernel of another source", last == 0x33333333);
    float milliseconds = -1;
    OK(hipEventElapsedTime(&milliseconds, start, stop));
    check("elapsed time", milliseconds >= 0);
    OK(hipFree(data));
    OK(hipStreamDestroy(stream));
    count_threads<<<1, 100000>>>(1);
    check("too many threads", hipGetLastError() == hipErrorInvalidConfiguration);
    check("the error is taken", hipGetLastError() == hipSuccess);
    check("null pointer", hipMemcpy(nullptr, &last, 4, hipMemcpyHostToDevice) == hipErrorInvalidValue);
    (void)hipGetLastError();
}

// The argument is the number of the device to use.
int main(int count, char** words)
{
    OK(hipSetDevice(count > 1 ? std::atoi(words[1]) : 0));
    variables();
    templates_and_lds();
    lanes_and_atomics();
    vector_types();
    narrow_floats();
    device_math();
    streams_and_errors();
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
