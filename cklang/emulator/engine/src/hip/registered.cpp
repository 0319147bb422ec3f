// SPDX-License-Identifier: MIT
#include "hip/registered.h"

#include <algorithm>
#include <cstdlib>

#include "core/demangle.h"
#include "core/immortal.h"
#include "hip/memory.h"

namespace ckemu {

namespace {

constexpr u32 kFatMagic = 0x48495046;  // "HIPF"

struct Named {
  FatBinary* binary;
  std::string name;
};
struct ManagedVariable {
  std::string name;
  void* memory;
};

}  // namespace

struct FatBinary {
  const void* bundle;
  std::vector<std::string> archs;
  std::vector<Device*> missed;  // devices without code, of which the user was told
  std::map<Device*, Module*> modules;
  std::vector<ManagedVariable> managed;
};

namespace {

struct Registered {
  Mutex lock;
  std::map<const void*, Named> kernels, variables;
};
Registered& registered() { return immortal<Registered>(); }

/// Lets the pointers that stand for managed variables in a loaded module point to their memory.
hipError_t connect_managed(const FatBinary& binary, Module* module) {
  for (const ManagedVariable& variable : binary.managed) {
    void* place = nullptr;
    size_t size = 0;
    const hipError_t error = find_global(module, variable.name.c_str(), &place, &size);
    if (error == hipErrorNotFound) continue;  // the device code does not use it
    if (error != hipSuccess) return error;
    std::memcpy(place, &variable.memory, sizeof variable.memory);
  }
  return hipSuccess;
}

/// Tells the user that kernel `name` cannot run on `gpu`: many programs never ask what became of a launch.
void tell_missing(FatBinary& binary, Device& gpu, const char* name) {
  if (std::count(binary.missed.begin(), binary.missed.end(), &gpu) != 0) return;
  binary.missed.push_back(&gpu);
  Text<256> archs;
  for (const std::string& arch : binary.archs) archs.add("%s%s", archs.empty() ? "" : ", ", arch.c_str());
  std::fprintf(
      stderr, "libamdhip64 (emulated): kernel %s is not launched: device %d is a %s, and the program has code for %s\n",
      readable(name).c_str(), device_number(gpu), gpu.spec->arch, archs.empty() ? "no GPU" : archs.c_str());
}

/// The module of `binary` on `gpu`, loaded at first use. Called locked.
hipError_t module_for(FatBinary& binary, Device& gpu, Module** module) {
  Module*& loaded = binary.modules[&gpu];
  if (loaded == nullptr) {
    Module* fresh = nullptr;
    if (const hipError_t error = load_module(binary.bundle, 0, gpu, &fresh); error != hipSuccess) return error;
    if (const hipError_t error = connect_managed(binary, fresh); error != hipSuccess) return error;
    loaded = fresh;
  }
  *module = loaded;
  return hipSuccess;
}

template <class Map>
void forget(Map& items, const FatBinary* binary) {
  for (auto item = items.begin(); item != items.end();) {
    item = item->second.binary == binary ? items.erase(item) : std::next(item);
  }
}

}  // namespace

FatBinary* register_binary(const FatWrapper* wrapper) {
  if (wrapper == nullptr || wrapper->magic != kFatMagic || wrapper->bundle == nullptr) return nullptr;
  auto binary = std::make_unique<FatBinary>();
  binary->bundle = wrapper->bundle;
  binary->archs = archs_of_bundle(wrapper->bundle);
  if (!binary->archs.empty()) restrict_devices(binary->archs);
  return binary.release();
}

void register_kernel(FatBinary* binary, const void* host, const char* name) {
  const Guard guard(registered().lock);
  registered().kernels[host] = {binary, name};
}

void register_variable(FatBinary* binary, const void* host, const char* name) {
  const Guard guard(registered().lock);
  registered().variables[host] = {binary, name};
}

void register_managed(FatBinary* binary, void** host, const void* initial, const char* name, size_t size) {
  void* memory = nullptr;
  if (allocate(&memory, size, MemoryType::Managed) != hipSuccess) {
    std::fprintf(stderr, "libamdhip64: no memory for the managed variable %s (%zu bytes)\n", name, size);
    std::abort();
  }
  if (initial != nullptr) std::memcpy(memory, initial, size);
  *host = memory;
  const Guard guard(registered().lock);
  binary->managed.push_back({name, memory});
}

void unregister_binary(FatBinary* binary) {
  std::map<Device*, Module*> modules;
  {
    const Guard guard(registered().lock);
    forget(registered().kernels, binary);
    forget(registered().variables, binary);
    modules.swap(binary->modules);
  }
  for (const auto& [gpu, module] : modules) unload_module(module);
  for (const ManagedVariable& variable : binary->managed) release(variable.memory);
  delete binary;
}

hipError_t registered_kernel(const void* host, Device& gpu, Function** function) {
  const Guard guard(registered().lock);
  const auto found = registered().kernels.find(host);
  if (found == registered().kernels.end()) {
    last_message().clear();
    last_message().add("no kernel is registered for the host address %p", host);
    return hipErrorInvalidDeviceFunction;
  }
  Module* module = nullptr;
  FatBinary& binary = *found->second.binary;
  if (const hipError_t error = module_for(binary, gpu, &module); error != hipSuccess) {
    if (error == hipErrorNoBinaryForGpu) tell_missing(binary, gpu, found->second.name.c_str());
    return error;
  }
  const hipError_t error = find_function(module, found->second.name.c_str(), function);
  return error == hipErrorNotFound ? hipErrorInvalidDeviceFunction : error;
}

hipError_t registered_variable(const void* host, Device& gpu, void** address, size_t* size) {
  const Guard guard(registered().lock);
  const auto found = registered().variables.find(host);
  if (found == registered().variables.end()) {
    last_message().clear();
    last_message().add("no variable is registered for the host address %p", host);
    return hipErrorInvalidSymbol;
  }
  Module* module = nullptr;
  if (const hipError_t error = module_for(*found->second.binary, gpu, &module); error != hipSuccess) return error;
  const hipError_t error = find_global(module, found->second.name.c_str(), address, size);
  return error == hipErrorNotFound ? hipErrorInvalidSymbol : error;
}

hipError_t kernel_behind(const void* handle, Device& gpu, Function** function) {
  if (Function* own = function_of(handle)) {
    *function = own;
    return hipSuccess;
  }
  return registered_kernel(handle, gpu, function);
}

}  // namespace ckemu
