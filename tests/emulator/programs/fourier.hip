// SPDX-License-Identifier: MIT
// FFTs of 256 and 512 complex numbers in LDS, a template over the length, against the sum of the definition.
#include <hip/hip_complex.h>
#include <hip/hip_runtime.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>

template <int Length, bool Inverse>
__global__ __launch_bounds__(Length / 2) void transform(hipFloatComplex* data)
{
    __shared__ hipFloatComplex values[Length];
    constexpr int half = Length / 2, bits = __builtin_ctz(Length);
    hipFloatComplex* row = data + blockIdx.x * Length;
    for(int n = static_cast<int>(threadIdx.x); n < Length; n += half)
        values[__brev(static_cast<unsigned>(n)) >> (32 - bits)] = row[n];
    for(int size = 2; size <= Length; size *= 2)
    {
        __syncthreads();
        const int n = static_cast<int>(threadIdx.x), within = n % (size / 2), low = n / (size / 2) * size + within, high = low + size / 2;
        float sine, cosine;
        sincospif((Inverse ? 2.0f : -2.0f) * within / size, &sine, &cosine);
        const hipFloatComplex even = values[low], odd = hipCmulf(values[high], make_hipFloatComplex(cosine, sine));
        values[low]  = hipCaddf(even, odd);
        values[high] = hipCsubf(even, odd);
    }
    __syncthreads();
    const float scale = Inverse ? 1.0f / Length : 1.0f;
    for(int n = static_cast<int>(threadIdx.x); n < Length; n += half)
        row[n] = make_hipFloatComplex(values[n].x * scale, values[n].y * scale);
}

template <int Length>
static int test()
{
    constexpr int rows = 3;
    std::vector<hipFloatComplex> start(rows * Length), result(start.size());
    for(size_t n = 0; n < start.size(); ++n)
        start[n] = make_hipFloatComplex(std::sin(0.37f * n * n), std::cos(1.1f * n) + 0.001f * n);
    hipFloatComplex* data;
    const size_t bytes = start.size() * sizeof(hipFloatComplex);
    int failed         = hipMalloc(&data, bytes) + hipMemcpy(data, start.data(), bytes, hipMemcpyHostToDevice);
    transform<Length, false><<<rows, Length / 2>>>(data);
    failed += hipMemcpy(result.data(), data, bytes, hipMemcpyDeviceToHost);
    double worst = 0;
    for(int row = 0; row < rows; ++row)
        for(int k = 0; k < Length; k += 7)
        {
            std::complex<double> sum = 0;
            for(int n = 0; n < Length; ++n)
            {
                const hipFloatComplex value = start[row * Length + n];
                sum += std::complex<double>(value.x, value.y) * std::polar(1.0, -2 * M_PI * k * n / Length);
            }
            const hipFloatComplex value = result[row * Length + k];
            worst                       = std::fmax(worst, std::abs(std::complex<double>(value.x, value.y) - sum));
        }
    failed += worst > 2e-4;
    transform<Length, true><<<rows, Length / 2>>>(data);
    failed += hipMemcpy(result.data(), data, bytes, hipMemcpyDeviceToHost);
    for(size_t n = 0; n < start.size(); ++n)
        failed += std::hypot(result[n].x - start[n].x, result[n].y - start[n].y) > 1e-5;
    return failed + hipFree(data);
}

int main()
{
    const int failed = test<256>() + test<512>();
    printf("%d failed\n", failed);
    return failed;
}
