// SPDX-License-Identifier: MIT
//
// HIP: looking up HIP's own calls by name.
#include <dlfcn.h>

#include "hip/hip_types.h"

namespace ckemu {

namespace {

/// hipDriverProcAddressQueryResult.
enum QueryResult : int { kFound = 0, kNoSuchSymbol = 1 };

void* symbol_of(const char* name) {
  Dl_info self;
  if (dladdr(reinterpret_cast<void*>(&symbol_of), &self) == 0) return nullptr;
  void* library = dlopen(self.dli_fname, RTLD_NOLOAD | RTLD_NOW);
  void* found = library != nullptr ? dlsym(library, name) : nullptr;
  if (library != nullptr) dlclose(library);
  return found;
}

}  // namespace

CKEMU_EXPORT hipError_t hipGetProcAddress(const char* name, void** address, int, u64, int* result) {
  if (name == nullptr || address == nullptr) return finish(hipErrorInvalidValue);
  // Since version 6 this name means the new layout.
  const bool renamed = std::strcmp(name, "hipGetDeviceProperties") == 0;
  *address = symbol_of(renamed ? "hipGetDevicePropertiesR0600" : name);
  if (result != nullptr) *result = *address != nullptr ? kFound : kNoSuchSymbol;
  return finish(*address != nullptr ? hipSuccess : hipErrorNotFound);
}

}  // namespace ckemu
