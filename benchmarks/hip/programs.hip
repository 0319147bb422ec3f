// SPDX-License-Identifier: MIT
// Kernels written from the descriptions of MGPUSim's reference programs; benchmarks/clock_programs.py times them.
#include <hip/hip_runtime.h>

extern "C" __global__ void vectoradd(const float* a, const float* b, float* c, int n, int, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void relu(const float* a, const float*, float* c, int n, int, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] > 0 ? a[i] : 0;
}

extern "C" __global__ void fir(const float* a, const float* b, float* c, int n, int taps, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int t = 0; t < taps; ++t) sum += b[t] * (i >= t ? a[i - t] : 0.0f);
  c[i] = sum;
}

// A padded image, one output a thread.
extern "C" __global__ void simpleconvolution(const unsigned* a, const float* b, unsigned* c, int n, int mask, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int x = i % n, y = i / n, width = n + mask - 1;
  if (y >= n) return;
  float sum = 0;
  for (int v = 0; v < mask; ++v) {
    for (int u = 0; u < mask; ++u) sum += static_cast<float>(a[(y + v) * width + x + u]) * b[v * mask + u];
  }
  c[i] = static_cast<unsigned>(sum);
}

// Features are stored feature by feature.
extern "C" __global__ void kmeans(const float* a, const float* b, int* c, int n, int features, int clusters) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float least = 3.4e38f;
  int best = 0;
  for (int k = 0; k < clusters; ++k) {
    float distance = 0;
    for (int f = 0; f < features; ++f) {
      const float d = a[f * n + i] - b[k * features + f];
      distance += d * d;
    }
    if (distance < least) {
      least = distance;
      best = k;
    }
  }
  c[i] = best;
}

extern "C" __global__ void nbody(const float4* a, const float4* b, float4* c, int n, int, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 p = a[i];
  float x = 0, y = 0, z = 0;
  for (int j = 0; j < n; ++j) {
    const float4 q = b[j];
    const float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
    const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 50.0f);
    const float s = q.w * inverse * inverse * inverse;
    x += dx * s;
    y += dy * s;
    z += dz * s;
  }
  c[i] = make_float4(p.x + x, p.y + y, p.z + z, p.w);
}

// 4 x 4 outputs a thread, workgroups of 8 x 8.
extern "C" __global__ void matrixmultiplication(const float4* a, const float4* b, float4* c, int n, int, int) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = (blockIdx.y * blockDim.y + threadIdx.y) * 4, wide = n / 4;
  float4 sum[4] = {};
  for (int k = 0; k < wide; ++k) {
    float4 left[4];
    for (int r = 0; r < 4; ++r) left[r] = a[(row + r) * wide + k];
    for (int d = 0; d < 4; ++d) {
      const float4 right = b[(4 * k + d) * wide + column];
      for (int r = 0; r < 4; ++r) {
        const float l = d == 0 ? left[r].x : d == 1 ? left[r].y : d == 2 ? left[r].z : left[r].w;
        sum[r].x += l * right.x;
        sum[r].y += l * right.y;
        sum[r].z += l * right.z;
        sum[r].w += l * right.w;
      }
    }
  }
  for (int r = 0; r < 4; ++r) c[(row + r) * wide + column] = sum[r];
}

// One output column a thread.
extern "C" __global__ void im2col(const float* a, const float*, float* c, int n, int mask, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, size = n - mask + 1;
  if (i >= size * size) return;
  const int x = i % size, y = i / size;
  for (int v = 0; v < mask; ++v) {
    for (int u = 0; u < mask; ++u) c[(v * mask + u) * size * size + i] = a[(y + v) * n + x + u];
  }
}
