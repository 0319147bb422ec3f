// SPDX-License-Identifier: MIT
//
// Kernels in pairs: the second of each lacks what the first one waits for, and computes the same.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

constexpr int kTile = 32, kSize = 128, kRounds = 32;

/// Columns of a tile in the LDS, whose rows are `kWidth` words long: 32 or, padded, 33.
template <int kWidth>
__device__ void columns(const float* in, float* out) {
  __shared__ float tile[kTile][kWidth];
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile, at = blockIdx.x * blockDim.x + threadIdx.x;
  for (int row = y; row < kTile; row += 8) tile[row][x] = in[at] + row;
  __syncthreads();
  float sum = 0;
  for (int column = y; column < kTile; column += 8) sum += tile[x][column];
  out[at] = sum;
}
extern "C" __global__ void conflicts(const float* in, float* out) { columns<32>(in, out); }
extern "C" __global__ void padded(const float* in, float* out) { columns<33>(in, out); }

/// Waves that have different work between barriers, or none of those.
template <bool kBarrier>
__device__ void rounds(const float* in, float* out) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, wave = threadIdx.x / 64;
  float value = in[at];
  for (int round = 0; round < kRounds; ++round) {
    const int steps = round % 4 == wave ? 64 : 4;
#pragma clang loop unroll(disable)
    for (int step = 0; step < steps; ++step) value = value * 0.5f + 1;
    if (kBarrier) __syncthreads();
  }
  out[at] = value;
}
extern "C" __global__ void barriers(const float* in, float* out) { rounds<true>(in, out); }
extern "C" __global__ void no_barriers(const float* in, float* out) { rounds<false>(in, out); }

/// Loads that are waited for at once, or all before the first is used.
template <bool kAhead>
__device__ void chain(const float* in, float* out) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x, all = gridDim.x * blockDim.x;
  float values[8], sum = 0;
  for (int n = 0; n < 8; ++n) {
    values[n] = in[(at + n * 64) % all];
    if (!kAhead) sum += values[n];
    if (!kAhead) asm volatile("" : "+v"(sum));
  }
  if (kAhead) {
    for (int n = 0; n < 8; ++n) sum += values[n];
  }
  out[at] = sum;
}
extern "C" __global__ void waiting(const float* in, float* out) { chain<false>(in, out); }
extern "C" __global__ void ahead(const float* in, float* out) { chain<true>(in, out); }

int main() {
  const int count = kSize * kSize;
  std::vector<float> numbers(count), results(count), others(count);
  for (int n = 0; n < count; ++n) numbers[n] = n % 17;
  float *in, *out;
  hipMalloc(&in, count * sizeof(float));
  hipMalloc(&out, count * sizeof(float));
  hipMemcpy(in, numbers.data(), count * sizeof(float), hipMemcpyHostToDevice);
  using Function = void (*)(const float*, float*);
  const Function pairs[][2] = {{conflicts, padded}, {barriers, no_barriers}, {waiting, ahead}};
  bool same = true;
  for (const auto& pair : pairs) {
    pair[0]<<<count / 256, 256>>>(in, out);
    hipMemcpy(results.data(), out, count * sizeof(float), hipMemcpyDeviceToHost);
    pair[1]<<<count / 256, 256>>>(in, out);
    hipMemcpy(others.data(), out, count * sizeof(float), hipMemcpyDeviceToHost);
    same = same && results == others;
  }
  std::puts(same ? "same" : "different");
  return same ? 0 : 1;
}
