// SPDX-License-Identifier: MIT
// Kernels whose requests to the L2 can be counted by hand: 16 workgroups of one wave.
#include <hip/hip_runtime.h>

// Each lane reads a line of its own.
__global__ void strided(const float* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[32 * i];
}

// All workgroups read the same two lines.
__global__ void same(const float* in, float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = in[threadIdx.x]; }

// All workgroups change the same two lines.
__global__ void count(int* counts) { atomicAdd(&counts[threadIdx.x], 1); }

int main() {
  constexpr int groups = 16, threads = 64;
  float *in, *out;
  if (hipMalloc(&in, 32 * groups * threads * sizeof(float)) != hipSuccess) return 2;
  if (hipMalloc(&out, groups * threads * sizeof(float)) != hipSuccess) return 2;
  if (hipMemset(in, 0, 32 * groups * threads * sizeof(float)) != hipSuccess) return 2;
  if (hipMemset(out, 0, groups * threads * sizeof(float)) != hipSuccess) return 2;
  strided<<<groups, threads>>>(in, out);
  same<<<groups, threads>>>(in, out);
  count<<<groups, threads>>>(reinterpret_cast<int*>(out));
  return hipDeviceSynchronize() == hipSuccess ? 0 : 2;
}
