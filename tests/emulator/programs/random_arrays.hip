// SPDX-License-Identifier: MIT
// Arrays of random numbers by hipRAND's host interface: device and host draw the same, with the right moments, and an
// estimate of pi on a stream.
#include <hiprand/hiprand.h>

#include <cmath>
#include <cstdio>
#include <vector>

static int failed = 0;
#define CHECK(condition) \
    if(!(condition))     \
        ++failed, printf("FAILED at %d: %s\n", __LINE__, #condition);
#define OK(call) CHECK((call) == 0)

constexpr size_t kCount = 5000;

/// The same numbers of a generator on the device and of one on the host; they may differ by rounding.
template <typename T, typename Generate>
static std::vector<T> drawn(hiprandRngType type, Generate generate)
{
    hiprandGenerator_t device, host;
    OK(hiprandCreateGenerator(&device, type))
    OK(hiprandCreateGeneratorHost(&host, type))
    T* memory;
    OK(hipMalloc(&memory, kCount * sizeof(T)))
    std::vector<T> here(kCount), there(kCount);
    for(const auto generator : {device, host})
    {
        OK(hiprandSetPseudoRandomGeneratorSeed(generator, 1234))
        OK(hiprandSetGeneratorOffset(generator, 3))
    }
    for(int round = 0; round < 2; ++round)  // the second goes on where the first has ended
    {
        OK(generate(device, memory))
        OK(generate(host, here.data()))
    }
    OK(hipMemcpy(there.data(), memory, kCount * sizeof(T), hipMemcpyDeviceToHost))
    size_t differ = 0;
    for(size_t n = 0; n < kCount; ++n)
        differ += !(std::fabs(double(here[n]) - double(there[n])) <= 4e-6 * (std::fabs(double(here[n])) + 1));
    CHECK(differ <= (sizeof(T) == 2 ? kCount / 100 : 0))
    OK(hiprandDestroyGenerator(device))
    OK(hiprandDestroyGenerator(host))
    OK(hipFree(memory))
    return there;
}

template <typename T>
static void expect(const std::vector<T>& values, double mean, double variance)
{
    double sum = 0, squares = 0;
    for(const T value : values)
    {
        sum += double(value);
        squares += double(value) * double(value);
    }
    const double found = sum / kCount, spread = squares / kCount - found * found;
    CHECK(std::fabs(found - mean) < 5 * std::sqrt(variance / kCount))
    CHECK(std::fabs(spread / variance - 1) < 0.25)
}

int main()
{
    for(const auto type : {HIPRAND_RNG_PSEUDO_DEFAULT, HIPRAND_RNG_PSEUDO_PHILOX4_32_10, HIPRAND_RNG_PSEUDO_MRG32K3A})
    {
        const double most = 4294967296.0;
        expect(drawn<unsigned>(type, [](auto g, unsigned* v) { return hiprandGenerate(g, v, kCount); }), most / 2, most * most / 12);
        expect(drawn<float>(type, [](auto g, float* v) { return hiprandGenerateUniform(g, v, kCount); }), 0.5, 1.0 / 12);
    }
    const auto type = HIPRAND_RNG_PSEUDO_PHILOX4_32_10;
    expect(drawn<unsigned char>(type, [](auto g, unsigned char* v) { return hiprandGenerateChar(g, v, kCount); }), 127.5, 65536.0 / 12);
    expect(drawn<unsigned short>(type, [](auto g, unsigned short* v) { return hiprandGenerateShort(g, v, kCount); }), 32767.5, 65536.0 * 65536.0 / 12);
    expect(drawn<double>(type, [](auto g, double* v) { return hiprandGenerateUniformDouble(g, v, kCount); }), 0.5, 1.0 / 12);
    expect(drawn<half>(type, [](auto g, half* v) { return hiprandGenerateUniformHalf(g, v, kCount); }), 0.5, 1.0 / 12);
    expect(drawn<float>(type, [](auto g, float* v) { return hiprandGenerateNormal(g, v, kCount, 3, 2); }), 3, 4);
    expect(drawn<double>(type, [](auto g, double* v) { return hiprandGenerateNormalDouble(g, v, kCount, -1, 0.5); }), -1, 0.25);
    expect(drawn<half>(type, [](auto g, half* v) { return hiprandGenerateNormalHalf(g, v, kCount, half(1.0f), half(2.0f)); }), 1, 4);
    const double growth = std::exp(0.25);  // of a log-normal number with deviation 1/2
    expect(drawn<float>(type, [](auto g, float* v) { return hiprandGenerateLogNormal(g, v, kCount, 0, 0.5f); }), std::sqrt(growth), (growth - 1) * growth);
    expect(drawn<double>(type, [](auto g, double* v) { return hiprandGenerateLogNormalDouble(g, v, kCount, 0, 0.5); }), std::sqrt(growth), (growth - 1) * growth);
    expect(drawn<unsigned>(type, [](auto g, unsigned* v) { return hiprandGeneratePoisson(g, v, kCount, 9); }), 9, 9);

    hiprandGenerator_t generator;
    hipStream_t stream;
    float* points;
    int version = 0;
    OK(hipStreamCreate(&stream))
    OK(hipMallocManaged(&points, 2 * kCount * sizeof(float)))
    OK(hiprandCreateGenerator(&generator, HIPRAND_RNG_PSEUDO_XORWOW))
    OK(hiprandSetStream(generator, stream))
    OK(hiprandGenerateSeeds(generator))
    OK(hiprandGenerateUniform(generator, points, 2 * kCount))
    OK(hipStreamSynchronize(stream))
    int inside = 0;
    for(size_t n = 0; n < kCount; ++n)
        inside += points[2 * n] * points[2 * n] + points[2 * n + 1] * points[2 * n + 1] <= 1;
    CHECK(std::fabs(4.0 * inside / kCount - M_PI) < 0.12)
    OK(hiprandGetVersion(&version))
    CHECK(version == HIPRAND_VERSION)
    OK(hiprandDestroyGenerator(generator))
    CHECK(hiprandCreateGenerator(&generator, HIPRAND_RNG_QUASI_SOBOL32) == HIPRAND_STATUS_NOT_IMPLEMENTED)
    CHECK(hiprandGenerate(nullptr, nullptr, 1) == HIPRAND_STATUS_NOT_INITIALIZED)
    OK(hipStreamDestroy(stream))
    OK(hipFree(points))
    printf("%d failed\n", failed);
    return failed != 0;
}
