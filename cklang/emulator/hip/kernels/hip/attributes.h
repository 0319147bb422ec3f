// SPDX-License-Identifier: MIT
// Function and variable attributes of the HIP language.
#pragma once

// __noinline__ is a keyword of the language.
#if defined(__HIP__)
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#else
// Plain C++ that calls the host API.
#define __host__
#define __device__
#endif
#define __forceinline__ inline __attribute__((always_inline))

// __launch_bounds__(threads) or __launch_bounds__(threads, waves per SIMD wanted).
#define CKLANG_BOUNDS_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define CKLANG_BOUNDS_2(threads, waves) \
    __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define CKLANG_BOUNDS_PICK(_1, _2, name, ...) name
#define __launch_bounds__(...) \
    CKLANG_BOUNDS_PICK(__VA_ARGS__, CKLANG_BOUNDS_2, CKLANG_BOUNDS_1, )(__VA_ARGS__)
