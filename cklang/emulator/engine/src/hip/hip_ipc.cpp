// SPDX-License-Identifier: MIT
//
// HIP: sharing between processes, which is refused: an emulated GPU belongs to one process.
#include "hip/hip_types.h"
#include "hip/module.h"

namespace ckemu {

namespace {

hipError_t refuse(const char* call) {
  last_message().clear();
  last_message().add("%s: memory and events of an emulated GPU belong to one process", call);
  return finish(hipErrorNotSupported);
}

/// hipIpcMemHandle_t and hipIpcEventHandle_t.
struct IpcHandle {
  char reserved[64];
};

}  // namespace

CKEMU_EXPORT hipError_t hipIpcGetMemHandle(IpcHandle*, void*) { return refuse("hipIpcGetMemHandle"); }
CKEMU_EXPORT hipError_t hipIpcOpenMemHandle(void**, IpcHandle, u32) { return refuse("hipIpcOpenMemHandle"); }
CKEMU_EXPORT hipError_t hipIpcCloseMemHandle(void*) { return refuse("hipIpcCloseMemHandle"); }
CKEMU_EXPORT hipError_t hipIpcGetEventHandle(IpcHandle*, void*) { return refuse("hipIpcGetEventHandle"); }
CKEMU_EXPORT hipError_t hipIpcOpenEventHandle(void**, IpcHandle) { return refuse("hipIpcOpenEventHandle"); }
CKEMU_EXPORT hipError_t hipMemExportToShareableHandle(void*, void*, int, u64) {
  return refuse("hipMemExportToShareableHandle");
}
CKEMU_EXPORT hipError_t hipMemImportFromShareableHandle(void**, void*, int) {
  return refuse("hipMemImportFromShareableHandle");
}

}  // namespace ckemu
