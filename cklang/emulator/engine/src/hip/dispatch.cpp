// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cstdlib>

#include "checks/orders.h"
#include "checks/reports.h"
#include "core/demangle.h"
#include "core/environment.h"
#include "debug/channel.h"
#include "hip/hostcall.h"
#include "hip/memory.h"
#include "hip/module.h"

namespace ckemu {

namespace {

constexpr u32 kMostScratch = 1 << 17;      // bytes per lane: 8 MB a wave are all that GPUs can address
constexpr u32 kMostArguments = 1 << 20;    // bytes
constexpr u32 kDynamicStackBytes = 16384;  // per lane, for kernels whose stack depth is not known

bool hidden(const KernelArgument& argument) { return argument.kind.compare(0, 7, "hidden_") == 0; }

/// The values behind a kernel's own arguments, by the metadata's kind. Kinds that are not here are
/// zero: they belong to services that a kernel must not use (device enqueue, heap), or are filled in
/// when it runs (hostcall).
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

constexpr u64 kArgumentsAligned = 128;  // as AMD's runtime aligns arguments: to a line of the caches
constexpr u64 kArgumentsPage = 4096;    // they do not straddle one, which would cost another translation, by chance

// Makes room for arguments in `memory`, and returns where they begin.
u8* room_for_arguments(std::vector<u8>& memory, size_t bytes) {
  const size_t page = bytes <= kArgumentsPage ? kArgumentsPage : 0;
  memory.resize(bytes + kArgumentsAligned + (page != 0 ? bytes : 0));
  u64 begin = reinterpret_cast<u64>(memory.data());
  begin += -begin & (kArgumentsAligned - 1);
  if (page != 0 && begin / page != (begin + bytes - 1) / page) begin += -begin & (page - 1);
  return reinterpret_cast<u8*>(begin);
}

void fill_hidden(const Kernel& kernel, const Launch& launch, u32 dynamic_lds, u8* kernarg, size_t bytes) {
  for (const KernelArgument& argument : kernel.arguments) {
    if (!hidden(argument)) continue;
    for (const HiddenValue& row : kHidden) {
      if (argument.kind != row.kind) continue;
      const u64 value = row.value(launch, dynamic_lds);
      const size_t end = argument.offset + argument.size;
      if (end <= bytes) std::memcpy(kernarg + argument.offset, &value, std::min<size_t>(argument.size, 8));
    }
  }
}

hipError_t check_shape(const DeviceSpec& spec, const Kernel& kernel, const LaunchShape& shape) {
  const auto refuse = [](const char* what, u64 got, u64 limit) {
    last_message().clear();
    last_message().add("%s: %llu, at most %llu", what, static_cast<unsigned long long>(got),
                       static_cast<unsigned long long>(limit));
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

const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::None: return "nothing";
    case FaultKind::Address: return "wrong address";
    case FaultKind::Abort: return "the kernel has trapped";
    case FaultKind::Deadlock: return "it does not end";
    case FaultKind::Instruction: return "hardware exception";
  }
  return "unknown";
}

hipError_t fill_launch(const Function& function, const LaunchShape& shape, Launch& launch) {
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
  launch.resident = per_unit * spec.compute_units;
  const bool together = launch.total() <= launch.resident;
  launch.together = shape.cooperative;
  last_message().clear();
  if (per_unit == 0) {
    last_message().add("a block of %u threads of kernel %s takes more registers than a compute unit has",
                       launch.threads(), readable(kernel.name).c_str());
    return hipErrorLaunchOutOfResources;
  }
  if (kernel.private_bytes > kMostScratch || kernel.kernarg_bytes > kMostArguments) {
    last_message().add("kernel %s wants %u bytes of scratch a lane and %u bytes of arguments, at most %u and %u",
                       readable(kernel.name).c_str(), kernel.private_bytes, kernel.kernarg_bytes, kMostScratch,
                       kMostArguments);
    return hipErrorLaunchOutOfResources;
  }
  if (shape.cooperative && !together) {
    last_message().add("a cooperative launch of %llu blocks, where the device holds %u of kernel %s at a time",
                       static_cast<unsigned long long>(launch.total()), launch.resident, readable(kernel.name).c_str());
    return hipErrorCooperativeLaunchTooLarge;
  }
  return hipSuccess;
}

/// Tells the user of a program what ROCm does, and more, and ends it as ROCm does.
void report(const Fault& fault, const Device& gpu) {
  if (after_fault() == AfterFault::Quiet) return;
  std::fflush(stdout);
  const int node = device_number(gpu) + 1;
  if (fault.kind == FaultKind::Address && fault.address != 0) {
    std::fprintf(stderr,
                 "Memory access fault by GPU node-%d (%s, emulated) on address 0x%llx. Reason: Page not present or "
                 "supervisor privilege.\n",
                 node, gpu.spec->arch, static_cast<unsigned long long>(fault.address));
  } else {
    std::fprintf(stderr, "Kernel failed on GPU node-%d (%s, emulated): %s.\n", node, gpu.spec->arch,
                 name_of(fault.kind));
  }
  std::fprintf(stderr, "%s\n", fault.message.c_str());
  if (after_fault() != AfterFault::Abort) return;
  std::fprintf(stderr, "Aborting, as ROCm does; CKLANG_FAULT=continue returns %s instead.\n",
               hipGetErrorName(error_of(fault.kind)));
  std::fflush(stderr);
  std::abort();
}

const KernelArgument* hostcall_argument(const Kernel& kernel) {
  for (const KernelArgument& argument : kernel.arguments) {
    if (argument.kind == "hidden_hostcall_buffer") return &argument;
  }
  return nullptr;
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

hipError_t prepare_launch(Function& function, const LaunchShape& shape, const u8* arguments, size_t size,
                          Ref<PreparedLaunch>& prepared) {
  const Kernel& kernel = *function.kernel;
  Device& gpu = *function.module->device;
  if (const hipError_t error = check_shape(*gpu.spec, kernel, shape); error != hipSuccess) return error;
  if (size < explicit_bytes(kernel)) {
    last_message().clear();
    last_message().add("kernel %s takes %u bytes of arguments, got %zu", readable(kernel.name).c_str(),
                       explicit_bytes(kernel), size);
    return hipErrorInvalidValue;
  }
  prepared = Ref<PreparedLaunch>::make(gpu, function.program);
  Launch& work = prepared->launch;
  if (const hipError_t error = fill_launch(function, shape, work); error != hipSuccess) return error;
  const size_t bytes = std::max<size_t>(kernel.kernarg_bytes, explicit_bytes(kernel)) + 16;
  u8* const kernarg = prepared->kernarg = room_for_arguments(prepared->memory, bytes);
  if (explicit_bytes(kernel) != 0) std::memcpy(kernarg, arguments, explicit_bytes(kernel));
  fill_hidden(kernel, work, shape.dynamic_lds, kernarg, bytes);
  work.kernarg = kernarg;
  work.kernarg_bytes = bytes;
  work.packet.kernarg = reinterpret_cast<u64>(work.kernarg);
  return hipSuccess;
}

void run_prepared(PreparedLaunch& prepared) {
  Device& gpu = prepared.device;
  Launch work = prepared.launch;
  const KernelArgument* calls = hostcall_argument(prepared.program->kernel());
  std::unique_ptr<Hostcall> hostcall;
  if (calls != nullptr && calls->offset + 8 <= work.kernarg_bytes) {
    const u64 foreign = serves_runtime() ? load_as<u64>(work.kernarg + calls->offset) : 0;
    if (foreign != 0) {
      hostcall = std::make_unique<Hostcall>(foreign);
    } else if (!serves_runtime()) {
      hostcall = std::make_unique<Hostcall>();
      const u64 address = hostcall->address();
      std::memcpy(prepared.kernarg + calls->offset, &address, 8);
    }
    work.hostcall = hostcall.get();
  }
  if (!host_memory_reachable() && given_host_memory(work)) work.checks |= kCheckHost;
  const bool shared = work.total() > 1 || work.threads() > prepared.program->kernel().wave_size;
  const auto races = (work.checks & kCheckGlobalRaces) != 0 && shared ? std::make_unique<GlobalRaces>(work) : nullptr;
  work.races = races.get();
  if ((work.checks & kCheckTiming) != 0) work.record = record_launch(work, gpu.spec->arch);
  PastLaunch finished;
  // A kernel that calls the host has done so, whatever comes of its memory.
  const bool in_orders = (work.checks & kCheckSchedule) != 0 && work.hostcall == nullptr;
  if (!debugging() || !run_debugged(work, gpu.spec->arch, finished.result)) {
    (in_orders ? run_in_orders : run_launch)(work, finished.result);
  }
  if (work.record != nullptr) work.record->finish(finished.result);
  if (hostcall != nullptr) hostcall->serve();
  finished.program = prepared.program;
  finished.workgroups = work.total();
  const u32 lanes = prepared.program->kernel().wave_size;
  finished.waves = work.total() * ((work.threads() + lanes - 1) / lanes);
  Fault& fault = finished.result.fault;
  if (fault.kind != FaultKind::None && fault.address != 0) describe_address(fault.address, fault.message);
  if (fault.kind != FaultKind::None && reports_may_pass() && passes(fault, *prepared.program)) fault = Fault{};
  if (fault.kind != FaultKind::None) {
    write_down(fault, *prepared.program);
    report(fault, gpu);  // without what the kernel has printed on stderr itself
    if (fault.kind == FaultKind::Abort && hostcall != nullptr && !hostcall->complaint().empty()) {
      fault.message.add("\n  %s", hostcall->complaint().c_str());
    }
    gpu.fail(error_of(fault.kind), fault.message);
  }
  gpu.remember(static_cast<PastLaunch&&>(finished));
}

}  // namespace ckemu
