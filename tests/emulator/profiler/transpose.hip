// SPDX-License-Identifier: MIT
// Transposes a matrix through the LDS, in tiles without padding: lanes that read a column conflict.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

constexpr int kTile = 32;

__global__ void transpose(const float* in, float* out, int n) {
  __shared__ float tile[kTile][kTile];
  const int x = blockIdx.x * kTile, y = blockIdx.y * kTile;
  for (int row = threadIdx.y; row < kTile; row += blockDim.y) {
    tile[row][threadIdx.x] = in[(y + row) * n + x + threadIdx.x];
  }
  __syncthreads();
  for (int row = threadIdx.y; row < kTile; row += blockDim.y) {
    out[(x + row) * n + y + threadIdx.x] = tile[threadIdx.x][row];
  }
}

int main(int count, char** words) {
  const int n = count > 1 ? std::atoi(words[1]) : 256;
  std::vector<float> host(n * n);
  for (int i = 0; i < n * n; ++i) host[i] = static_cast<float>(i);
  float *in, *out;
  if (hipMalloc(&in, host.size() * 4) != hipSuccess || hipMalloc(&out, host.size() * 4) != hipSuccess) return 2;
  if (hipMemcpy(in, host.data(), host.size() * 4, hipMemcpyHostToDevice) != hipSuccess) return 2;
  transpose<<<dim3(n / kTile, n / kTile), dim3(kTile, 8)>>>(in, out, n);
  if (hipMemcpy(host.data(), out, host.size() * 4, hipMemcpyDeviceToHost) != hipSuccess) return 2;
  int wrong = 0;
  for (int y = 0; y < n; ++y) {
    for (int x = 0; x < n; ++x) wrong += host[y * n + x] != static_cast<float>(x * n + y);
  }
  std::printf("%s\n", wrong == 0 ? "correct" : "wrong");
  return wrong != 0;
}
