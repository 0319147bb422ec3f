// SPDX-License-Identifier: MIT
#include "hip/transfer.h"

#include "checks/checks.h"
#include "checks/reports.h"
#include "core/fault.h"
#include "hip/device.h"
#include "hip/memory.h"
#include "hip/written.h"

namespace ckemu {

namespace {

struct Transfer {
  Block to, from;
  Extent extent;
  u32 value = 0, size = 0;
};

template <class Row>
void each_row(const Transfer& work, Row row) {
  for (size_t z = 0; z < work.extent.depth; ++z) {
    for (size_t y = 0; y < work.extent.height; ++y) {
      row(work.to.data + z * work.to.slice + y * work.to.pitch,
          work.from.data + z * work.from.slice + y * work.from.pitch);
    }
  }
}

void run_copy(void* context) {
  const Transfer& work = *static_cast<const Transfer*>(context);
  each_row(work, [&](u8* to, const u8* from) { std::memmove(to, from, work.extent.width); });
  each_row(work, [&](u8* to, const u8* from) {
    note_copied(reinterpret_cast<u64>(to), reinterpret_cast<u64>(from), work.extent.width);
  });
}

void run_fill(void* context) {
  const Transfer& work = *static_cast<const Transfer*>(context);
  each_row(work, [&](u8* to, const u8*) {
    if (work.size == 1) {
      std::memset(to, static_cast<int>(work.value), work.extent.width);
      return;
    }
    for (size_t at = 0; at + work.size <= work.extent.width; at += work.size)
      std::memcpy(to + at, &work.value, work.size);
  });
  each_row(work, [&](u8* to, const u8*) { note_written(reinterpret_cast<u64>(to), work.extent.width); });
}

/// A copy to the host of device memory of which nothing has written some.
void check_copied(const Transfer& work, Device& gpu) {
  Allocation target;
  const bool to_device = find_allocation(work.to.data, target) && target.followed();
  if ((checks_asked() & kCheckUnwritten) == 0 || work.size != 0 || to_device) return;
  Gap gap;
  each_row(work, [&](u8*, const u8* from) {
    if (gap.end == 0) gap = first_gap(reinterpret_cast<u64>(from), work.extent.width);
  });
  if (gap.end == 0) return;
  Fault fault;
  fault.kind = FaultKind::Instruction;
  fault.check = "unwritten";
  fault.address = gap.begin;
  fault.message.add(
      "unwritten device memory: a copy to the host reads %llu bytes at address 0x%llx, which nothing has written since "
      "they "
      "were allocated",
      static_cast<unsigned long long>(gap.end - gap.begin), static_cast<unsigned long long>(gap.begin));
  describe_address(fault.address, fault.message);
  if (!reports_may_pass() || !passes(fault)) gpu.fail(hipErrorLaunchFailure, fault.message);
}

/// Runs a transfer on behalf of `gpu`, which fails if there is no such memory.
void perform(const Transfer& work, void (*body)(void*), Device& gpu) {
  Transfer copy = work;
  if (survives(body, &copy)) return check_copied(work, gpu);
  Message text;
  text.add("a %s of %zu x %zu x %zu bytes at %p touches memory that is not there", work.size != 0 ? "fill" : "copy",
           work.extent.width, work.extent.height, work.extent.depth, static_cast<void*>(work.to.data));
  gpu.fail(hipErrorIllegalAddress, text);
}

/// As above, but what is wrong is the caller's: he is still there to be told.
hipError_t perform_now(Ref<Queue> queue, const Transfer& work, void (*body)(void*), NodeKind kind) {
  struct Outcome {
    Transfer work;
    bool fine = true;
  };
  const Ref<Outcome> outcome = Ref<Outcome>::make(Outcome{work});
  Device& gpu = queue->device;
  Task task{kind, [outcome, body, &gpu] {
              outcome->fine = survives(body, &outcome->work);
              if (outcome->fine) check_copied(outcome->work, gpu);
            }};
  if (const hipError_t error = submit_and_wait(queue, static_cast<Task&&>(task)); error != hipSuccess) return error;
  return outcome->fine ? hipSuccess : hipErrorInvalidValue;
}

/// Whether only the host, or only devices, may be said to have an address: pinned and managed memory is of both.
bool is_device_alone(const void* pointer) {
  Allocation found;
  return find_allocation(pointer, found) && found.followed();
}
bool is_host_alone(const void* pointer) {
  u64 begin = 0, end = 0;
  return pointer != nullptr && ground_at(reinterpret_cast<u64>(pointer), 1, begin, end) == Ground::Unknown;
}

/// Copies from or to pageable memory are done when the call returns, as on GPUs.
bool pageable(const Block& block) {
  Allocation found;
  return block.data != nullptr && !find_allocation(block.data, found);
}

hipError_t start(const Transfer& work, void (*body)(void*), NodeKind kind, void* stream, When when) {
  const Ref<Queue> queue = queue_of(stream);
  if (!queue) return hipErrorInvalidHandle;
  const bool at_once = when == When::Now || (!is_captured(*queue) && (pageable(work.to) || pageable(work.from)));
  if (at_once) return perform_now(queue, work, body, kind);
  Device& gpu = queue->device;
  return submit(queue, {kind, [=, &gpu] { perform(work, body, gpu); }});
}

}  // namespace

bool is_copy_kind(int kind) { return (kind >= kHostToHost && kind <= kCopyDefault) || kind == kCopyNoCu; }

void check_copy_kind(int kind, const void* to, const void* from) {
  static constexpr const char* names[] = {"hipMemcpyHostToHost", "hipMemcpyHostToDevice", "hipMemcpyDeviceToHost",
                                          "hipMemcpyDeviceToDevice"};
  if (kind < kHostToHost || kind > kDeviceToDevice || (checks_asked() & kCheckMemory) == 0) return;
  const bool to_device = kind == kHostToDevice || kind == kDeviceToDevice, from_device = kind >= kDeviceToHost;
  const auto check = [&](const void* pointer, bool device, const char* side) {
    const bool wrong = device ? is_host_alone(pointer) : is_device_alone(pointer);
    if (!wrong) return false;
    Message text;
    text.add("wrong direction of a copy: %s, where the %s %p is memory of the %s", names[kind], side, pointer,
             device ? "host" : "device");
    report_call(text, reinterpret_cast<u64>(pointer));
    return true;
  };
  if (!check(to, to_device, "target")) check(from, from_device, "source");
}

hipError_t check_block(const Block& block, const Extent& extent) {
  if (extent.height > 1 && block.pitch < extent.width) return hipErrorInvalidPitchValue;
  if (extent.depth > 1 && block.slice < block.pitch * extent.height) return hipErrorInvalidPitchValue;
  const size_t span = (extent.depth - 1) * block.slice + (extent.height - 1) * block.pitch + extent.width;
  return accessible(block.data, span) ? hipSuccess : hipErrorInvalidValue;
}

hipError_t transfer(const Block& to, const Block& from, const Extent& extent, void* stream, When when) {
  if (!queue_of(stream)) return hipErrorInvalidHandle;
  if (extent.empty()) return hipSuccess;
  if (const hipError_t error = check_block(to, extent); error != hipSuccess) return error;
  if (const hipError_t error = check_block(from, extent); error != hipSuccess) return error;
  return start({to, from, extent}, run_copy, NodeKind::Memcpy, stream, when);
}

hipError_t fill(const Block& to, u32 value, u32 size, const Extent& extent, void* stream, When when) {
  if (!queue_of(stream)) return hipErrorInvalidHandle;
  if (extent.empty()) return hipSuccess;
  if (const hipError_t error = check_block(to, extent); error != hipSuccess) return error;
  return start({to, {}, extent, value, size}, run_fill, NodeKind::Memset, stream, when);
}

Action transfer_action(const Block& to, const Block& from, const Extent& extent, Device& gpu) {
  return [work = Transfer{to, from, extent}, &gpu] { perform(work, run_copy, gpu); };
}
Action fill_action(const Block& to, u32 value, u32 size, const Extent& extent, Device& gpu) {
  return [work = Transfer{to, {}, extent, value, size}, &gpu] { perform(work, run_fill, gpu); };
}

}  // namespace ckemu
