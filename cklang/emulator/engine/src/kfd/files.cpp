// SPDX-License-Identifier: MIT
//
// Functions of the C library and of libdrm that AMD's runtime calls, in front of theirs: paths of the driver lead to a
// folder of ours (CKLANG_KFD), the driver's device files to memory.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/environment.h"
#include "checks/deadlock.h"
#include "hip/ckemu.h"
#include "hip/hostcall.h"
#include "hip/hip_types.h"
#include "kfd/kfd.h"

namespace ckemu::kfd {

namespace {

constexpr std::string_view kPlaces[][2] = {
    {"/sys/class/kfd/", "/sys/devices/virtual/kfd/"},
    {"/sys/devices/virtual/kfd/", "/sys/devices/virtual/kfd/"},
    {"/sys/module/amdgpu/", "/sys/module/amdgpu/"},
};

const char* folder() {
  static const char* const path = std::getenv("CKLANG_KFD");
  return path;
}

/// Where a path leads: another one, or itself.
std::string redirected(const char* path) {
  const std::string_view text = path != nullptr ? path : "";
  for (const auto& [from, to] : kPlaces) {
    if (folder() != nullptr && text.substr(0, from.size()) == from)
      return std::string(folder()).append(to).append(text.substr(from.size()));
  }
  return std::string(text);
}

bool names_device(std::string_view path) {
  if (folder() == nullptr) return false;
  constexpr std::string_view render = "/dev/dri/renderD";
  if (path == "/dev/kfd") return true;
  if (path.substr(0, render.size()) != render) return false;
  const u64 number = std::strtoul(path.data() + render.size(), nullptr, 10);
  return number - kFirstRender < static_cast<u64>(device_count());
}

constexpr u64 kPatience = 30000;  // milliseconds without progress: what kernels wait for is the runtime's too

int open_at(int at, const char* path, int flags, unsigned mode) {
  if (path != nullptr && names_device(path)) {
    serve_runtime();
    set_interrupt(raise_event);
    set_patience(kPatience);
    return open_device();
  }
  return static_cast<int>(syscall(SYS_openat, at, path != nullptr ? redirected(path).c_str() : nullptr, flags, mode));
}

int stat_of(const char* path, struct stat* found) {
  if (path == nullptr || !names_device(path)) {
    const std::string place = redirected(path);
    return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path != nullptr ? place.c_str() : nullptr, found, 0));
  }
  *found = {};
  found->st_mode = S_IFCHR | 0666;
  return 0;
}

/// The function of this name behind ours.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// The device that libdrm speaks of: the number of a GPU, and 1 more.
int gpu_of_handle(void* handle) { return static_cast<int>(reinterpret_cast<u64>(handle)) - 1; }

/// What libdrm tells of a GPU; the places of the fields that are filled.
constexpr size_t kInfoFamily = 12, kInfoClock = 24, kInfoMemoryClock = 32, kInfoFrequency = 72;
constexpr u32 kCounterKilohertz = 100000;

u32 driver_family(u32 major) { return major >= 12 ? 152 : major == 11 ? 145 : major == 10 ? 143 : 141; }

int g_render = 0;  // the render node that was opened last, which the calls behind it are for

}  // namespace

}  // namespace ckemu::kfd

using namespace ckemu;
using namespace ckemu::kfd;

#define MODE_OF(flags)                          \
  unsigned mode = 0;                            \
  if (((flags) & (O_CREAT | O_TMPFILE)) != 0) { \
    va_list arguments;                          \
    va_start(arguments, flags);                 \
    mode = va_arg(arguments, unsigned);         \
    va_end(arguments);                          \
  }

CKEMU_EXPORT int open(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags, mode);
}
CKEMU_EXPORT int open64(const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(AT_FDCWD, path, flags | O_LARGEFILE, mode);
}
CKEMU_EXPORT int openat(int at, const char* path, int flags, ...) {
  MODE_OF(flags)
  return open_at(at, path, flags, mode);
}
CKEMU_EXPORT FILE* fopen(const char* path, const char* mode) {
  return next<FILE*(const char*, const char*)>("fopen")(redirected(path).c_str(), mode);
}
CKEMU_EXPORT FILE* fopen64(const char* path, const char* mode) {
  return next<FILE*(const char*, const char*)>("fopen64")(redirected(path).c_str(), mode);
}
CKEMU_EXPORT DIR* opendir(const char* path) { return next<DIR*(const char*)>("opendir")(redirected(path).c_str()); }
CKEMU_EXPORT int access(const char* path, int mode) {
  return names_device(path) ? 0 : static_cast<int>(syscall(SYS_access, redirected(path).c_str(), mode));
}

CKEMU_EXPORT int stat(const char* path, struct stat* found) { return stat_of(path, found); }
CKEMU_EXPORT int stat64(const char* path, struct stat64* found) {
  return stat_of(path, reinterpret_cast<struct stat*>(found));
}

CKEMU_EXPORT int ioctl(int fd, unsigned long request, ...) {
  va_list arguments;
  va_start(arguments, request);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (!is_device_file(fd)) return static_cast<int>(syscall(SYS_ioctl, fd, request, argument));
  const int result = control(request, argument);
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

CKEMU_EXPORT int drmOpenRender(int minor) {
  g_render = minor - static_cast<int>(kFirstRender);
  return open_device();
}
CKEMU_EXPORT int drmClose(int fd) { return close(fd); }

CKEMU_EXPORT int amdgpu_device_initialize(int, uint32_t* major, uint32_t* minor, void** handle) {
  *major = 3;
  *minor = 57;
  *handle = reinterpret_cast<void*>(static_cast<u64>(g_render + 1));
  return 0;
}
CKEMU_EXPORT int amdgpu_device_deinitialize(void*) { return 0; }
CKEMU_EXPORT int amdgpu_device_get_fd(void* handle) {
  static int descriptors[kMostDevices] = {};
  int& fd = descriptors[gpu_of_handle(handle)];
  if (fd == 0) fd = open_device();
  return fd;
}
CKEMU_EXPORT const char* amdgpu_get_marketing_name(void* handle) {
  const ckemu::Device* gpu = ckemu::device(gpu_of_handle(handle));
  return gpu != nullptr ? gpu->spec->product : nullptr;
}
CKEMU_EXPORT int amdgpu_query_gpu_info(void* handle, void* info) {
  const ckemu::Device* gpu = ckemu::device(gpu_of_handle(handle));
  if (gpu == nullptr) return -EINVAL;
  const ckemu::DeviceSpec& spec = *gpu->spec;
  u8* const bytes = static_cast<u8*>(info);
  const u32 family = driver_family(spec.major);
  const u64 clock = spec.clock_khz, memory_clock = spec.memory_clock_khz;
  std::memcpy(bytes + kInfoFamily, &family, sizeof family);
  std::memcpy(bytes + kInfoClock, &clock, sizeof clock);
  std::memcpy(bytes + kInfoMemoryClock, &memory_clock, sizeof memory_clock);
  std::memcpy(bytes + kInfoFrequency, &kCounterKilohertz, sizeof kCounterKilohertz);
  return 0;
}
