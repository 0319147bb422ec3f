// SPDX-License-Identifier: MIT
//
// HIP: versions, initialisation, and the calling thread's last error.
#include "hip/device.h"
#include "hip/hip_types.h"

namespace ckemu {

namespace {

constexpr int kHipVersion = 60443484;  // 6.4: the interface whose structures hip_types.h lays out

thread_local hipError_t t_last = hipSuccess;

struct ErrorText {
  hipError_t code;
  const char *name, *text;
};
#define CKEMU_ERROR(name, number, text) {name, #name, text},
constexpr ErrorText kErrors[] = {CKEMU_ERRORS(CKEMU_ERROR)};
#undef CKEMU_ERROR

const ErrorText& text_of(hipError_t code) {
  const ErrorText* unknown = kErrors;
  for (const ErrorText& row : kErrors) {
    if (row.code == code) return row;
    if (row.code == hipErrorUnknown) unknown = &row;
  }
  return *unknown;
}

}  // namespace

hipError_t finish(hipError_t error) {
  if (error != hipSuccess && error != hipErrorNotReady) t_last = error;
  return error;
}

CKEMU_EXPORT const char* hipGetErrorName(hipError_t code) { return text_of(code).name; }
CKEMU_EXPORT const char* hipGetErrorString(hipError_t code) { return text_of(code).text; }
CKEMU_EXPORT hipError_t hipDrvGetErrorName(hipError_t code, const char** name) {
  if (name == nullptr) return finish(hipErrorInvalidValue);
  *name = text_of(code).name;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDrvGetErrorString(hipError_t code, const char** text) {
  if (text == nullptr) return finish(hipErrorInvalidValue);
  *text = text_of(code).text;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipGetLastError() {
  const hipError_t last = t_last;
  t_last = hipSuccess;
  return last;
}
CKEMU_EXPORT hipError_t hipExtGetLastError() { return hipGetLastError(); }
CKEMU_EXPORT hipError_t hipPeekAtLastError() { return t_last; }

CKEMU_EXPORT hipError_t hipInit(u32 flags) { return finish(flags == 0 ? hipSuccess : hipErrorInvalidValue); }
CKEMU_EXPORT hipError_t hipRuntimeGetVersion(int* version) {
  if (version == nullptr) return finish(hipErrorInvalidValue);
  *version = kHipVersion;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDriverGetVersion(int* version) { return hipRuntimeGetVersion(version); }

}  // namespace ckemu
