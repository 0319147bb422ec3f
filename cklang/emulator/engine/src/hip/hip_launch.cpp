// SPDX-License-Identifier: MIT
//
// HIP: launches, of loaded kernels and of those of the host program.
#include "hip/event.h"
#include "hip/kernel_node.h"
#include "hip/registered.h"
#include "hip/stream.h"

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

/// Where and when a launch runs.
struct Place {
  void* stream = nullptr;
  void *start = nullptr, *stop = nullptr;  // events around it
};

hipError_t prepare(Function& function, const LaunchShape& shape, void** parameters, void** extra,
                   Ref<PreparedLaunch>& ready) {
  if (parameters != nullptr && extra != nullptr) return hipErrorInvalidValue;
  if (extra != nullptr) {
    ArgumentBuffer buffer;
    if (const hipError_t error = read_extra(extra, buffer); error != hipSuccess) return error;
    return prepare_launch(function, shape, buffer.bytes, buffer.size, ready);
  }
  if (parameters == nullptr && explicit_bytes(*function.kernel) != 0) return hipErrorInvalidValue;
  const std::vector<u8> bytes = gather_arguments(*function.kernel, parameters);
  return prepare_launch(function, shape, bytes.data(), bytes.size(), ready);
}

hipError_t launch_at(const Place& place, Function& function, const LaunchShape& shape, void** parameters,
                     void** extra) {
  const Ref<Queue> queue = queue_of(place.stream);
  if (!queue) return hipErrorInvalidHandle;
  if (function.module->device != &queue->device) return hipErrorInvalidDeviceFunction;
  Ref<PreparedLaunch> ready;
  if (const hipError_t error = prepare(function, shape, parameters, extra, ready); error != hipSuccess) return error;
  if (place.start != nullptr) {
    if (const hipError_t error = record_event(place.start, place.stream); error != hipSuccess) return error;
  }
  const hipError_t error =
      submit(queue, {NodeKind::Kernel, [ready] { run_prepared(*ready); }, false, false, &function});
  if (error != hipSuccess) return error;
  const hipError_t recorded = place.stop == nullptr ? hipSuccess : record_event(place.stop, place.stream);
  if (launches_wait()) await(point_of(queue));
  return recorded;
}

hipError_t launch_module(const Place& place, void* handle, const LaunchShape& shape, void** parameters, void** extra) {
  Function* function = function_of(handle);
  return function != nullptr ? launch_at(place, *function, shape, parameters, extra) : hipErrorInvalidHandle;
}

hipError_t launch_host(const Place& place, const void* host, const LaunchShape& shape, void** parameters) {
  const Ref<Queue> queue = queue_of(place.stream);
  if (!queue) return hipErrorInvalidHandle;
  Function* function = nullptr;
  const hipError_t error = kernel_behind(host, queue->device, &function);
  return error == hipSuccess ? launch_at(place, *function, shape, parameters, nullptr) : error;
}

LaunchShape shape_of(Dim3 grid, Dim3 block, size_t dynamic_lds, bool cooperative = false) {
  return {grid, block, static_cast<u32>(dynamic_lds < 0xffffffffu ? dynamic_lds : 0xffffffffu), cooperative};
}

/// The blocks of a grid given in work items; false if they do not divide it.
bool blocks_of(Dim3 items, Dim3 block, Dim3& grid) {
  if (block.x == 0 || block.y == 0 || block.z == 0) return false;
  grid = {items.x / block.x, items.y / block.y, items.z / block.z};
  return items.x % block.x == 0 && items.y % block.y == 0 && items.z % block.z == 0;
}

}  // namespace

Ref<PreparedLaunch> prepare_node(const KernelNode& node, hipError_t& error) {
  Ref<PreparedLaunch> ready;
  Function* function = nullptr;
  error = kernel_behind(node.function, current_device(), &function);
  if (error == hipSuccess)
    error = prepare(*function, shape_of(node.grid, node.block, node.dynamic_lds), node.parameters, node.extra, ready);
  return ready;
}

CKEMU_EXPORT hipError_t hipModuleLaunchKernel(void* function, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x,
                                              u32 block_y, u32 block_z, u32 dynamic_lds, void* stream,
                                              void** parameters, void** extra) {
  const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds};
  return finish(launch_module({stream}, function, shape, parameters, extra));
}
CKEMU_EXPORT hipError_t hipModuleLaunchCooperativeKernel(void* function, u32 grid_x, u32 grid_y, u32 grid_z,
                                                         u32 block_x, u32 block_y, u32 block_z, u32 dynamic_lds,
                                                         void* stream, void** parameters) {
  const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds, true};
  return finish(launch_module({stream}, function, shape, parameters, nullptr));
}
CKEMU_EXPORT hipError_t hipExtModuleLaunchKernel(void* function, u32 items_x, u32 items_y, u32 items_z, u32 block_x,
                                                 u32 block_y, u32 block_z, size_t dynamic_lds, void* stream,
                                                 void** parameters, void** extra, void* start, void* stop, u32) {
  const Dim3 block{block_x, block_y, block_z};
  Dim3 grid;
  if (!blocks_of({items_x, items_y, items_z}, block, grid)) return finish(hipErrorInvalidConfiguration);
  return finish(launch_module({stream, start, stop}, function, shape_of(grid, block, dynamic_lds), parameters, extra));
}
CKEMU_EXPORT hipError_t hipHccModuleLaunchKernel(void* function, u32 items_x, u32 items_y, u32 items_z, u32 block_x,
                                                 u32 block_y, u32 block_z, size_t dynamic_lds, void* stream,
                                                 void** parameters, void** extra, void* start, void* stop) {
  return hipExtModuleLaunchKernel(function, items_x, items_y, items_z, block_x, block_y, block_z, dynamic_lds, stream,
                                  parameters, extra, start, stop, 0);
}

// The same under the names that C++ gives them, which AMD's library has too.
extern "C" {
[[gnu::alias("hipExtModuleLaunchKernel"), gnu::visibility("default")]] hipError_t
_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j(void*, u32, u32, u32,
                                                                                                u32, u32, u32, size_t,
                                                                                                void*, void**, void**,
                                                                                                void*, void*, u32);
[[gnu::alias("hipHccModuleLaunchKernel"), gnu::visibility("default")]] hipError_t
_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_(void*, u32, u32, u32,
                                                                                               u32, u32, u32, size_t,
                                                                                               void*, void**, void**,
                                                                                               void*, void*);
}

CKEMU_EXPORT hipError_t hipLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** parameters,
                                        size_t dynamic_lds, void* stream) {
  return finish(launch_host({stream}, function, shape_of(grid, block, dynamic_lds), parameters));
}
CKEMU_EXPORT hipError_t hipExtLaunchKernel(const void* function, Dim3 grid, Dim3 block, void** parameters,
                                           size_t dynamic_lds, void* stream, void* start, void* stop, int) {
  return finish(launch_host({stream, start, stop}, function, shape_of(grid, block, dynamic_lds), parameters));
}
CKEMU_EXPORT hipError_t hipLaunchCooperativeKernel(const void* function, Dim3 grid, Dim3 block, void** parameters,
                                                   u32 dynamic_lds, void* stream) {
  return finish(launch_host({stream}, function, shape_of(grid, block, dynamic_lds, true), parameters));
}

}  // namespace ckemu
