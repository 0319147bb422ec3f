// SPDX-License-Identifier: MIT
//
// Queues of packets in memory, each with a thread that takes what its doorbell announces.
#include <sched.h>

#include <cerrno>
#include <ctime>
#include <map>

#include "core/environment.h"
#include "core/immortal.h"
#include "core/thread.h"
#include "hip/hostcall.h"
#include "hip/module.h"
#include "kfd/calls.h"
#include "kfd/kfd.h"

namespace ckemu::kfd {

namespace {

constexpr u32 kPacketBytes = 64, kSlots = 1024;
constexpr u32 kReadIndexOffset = 128;  // of the place of the read index in what HSA calls a queue

/// Waits a little, longer the longer nothing has come.
class Patience {
 public:
  void again() {
    if (++waits_ < 200) {
      sched_yield();
      return;
    }
    const timespec pause{0, waits_ < 1000 ? 20000 : 200000};
    nanosleep(&pause, nullptr);
  }

 private:
  u32 waits_ = 0;
};

i64 value_of(u64 signal) { return __atomic_load_n(&reinterpret_cast<Signal*>(signal)->value, __ATOMIC_ACQUIRE); }

void complete(u64 handle, u64 start) {
  if (handle == 0) return;
  Signal& signal = *reinterpret_cast<Signal*>(handle);
  signal.start = start;
  signal.end = ticks();
  __atomic_sub_fetch(&signal.value, 1, __ATOMIC_ACQ_REL);
  signal.tell();
}

/// What the last launch that has failed has accessed.
u64 fault_address(Device& gpu) {
  const Guard guard(gpu.lock);
  for (const PastLaunch& launch : gpu.past) {
    if (launch.result.fault.kind != FaultKind::None) return launch.result.fault.address;
  }
  return 0;
}

class Ring {
 public:
  Ring(const CreateQueue& call, int gpu, u32 slot)
      : call_(call), gpu_(gpu), doorbell_(doorbell(gpu, slot)), packets_(reinterpret_cast<u8*>(call.ring)) {
    __atomic_store_n(doorbell_, ~u64{0}, __ATOMIC_RELEASE);
  }
  bool start() { return start_thread(enter, this); }
  /// Returns when the thread has ended.
  void stop() {
    __atomic_store_n(&stopped_, true, __ATOMIC_RELEASE);
    for (Patience patience; !__atomic_load_n(&ended_, __ATOMIC_ACQUIRE);) patience.again();
  }

