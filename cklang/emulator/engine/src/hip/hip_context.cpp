// SPDX-License-Identifier: MIT
//
// HIP: contexts. A device has one; its handle is the device.
#include <vector>

#include "hip/device.h"
#include "hip/hip_types.h"
#include "hip/queue.h"

namespace ckemu {

namespace {

constexpr u32 kApiVersion = 4;

/// The contexts that the calling thread has put aside, oldest first.
std::vector<int>& put_aside() {
  thread_local std::vector<int> numbers;
  return numbers;
}

Device* device_of(void* context) {
  for (int n = 0; n < device_count(); ++n) {
    if (device(n) == context) return device(n);
  }
  return nullptr;
}

hipError_t context_of(void** context, int number) {
  if (context == nullptr) return hipErrorInvalidValue;
  if (!is_device(number)) return hipErrorInvalidDevice;
  *context = device(number);
  return hipSuccess;
}

hipError_t make_current(void* context) {
  if (context == nullptr) return hipSuccess;
  const Device* gpu = device_of(context);
  if (gpu == nullptr) return hipErrorInvalidContext;
  set_current_device(device_number(*gpu));
  return hipSuccess;
}

hipError_t push(void* context) {
  const int before = current_device_number();
  const hipError_t error = make_current(context);
  if (error == hipSuccess) put_aside().push_back(before);
  return error;
}

hipError_t pop(void** context) {
  if (put_aside().empty()) return hipErrorInvalidContext;
  if (context != nullptr) *context = &current_device();
  set_current_device(put_aside().back());
  put_aside().pop_back();
  return hipSuccess;
}

}  // namespace

CKEMU_EXPORT hipError_t hipCtxCreate(void** context, u32, int number) {
  const hipError_t error = context_of(context, number);
  return finish(error == hipSuccess ? push(*context) : error);
}
CKEMU_EXPORT hipError_t hipCtxDestroy(void* context) {
  return finish(device_of(context) != nullptr ? hipSuccess : hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipCtxPushCurrent(void* context) { return finish(push(context)); }
CKEMU_EXPORT hipError_t hipCtxPopCurrent(void** context) { return finish(pop(context)); }
CKEMU_EXPORT hipError_t hipCtxSetCurrent(void* context) { return finish(make_current(context)); }
CKEMU_EXPORT hipError_t hipCtxGetCurrent(void** context) {
  return finish(context_of(context, current_device_number()));
}
CKEMU_EXPORT hipError_t hipCtxGetDevice(int* number) {
  if (number == nullptr) return finish(hipErrorInvalidValue);
  *number = current_device_number();
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipCtxGetApiVersion(void* context, u32* version) {
  if (version == nullptr) return finish(hipErrorInvalidValue);
  if (context != nullptr && device_of(context) == nullptr) return finish(hipErrorInvalidContext);
  *version = kApiVersion;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipCtxGetFlags(u32* flags) {
  if (flags == nullptr) return finish(hipErrorInvalidValue);
  *flags = 0;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipCtxSynchronize() {
  await_device(current_device());
  return finish(current_device().report_failure());
}

CKEMU_EXPORT hipError_t hipDevicePrimaryCtxRetain(void** context, int number) {
  return finish(context_of(context, number));
}
CKEMU_EXPORT hipError_t hipDevicePrimaryCtxRelease(int number) {
  return finish(is_device(number) ? hipSuccess : hipErrorInvalidDevice);
}
CKEMU_EXPORT hipError_t hipDevicePrimaryCtxSetFlags(int number, u32) {
  return finish(is_device(number) ? hipErrorContextAlreadyInUse : hipErrorInvalidDevice);
}
CKEMU_EXPORT hipError_t hipDevicePrimaryCtxGetState(int number, u32* flags, int* active) {
  if (!is_device(number)) return finish(hipErrorInvalidDevice);
  if (flags == nullptr || active == nullptr) return finish(hipErrorInvalidValue);
  *flags = 0;
  *active = 1;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDevicePrimaryCtxReset(int number) {
  if (!is_device(number)) return finish(hipErrorInvalidDevice);
  await_device(*device(number));
  device(number)->reset();
  return hipSuccess;
}

}  // namespace ckemu
