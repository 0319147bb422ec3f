// SPDX-License-Identifier: MIT
// Half precision: CK Tile uses the compiler's _Float16; these are the names HIP code expects.
#pragma once

#include <hip/hip_runtime.h>

using __half = _Float16;
using half   = _Float16;

static __host__ __device__ __forceinline__ float __half2float(__half x)
{
    return static_cast<float>(x);
}
static __host__ __device__ __forceinline__ __half __float2half(float x)
{
    return static_cast<__half>(x);
}
