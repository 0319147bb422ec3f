// SPDX-License-Identifier: MIT
//
// HIP: modules, their kernels and variables.
#include <cstdio>

#include "hip/module.h"

namespace ckemu {

namespace {

hipError_t load(void** handle, const void* image, size_t size) {
  Module* module = nullptr;
  if (handle == nullptr) return hipErrorInvalidValue;
  const hipError_t error = load_module(image, size, current_device(), &module);
  if (error == hipSuccess) *handle = module;
  return error;
}

hipError_t load_file(void** handle, const char* path) {
  if (handle == nullptr || path == nullptr) return hipErrorInvalidValue;
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return hipErrorFileNotFound;
  std::vector<u8> bytes;
  u8 block[65536];
  for (size_t got; (got = std::fread(block, 1, sizeof block, file)) > 0;) bytes.insert(bytes.end(), block, block + got);
  std::fclose(file);
  return bytes.empty() ? hipErrorInvalidImage : load(handle, bytes.data(), bytes.size());
}

}  // namespace

CKEMU_EXPORT hipError_t hipModuleLoadData(void** module, const void* image) { return finish(load(module, image, 0)); }
CKEMU_EXPORT hipError_t hipModuleLoadDataEx(void** module, const void* image, u32, int*, void**) {
  return finish(load(module, image, 0));
}
CKEMU_EXPORT hipError_t hipModuleLoadFatBinary(void** module, const void* image) {
  return finish(load(module, image, 0));
}
CKEMU_EXPORT hipError_t hipModuleLoad(void** module, const char* path) { return finish(load_file(module, path)); }
CKEMU_EXPORT hipError_t hipModuleUnload(void* module) { return finish(unload_module(module)); }

CKEMU_EXPORT hipError_t hipModuleGetFunction(void** function, void* module, const char* name) {
  Function* found = nullptr;
  if (function == nullptr) return finish(hipErrorInvalidValue);
  const hipError_t error = find_function(module, name, &found);
  if (error == hipSuccess) *function = found;
  return finish(error);
}
CKEMU_EXPORT hipError_t hipModuleGetGlobal(void** address, size_t* size, void* module, const char* name) {
  return finish(find_global(module, name, address, size));
}
CKEMU_EXPORT hipError_t hipModuleGetFunctionCount(u32* count, void* module) {
  return finish(count_functions(module, count));
}

}  // namespace ckemu
