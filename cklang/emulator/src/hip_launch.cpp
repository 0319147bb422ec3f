// SPDX-License-Identifier: MIT
//
// HIP: launches, of loaded kernels and of those of the host program.
#include "registered.h"

namespace ckemu {

namespace {

/// Words of the `extra` list of hipModuleLaunchKernel.
constexpr u64 kExtraPointer = 1, kExtraSize = 2, kExtraEnd = 3;

struct ArgumentBuffer {
  const u8* bytes = nullptr;
  size_t size = 0;
};

hipError_t read_extra(void** extra, ArgumentBuffer& buffer) {
  for (; reinterpret_cast<u64>(*extra) != kExtraEnd; extra += 2) {
    const u64 word = reinterpret_cast<u64>(*extra);
    if (word == kExtraPointer) {
      buffer.bytes = static_cast<const u8*>(extra[1]);
    } else if (word == kExtraSize) {
      buffer.size = *static_cast<const size_t*>(extra[1]);
    } else {
      return hipErrorInvalidValue;
    }
  }
  return buffer.bytes == nullptr && buffer.size != 0 ? hipErrorInvalidValue : hipSuccess;
}

hipError_t launch_with(Function& function, const LaunchShape& shape, void** parameters, void** extra) {
  if (parameters != nullptr && extra != nullptr) return hipErrorInvalidValue;
  if (extra != nullptr) {
    ArgumentBuffer buffer;
    if (const hipError_t error = read_extra(extra, buffer); error != hipSuccess) return error;
    return launch(function, shape, buffer.bytes, buffer.size);
  }
  if (parameters == nullptr && explicit_bytes(*function.kernel) != 0) return hipErrorInvalidValue;
  const std::vector<u8> bytes = gather_arguments(*function.kernel, parameters);
  return launch(function, shape, bytes.data(), bytes.size());
}

hipError_t launch_module(void* handle, const LaunchShape& shape, void** parameters, void** extra) {
  Function* function = function_of(handle);
  return function != nullptr ? launch_with(*function, shape, parameters, extra) : hipErrorInvalidHandle;
}

hipError_t launch_host(const void* host, const LaunchShape& shape, void** parameters) {
  Function* function = nullptr;
  const hipError_t error = kernel_behind(host, current_device(), &function);
  return error == hipSuccess ? launch_with(*function, shape, parameters, nullptr) : error;
}

LaunchShape shape_of(Dim3 grid, Dim3 block, size_t dynamic_lds) {
  return {grid, block, static_cast<u32>(dynamic_lds < 0xffffffffu ? dynamic_lds : 0xffffffffu)};
}

}  // namespace

CKEMU_EXPORT hipError_t hipModuleLaunchKernel(void* function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x,
                                              u32 block_y, u32 block_z, u32 dynamic_lds, void*, void** parameters,
                                              void** extra) {
  const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds};
  return finish(launch_module(function, shape, parameters, extra));
}
CKEMU_EXPORT hipError_t hipLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** parameters,
                                        size_t dynamic_lds, void*) {
  return finish(launch_host(function, shape_of(grid, block, dynamic_lds), parameters));
}
CKEMU_EXPORT hipError_t hipLaunchKernel_spt(const void* function, Dim3 grid, Dim3 block, void** parameters,
                                            size_t dynamic_lds, void* stream) {
  return hipLaunchKernel(function, grid, block, parameters, dynamic_lds, stream);
}

}  // namespace ckemu
