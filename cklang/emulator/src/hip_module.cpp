// SPDX-License-Identifier: MIT
//
// HIP: modules, functions, launches, occupancy.
#include <cstdio>
#include <set>

#include "decode.h"
#include "module.h"

namespace ckemu {

namespace {

/// Words of the `extra` list of hipModuleLaunchKernel.
constexpr u64 kExtraPointer = 1, kExtraSize = 2, kExtraEnd = 3;

struct Handles {
  Mutex lock;
  std::set<void*> modules, functions;
};
Handles& handles() {
  static Handles all;
  return all;
}

Module* module_of(void* handle) {
  const Guard guard(handles().lock);
  return handles().modules.count(handle) != 0 ? static_cast<Module*>(handle) : nullptr;
}

hipError_t error_of(CodeObject::Status status) {
  switch (status) {
    case CodeObject::Status::Ok: return hipSuccess;
    case CodeObject::Status::WrongArch: return hipErrorNoBinaryForGpu;
    case CodeObject::Status::NoMemory: return hipErrorOutOfMemory;
    case CodeObject::Status::Malformed: return hipErrorInvalidImage;
  }
  return hipErrorUnknown;
}

hipError_t load(void** handle, const void* image, size_t size) {
  if (handle == nullptr || image == nullptr) return hipErrorInvalidValue;
  auto module = std::make_unique<Module>();
  module->object = Ref<CodeObject>::make();
  module->device = &current_device();
  last_message().clear();
  const auto status = module->object->load(image, size, module->device->spec->arch, last_message());
  if (status != CodeObject::Status::Ok) return error_of(status);
  const Guard guard(handles().lock);
  handles().modules.insert(module.get());
  *handle = module.release();
  return hipSuccess;
}

Family family_of_device(const Device& gpu) {
  Family family = Family::Cdna3;
  family_of(gpu.spec->arch, family);
  return family;
}

}  // namespace

Message& last_message() {
  thread_local Message message;
  return message;
}

Function* function_of(void* handle) {
  const Guard guard(handles().lock);
  return handles().functions.count(handle) != 0 ? static_cast<Function*>(handle) : nullptr;
}

CKEMU_EXPORT hipError_t hipModuleLoadData(void** module, const void* image) { return finish(load(module, image, 0)); }
CKEMU_EXPORT hipError_t hipModuleLoadDataEx(void** module, const void* image, u32, int*, void**) { return finish(load(module, image, 0)); }
CKEMU_EXPORT hipError_t hipModuleLoad(void** module, const char* path) {
  if (path == nullptr) return finish(hipErrorInvalidValue);
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return finish(hipErrorFileNotFound);
  std::vector<u8> bytes;
  u8 block[65536];
  for (size_t got; (got = std::fread(block, 1, sizeof block, file)) > 0;) bytes.insert(bytes.end(), block, block + got);
  std::fclose(file);
  if (bytes.empty()) return finish(hipErrorInvalidImage);
  return finish(load(module, bytes.data(), bytes.size()));
}
CKEMU_EXPORT hipError_t hipModuleUnload(void* handle) {
  Module* module = module_of(handle);
  if (module == nullptr) return finish(hipErrorInvalidHandle);
  const Guard running(module->device->running);
  const Guard guard(handles().lock);
  for (const auto& [name, function] : module->functions) handles().functions.erase(function.get());
  handles().modules.erase(module);
  delete module;
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipModuleGetFunction(void** function, void* handle, const char* name) {
  if (function == nullptr || name == nullptr) return finish(hipErrorInvalidValue);
  Module* module = module_of(handle);
  if (module == nullptr) return finish(hipErrorInvalidHandle);
  const Guard guard(handles().lock);
  std::unique_ptr<Function>& entry = module->functions[name];
  if (entry == nullptr) {
    const Kernel* kernel = module->object->kernel(name);
    if (kernel == nullptr) {
      module->functions.erase(name);
      last_message().clear();
      last_message().add("the module has no kernel %s", name);
      return finish(hipErrorNotFound);
    }
    entry = std::make_unique<Function>();
    entry->kernel = kernel;
    entry->module = module;
    entry->program = Ref<Program>::make(module->object, *kernel, family_of_device(*module->device));
    handles().functions.insert(entry.get());
  }
  *function = entry.get();
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipModuleGetGlobal(void** address, size_t* size, void* handle, const char* name) {
  if (name == nullptr) return finish(hipErrorInvalidValue);
  Module* module = module_of(handle);
  if (module == nullptr) return finish(hipErrorInvalidHandle);
  const auto found = module->object->symbols().find(name);
  if (found == module->object->symbols().end() || found->second.function) return finish(hipErrorNotFound);
  if (address != nullptr) *address = module->object->image() + found->second.offset;
  if (size != nullptr) *size = found->second.size;
  return hipSuccess;
}

/// HIP_FUNC_ATTRIBUTE_* numbers.
CKEMU_EXPORT hipError_t hipFuncGetAttribute(int* value, int attribute, void* handle) {
  const Function* function = function_of(handle);
  if (value == nullptr) return finish(hipErrorInvalidValue);
  if (function == nullptr) return finish(hipErrorInvalidDeviceFunction);
  const Kernel& kernel = *function->kernel;
  const DeviceSpec& spec = *function->module->device->spec;
  const u32 answers[] = {kernel.max_threads, kernel.lds_bytes, 0, kernel.private_bytes, kernel.vgprs, 0, 0, 0, spec.lds_bytes - kernel.lds_bytes, 0};
  if (attribute < 0 || attribute >= static_cast<int>(sizeof answers / sizeof *answers)) return finish(hipErrorInvalidValue);
  *value = static_cast<int>(answers[attribute]);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* handle) {
  const Function* function = function_of(const_cast<void*>(handle));
  if (attributes == nullptr) return finish(hipErrorInvalidValue);
  if (function == nullptr) return finish(hipErrorInvalidDeviceFunction);
  const Kernel& kernel = *function->kernel;
  *attributes = hipFuncAttributes{};
  attributes->localSizeBytes = kernel.private_bytes;
  attributes->sharedSizeBytes = kernel.lds_bytes;
  attributes->maxThreadsPerBlock = static_cast<int>(kernel.max_threads);
  attributes->numRegs = static_cast<int>(kernel.vgprs);
  attributes->maxDynamicSharedSizeBytes = static_cast<int>(function->module->device->spec->lds_bytes - kernel.lds_bytes);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipFuncSetAttribute(const void* handle, int, int) {
  // The one attribute kernels set, the limit of dynamic LDS, is the device's own here.
  return finish(function_of(const_cast<void*>(handle)) != nullptr ? hipSuccess : hipErrorInvalidDeviceFunction);
}

CKEMU_EXPORT hipError_t hipModuleLaunchKernel(void* handle, u32 grid_x, u32 grid_y, u32 grid_z, u32 block_x, u32 block_y,
                                              u32 block_z, u32 dynamic_lds, void*, void** parameters, void** extra) {
  Function* function = function_of(handle);
  if (function == nullptr) return finish(hipErrorInvalidHandle);
  const LaunchShape shape{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, dynamic_lds};
  if (parameters != nullptr && extra != nullptr) return finish(hipErrorInvalidValue);
  if (extra != nullptr) {
    const void* buffer = nullptr;
    size_t size = 0;
    for (; reinterpret_cast<u64>(*extra) != kExtraEnd; extra += 2) {
      const u64 word = reinterpret_cast<u64>(*extra);
      if (word == kExtraPointer) {
        buffer = extra[1];
      } else if (word == kExtraSize) {
        size = *static_cast<const size_t*>(extra[1]);
      } else {
        return finish(hipErrorInvalidValue);
      }
    }
    if (buffer == nullptr && size != 0) return finish(hipErrorInvalidValue);
    return finish(launch(*function, shape, static_cast<const u8*>(buffer), size));
  }
  if (parameters == nullptr && explicit_bytes(*function->kernel) != 0) return finish(hipErrorInvalidValue);
  const std::vector<u8> bytes = gather_arguments(*function->kernel, parameters);
  return finish(launch(*function, shape, bytes.data(), bytes.size()));
}

CKEMU_EXPORT hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void* handle, int threads, size_t dynamic_lds) {
  const Function* function = function_of(handle);
  if (blocks == nullptr || threads <= 0) return finish(hipErrorInvalidValue);
  if (function == nullptr) return finish(hipErrorInvalidDeviceFunction);
  const DeviceSpec& spec = *function->module->device->spec;
  *blocks = static_cast<int>(blocks_per_unit(spec, *function->kernel, static_cast<u32>(threads), static_cast<u32>(dynamic_lds)));
  return hipSuccess;
}

}  // namespace ckemu
