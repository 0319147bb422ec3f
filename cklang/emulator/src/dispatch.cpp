// SPDX-License-Identifier: MIT
#include <algorithm>

#include "module.h"

namespace ckemu {

namespace {

constexpr u32 kDynamicStackBytes = 16384;  // per lane, for kernels whose stack depth is not known

bool hidden(const KernelArgument& argument) { return argument.kind.compare(0, 7, "hidden_") == 0; }

/// The values behind a kernel's own arguments, by the metadata's kind. Kinds that are not here are
/// zero: they belong to services that a kernel must not use (printf, device enqueue, heap).
struct HiddenValue {
  const char* kind;
  u64 (*value)(const Launch&, u32 dynamic_lds);
};
constexpr HiddenValue kHidden[] = {
    {"hidden_block_count_x", [](const Launch& l, u32) { return u64{l.groups[0]}; }},
    {"hidden_block_count_y", [](const Launch& l, u32) { return u64{l.groups[1]}; }},
    {"hidden_block_count_z", [](const Launch& l, u32) { return u64{l.groups[2]}; }},
    {"hidden_group_size_x", [](const Launch& l, u32) { return u64{l.block[0]}; }},
    {"hidden_group_size_y", [](const Launch& l, u32) { return u64{l.block[1]}; }},
    {"hidden_group_size_z", [](const Launch& l, u32) { return u64{l.block[2]}; }},
    {"hidden_grid_dims",
     [](const Launch& l, u32) {
       const bool deep = l.groups[2] * l.block[2] > 1, tall = l.groups[1] * l.block[1] > 1;
       return u64{deep ? 3u : tall ? 2u : 1u};
     }},
    {"hidden_dynamic_lds_size", [](const Launch&, u32 dynamic_lds) { return u64{dynamic_lds}; }},
    {"hidden_shared_base", [](const Launch&, u32) { return kSharedAperture >> 32; }},
    {"hidden_private_base", [](const Launch&, u32) { return kPrivateAperture >> 32; }},
};

void fill_hidden(const Kernel& kernel, const Launch& launch, u32 dynamic_lds, std::vector<u8>& bytes) {
  for (const KernelArgument& argument : kernel.arguments) {
    if (!hidden(argument)) continue;
    for (const HiddenValue& row : kHidden) {
      if (argument.kind != row.kind) continue;
      const u64 value = row.value(launch, dynamic_lds);
      const size_t end = argument.offset + argument.size;
      if (end <= bytes.size()) std::memcpy(bytes.data() + argument.offset, &value, std::min<size_t>(argument.size, 8));
    }
  }
}

hipError_t check_shape(const DeviceSpec& spec, const Kernel& kernel, const LaunchShape& shape) {
  const auto refuse = [](const char* what, u64 got, u64 limit) {
    last_message().clear();
    last_message().add("%s: %llu, at most %llu", what, static_cast<unsigned long long>(got), static_cast<unsigned long long>(limit));
  };
  const u32 dims[6] = {shape.groups.x, shape.groups.y, shape.groups.z, shape.block.x, shape.block.y, shape.block.z};
  for (const u32 dim : dims) {
    if (dim == 0) {
      last_message().clear();
      last_message().add("a grid or block dimension is 0");
      return hipErrorInvalidConfiguration;
    }
  }
  const u64 threads = u64{shape.block.x} * shape.block.y * shape.block.z;
  const u64 limit = std::min(spec.max_threads_per_block, kernel.max_threads);
  if (threads > limit) {
    refuse("threads per block", threads, limit);
    return threads > spec.max_threads_per_block ? hipErrorInvalidConfiguration : hipErrorLaunchFailure;
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (u64{dims[axis]} * dims[3 + axis] > 0xffffffffu) {
      refuse("work items along a dimension", u64{dims[axis]} * dims[3 + axis], 0xffffffffu);
      return hipErrorInvalidConfiguration;
    }
  }
  const u64 lds = u64{kernel.lds_bytes} + shape.dynamic_lds;
  if (lds > spec.lds_bytes) {
    refuse("LDS bytes per block", lds, spec.lds_bytes);
    return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t error_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::None: return hipSuccess;
    case FaultKind::Address: return hipErrorIllegalAddress;
    case FaultKind::Abort: return hipErrorAssert;
    case FaultKind::Deadlock: return hipErrorLaunchTimeOut;
    case FaultKind::Instruction: return hipErrorLaunchFailure;
  }
  return hipErrorUnknown;
}

void prepare(const Function& function, const LaunchShape& shape, Launch& launch) {
  const Kernel& kernel = *function.kernel;
  launch.program = function.program.get();
  const Dim3 groups = shape.groups, block = shape.block;
  const u32 counts[3] = {groups.x, groups.y, groups.z}, sizes[3] = {block.x, block.y, block.z};
  for (int axis = 0; axis < 3; ++axis) {
    launch.groups[axis] = counts[axis];
    launch.block[axis] = sizes[axis];
    launch.packet.block[axis] = static_cast<u16>(sizes[axis]);
    launch.packet.grid[axis] = counts[axis] * sizes[axis];
  }
  launch.lds_bytes = kernel.lds_bytes + shape.dynamic_lds;
  launch.scratch_bytes = (kernel.private_bytes + 3) / 4 * 4;
  if (kernel.dynamic_stack) launch.scratch_bytes = std::max(launch.scratch_bytes, kDynamicStackBytes);
  launch.packet.private_bytes = launch.scratch_bytes;
  launch.packet.group_bytes = launch.lds_bytes;
  const DeviceSpec& spec = *function.module->device->spec;
  const u32 per_unit = blocks_per_unit(spec, kernel, launch.threads(), shape.dynamic_lds);
  launch.resident = std::max<u32>(1, per_unit) * spec.compute_units;
}

}  // namespace

u32 explicit_bytes(const Kernel& kernel) {
  u32 end = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (!hidden(argument)) end = std::max(end, argument.offset + argument.size);
  }
  return end;
}

