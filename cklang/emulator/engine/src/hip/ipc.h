// SPDX-License-Identifier: MIT
//
// Handles of memory and events for other processes.
#pragma once

#include "hip/device.h"
#include "hip/peers.h"

namespace ckemu {

constexpr u32 kMemoryHandle = 0x636b6d01, kEventHandle = 0x636b6501;

/// hipIpcMemHandle_t and hipIpcEventHandle_t.
struct IpcHandle {
  u32 kind;
  DevicePlace gpu;
  FileAddress file, page;  // its file, and the page of the process
  u64 size, offset;
  u64 unused = 0;
};
static_assert(sizeof(IpcHandle) == 64, "hipIpcMemHandle_t");

/// A handle of a file of this process.
IpcHandle handle_of(u32 kind, int file, const Device& gpu, u64 size, u64 offset);
/// Opens the file behind a handle, and makes its process a peer.
hipError_t open_handle(const char* call, u32 kind, const IpcHandle& handle, int& file);

}  // namespace ckemu
