// SPDX-License-Identifier: MIT
#include "hip/device.h"

#include <algorithm>
#include <cstdlib>

#include "core/environment.h"
#include "core/immortal.h"
#include "hip/ckemu.h"
#include "hip/module.h"

namespace ckemu {

namespace {

constexpr DeviceSpec kSpecs[] = {
#include "devices.inc"
};
constexpr int kDevices = sizeof kSpecs / sizeof *kSpecs;

/// What the registered fat binaries were compiled for, as far as they agree.
std::vector<std::string>& program_archs() { return immortal<std::vector<std::string>>(); }

/// The GPUs of the machine: those of CKLANG_GPUS, else one of each kind.
std::vector<const DeviceSpec*> installed() {
  std::vector<const DeviceSpec*> specs;
  const std::vector<std::string>& wanted = environment().gpus;
  for (const std::string& arch : wanted) {
    const auto* spec = std::find_if(kSpecs, kSpecs + kDevices, [&](const DeviceSpec& one) { return arch == one.arch; });
    if (spec == kSpecs + kDevices) refuse_setting("CKLANG_GPUS", arch.c_str(), "no such GPU is emulated");
    specs.push_back(spec);
  }
  for (int n = 0; wanted.empty() && n < kDevices; ++n) specs.push_back(&kSpecs[n]);
  return specs;
}

u16 kind_of(const DeviceSpec* spec) { return static_cast<u16>(spec - kSpecs); }

struct Devices {
  const std::vector<const DeviceSpec*> all = installed();
  Device device[kMostDevices];
  int count = 0;

  /// Those of the machine that HIP_VISIBLE_DEVICES lists by number, up to the first that is none. Where
  /// neither it nor CKLANG_GPUS is set, those that the program has code for.
  Devices() {
    const char* chosen = serves_runtime() ? nullptr : std::getenv("HIP_VISIBLE_DEVICES");
    const bool restricted = !embedded() && environment().gpus.empty() && !program_archs().empty();
    for (size_t n = 0; chosen == nullptr && n < all.size(); ++n) {
      if (!restricted || std::count(program_archs().begin(), program_archs().end(), all[n]->arch) != 0) add(n);
    }
    while (chosen != nullptr && *chosen != '\0') {
      char* end = nullptr;
      const long number = std::strtol(chosen, &end, 10);
      if (end == chosen || number < 0 || number >= static_cast<long>(all.size()) || count == kMostDevices) break;
      add(static_cast<size_t>(number));
      chosen = *end == ',' ? end + 1 : "";
    }
    if (count == 0) device[0].spec = all.front();  // what is current must be something
  }
  void add(size_t number) {
    device[count].spec = all[number];
    device[count++].place = {static_cast<u16>(number), kind_of(all[number])};
  }
};
Devices& devices() { return immortal<Devices>(); }

thread_local int t_device = 0;

}  // namespace

void restrict_devices(const std::vector<std::string>& archs) {
  std::vector<std::string>& known = program_archs();
  if (known.empty()) {
    known = archs;
    return;
  }
  std::vector<std::string> both;
  for (const std::string& arch : known) {
    if (std::count(archs.begin(), archs.end(), arch) != 0) both.push_back(arch);
  }
  if (!both.empty()) known = both;  // binaries that agree on nothing restrict nothing further
}

int device_count() { return devices().count; }
bool is_installed(const DevicePlace& place) {
  const auto& all = devices().all;
  return place.number < all.size() && kind_of(all[place.number]) == place.kind;
}
Device* device(int number) { return number >= 0 && number < device_count() ? &devices().device[number] : nullptr; }
Device& current_device() { return devices().device[t_device]; }
int current_device_number() { return t_device; }
int device_number(const Device& gpu) { return static_cast<int>(&gpu - devices().device); }
void set_current_device(int number) { t_device = number; }

hipError_t Device::report_failure() {
  const hipError_t error = failure();
  if (error == hipSuccess) return error;
  const Guard guard(lock);
  last_message() = fault;
  return error;
}
void Device::fail(hipError_t error, const Message& message) {
  const Guard guard(lock);
  if (failure() != hipSuccess) return;  // the first reason counts
  fault = message;
  __atomic_store_n(&sticky_, error, __ATOMIC_RELEASE);
}
void Device::reset() {
  const Guard guard(lock);
  fault.clear();
  __atomic_store_n(&sticky_, hipSuccess, __ATOMIC_RELEASE);
}
void Device::remember(PastLaunch&& launch) {
  const Guard guard(lock);
  past.push_front(static_cast<PastLaunch&&>(launch));
  if (past.size() > CKEMU_PAST_LAUNCHES) past.pop_back();
}

u32 blocks_per_unit(const DeviceSpec& spec, const Kernel& kernel, u32 threads, u32 dynamic_lds) {
  const u32 waves = std::max<u32>(1, (threads + kernel.wave_size - 1) / kernel.wave_size);
  const u32 rows = spec.vgprs_per_simd_lane * spec.wave_size / kernel.wave_size;
  const u32 granule = std::max<u32>(1, spec.vgpr_granule * spec.wave_size / kernel.wave_size);
  const u32 taken = (kernel.register_rows + granule - 1) / granule * granule;
  const u32 by_registers = rows / std::max<u32>(1, taken);
  const u32 per_simd = std::min(by_registers, spec.max_waves_per_simd);
  const u32 lds = kernel.lds_bytes + dynamic_lds;
  const u32 by_waves = per_simd * spec.simds_per_cu / waves;
  return lds == 0 ? by_waves : std::min(by_waves, spec.lds_bytes_per_unit / lds);
}

}  // namespace ckemu
