// SPDX-License-Identifier: MIT
// Converts the numbers in files on the host and on the device: `conversions NAME IN OUT`, where OUT gets the
// host's results and then the device's.
#include <hip/hip_bf16.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstring>
#include <vector>

template <class From, class To, class Convert>
__global__ void convert_all(const From* from, To* to, int count, Convert convert)
{
    for(int n = threadIdx.x + blockIdx.x * blockDim.x; n < count; n += gridDim.x * blockDim.x)
        to[n] = convert(from[n]);
}

template <class From, class To, class Convert>
int run(const char* in, const char* out, Convert convert)
{
    std::FILE* file = std::fopen(in, "rb");
    std::fseek(file, 0, SEEK_END);
    const size_t count = static_cast<size_t>(std::ftell(file)) / sizeof(From);
    std::rewind(file);
    std::vector<From> from(count);
    std::vector<To> host(count), device(count);
    if(std::fread(from.data(), sizeof(From), count, file) != count)
        return 2;
    std::fclose(file);
    for(size_t n = 0; n < count; ++n)
        host[n] = convert(from[n]);
    From* inputs;
    To* outputs;
    (void)hipMalloc(&inputs, count * sizeof(From));
    (void)hipMalloc(&outputs, count * sizeof(To));
    (void)hipMemcpy(inputs, from.data(), count * sizeof(From), hipMemcpyHostToDevice);
    convert_all<<<16, 256>>>(inputs, outputs, static_cast<int>(count), convert);
    if(hipMemcpy(device.data(), outputs, count * sizeof(To), hipMemcpyDeviceToHost) != hipSuccess)
        return 3;
    file = std::fopen(out, "wb");
    std::fwrite(host.data(), sizeof(To), count, file);
    std::fwrite(device.data(), sizeof(To), count, file);
    return std::fclose(file);
}

// Four kinds by saturation: all eight codes of one number.
struct Codes { __hip_fp8_storage_t code[8]; };
template <class From, class Convert>
__host__ __device__ Codes codes_of(From x, Convert convert)
{
    Codes codes;
    for(int n = 0; n < 8; ++n)
        codes.code[n] = convert(x, static_cast<__hip_saturation_t>(n / 4),
                                static_cast<__hip_fp8_interpretation_t>(n % 4));
    return codes;
}
#define CODES(name, type, function)                                                                \
    if(std::strcmp(what, name) == 0)                                                               \
        return run<type, Codes>(in, out, [] __host__ __device__(type x) {                          \
            return codes_of(x, [](type y, __hip_saturation_t s, __hip_fp8_interpretation_t k) {    \
                return function(y, s, k);                                                          \
            });                                                                                    \
        });

struct Halves { unsigned short code[8]; };
#define TO_HALF(name, type, function, T)                                                           \
    if(std::strcmp(what, name) == 0)                                                               \
        return run<type, Halves>(in, out, [] __host__ __device__(type x) {                         \
            const T all[4] = {function##_rn(x), function##_rz(x), function##_ru(x), function##_rd(x)}; \
            Halves codes{};                                                                        \
            for(int n = 0; n < 4; ++n)                                                             \
                codes.code[n] = __builtin_bit_cast(unsigned short, all[n]);                        \
            return codes;                                                                          \
        });

struct Integers { long long value[4]; };
#define FROM_HALF(name, type, function, T)                                                         \
    if(std::strcmp(what, name) == 0)                                                               \
        return run<unsigned short, Integers>(in, out, [] __host__ __device__(unsigned short bits) { \
            const T x = __builtin_bit_cast(T, bits);                                               \
            return Integers{{static_cast<long long>(function##_rn(x)),                             \
                             static_cast<long long>(function##_rz(x)),                             \
                             static_cast<long long>(function##_ru(x)),                             \
                             static_cast<long long>(function##_rd(x))}};                           \
        });

int main(int, char** words)
{
    const char *what = words[1], *in = words[2], *out = words[3];
    CODES("float", float, __hip_cvt_float_to_fp8)
    CODES("double", double, __hip_cvt_double_to_fp8)
    CODES("half", __half_raw, __hip_cvt_halfraw_to_fp8)
    CODES("bfloat16", __hip_bfloat16_raw, __hip_cvt_bfloat16raw_to_fp8)
    TO_HALF("int-half", int, __int2half, __half)
    TO_HALF("float-half", float, __float2half, __half)
    TO_HALF("ull-half", unsigned long long, __ull2half, __half)
    TO_HALF("ll-bfloat16", long long, __ll2bfloat16, __hip_bfloat16)
    TO_HALF("float-bfloat16", float, __float2bfloat16, __hip_bfloat16)
    FROM_HALF("half-int", int, __half2int, __half)
    FROM_HALF("half-ushort", unsigned short, __half2ushort, __half)
    FROM_HALF("bfloat16-ll", long long, __bfloat162ll, __hip_bfloat16)
    FROM_HALF("bfloat16-uint", unsigned int, __bfloat162uint, __hip_bfloat16)
    return 9;
}
