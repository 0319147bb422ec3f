// SPDX-License-Identifier: MIT
//
// HIP: what devices are to each other, and the settings of a device.
#include <algorithm>
#include <set>

#include "core/immortal.h"
#include "hip/device.h"
#include "hip/hip_types.h"

namespace ckemu {

namespace {

/// hipLimit_t: what is set is remembered; stacks and buffers of the emulator grow by themselves.
constexpr size_t kDefaultLimits[] = {1024, 1 << 20, 8 << 20};
constexpr int kLimits = sizeof kDefaultLimits / sizeof *kDefaultLimits;
constexpr int kCacheConfigs = 4, kBankConfigs = 3;
constexpr u32 kKnownDeviceFlags = 0x1f;

struct Settings {
  Mutex lock;
  std::set<std::pair<int, int>> peers;  // (who, whose memory) with access enabled
  size_t limits[kLimits] = {kDefaultLimits[0], kDefaultLimits[1], kDefaultLimits[2]};
  int cache = 0, banks = 0;
  u32 flags = 0;
};
Settings& settings() { return immortal<Settings>(); }

hipError_t enable_peer(int peer, u32 flags) {
  if (flags != 0) return hipErrorInvalidValue;
  if (!is_device(peer) || peer == current_device_number()) return hipErrorInvalidDevice;
  const Guard guard(settings().lock);
  const bool added = settings().peers.insert({current_device_number(), peer}).second;
  return added ? hipSuccess : hipErrorPeerAccessAlreadyEnabled;
}

hipError_t disable_peer(int peer) {
  if (!is_device(peer)) return hipErrorInvalidDevice;
  const Guard guard(settings().lock);
  const bool removed = settings().peers.erase({current_device_number(), peer}) != 0;
  return removed ? hipSuccess : hipErrorPeerAccessNotEnabled;
}

/// hipDeviceP2PAttr: performance rank, access, native atomics, arrays.
hipError_t peer_attribute(int* value, int attribute, int from, int to) {
  if (value == nullptr || attribute < 0 || attribute > 3) return hipErrorInvalidValue;
  if (!is_device(from) || !is_device(to) || from == to) return hipErrorInvalidDevice;
  *value = attribute == 1 || attribute == 2;
  return hipSuccess;
}

template <class T>
hipError_t answer(T* value, T found) {
  if (value == nullptr) return hipErrorInvalidValue;
  *value = found;
  return hipSuccess;
}

hipError_t choose(int* setting, int value, int count) {
  if (value < 0 || value >= count) return hipErrorInvalidValue;
  *setting = value;
  return hipSuccess;
}

}  // namespace

/// All memory is the host's, so every device reaches that of every other.
CKEMU_EXPORT hipError_t hipDeviceCanAccessPeer(int* possible, int number, int peer) {
  if (!is_device(number) || !is_device(peer)) return finish(hipErrorInvalidDevice);
  return finish(answer(possible, static_cast<int>(number != peer)));
}
CKEMU_EXPORT hipError_t hipDeviceEnablePeerAccess(int peer, u32 flags) { return finish(enable_peer(peer, flags)); }
CKEMU_EXPORT hipError_t hipDeviceDisablePeerAccess(int peer) { return finish(disable_peer(peer)); }
CKEMU_EXPORT hipError_t hipDeviceGetP2PAttribute(int* value, int attribute, int from, int to) {
  return finish(peer_attribute(value, attribute, from, to));
}

CKEMU_EXPORT hipError_t hipDeviceGetLimit(size_t* value, int limit) {
  if (limit < 0 || limit >= kLimits) return finish(hipErrorUnsupportedLimit);
  return finish(answer(value, settings().limits[limit]));
}
CKEMU_EXPORT hipError_t hipDeviceSetLimit(int limit, size_t value) {
  if (limit < 0 || limit >= kLimits) return finish(hipErrorUnsupportedLimit);
  settings().limits[limit] = value;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceGetCacheConfig(int* config) { return finish(answer(config, settings().cache)); }
CKEMU_EXPORT hipError_t hipDeviceSetCacheConfig(int config) {
  return finish(choose(&settings().cache, config, kCacheConfigs));
}
CKEMU_EXPORT hipError_t hipDeviceGetSharedMemConfig(int* config) { return finish(answer(config, settings().banks)); }
CKEMU_EXPORT hipError_t hipDeviceSetSharedMemConfig(int config) {
  return finish(choose(&settings().banks, config, kBankConfigs));
}
CKEMU_EXPORT hipError_t hipGetDeviceFlags(u32* flags) { return finish(answer(flags, settings().flags)); }
CKEMU_EXPORT hipError_t hipSetDeviceFlags(u32 flags) {
  if ((flags & ~kKnownDeviceFlags) != 0) return finish(hipErrorInvalidValue);
  settings().flags = flags;
  return hipSuccess;
}

}  // namespace ckemu
