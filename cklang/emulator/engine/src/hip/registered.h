// SPDX-License-Identifier: MIT
//
// What the host part of a HIP program has registered: its fat binaries, and which kernel or variable
// in them stands behind an address of the host. A fat binary is loaded for a device when something
// of it is first used there.
#pragma once

#include "hip/module.h"

namespace ckemu {

/// What clang puts in front of a program's device code.
struct FatWrapper {
  u32 magic, version;
  const void* bundle;
  void* unused;
};

struct FatBinary;

/// A fat binary to which kernels and variables are then added; null if `wrapper` is none.
FatBinary* register_binary(const FatWrapper* wrapper);
void register_kernel(FatBinary* binary, const void* host, const char* name);
void register_variable(FatBinary* binary, const void* host, const char* name);
/// A variable whose memory both sides share: `host` is a pointer to set, `initial` its first contents.
void register_managed(FatBinary* binary, void** host, const void* initial, const char* name, size_t size);
/// Forgets a fat binary, all that is registered for it, and its loaded modules.
void unregister_binary(FatBinary* binary);

/// The kernel behind a function of the host program, loaded for `gpu`.
hipError_t registered_kernel(const void* host, Device& gpu, Function** function);
/// The variable behind one of the host program, loaded for `gpu`.
hipError_t registered_variable(const void* host, Device& gpu, void** address, size_t* size);

/// The kernel behind a hipFunction_t or a function of the host program, loaded for `gpu`.
hipError_t kernel_behind(const void* handle, Device& gpu, Function** function);

}  // namespace ckemu
