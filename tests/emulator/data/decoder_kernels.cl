// SPDX-License-Identifier: MIT
// Kernels for test_decoder_kernels.py: OpenCL C without its library, one kernel a kind of instruction.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x16 __attribute__((ext_vector_type(16)));
typedef half f16x4 __attribute__((ext_vector_type(4)));

static unsigned index_of_item(void) {
  return __builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x();
}

kernel void arithmetic(global float *out, global float *in, float scale, unsigned count) {
  const unsigned i = index_of_item();
  if (i >= count) return;
  const float x = in[i] * scale;
  out[i] = x > 1.5f ? __builtin_fabsf(x) + in[count - 1 - i] / x : -x * x - 0.5f;
}

kernel void integers(global unsigned *out, global unsigned *in, unsigned count, unsigned divisor) {
  unsigned sum = 0;
  for (unsigned i = index_of_item(); i < count; i += 1024) {
    const unsigned x = in[i];
    sum += (x / divisor) ^ (x << 7 | x >> 25) ^ (unsigned)((unsigned long)x * 0x9e3779b9u >> 32);
    sum += __builtin_popcount(x) + __builtin_clz(x | 1);
  }
  __scoped_atomic_fetch_add(out, sum, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

kernel void halves(global half *out, global half *in, unsigned count) {
  const unsigned i = index_of_item();
  const half a = in[2 * i], b = in[2 * i + 1];
  out[i] = i < count ? a * b + (half)0.5 : a - b;
}

kernel void doubles(global double *out, global double *in) {
  const unsigned i = index_of_item();
  out[i] = in[i] * in[i + 1] + 2.0 / in[i];
}

kernel void shared(global float *out, global float *in) {
  local float shared_tile[512];
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  shared_tile[i] = in[index_of_item()];
  shared_tile[i + 256] = in[index_of_item() + 65536];
  __builtin_amdgcn_s_barrier();
  out[index_of_item()] = shared_tile[255 - i] + shared_tile[(i * 7 & 255) + 256];
}

kernel void lanes(global unsigned *out, global unsigned *in) {
  unsigned x = in[index_of_item()];
  x += (unsigned)__builtin_amdgcn_update_dpp(0, (int)x, 0x111, 15, 15, 0);
  x ^= (unsigned)__builtin_amdgcn_ds_bpermute((int)(x & 63) * 4, (int)x);
  x += (unsigned)__builtin_amdgcn_readfirstlane((int)x);
  out[index_of_item()] = __builtin_amdgcn_perm(x, x >> 3, 0x07060302u);
}

#ifdef __GFX9__
kernel void matrix(global float *out, global f16x4 *a, global f16x4 *b, unsigned steps) {
  const unsigned lane = __builtin_amdgcn_workitem_id_x();
  f32x4 small = 0;
  f32x16 large = 0;
  for (unsigned k = 0; k < steps; ++k) {
    small = __builtin_amdgcn_mfma_f32_16x16x16f16(a[k * 64 + lane], b[k * 64 + lane], small, 0, 0, 0);
    large = __builtin_amdgcn_mfma_f32_32x32x8f16(a[k * 64 + lane], b[k * 64 + lane], large, 0, 0, 0);
  }
  for (int r = 0; r < 4; ++r) out[lane * 4 + r] = small[r];
  for (int r = 0; r < 16; ++r) out[256 + lane * 16 + r] = large[r];
}
#else
// The shares of a lane of 32: gfx11 holds A and B twice.
typedef float f32x8 __attribute__((ext_vector_type(8)));
#ifdef __GFX11__
typedef half f16_share __attribute__((ext_vector_type(16)));
#define WMMA __builtin_amdgcn_wmma_f32_16x16x16_f16_w32
#else
typedef half f16_share __attribute__((ext_vector_type(8)));
#define WMMA __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12
#endif
#ifndef CKLANG_WAVE64
kernel void matrix(global float *out, global f16_share *a, global f16_share *b, unsigned steps) {
  const unsigned lane = __builtin_amdgcn_workitem_id_x();
  f32x8 sum = 0;
  for (unsigned k = 0; k < steps; ++k) sum = WMMA(a[k * 32 + lane], b[k * 32 + lane], sum);
  for (int r = 0; r < 8; ++r) out[lane * 8 + r] = sum[r];
}
#endif
#endif
