// SPDX-License-Identifier: MIT
// What torch's headers ask of Thrust's complex numbers where HIP is compiled. Functions are only
// declared: a kernel that calls one with complex numbers does not link.
#pragma once
namespace thrust {
template <typename T>
struct complex {
  T parts[2];
  __host__ __device__ constexpr complex(T re = T(), T im = T()) : parts{re, im} {}
  __host__ __device__ constexpr T real() const { return parts[0]; }
  __host__ __device__ constexpr T imag() const { return parts[1]; }
};
#define CKLANG_OF_ONE(name) \
  template <typename T>     \
  __host__ __device__ complex<T> name(const complex<T>&)
CKLANG_OF_ONE(exp);
CKLANG_OF_ONE(log);
CKLANG_OF_ONE(log10);
CKLANG_OF_ONE(sqrt);
CKLANG_OF_ONE(sin);
CKLANG_OF_ONE(cos);
CKLANG_OF_ONE(tan);
CKLANG_OF_ONE(asin);
CKLANG_OF_ONE(acos);
CKLANG_OF_ONE(atan);
CKLANG_OF_ONE(sinh);
CKLANG_OF_ONE(cosh);
CKLANG_OF_ONE(tanh);
CKLANG_OF_ONE(asinh);
CKLANG_OF_ONE(acosh);
CKLANG_OF_ONE(atanh);
CKLANG_OF_ONE(conj);
#undef CKLANG_OF_ONE
template <typename T>
__host__ __device__ T abs(const complex<T>&);
template <typename T>
__host__ __device__ T arg(const complex<T>&);
template <typename T>
__host__ __device__ T norm(const complex<T>&);
template <typename T>
__host__ __device__ complex<T> polar(const T&, const T& = T());
template <typename T, typename U>
__host__ __device__ complex<decltype(T() * U())> pow(const complex<T>&, const complex<U>&);
template <typename T, typename U>
__host__ __device__ complex<decltype(T() * U())> pow(const complex<T>&, const U&);
template <typename T, typename U>
__host__ __device__ complex<decltype(T() * U())> pow(const T&, const complex<U>&);
}  // namespace thrust
