// SPDX-License-Identifier: MIT
//
// HIP: calls that AMD's library exports, so that programs which name them load. They do nothing and say so once each.
#include "hip/hip_unsupported.h"

#include <cstdio>

#include "hip/array.h"
#include "hip/ckemu.h"
#include "hip/device.h"
#include "hip/hip_types.h"

namespace ckemu {

namespace {

hipError_t unsupported(const char* call, bool& said) {
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED) && after_fault() != AfterFault::Quiet) {
    std::fprintf(stderr, "libamdhip64: %s is not supported by the emulator\n", call);
  }
  last_message().clear();
  last_message().add("%s is not supported by the emulator", call);
  return finish(hipErrorNotSupported);
}

}  // namespace

// The caller removes arguments, whatever they are.
#define CKEMU_STUB(name)             \
  CKEMU_EXPORT hipError_t name() {   \
    static bool said = false;        \
    return unsupported(#name, said); \
  }
CKEMU_UNSUPPORTED_CALLS(CKEMU_STUB)
#undef CKEMU_STUB

CKEMU_EXPORT const char* hipApiName(u32) {
  static bool said = false;
  unsupported("hipApiName", said);
  return "unknown";
}
CKEMU_EXPORT const char* hipGetCmdName(u32) {
  static bool said = false;
  unsupported("hipGetCmdName", said);
  return "";
}
CKEMU_EXPORT void __hipRegisterSurface(void**, void*, char*, char*, int, int) {
  static bool said = false;
  unsupported("__hipRegisterSurface", said);
}
/// No header is precompiled into this library.
CKEMU_EXPORT void __hipGetPCH(const char** header, u32* size) {
  *header = nullptr;
  *size = 0;
}

CKEMU_EXPORT const char* amd_dbgapi_get_build_name() { return "cklang"; }
CKEMU_EXPORT const char* amd_dbgapi_get_git_hash() { return ""; }
CKEMU_EXPORT size_t amd_dbgapi_get_build_id() { return 0; }

CKEMU_EXPORT u16 __gnu_f2h_ieee(float value) { return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT); }
CKEMU_EXPORT float __gnu_h2f_ieee(u16 bits) { return _cvtsh_ss(bits); }

CKEMU_EXPORT ChannelFormat hipCreateChannelDesc(int x, int y, int z, int w, int kind) { return {{x, y, z, w}, kind}; }

}  // namespace ckemu
