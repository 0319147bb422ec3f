// SPDX-License-Identifier: MIT
// Copies doubles, one a thread, in workgroups of 256: the program whose counters were published.
#include <hip/hip_runtime.h>

#include <cstdio>

__global__ void copy(const double* in, double* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}

int main() {
  constexpr int n = 1 << 20;
  double *in, *out;
  if (hipMalloc(&in, n * sizeof(double)) != hipSuccess || hipMalloc(&out, n * sizeof(double)) != hipSuccess) return 2;
  if (hipMemset(in, 1, n * sizeof(double)) != hipSuccess) return 2;
  copy<<<n / 256, 256>>>(in, out, n);
  return hipDeviceSynchronize() == hipSuccess ? 0 : 2;
}
