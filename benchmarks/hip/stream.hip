// SPDX-License-Identifier: MIT
// A sum over an array, as streams that measure the rate of memory read it: each lane a number at a time, a grid
// apart.
#include <hip/hip_runtime.h>

extern "C" __global__ void read(double* out, const double* from, long count, int never) {
  double sum = 0;
#pragma unroll 1
  for (long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += static_cast<long>(gridDim.x) * blockDim.x) {
    sum += from[i];
  }
  if (never != 0) out[0] = sum;
}