 private:
  static void* enter(void* ring) {
    static_cast<Ring*>(ring)->work();
    return nullptr;
  }
  bool stopped() const { return __atomic_load_n(&stopped_, __ATOMIC_ACQUIRE); }
  void work() {
    u64* const read = reinterpret_cast<u64*>(call_.read_index);
    u64 next = __atomic_load_n(read, __ATOMIC_ACQUIRE);
    for (Patience patience; !stopped();) {
      u8* const packet = packets_ + next * kPacketBytes % call_.ring_bytes;
      u16* const header = reinterpret_cast<u16*>(packet);
      const u64 announced = __atomic_load_n(doorbell_, __ATOMIC_ACQUIRE) + 1;
      const u8 type = __atomic_load_n(header, __ATOMIC_ACQUIRE) & 0xff;
      if (static_cast<i64>(announced - next) <= 0 || type == kInvalid) {
        patience.again();
        continue;
      }
      if (logging()) {
        std::fprintf(stderr, "kfd: queue %u, packet %llu: header 0x%04x, for signal 0x%llx\n", call_.id,
                     static_cast<unsigned long long>(next), load_as<u16>(packet),
                     static_cast<unsigned long long>(load_as<u64>(packet + kPacketBytes - 8)));
      }
      if (!process(type, packet)) break;
      __atomic_store_n(header, static_cast<u16>(kInvalid), __ATOMIC_RELEASE);
      __atomic_store_n(read, ++next, __ATOMIC_RELEASE);
      patience = Patience();
    }
    __atomic_store_n(&ended_, true, __ATOMIC_RELEASE);
  }
  /// False if the queue cannot go on.
  bool process(u8 type, const u8* packet) {
    const u64 start = ticks();
    bool fine = true;
    switch (type) {
      case kDispatch: fine = dispatch(load_as<DispatchPacket>(packet)); break;
      case kBarrierAnd:
      case kBarrierOr: fine = await(load_as<Barrier>(packet), type == kBarrierAnd); break;
      case kVendor: fine = vendor(load_as<ValueBarrier>(packet)); break;
      default: fine = refuse("a packet of type %u", type);
    }
    if (fine) complete(load_as<u64>(packet + kPacketBytes - 8), start);
    return fine;
  }
  bool await(const Barrier& barrier, bool all) {
    for (Patience patience; !stopped(); patience.again()) {
      u32 waited = 0, come = 0;
      for (const u64 signal : barrier.signals) {
        if (signal == 0) continue;
        ++waited;
        come += value_of(signal) == 0;
      }
      if (waited == 0 || (all ? come == waited : come != 0)) return true;
    }
    return false;
  }
  bool vendor(const ValueBarrier& packet) {
    if (packet.format == kCommands) {  // of the command processor: AMD's runtime drops caches with them
      doubt_programs();
      return true;
    }
    if (packet.format != kBarrierValue) return refuse("a vendor's packet of format %u", packet.format);
    if (packet.signal == 0) return true;
    for (Patience patience; !stopped(); patience.again()) {
      const i64 value = value_of(packet.signal) & packet.mask;
      const bool come[] = {value == packet.value, value != packet.value, value < packet.value, value >= packet.value};
      if (packet.condition < 4 && come[packet.condition]) return true;
    }
    return false;
  }
  bool refuse(const char* format, u32 number) {
    std::fprintf(stderr, "kfd: ");
    std::fprintf(stderr, format, number);
    std::fprintf(stderr, " is not emulated\n");
    report(kPacketUnsupported);
    return false;
  }
  /// Tells the runtime of an error.
  void report(u64 error) {
    const SaveArea& area = *reinterpret_cast<const SaveArea*>(call_.save_area);
    if (call_.save_area == 0 || area.error == 0) return;
    __atomic_or_fetch(reinterpret_cast<u64*>(area.error), error, __ATOMIC_ACQ_REL);
    raise_event(area.event);
  }
  bool dispatch(const DispatchPacket& packet) {
    Device& gpu = *device(gpu_);
    for (int axis = 0; axis < 3; ++axis) {
      if (packet.block[axis] == 0 || packet.grid[axis] % packet.block[axis] != 0)
        return refuse("a grid that is no multiple of workgroups of %u", packet.block[axis]);
    }
    Message problem;
    const Ref<Program> program = program_at(gpu, packet.kernel_object, problem);
    if (!program) {
      std::fprintf(stderr, "kfd: %s\n", problem.c_str());
      report(kIllegalInstruction);
      return false;
    }
    PreparedLaunch prepared(gpu, program);
    Launch& launch = prepared.launch;
    launch.program = prepared.program.get();
    launch.packet = packet;
    for (int axis = 0; axis < 3; ++axis) {
      launch.block[axis] = packet.block[axis];
      launch.groups[axis] = packet.grid[axis] / packet.block[axis];
    }
    launch.lds_bytes = packet.group_bytes;
    launch.scratch_bytes = (packet.private_bytes + 3) / 4 * 4;
    launch.kernarg = reinterpret_cast<const u8*>(packet.kernarg);
    launch.kernarg_bytes = program->kernel().kernarg_bytes;
    launch.queue = call_.read_index - kReadIndexOffset;
    launch.resident =
        std::max<u32>(1, blocks_per_unit(*gpu.spec, program->kernel(), launch.threads(), packet.group_bytes)) *
        gpu.spec->compute_units;
    run_prepared(prepared);
    if (gpu.failure() == hipSuccess) return true;
    if (gpu.failure() == hipErrorIllegalAddress) raise_memory_fault(gpu_, fault_address(gpu));
    else report(gpu.failure() == hipErrorAssert ? kWaveTrap : kIllegalInstruction);
    return false;
  }

  const CreateQueue call_;
  const int gpu_;
  u64* const doorbell_;
  u8* const packets_;
  bool stopped_ = false, ended_ = false;
};

struct Rings {
  Mutex lock;
  std::map<u32, std::unique_ptr<Ring>> all;
  u32 last = 0;
};
Rings& rings() { return immortal<Rings>(); }

}  // namespace

int create_queue(CreateQueue& call) {
  const int gpu = gpu_of(call.gpu_id);
  if (gpu < 0 || call.type != kAqlQueue || call.ring_bytes % kPacketBytes != 0) return -EINVAL;
  Rings& table = rings();
  const Guard guard(table.lock);
  call.id = ++table.last;
  const u32 slot = call.id % kSlots;
  call.doorbell = doorbell_offset(gpu, slot);
  auto ring = std::make_unique<Ring>(call, gpu, slot);
  if (!ring->start()) return -ENOMEM;
  table.all[call.id] = static_cast<std::unique_ptr<Ring>&&>(ring);
  return 0;
}

int destroy_queue(QueueNumber& call) {
  std::unique_ptr<Ring> ring;
  {
    const Guard guard(rings().lock);
    const auto found = rings().all.find(call.id);
    if (found == rings().all.end()) return -EINVAL;
    ring = static_cast<std::unique_ptr<Ring>&&>(found->second);
    rings().all.erase(found);
  }
  ring->stop();
  return 0;
}

}  // namespace ckemu::kfd
