// SPDX-License-Identifier: MIT
//
// Plain HIP kernels as programs have them, for benchmarks/emulator.py.
#include <hip/hip_runtime.h>

constexpr int kTile = 16;

/// C = A B of N x N numbers, by tiles in LDS.
extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned long n) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int x = threadIdx.x % kTile, y = threadIdx.x / kTile, tiles = n / kTile;
  const int row = blockIdx.x / tiles * kTile + y, column = blockIdx.x % tiles * kTile + x;
  float sum = 0;
  for (int k = 0; k < static_cast<int>(n); k += kTile) {
    left[y][x] = a[row * n + k + x];
    right[y][x] = b[(k + y) * n + column];
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += left[y][i] * right[i][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

/// Accelerations of bodies (x, y, z, mass) that attract each other.
extern "C" __global__ void nbody(const float4* bodies, float4* result, unsigned long count) {
  __shared__ float4 part[256];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 own = bodies[i];
  float x = 0, y = 0, z = 0;
  for (unsigned first = 0; first < count; first += blockDim.x) {
    part[threadIdx.x] = bodies[first + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 256; ++j) {
      const float dx = part[j].x - own.x, dy = part[j].y - own.y, dz = part[j].z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      const float pull = part[j].w * inverse * inverse * inverse;
      x += dx * pull;
      y += dy * pull;
      z += dz * pull;
    }
    __syncthreads();
  }
  result[i] = make_float4(x, y, z, own.w);
}

/// Counts of 256 bytes' values, in LDS first.
extern "C" __global__ void histogram(const unsigned* words, unsigned* counts, unsigned long size) {
  __shared__ unsigned local[256];
  local[threadIdx.x] = 0;
  __syncthreads();
  const unsigned long step = static_cast<unsigned long>(gridDim.x) * blockDim.x;
  for (unsigned long n = blockIdx.x * blockDim.x + threadIdx.x; n < size; n += step) {
    const unsigned word = words[n];
    atomicAdd(&local[word & 255], 1u);
    atomicAdd(&local[word >> 8 & 255], 1u);
    atomicAdd(&local[word >> 16 & 255], 1u);
    atomicAdd(&local[word >> 24], 1u);
  }
  __syncthreads();
  atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}

/// The mean of five neighbours in a field of size x size numbers.
extern "C" __global__ void stencil(const float* from, float* to, unsigned long size) {
  const unsigned n = static_cast<unsigned>(size), wide = n / 64;
  const unsigned x = blockIdx.x % wide * 64 + threadIdx.x % 64, y = blockIdx.x / wide * 4 + threadIdx.x / 64;
  if (x == 0 || y == 0 || x + 1 >= n || y + 1 >= n) return;
  const unsigned at = y * n + x;
  to[at] = 0.2f * (from[at] + from[at - 1] + from[at + 1] + from[at - n] + from[at + n]);
}

/// The sum of many numbers, a tree in LDS for each workgroup.
extern "C" __global__ void reduction(const float* from, float* sums, unsigned long size) {
  __shared__ float part[256];
  float sum = 0;
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned n = blockIdx.x * blockDim.x + threadIdx.x; n < size; n += step) sum += from[n];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = 128; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}
