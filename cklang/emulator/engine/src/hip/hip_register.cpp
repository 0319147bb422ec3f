// SPDX-License-Identifier: MIT
//
// HIP: the calls that clang puts into the host part of a HIP program: what runs before main, and the
// two halves of a <<<>>> launch.
#include <cstdlib>
#include <vector>

#include "hip/registered.h"

namespace ckemu {

namespace {

struct CallConfiguration {
  Dim3 grid, block;
  size_t dynamic_lds;
  void* stream;
};
std::vector<CallConfiguration>& pushed() {
  thread_local std::vector<CallConfiguration> calls;
  return calls;
}

}  // namespace

CKEMU_EXPORT FatBinary** __hipRegisterFatBinary(const FatWrapper* wrapper) {
  FatBinary* binary = register_binary(wrapper);
  if (binary == nullptr) {
    std::fprintf(stderr, "libamdhip64: the program registers device code that is no HIP fat binary\n");
    std::abort();
  }
  return new FatBinary*(binary);
}
CKEMU_EXPORT void __hipUnregisterFatBinary(FatBinary** handle) {
  if (handle == nullptr) return;
  unregister_binary(*handle);
  delete handle;
}
CKEMU_EXPORT void __hipRegisterFunction(FatBinary** handle, const void* host, const char*, const char* name, u32, void*,
                                        void*, void*, void*, int*) {
  register_kernel(*handle, host, name);
}
CKEMU_EXPORT void __hipRegisterVar(FatBinary** handle, void* host, const char*, const char* name, int, size_t, int,
                                   int) {
  register_variable(*handle, host, name);
}
CKEMU_EXPORT void __hipRegisterManagedVar(FatBinary** handle, void** host, const void* initial, const char* name,
                                          size_t size, u32) {
  register_managed(*handle, host, initial, name, size);
}

CKEMU_EXPORT hipError_t __hipPushCallConfiguration(Dim3 grid, Dim3 block, size_t dynamic_lds, void* stream) {
  pushed().push_back({grid, block, dynamic_lds, stream});
  return hipSuccess;
}
CKEMU_EXPORT hipError_t __hipPopCallConfiguration(Dim3* grid, Dim3* block, size_t* dynamic_lds, void** stream) {
  if (pushed().empty()) return finish(hipErrorMissingConfiguration);
  const CallConfiguration call = pushed().back();
  pushed().pop_back();
  *grid = call.grid;
  *block = call.block;
  *dynamic_lds = call.dynamic_lds;
  *stream = call.stream;
  return hipSuccess;
}

}  // namespace ckemu
