// SPDX-License-Identifier: MIT
#include "hip/module.h"

#include "core/immortal.h"
#include "decode/decode.h"
#include "hip/handles.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

Handles<Module>& modules() { return immortal<Handles<Module>>(); }
struct Functions {
  Mutex lock;
  std::set<const void*> known;
};
Functions& functions() { return immortal<Functions>(); }

hipError_t error_of(CodeObject::Status status) {
  switch (status) {
    case CodeObject::Status::Ok: return hipSuccess;
    case CodeObject::Status::WrongArch: return hipErrorNoBinaryForGpu;
    case CodeObject::Status::NoMemory: return hipErrorOutOfMemory;
    case CodeObject::Status::Malformed: return hipErrorInvalidImage;
  }
  return hipErrorUnknown;
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

hipError_t load_module(const void* image, size_t size, Device& gpu, Module** loaded) {
  if (loaded == nullptr || image == nullptr) return hipErrorInvalidValue;
  auto module = std::make_unique<Module>();
  module->object = Ref<CodeObject>::make();
  module->device = &gpu;
  last_message().clear();
  const auto status = module->object->load(image, size, gpu.spec->arch, last_message());
  if (status != CodeObject::Status::Ok) return error_of(status);
  know(reinterpret_cast<u64>(module->object->image()), module->object->image_size());
  *loaded = modules().add(static_cast<std::unique_ptr<Module>&&>(module));
  return hipSuccess;
}

hipError_t unload_module(void* handle) {
  const std::unique_ptr<Module> owned = modules().remove(handle);
  if (owned == nullptr) return hipErrorInvalidHandle;
  forget(reinterpret_cast<u64>(owned->object->image()));
  const Guard guard(functions().lock);
  for (const auto& [name, function] : owned->functions) functions().known.erase(function.get());
  return hipSuccess;
}

Function* function_of(const void* handle) {
  const Guard guard(functions().lock);
  if (functions().known.count(handle) == 0) return nullptr;
  return static_cast<Function*>(const_cast<void*>(handle));
}

hipError_t find_function(void* handle, const char* name, Function** function) {
  if (function == nullptr || name == nullptr) return hipErrorInvalidValue;
  Module* module = modules().find(handle);
  if (module == nullptr) return hipErrorInvalidHandle;
  const Guard guard(functions().lock);
  std::unique_ptr<Function>& entry = module->functions[name];
  if (entry == nullptr) {
    const Kernel* kernel = module->object->kernel(name);
    if (kernel == nullptr) {
      module->functions.erase(name);
      last_message().clear();
      last_message().add("the module has no kernel %s", name);
      return hipErrorNotFound;
    }
    entry = std::make_unique<Function>();
    entry->kernel = kernel;
    entry->module = module;
    entry->program = Ref<Program>::make(module->object, *kernel, family_of_device(*module->device));
    functions().known.insert(entry.get());
  }
  *function = entry.get();
  return hipSuccess;
}

hipError_t find_global(void* handle, const char* name, void** address, size_t* size) {
  if (name == nullptr) return hipErrorInvalidValue;
  const Module* module = modules().find(handle);
  if (module == nullptr) return hipErrorInvalidHandle;
  const auto found = module->object->symbols().find(name);
  if (found == module->object->symbols().end() || found->second.function) {
    last_message().clear();
    last_message().add("the module has no variable %s", name);
    return hipErrorNotFound;
  }
  if (address != nullptr) *address = module->object->image() + found->second.offset;
  if (size != nullptr) *size = found->second.size;
  return hipSuccess;
}

hipError_t count_functions(void* handle, u32* count) {
  const Module* module = modules().find(handle);
  if (count == nullptr) return hipErrorInvalidValue;
  if (module == nullptr) return hipErrorInvalidHandle;
  *count = static_cast<u32>(module->object->kernels().size());
  return hipSuccess;
}

}  // namespace ckemu
