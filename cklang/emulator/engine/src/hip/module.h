// SPDX-License-Identifier: MIT
//
// Loaded code objects and their kernels, and how a launch is put together from a HIP call.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "hip/device.h"

namespace ckemu {

struct Module;

/// What a hipFunction_t points to.
struct Function {
  const Kernel* kernel = nullptr;
  Module* module = nullptr;
  Ref<Program> program;
};

/// What a hipModule_t points to.
struct Module {
  Ref<CodeObject> object;
  Device* device = nullptr;
  std::map<std::string, std::unique_ptr<Function>> functions;
};

/// Loads an image of `size` bytes (0: not known) for `gpu`.
hipError_t load_module(const void* image, size_t size, Device& gpu, Module** module);
hipError_t unload_module(void* handle);

/// The function behind a handle; null if it is none of ours (or its module was unloaded).
Function* function_of(const void* handle);
/// Finds kernel `name` of a loaded module.
hipError_t find_function(void* module, const char* name, Function** function);
/// Finds variable `name` of a loaded module.
hipError_t find_global(void* module, const char* name, void** address, size_t* size);

/// How many kernels a loaded module has.
hipError_t count_functions(void* module, u32* count);

struct LaunchShape {
  Dim3 groups, block;
  u32 dynamic_lds;
  bool cooperative = false;  // all blocks at a time, or not at all
};

/// A checked launch, to run once or many times. It keeps the code it runs loaded.
struct PreparedLaunch {
  PreparedLaunch(Device& gpu, Ref<Program> code) : device(gpu), program(code) {}
  Device& device;
  Ref<Program> program;
  std::vector<u8> memory;  // that holds the arguments
  u8* kernarg = nullptr;
  Launch launch;
};

/// Prepares `function` with the explicit arguments in `arguments` (`size` bytes at the offsets of the
/// kernel's metadata).
hipError_t prepare_launch(Function& function, const LaunchShape& shape, const u8* arguments, size_t size,
                          Ref<PreparedLaunch>& prepared);
/// Runs it and waits. Faults make the device fail until it is reset.
void run_prepared(PreparedLaunch& prepared);

/// Explicit arguments gathered from pointers to each, as kernelParams gives them.
std::vector<u8> gather_arguments(const Kernel& kernel, void** parameters);

/// Bytes of the kernel's explicit arguments.
u32 explicit_bytes(const Kernel& kernel);

/// The reason of the calling thread's last failed call, at length.
Message& last_message();

}  // namespace ckemu
