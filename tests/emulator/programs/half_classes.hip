// SPDX-License-Identifier: MIT
// __half and __hip_bfloat16 as classes: every operator on all pairs of some numbers, in kernels and on the host,
// against the compiler's own types.
#include <cstdio>
#include <type_traits>
#include <vector>

#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

static_assert(std::is_class_v<__half> && std::is_class_v<__half2> && std::is_class_v<__hip_bfloat16>);
static_assert(std::is_trivially_copyable_v<__half> && std::is_trivially_default_constructible_v<__half>);
static_assert(sizeof(__half) == 2 && sizeof(__half2) == 4 && alignof(__half2) == 4);
static_assert(std::is_convertible_v<double, __half> && std::is_convertible_v<__half, float>);
static_assert(!std::is_same_v<__half, _Float16> && !std::is_same_v<__hip_bfloat16, __bf16>);
static_assert(std::is_same_v<decltype(__half(1) + __half(2)), __half>);

// Overloads and specialisations for the class and the compiler's type beside each other.
__host__ __device__ int kind(__half) { return 1; }
__host__ __device__ int kind(__hip_bfloat16) { return 2; }
__host__ __device__ int kind(float) { return 3; }
__host__ __device__ int kind(_Float16) { return 4; }
template <typename T>
struct Name;
template <>
struct Name<__half>
{
    static constexpr const char* text = "half";
    using Native                      = _Float16;
};
template <>
struct Name<__hip_bfloat16>
{
    static constexpr const char* text = "bfloat16";
    using Native                      = __bf16;
};

constexpr int functions = 24;

template <typename T>
__host__ __device__ T apply(int function, T a, T b)
{
    T c = a;
    switch(function)
    {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return a / b;
    case 4: return -a;
    case 5: return +b;
    case 6: return T(a == b);
    case 7: return T(a != b);
    case 8: return T(a < b);
    case 9: return T(a <= b);
    case 10: return T(a > b);
    case 11: return T(a >= b);
    case 12: c += b; return c;
    case 13: c -= b; return c;
    case 14: c *= b; return c;
    case 15: c /= b; return c;
    case 16: ++c; return c;
    case 17: c--; return c;
    case 18: return T(static_cast<float>(a) * 3.0f);
    case 19: return T(static_cast<double>(b));
    case 20: return a ? b : a;
    case 21: return T(!a);
    case 22: return T(static_cast<int>(b) + 1);
    default: return T(a > T(0.0f) ? 7 : -7u % 5);
    }
}

template <typename T>
__global__ void all(const T* in, T* out, int count)
{
    __shared__ T kept[64];
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    kept[threadIdx.x] = n < count * count ? in[n / count] : T();
    __syncthreads();
    if(n < count * count)
        for(int function = 0; function < functions; ++function)
            out[function * count * count + n] = apply(function, kept[threadIdx.x], in[n % count]);
}

template <typename T>
unsigned short code(T x)
{
    return x != x ? 0x7fff : __builtin_bit_cast(unsigned short, x);
}

template <typename T>
int compare()
{
    using Native = typename Name<T>::Native;
    std::vector<T> in;
    for(const float x : {0.0f, -0.0f, 1.0f, -2.5f, 0.3333f, 100.0f, 65000.0f, 6e-6f, __builtin_inff(), __builtin_nanf("")})
        in.push_back(x);
    const int count = static_cast<int>(in.size()), pairs = count * count;
    T *from, *to;
    hipMalloc(&from, count * sizeof(T));
    hipMalloc(&to, functions * pairs * sizeof(T));
    hipMemcpy(from, in.data(), count * sizeof(T), hipMemcpyHostToDevice);
    all<T><<<(pairs + 63) / 64, 64>>>(from, to, count);
    std::vector<T> out(functions * pairs);
    hipMemcpy(out.data(), to, out.size() * sizeof(T), hipMemcpyDeviceToHost);
    int wrong = 0;
    for(int function = 0; function < functions; ++function)
        for(int n = 0; n < pairs; ++n)
        {
            const T a = in[n / count], b = in[n % count];
            if(function == 22 && (b != b || b > T(1e4f)))
                continue; // no integer
            const unsigned short want = code(apply(function, static_cast<Native>(a), static_cast<Native>(b)));
            const unsigned short host = code(apply(function, a, b)), device = code(out[function * pairs + n]);
            if(host == want && device == want)
                continue;
            ++wrong;
            std::printf("%s, function %d of %g and %g: host %04x, device %04x, want %04x\n", Name<T>::text, function,
                        static_cast<double>(a), static_cast<double>(b), host, device, want);
        }
    return wrong;
}

__global__ void pairs(const __half2* in, __half2* out, int* kinds)
{
    __half2 x = in[threadIdx.x];
    x = x * x + __half2(1.0f, 2.0f);
    x += __float2half2_rn(0.5f);
    x.y = x.y / __half(2);
    out[threadIdx.x] = __hfma2(x, {1, 2}, __half2half2(x.x));
    kinds[0] = kind(x.x);
    kinds[1] = kind(static_cast<_Float16>(x.x));
    kinds[2] = kind(__hip_bfloat16(x.x));
    kinds[3] = kind(__half2float(x.x));
    kinds[4] = static_cast<int>(__shfl_xor(x.x, 0)) == static_cast<int>(x.x);
}

int main()
{
    int wrong = compare<__half>() + compare<__hip_bfloat16>();

    __half2 *in, *out;
    int* kinds;
    hipMallocManaged(&in, sizeof *in);
    hipMallocManaged(&out, sizeof *out);
    hipMallocManaged(&kinds, 5 * sizeof *kinds);
    *in = __half2(3.0f, __half_raw{_Float16(4)});
    pairs<<<1, 1>>>(in, out, kinds);
    hipDeviceSynchronize();
    wrong += !(out->x == 21 && out->y == 29); // 10.5 + 10.5; 2 * 9.25 + 10.5
    wrong += kinds[0] != 1 || kinds[1] != 4 || kinds[2] != 2 || kinds[3] != 3 || kinds[4] != 1;

    // Codes, mixed arithmetic, containers, other formats.
    const __half_raw raw = __half(1.5);
    const __half2_raw both = __half2(1, -1);
    wrong += raw.x != 0x3e00 || both.x != 0x3c00 || both.y != 0xbc00;
    const __half third = 1.0 / 3;
    wrong += !(third * 3.0f != 1.0f && third + 1 == __half(1.333) && 2 * third == third + third);
    std::vector<__half> numbers(3, __half(2));
    __half sum = 0;
    for(const __half& x : numbers)
        sum += x;
    wrong += !(sum == 6 && static_cast<float>(static_cast<__half>(__hip_fp8_e4m3(sum))) == 6.0f);
    wrong += static_cast<float>(__hip_fp8_e5m2(__hip_bfloat16(3))) != 3.0f;
    const __hip_fp8x4_e4m3_fnuz halves(__half2(1, 2), __half2(3, -4)), floats(float4{1, 2, 3, -4});
    const __hip_fp8x4_e4m3_fnuz bfloats(__hip_bfloat162{1, 2}, __hip_bfloat162{3, -4});
    wrong += static_cast<float4>(halves) != float4{1, 2, 3, -4};
    wrong += halves.__x != floats.__x || bfloats.__x != floats.__x;
    std::printf("%d wrong\n", wrong);
    return wrong != 0;
}
