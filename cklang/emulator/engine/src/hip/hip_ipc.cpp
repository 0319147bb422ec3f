// SPDX-License-Identifier: MIT
//
// HIP: memory of one process that another opens. A handle says where the file of the memory is; who opens it maps the
// same pages, so that loads, stores and atomic operations of both are of one memory.
#include <unistd.h>

#include "hip/device.h"
#include "hip/ipc.h"
#include "hip/memory.h"
#include "hip/module.h"

namespace ckemu {

namespace {

constexpr u32 kLazyPeerAccess = 1;  // hipIpcMemLazyEnablePeerAccess, which is the only flag

hipError_t refuse(hipError_t error, const char* call, const char* reason) {
  last_message().clear();
  last_message().add("%s: %s", call, reason);
  return error;
}

hipError_t get_handle(IpcHandle* handle, const void* pointer) {
  constexpr const char* call = "hipIpcGetMemHandle";
  Allocation block;
  if (handle == nullptr || pointer == nullptr) return hipErrorInvalidValue;
  const hipError_t error = share(pointer, block);
  if (error == hipErrorInvalidValue) return refuse(error, call, "only memory of hipMalloc and its kind has a handle");
  if (error != hipSuccess) return refuse(error, call, "the system has no memory to share");
  const u64 offset = reinterpret_cast<u64>(pointer) - block.base;
  *handle = handle_of(kMemoryHandle, block.file, *device(block.device), block.size, offset);
  return hipSuccess;
}

hipError_t open_handle(void** pointer, const IpcHandle& handle, u32 flags) {
  constexpr const char* call = "hipIpcOpenMemHandle";
  if (pointer == nullptr || flags != kLazyPeerAccess) return hipErrorInvalidValue;
  int file = -1;
  if (const hipError_t error = open_handle(call, kMemoryHandle, handle, file); error != hipSuccess) return error;
  if (const hipError_t error = attach(pointer, file, handle.size); error != hipSuccess) return error;
  *pointer = static_cast<u8*>(*pointer) + handle.offset;
  return hipSuccess;
}

}  // namespace

IpcHandle handle_of(u32 kind, int file, const Device& gpu, u64 size, u64 offset) {
  return {kind, gpu.place, address_of_file(file), own_page(), size, offset};
}

hipError_t open_handle(const char* call, u32 kind, const IpcHandle& handle, int& file) {
  if (handle.kind != kind) return refuse(hipErrorInvalidValue, call, "the bytes are no handle of an emulated GPU");
  if (handle.file.process == getpid()) return refuse(hipErrorInvalidContext, call, "the handle is of this process");
  if (!is_installed(handle.gpu))
    return refuse(hipErrorInvalidDevice, call,
                  "the processes see different GPUs: CKLANG_GPUS must be the same in both");
  file = open_file(handle.file);
  if (file < 0) return refuse(hipErrorMapFailed, call, "the process that shares it has ended or has freed it");
  const hipError_t error = add_peer(handle.page);
  if (error == hipSuccess) return error;
  close(file);
  return refuse(error, call, "the process that shares it has ended, or shares with too many");
}

CKEMU_EXPORT hipError_t hipIpcGetMemHandle(IpcHandle* handle, void* pointer) {
  return finish(get_handle(handle, pointer));
}
CKEMU_EXPORT hipError_t hipIpcOpenMemHandle(void** pointer, IpcHandle handle, u32 flags) {
  return finish(open_handle(pointer, handle, flags));
}
CKEMU_EXPORT hipError_t hipIpcCloseMemHandle(void* pointer) { return finish(detach(pointer)); }

}  // namespace ckemu
