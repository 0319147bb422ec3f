// SPDX-License-Identifier: MIT
//
// HIP: what is known of a kernel, and how many blocks of it a device holds.
#include <algorithm>

#include "hip/registered.h"

namespace ckemu {

namespace {

enum FunctionAttribute : int { kMaxDynamicLds = 8, kCarveout = 9 };

u32 free_lds(const Function& function) {
  const u32 all = function.module->device->spec->lds_bytes, own = function.kernel->lds_bytes;
  return own < all ? all - own : 0;
}

/// HIP_FUNC_ATTRIBUTE_* in order.
using Value = u32 (*)(const Function&);
constexpr Value kValues[] = {
    [](const Function& f) { return f.kernel->max_threads; },
    [](const Function& f) { return f.kernel->lds_bytes; },
    [](const Function&) { return 0u; },  // constant memory is global memory
    [](const Function& f) { return f.kernel->private_bytes; },
    [](const Function& f) { return f.kernel->vgprs; },
    [](const Function& f) { return f.module->device->spec->major * 10 + f.module->device->spec->minor; },
    [](const Function& f) { return f.module->device->spec->major * 10 + f.module->device->spec->minor; },
    [](const Function&) { return 0u; },
    [](const Function& f) { return free_lds(f); },
    [](const Function&) { return 0u; },
};
constexpr int kValueCount = sizeof kValues / sizeof *kValues;

hipError_t get_attribute(int* value, int attribute, const void* handle) {
  Function* function = nullptr;
  if (value == nullptr || attribute < 0 || attribute >= kValueCount) return hipErrorInvalidValue;
  const hipError_t error = kernel_behind(handle, current_device(), &function);
  if (error == hipSuccess) *value = static_cast<int>(kValues[attribute](*function));
  return error;
}

hipError_t get_attributes(hipFuncAttributes* attributes, const void* handle) {
  Function* function = nullptr;
  if (attributes == nullptr) return hipErrorInvalidValue;
  if (const hipError_t error = kernel_behind(handle, current_device(), &function); error != hipSuccess) return error;
  const auto value = [&](int attribute) { return static_cast<int>(kValues[attribute](*function)); };
  *attributes = hipFuncAttributes{};
  attributes->maxThreadsPerBlock = value(0);
  attributes->sharedSizeBytes = function->kernel->lds_bytes;
  attributes->localSizeBytes = function->kernel->private_bytes;
  attributes->numRegs = value(4);
  attributes->ptxVersion = value(5);
  attributes->binaryVersion = value(6);
  attributes->maxDynamicSharedSizeBytes = value(kMaxDynamicLds);
  return hipSuccess;
}

hipError_t set_attribute(const void* handle, int attribute, int value) {
  Function* function = nullptr;
  if (const hipError_t error = kernel_behind(handle, current_device(), &function); error != hipSuccess) return error;
  // Dynamic LDS is limited by the device alone, and there is no L1 to share it with.
  if (attribute == kCarveout) return hipSuccess;
  if (attribute != kMaxDynamicLds || value < 0) return hipErrorInvalidValue;
  return static_cast<u32>(value) <= free_lds(*function) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t active_blocks(int* blocks, const void* handle, int threads, size_t dynamic_lds) {
  Function* function = nullptr;
  if (blocks == nullptr || threads <= 0) return hipErrorInvalidValue;
  if (const hipError_t error = kernel_behind(handle, current_device(), &function); error != hipSuccess) return error;
  const DeviceSpec& spec = *function->module->device->spec;
  const bool fits = static_cast<u32>(threads) <= spec.max_threads_per_block && dynamic_lds <= spec.lds_bytes;
  const u32 lds = static_cast<u32>(dynamic_lds);
  *blocks = fits ? static_cast<int>(blocks_per_unit(spec, *function->kernel, static_cast<u32>(threads), lds)) : 0;
  return hipSuccess;
}

/// The block size that keeps most threads on a compute unit; of equals the largest.
hipError_t best_block(int* grid, int* block, const void* handle, size_t dynamic_lds, int limit) {
  Function* function = nullptr;
  if (grid == nullptr || block == nullptr || limit < 0) return hipErrorInvalidValue;
  if (const hipError_t error = kernel_behind(handle, current_device(), &function); error != hipSuccess) return error;
  const DeviceSpec& spec = *function->module->device->spec;
  const u32 most = std::min(spec.max_threads_per_block, function->kernel->max_threads);
  const u32 bound = limit != 0 ? std::min(most, static_cast<u32>(limit)) : most;
  u32 best = 0, best_active = 0, best_blocks = 0;
  const u32 step = function->kernel->wave_size;
  for (u32 threads = std::min(step, bound); threads <= bound && threads != 0; threads += step) {
    const u32 blocks = blocks_per_unit(spec, *function->kernel, threads, static_cast<u32>(dynamic_lds));
    if (blocks * threads < best_active) continue;
    best = threads;
    best_blocks = blocks;
    best_active = blocks * threads;
  }
  *block = static_cast<int>(best);
  *grid = static_cast<int>(best_blocks * spec.compute_units);
  return hipSuccess;
}

hipError_t free_lds_beside(size_t* bytes, const void* handle, int blocks) {
  Function* function = nullptr;
  if (bytes == nullptr || blocks <= 0) return hipErrorInvalidValue;
  if (const hipError_t error = kernel_behind(handle, current_device(), &function); error != hipSuccess) return error;
  const DeviceSpec& spec = *function->module->device->spec;
  const u32 share = std::min(spec.lds_bytes, spec.lds_bytes_per_unit / static_cast<u32>(blocks));
  *bytes = share > function->kernel->lds_bytes ? share - function->kernel->lds_bytes : 0;
  return hipSuccess;
}

}  // namespace

CKEMU_EXPORT hipError_t hipFuncGetAttribute(int* value, int attribute, void* function) {
  return finish(get_attribute(value, attribute, function));
}
CKEMU_EXPORT hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* function) {
  return finish(get_attributes(attributes, function));
}
CKEMU_EXPORT hipError_t hipFuncSetAttribute(const void* function, int attribute, int value) {
  return finish(set_attribute(function, attribute, value));
}
CKEMU_EXPORT hipError_t hipGetFuncBySymbol(void** function, const void* symbol) {
  Function* found = nullptr;
  if (function == nullptr) return finish(hipErrorInvalidValue);
  const hipError_t error = kernel_behind(symbol, current_device(), &found);
  if (error == hipSuccess) *function = found;
  return finish(error);
}
CKEMU_EXPORT const char* hipKernelNameRef(void* function) {
  const Function* found = function_of(function);
  return found != nullptr ? found->kernel->name.c_str() : nullptr;
}
CKEMU_EXPORT const char* hipKernelNameRefByPtr(const void* symbol, void*) {
  Function* found = nullptr;
  return kernel_behind(symbol, current_device(), &found) == hipSuccess ? found->kernel->name.c_str() : nullptr;
}
CKEMU_EXPORT hipError_t hipFuncSetCacheConfig(const void*, int) { return hipSuccess; }  // LDS has one size
CKEMU_EXPORT hipError_t hipFuncSetSharedMemConfig(const void*, int) { return hipSuccess; }

CKEMU_EXPORT hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                                     size_t dynamic_lds) {
  return finish(active_blocks(blocks, function, threads, dynamic_lds));
}
CKEMU_EXPORT hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function,
                                                                              int threads, size_t dynamic_lds, u32) {
  return finish(active_blocks(blocks, function, threads, dynamic_lds));
}
CKEMU_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* function, int threads,
                                                                           size_t dynamic_lds) {
  return finish(active_blocks(blocks, function, threads, dynamic_lds));
}
CKEMU_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void* function,
                                                                                    int threads, size_t dynamic_lds,
                                                                                    u32) {
  return finish(active_blocks(blocks, function, threads, dynamic_lds));
}
CKEMU_EXPORT hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void* function,
                                                          size_t dynamic_lds, int limit) {
  return finish(best_block(grid, block, function, dynamic_lds, limit));
}
CKEMU_EXPORT hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid, int* block, void* function,
                                                                size_t dynamic_lds, int limit) {
  return finish(best_block(grid, block, function, dynamic_lds, limit));
}
CKEMU_EXPORT hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, void* function,
                                                                         size_t dynamic_lds, int limit, u32) {
  return finish(best_block(grid, block, function, dynamic_lds, limit));
}
CKEMU_EXPORT hipError_t hipOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function, int blocks, int) {
  return finish(free_lds_beside(bytes, function, blocks));
}

}  // namespace ckemu
