// SPDX-License-Identifier: MIT
// bfloat16 as HIP's older header spells it; CK Tile defines its own and only includes this file.
#pragma once

#include <hip/hip_runtime.h>

struct hip_bfloat16
{
    __bf16 data;

    hip_bfloat16() = default;
    __host__ __device__ explicit hip_bfloat16(float x) : data(static_cast<__bf16>(x)) {}
    __host__ __device__ operator float() const { return static_cast<float>(data); }
};
