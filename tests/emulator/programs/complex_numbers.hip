// SPDX-License-Identifier: MIT
// std::complex in kernels: each function on pairs of numbers, infinities and NaN among them, against the host.
#include <complex>
#include <cstdio>
#include <limits>
#include <vector>

#include <hip/hip_runtime.h>

constexpr int functions = 14;

template <typename T>
__host__ __device__ std::complex<T> apply(int function, std::complex<T> a, std::complex<T> b)
{
    switch(function)
    {
    case 0: return a * b;
    case 1: return a / b;
    case 2: return a + b * T(2);
    case 3: return a - std::conj(b);
    case 4: return {std::norm(a), std::abs(a)};
    case 5: return {std::arg(a), a == b ? T(1) : T(0)};
    case 6: return std::sqrt(a);
    case 7: return std::exp(a);
    case 8: return std::log(a);
    case 9: return std::sin(a);
    case 10: return std::cosh(b);
    case 11: return T(3) / a;
    case 12: return -a * std::complex<T>(b.real(), a.imag());
    default: a *= b; a += T(1); return a;
    }
}

template <typename T>
__global__ void all(const std::complex<T>* in, std::complex<T>* out, int count)
{
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if(n >= count * count)
        return;
    for(int function = 0; function < functions; ++function)
        out[function * count * count + n] = apply(function, in[n / count], in[n % count]);
}

template <typename T>
bool close(T x, T y, T scale)
{
    if(std::isnan(x) || std::isnan(y))
        return std::isnan(x) == std::isnan(y);
    if(std::isinf(x) || std::isinf(y))
        return x == y;
    return std::abs(x - y) <= 16 * std::numeric_limits<T>::epsilon() * (std::abs(scale) + 1);
}

template <typename T>
int compare()
{
    const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    std::vector<std::complex<T>> in = {{0, 0}, {1, 0}, {0, -2}, {3, 4}, {-1.5, 0.25}, {T(1e-3), 2}, {-7, -0.5},
                                       {infinity, 1}, {2, -infinity}, {nan, 1}};
    const int count = static_cast<int>(in.size()), pairs = count * count;
    std::complex<T>*from, *to;
    hipMalloc(&from, count * sizeof *from);
    hipMalloc(&to, functions * pairs * sizeof *to);
    hipMemcpy(from, in.data(), count * sizeof *from, hipMemcpyHostToDevice);
    all<T><<<(pairs + 63) / 64, 64>>>(from, to, count);
    std::vector<std::complex<T>> out(functions * pairs);
    hipMemcpy(out.data(), to, out.size() * sizeof *to, hipMemcpyDeviceToHost);
    int wrong = 0;
    for(int function = 0; function < functions; ++function)
        for(int n = 0; n < pairs; ++n)
        {
            const std::complex<T> a = in[n / count], b = in[n % count];
            const std::complex<T> want = apply(function, a, b), got = out[function * pairs + n];
            const T scale = std::isfinite(std::abs(want)) ? std::abs(want) : 0;
            if(close(got.real(), want.real(), scale) && close(got.imag(), want.imag(), scale))
                continue;
            ++wrong;
            std::printf("function %d of (%g, %g) and (%g, %g): (%g, %g), host (%g, %g)\n", function,
                        double(a.real()), double(a.imag()), double(b.real()), double(b.imag()),
                        double(got.real()), double(got.imag()), double(want.real()), double(want.imag()));
        }
    return wrong;
}

int main()
{
    const int wrong = compare<float>() + compare<double>();
    std::printf("%d wrong\n", wrong);
    return wrong != 0;
}
