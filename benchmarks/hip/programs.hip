// SPDX-License-Identifier: MIT
// Kernels with the behaviour of MGPUSim's reference programs (sarchlab/mgpusim, gpu_perf_scripts), written anew for
// benchmarks/clock_programs.py: the same loads and stores, barriers and arithmetic, in the same integer types.
#include <hip/hip_runtime.h>

#define KERNEL(name, type) \
  extern "C" __global__ void name(type* a, type* b, type* c, type* scratch, unsigned n, unsigned p, unsigned q)

static __device__ unsigned line() { return blockIdx.x * blockDim.x + threadIdx.x; }

KERNEL(vectoradd, float) {
  const unsigned i = line();
  if (i < n) c[i] = a[i] + b[i];
}

KERNEL(relu, float) {
  const unsigned i = line();
  if (i < n) c[i] = a[i] > 0 ? a[i] : 0;
}

// Taps before the first element come from a history.
KERNEL(fir, float) {
  const unsigned i = line();
  float sum = 0;
  for (unsigned tap = 0; tap < p; ++tap) sum += b[tap] * (i >= tap ? a[i - tap] : scratch[p - (tap - i)]);
  c[i] = sum;
}

// A padded image of integers, a mask of floats, one output a thread.
extern "C" __global__ void simpleconvolution(unsigned* image, float* mask, int* out, float*, unsigned n, unsigned size, unsigned) {
  const unsigned i = line(), x = i % n, y = i / n, wide = n + size - 1;
  if (y >= n) return;
  float sum = 0;
  for (unsigned row = 0; row < size; ++row) {
    for (unsigned column = 0; column < size; ++column) {
      sum += static_cast<float>(image[(y + row) * wide + x + column]) * mask[row * size + column];
    }
  }
  out[i] = static_cast<int>(sum + 0.5f);
}

// Features are stored feature by feature, and read again for each of `q` centres.
extern "C" __global__ void kmeans(float* features, float* centres, int* nearest, float*, int n, int p, int q) {
  const unsigned i = line();
  if (i >= static_cast<unsigned>(n)) return;
  float least = 3.4e38f;
  int best = 0;
  for (int centre = 0; centre < q; ++centre) {
    float distance = 0;
    for (int f = 0; f < p; ++f) {
      const float d = features[f * n + i] - centres[centre * p + f];
      distance += d * d;
    }
    if (distance < least) {
      least = distance;
      best = centre;
    }
  }
  nearest[i] = best;
}

// Tiles of positions go through one buffer in global memory, which all workgroups share.
KERNEL(nbody, float4) {
  const unsigned i = line(), size = blockDim.x;
  const float4 me = a[i];
  float x = 0, y = 0, z = 0;
  for (int tile = 0, tiles = n / size; tile < tiles; ++tile) {
    scratch[threadIdx.x] = a[tile * size + threadIdx.x];
    __syncthreads();
    for (unsigned other = 0; other < size; ++other) {
      const float dx = scratch[other].x - me.x, dy = scratch[other].y - me.y, dz = scratch[other].z - me.z;
      const float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 50.0f);
      const float force = scratch[other].w * (inverse * inverse * inverse);
      x += force * dx;
      y += force * dy;
      z += force * dz;
    }
    __syncthreads();
  }
  const float4 v = b[i];
  c[i] = make_float4(me.x + v.x * 0.005f + x * 1.25e-5f, me.y + v.y * 0.005f + y * 1.25e-5f, me.z + v.z * 0.005f + z * 1.25e-5f, me.w);
  c[n + i] = make_float4(v.x + x * 0.005f, v.y + y * 0.005f, v.z + z * 0.005f, v.w);
}

// 4 x 4 outputs a thread, workgroups of 8 x 8. Tiles of A go through one buffer in global memory, which all workgroups share.
KERNEL(matrixmultiplication, float4) {
  const int tx = threadIdx.x, ty = threadIdx.y, side = blockDim.x;
  const int column = side * blockIdx.x + tx, row = blockDim.y * blockIdx.y + ty, columns = gridDim.x * side;
  const int wide = n / 4, place = tx + side * ty * 4;
  float4 sum[4] = {};
  for (int step = 0; step < wide / side; ++step) {
    for (int r = 0; r < 4; ++r) scratch[place + r * side] = a[step * side + tx + (ty * 4 + r) * wide];
    __syncthreads();
    for (int k = 0; k < side; ++k) {
      float4 left[4], right[4];
      for (int r = 0; r < 4; ++r) left[r] = scratch[k + (ty * 4 + r) * side];
      for (int d = 0; d < 4; ++d) right[d] = b[column + (step * side * 4 + k * 4 + d) * columns];
      for (int r = 0; r < 4; ++r) {
        sum[r].x += left[r].x * right[0].x + left[r].y * right[1].x + left[r].z * right[2].x + left[r].w * right[3].x;
        sum[r].y += left[r].x * right[0].y + left[r].y * right[1].y + left[r].z * right[2].y + left[r].w * right[3].y;
        sum[r].z += left[r].x * right[0].z + left[r].y * right[1].z + left[r].z * right[2].z + left[r].w * right[3].z;
        sum[r].w += left[r].x * right[0].w + left[r].y * right[1].w + left[r].z * right[2].w + left[r].w * right[3].w;
      }
    }
    __syncthreads();
  }
  for (int r = 0; r < 4; ++r) c[column + (row * 4 + r) * columns] = sum[r];
}

