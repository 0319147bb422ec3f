// SPDX-License-Identifier: MIT
// A fused layer norm and a rotary embedding that do what HipKittens' kernels of these names do, written anew from
// their description for benchmarks/clock_norms.py: the same loads and stores, waits and arithmetic, all of it in
// bf16, rounded after each step.
#include <hip/hip_runtime.h>
#include <rocrand/rocrand_kernel.h>

// Each step rounds.
#pragma clang fp contract(off)

typedef __bf16 Piece __attribute__((ext_vector_type(8)));
typedef unsigned Words __attribute__((ext_vector_type(4)));

static __device__ __amdgpu_buffer_rsrc_t buffer_of(const __bf16* first, unsigned bytes) {
  return __builtin_amdgcn_make_buffer_rsrc(const_cast<__bf16*>(first), 0, bytes, 0x00020000);
}

static __device__ Piece load(__amdgpu_buffer_rsrc_t from, int at) {
  return __builtin_bit_cast(Piece, __builtin_amdgcn_raw_buffer_load_b128(from, at, 0, 0));
}

static __device__ void store(__amdgpu_buffer_rsrc_t to, int at, Piece value) {
  __builtin_amdgcn_raw_buffer_store_b128(__builtin_bit_cast(Words, value), to, at, 0, 0);
}

// Nothing that loads or stores moves across it.
static __device__ void wait_for_loads() {
  __builtin_amdgcn_s_waitcnt(0x0f70);
  __builtin_amdgcn_sched_barrier(0);
}

constexpr int kPieces = 4, kElements = 32;

// 32 neighbours of a row of 2048.
struct Row {
  __bf16 element[kElements];

  __device__ void load(__amdgpu_buffer_rsrc_t from) {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      const Piece value = ::load(from, threadIdx.x % 64 * 64 + piece * 16);
#pragma unroll
      for (int n = 0; n < 8; ++n) element[piece * 8 + n] = value[n];
    }
  }
  __device__ void store(__amdgpu_buffer_rsrc_t to) const {
#pragma unroll
    for (int piece = 0; piece < kPieces; ++piece) {
      Piece value;
#pragma unroll
      for (int n = 0; n < 8; ++n) value[n] = element[piece * 8 + n];
      ::store(to, threadIdx.x % 64 * 64 + piece * 16, value);
    }
  }
  template <typename F>
  __device__ void each(F function) {
#pragma unroll
    for (int n = 0; n < kElements; ++n) element[n] = function(element[n], n);
  }
  // Of the whole row: each lane adds its own, then the halves of the wave add each other's.
  __device__ __bf16 sum() const {
    __bf16 total = element[0];
#pragma unroll
    for (int n = 1; n < kElements; ++n) total += element[n];
#pragma unroll
    for (int lanes = 32; lanes > 0; lanes /= 2) {
      total += __builtin_bit_cast(__bf16, static_cast<short>(__shfl_down(__builtin_bit_cast(short, total), lanes)));
    }
    return __builtin_bit_cast(__bf16, static_cast<short>(__shfl(__builtin_bit_cast(short, total), 0)));
  }
};

// Drops out, adds a residual and normalises, a row a wave; both the sum and its norm are written.
extern "C" __global__ void __launch_bounds__(256)
    layer_norm(const __bf16* x, const __bf16* residual, __bf16* norm, __bf16* sum, const __bf16* weight, const __bf16* bias) {
  constexpr unsigned kWidth = 2048, kBytes = 2 * kWidth;
  const size_t first = (static_cast<size_t>(blockIdx.y) * gridDim.x * 4 + blockIdx.x * 4 + threadIdx.x / 64) * kWidth;
  Row row, added, gain, shift;
  row.load(buffer_of(x + first, kBytes));
  wait_for_loads();
  added.load(buffer_of(residual + first, kBytes));
  rocrand_state_philox4x32_10 state;
  rocrand_init(clock64(), blockIdx.x * blockDim.x + threadIdx.x, 0, &state);
  row.each([&](__bf16 each, int) { return rocrand_uniform(&state) < 0.01f ? __bf16(0) : each; });
  row.each([](__bf16 each, int) { return each * __bf16(1 / 0.99f); });
  wait_for_loads();
  gain.load(buffer_of(weight, kBytes));
  shift.load(buffer_of(bias, kBytes));
  added.each([&](__bf16 each, int n) { return each + row.element[n]; });
  added.store(buffer_of(sum + first, kBytes));
  const __bf16 mean = added.sum() * __bf16(1.0f / kWidth);
  added.each([&](__bf16 each, int) { return each - mean; });
  row = added;
  row.each([](__bf16 each, int) { return each * each; });
  const __bf16 variance = row.sum() * __bf16(1.0f / kWidth);
  const __bf16 deviation = __bf16(sqrtf(static_cast<float>(variance + __bf16(1e-5f))));
  added.each([&](__bf16 each, int) { return __bf16(static_cast<float>(each) / static_cast<float>(deviation)); });
  wait_for_loads();
  added.each([&](__bf16 each, int n) { return each * gain.element[n]; });
  added.each([&](__bf16 each, int n) { return each + shift.element[n]; });
  added.store(buffer_of(norm + first, kBytes));
}

// 32 rows of 32 or more columns, of which a lane holds pieces of eight: in a square of 32, of row `lane % 32` those
// from column `lane / 32 * 8` on, and 16 columns further right.
template <int kColumns>
struct Tile {
  static constexpr int kCount = kColumns / 16;
  Piece piece[kCount];

  __device__ static int at(int n, int columns) {
    const int lane = threadIdx.x % 64;
    return 2 * (lane % 32 * columns + n * 16 + lane / 32 * 8);
  }
  __device__ void load(__amdgpu_buffer_rsrc_t from) {
#pragma unroll
    for (int n = 0; n < kCount; ++n) piece[n] = ::load(from, at(n, kColumns));
  }
  __device__ void store(__amdgpu_buffer_rsrc_t to) const {
#pragma unroll
    for (int n = 0; n < kCount; ++n) ::store(to, at(n, kColumns), piece[n]);
  }
};

// Turns the two halves of 32 rows of 128 against each other, a wave a workgroup.
extern "C" __global__ void __launch_bounds__(64)
    rotary(const __bf16* x, const __bf16* sine, const __bf16* cosine, __bf16* out) {
  constexpr unsigned kBytes = 2 * 32 * 128;
  const size_t head = blockIdx.y * gridDim.x + blockIdx.x;
  const size_t first = (head * gridDim.z + blockIdx.z) * 32 * 128;
  const size_t turn = static_cast<size_t>(blockIdx.z) * 32 * 64;
  Tile<128> tile;
  Tile<64> sines, cosines;
  tile.load(buffer_of(x + first, kBytes));
  cosines.load(buffer_of(cosine + turn, kBytes / 2));
  sines.load(buffer_of(sine + turn, kBytes / 2));
  wait_for_loads();
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    const Piece left = tile.piece[n], right = tile.piece[n + 4];
    const Piece left_turned = left * cosines.piece[n], right_sine = right * sines.piece[n];
    const Piece right_turned = right * cosines.piece[n], left_sine = left * sines.piece[n];
    tile.piece[n] = left_turned - right_sine;
    tile.piece[n + 4] = right_turned + left_sine;
  }
  tile.store(buffer_of(out + first, kBytes));
}
