// SPDX-License-Identifier: MIT
//
// The emulated GPUs of this process: what each is, what it holds, and what its last launch did.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "core/launch.h"
#include "core/mutex.h"
#include "hip/hip_types.h"

namespace ckemu {

/// Facts of one GPU, generated from arch_specs.
struct DeviceSpec {
  const char* arch;
  const char* product;
  u32 wave_size;
  u32 compute_units;  // what HIP calls multiprocessors: on RDNA pairs of compute units
  u32 simds_per_cu, max_waves_per_simd, max_threads_per_block;
  u32 lds_bytes;           // that one workgroup may have
  u32 lds_bytes_per_unit;  // that all workgroups of a multiprocessor share
  u32 vgprs_per_simd_lane, vgpr_granule, sgprs_per_wave, l2_bytes;
  u64 memory_bytes;
  u32 clock_khz, memory_clock_khz, memory_bus_bits;
  u32 major, minor;
  u32 chiplets;
  bool images;  // whether it has instructions for them: HIP offers arrays, textures and surfaces where it has
};

/// A finished launch of a device, kept for ckemu_stats.
struct PastLaunch {
  Ref<Program> program;
  LaunchResult result;
  u64 workgroups = 0, waves = 0;
};

/// Which GPU of the machine it is, and of which kind: the same in all processes with the same CKLANG_GPUS.
struct DevicePlace {
  u16 number = 0, kind = 0;
};

struct Device {
  const DeviceSpec* spec = nullptr;
  DevicePlace place;
  Mutex lock;  // of the two below
  Message fault;
  std::deque<PastLaunch> past;  // the last launches, the latest in front
  u64 allocated = 0;            // bytes; see hip/memory.h

  /// A fault stays until the device is reset; every call that waits for the device reports it.
  hipError_t failure() const { return __atomic_load_n(&sticky_, __ATOMIC_ACQUIRE); }
  /// The same, for the answer of a call: the calling thread's last message becomes the reason.
  hipError_t report_failure();
  void fail(hipError_t error, const Message& message);
  void reset();
  /// Keeps a launch that is over, and forgets the oldest.
  void remember(PastLaunch&& launch);

 private:
  hipError_t sticky_ = hipSuccess;
};

/// GPUs that a process can have at most.
constexpr int kMostDevices = 16;

/// Names of the GPUs that all code of the host program was compiled for; empty if it has none. The visible
/// devices depend on it until the first call that asks for them.
void restrict_devices(const std::vector<std::string>& archs);

int device_count();
/// Whether the machine has a GPU of that kind in that place.
bool is_installed(const DevicePlace& place);
/// Null for a number that is no device.
Device* device(int number);
inline bool is_device(int number) { return number >= 0 && number < device_count(); }
/// The calling thread's device.
Device& current_device();
int current_device_number();
int device_number(const Device& gpu);
void set_current_device(int number);

/// How many workgroups of `kernel` one compute unit holds at a time (0: it does not fit).
u32 blocks_per_unit(const DeviceSpec& spec, const Kernel& kernel, u32 threads, u32 dynamic_lds);

}  // namespace ckemu
