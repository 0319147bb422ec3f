// SPDX-License-Identifier: MIT
// A second source with kernels of its own.
#include "scale.h"

#include <hip/hip_runtime.h>

__global__ static void multiply(int* data, int n, int factor)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if(i < n)
        data[i] *= factor;
}
__global__ static void set(int* where, int value) { *where = value; }

void scale(int* data, int n, int factor, hipStream_t stream)
{
    multiply<<<(n + 63) / 64, 64, 0, stream>>>(data, n, factor);
}
void set_managed(int* where, int value) { set<<<1, 1>>>(where, value); }
