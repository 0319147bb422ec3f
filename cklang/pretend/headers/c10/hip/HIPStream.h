// SPDX-License-Identifier: MIT
// torch's streams on a GPU that is pretended: the default one.
#pragma once
#include <c10/core/Device.h>
#include <hip/hip_runtime.h>

#include <stdexcept>
#include <string>

namespace c10::hip {
struct HIPStream {
  hipStream_t stream() const { return nullptr; }
  operator hipStream_t() const { return nullptr; }
  void synchronize() const { (void)hipDeviceSynchronize(); }
};
inline HIPStream getCurrentHIPStream(int = -1) { return {}; }
inline HIPStream getDefaultHIPStream(int = -1) { return {}; }
struct HIPGuard {
  explicit HIPGuard(int) {}
  explicit HIPGuard(c10::Device) {}
};
using OptionalHIPGuard = HIPGuard;
inline void check(hipError_t status) {
  if (status != hipSuccess) throw std::runtime_error(std::string("HIP error: ") + hipGetErrorString(status));
}
}  // namespace c10::hip
namespace c10::cuda {
using CUDAStream = hip::HIPStream;
using CUDAGuard = hip::HIPGuard;
using OptionalCUDAGuard = hip::HIPGuard;
inline CUDAStream getCurrentCUDAStream(int = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(int = -1) { return {}; }
}  // namespace c10::cuda
namespace at::hip {
using namespace c10::hip;
}
namespace at::cuda {
using namespace c10::cuda;
}
#define C10_HIP_CHECK(call) ::c10::hip::check(call)
#define AT_HIP_CHECK(call) ::c10::hip::check(call)
#define C10_HIP_KERNEL_LAUNCH_CHECK() ::c10::hip::check(hipGetLastError())
#define C10_CUDA_CHECK(call) ::c10::hip::check(call)
#define AT_CUDA_CHECK(call) ::c10::hip::check(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ::c10::hip::check(hipGetLastError())