std::vector<u8> gather_arguments(const Kernel& kernel, void** parameters) {
  std::vector<u8> bytes(explicit_bytes(kernel));
  size_t number = 0;
  for (const KernelArgument& argument : kernel.arguments) {
    if (!hidden(argument)) std::memcpy(bytes.data() + argument.offset, parameters[number++], argument.size);
  }
  return bytes;
}

hipError_t launch(Function& function, const LaunchShape& shape, const u8* arguments, size_t size) {
  const Kernel& kernel = *function.kernel;
  Device& gpu = *function.module->device;
  if (const hipError_t error = check_shape(*gpu.spec, kernel, shape); error != hipSuccess) return error;
  if (size < explicit_bytes(kernel)) {
    last_message().clear();
    last_message().add("kernel %s takes %u bytes of arguments, got %zu", kernel.name.c_str(), explicit_bytes(kernel), size);
    return hipErrorInvalidValue;
  }
  const Guard guard(gpu.running);
  if (gpu.sticky != hipSuccess) return gpu.sticky;
  Launch work;
  prepare(function, shape, work);
  std::vector<u8> kernarg(std::max<size_t>(kernel.kernarg_bytes, explicit_bytes(kernel)) + 16);
  std::memcpy(kernarg.data(), arguments, explicit_bytes(kernel));
  fill_hidden(kernel, work, shape.dynamic_lds, kernarg);
  work.kernarg = kernarg.data();
  work.packet.kernarg = reinterpret_cast<u64>(work.kernarg);
  gpu.last.program = function.program;
  gpu.last.workgroups = work.total();
  gpu.last.waves = work.total() * ((work.threads() + kernel.wave_size - 1) / kernel.wave_size);
  run_launch(work, gpu.last.result);
  const Fault& fault = gpu.last.result.fault;
  if (fault.kind == FaultKind::None) return hipSuccess;
  gpu.sticky = error_of(fault.kind);
  gpu.fault = fault.message;
  last_message() = fault.message;
  return hipSuccess;  // as on a device, the fault shows when someone waits for the kernel
}

}  // namespace ckemu