// One output column a thread, as a convolution of stride 1 without padding. There are as many channels as images: one,
// which the compiler does not know.
extern "C" __global__ void im2col(float* image, float*, float* out, float*, unsigned n, unsigned mask, unsigned images) {
  const unsigned i = line();
  const int wide = n, size = mask, field = n - mask + 1, all = field * field * images;
  const int in_image = i % (field * field), x0 = in_image % field, y0 = in_image / field, image_of = i / (field * field);
  if (image_of >= static_cast<int>(images)) return;
  for (int place = 0; place < size * size * static_cast<int>(images); ++place) {
    const int channel = place / (size * size), y = y0 + place % (size * size) / size, x = x0 + place % size;
    float value = 0;
    if (x >= 0 && y >= 0 && x < wide && y < wide) value = image[(image_of * images + channel) * wide * wide + y * wide + x];
    out[place * all + i] = value;
  }
}

// Tiles of 64 x 64 through the LDS; workgroups walk along diagonals.
extern "C" __global__ void matrixtranspose(float4* __restrict__ in, float4*, float4* __restrict__ out, float4*, unsigned n, unsigned, unsigned) {
  __shared__ float4 tile[1024];
  const unsigned tx = threadIdx.x, ty = threadIdx.y, side = blockDim.x, wide = n / 4;
  const unsigned tile_y = blockIdx.x, tile_x = (blockIdx.x + blockIdx.y) % gridDim.x;
  const int from = tile_x * side + tx + (tile_y * side + ty) * wide * 4;
  for (int r = 0; r < 4; ++r) tile[ty * side * 4 + tx + side * r] = in[from + wide * r];
  __syncthreads();
  const int to = tile_y * side + tx + (tile_x * side + ty) * wide * 4;
  float4 row[4];
  for (int r = 0; r < 4; ++r) row[r] = tile[tx * side * 4 + ty + side * r];
  out[to] = make_float4(row[0].x, row[1].x, row[2].x, row[3].x);
  out[to + wide] = make_float4(row[0].y, row[1].y, row[2].y, row[3].y);
  out[to + wide * 2] = make_float4(row[0].z, row[1].z, row[2].z, row[3].z);
  out[to + wide * 3] = make_float4(row[0].w, row[1].w, row[2].w, row[3].w);
}

// Nine points; a workgroup of 64 threads computes 16 rows, which it holds in the LDS with one more on each side.
KERNEL(stencil2d, float) {
  __shared__ float tile[18 * 66];
  const int pitch = (gridDim.y * 64 + 2 + 15) / 16 * 16, column = threadIdx.y, first = blockIdx.x * 16;
  float* from = a + blockIdx.y * 64 + column + 1;
  for (int r = 0; r < 18; ++r) tile[r * 66 + column + 1] = from[(first + r) * pitch];
  if (column == 0) {
    for (int r = 0; r < 18; ++r) tile[r * 66] = from[(first + r) * pitch - 1];
  } else if (column == 63) {
    for (int r = 0; r < 18; ++r) tile[r * 66 + 65] = from[(first + r) * pitch + 1];
  }
  __syncthreads();
  for (int r = 0; r < 16; ++r) {
    const float* up = tile + r * 66 + column + 1;
    const float beside = up[0] + up[132] + up[65] + up[67], diagonal = up[-1] + up[1] + up[131] + up[133];
    c[(first + r + 1) * pitch + blockIdx.y * 64 + column + 1] = 0.25f * up[66] + 0.15f * beside + 0.05f * diagonal;
  }
}

// One row a thread: values in `a`, the vector in `b`, first elements of rows and then columns in `scratch`.
extern "C" __global__ void spmv_csr_scalar(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                           const int* __restrict__ scratch, int n, int columns, int) {
  const int i = line();
  if (i >= n) return;
  float sum = 0;
  for (int j = scratch[i], end = scratch[i + 1]; j < end; ++j) sum += a[j] * b[scratch[columns + j]];
  c[i] = sum;
}
