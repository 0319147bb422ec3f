// SPDX-License-Identifier: MIT
//
// HIP: the names that programs call which were compiled with a null stream of each thread's own.
#include "hip/graph.h"
#include "hip/queue.h"
#include "hip/stream.h"

namespace ckemu {

namespace {
void* own(void* stream) { return stream == nullptr ? reinterpret_cast<void*>(kPerThreadStream) : stream; }
}  // namespace

extern "C" {
hipError_t hipMemcpyWithStream(void*, const void*, size_t, int, void*);
hipError_t hipMemcpyAsync(void*, const void*, size_t, int, void*);
hipError_t hipMemcpy2DAsync(void*, size_t, const void*, size_t, size_t, size_t, int, void*);
hipError_t hipMemcpyToSymbolAsync(const void*, const void*, size_t, size_t, int, void*);
hipError_t hipMemcpyFromSymbolAsync(void*, const void*, size_t, size_t, int, void*);
hipError_t hipMemsetAsync(void*, int, size_t, void*);
hipError_t hipStreamSynchronize(void*);
hipError_t hipStreamQuery(void*);
hipError_t hipStreamGetFlags(void*, u32*);
hipError_t hipStreamGetPriority(void*, int*);
hipError_t hipStreamWaitEvent(void*, void*, u32);
hipError_t hipStreamAddCallback(void*, void (*)(void*, hipError_t, void*), void*, u32);
hipError_t hipStreamBeginCapture(void*, int);
hipError_t hipStreamEndCapture(void*, void**);
hipError_t hipStreamIsCapturing(void*, CaptureStatus*);
hipError_t hipLaunchHostFunc(void*, void (*)(void*), void*);
hipError_t hipEventRecord(void*, void*);
hipError_t hipGraphLaunch(void*, void*);
hipError_t hipLaunchKernel(const void*, Dim3, Dim3, void**, size_t, void*);
hipError_t hipLaunchCooperativeKernel(const void*, Dim3, Dim3, void**, u32, void*);
}

CKEMU_EXPORT hipError_t hipMemcpy_spt(void* to, const void* from, size_t size, int kind) {
  return hipMemcpyWithStream(to, from, size, kind, own(nullptr));
}
CKEMU_EXPORT hipError_t hipMemcpyAsync_spt(void* to, const void* from, size_t size, int kind, void* stream) {
  return hipMemcpyAsync(to, from, size, kind, own(stream));
}
CKEMU_EXPORT hipError_t hipMemcpy2DAsync_spt(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                             size_t width, size_t height, int kind, void* stream) {
  return hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, own(stream));
}
CKEMU_EXPORT hipError_t hipMemcpy2D_spt(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                        size_t height, int kind) {
  const hipError_t error = hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, own(nullptr));
  return error == hipSuccess ? hipStreamSynchronize(own(nullptr)) : error;
}
CKEMU_EXPORT hipError_t hipMemcpyToSymbolAsync_spt(const void* symbol, const void* from, size_t size, size_t offset,
                                                   int kind, void* stream) {
  return hipMemcpyToSymbolAsync(symbol, from, size, offset, kind, own(stream));
}
CKEMU_EXPORT hipError_t hipMemcpyFromSymbolAsync_spt(void* to, const void* symbol, size_t size, size_t offset, int kind,
                                                     void* stream) {
  return hipMemcpyFromSymbolAsync(to, symbol, size, offset, kind, own(stream));
}
CKEMU_EXPORT hipError_t hipMemsetAsync_spt(void* to, int value, size_t size, void* stream) {
  return hipMemsetAsync(to, value, size, own(stream));
}
CKEMU_EXPORT hipError_t hipMemset_spt(void* to, int value, size_t size) {
  const hipError_t error = hipMemsetAsync(to, value, size, own(nullptr));
  return error == hipSuccess ? hipStreamSynchronize(own(nullptr)) : error;
}
CKEMU_EXPORT hipError_t hipStreamSynchronize_spt(void* stream) { return hipStreamSynchronize(own(stream)); }
CKEMU_EXPORT hipError_t hipStreamQuery_spt(void* stream) { return hipStreamQuery(own(stream)); }
CKEMU_EXPORT hipError_t hipStreamGetFlags_spt(void* stream, u32* flags) {
  return hipStreamGetFlags(own(stream), flags);
}
CKEMU_EXPORT hipError_t hipStreamGetPriority_spt(void* stream, int* priority) {
  return hipStreamGetPriority(own(stream), priority);
}
CKEMU_EXPORT hipError_t hipStreamWaitEvent_spt(void* stream, void* event, u32 flags) {
  return hipStreamWaitEvent(own(stream), event, flags);
}
CKEMU_EXPORT hipError_t hipStreamAddCallback_spt(void* stream, void (*callback)(void*, hipError_t, void*), void* data,
                                                 u32 flags) {
  return hipStreamAddCallback(own(stream), callback, data, flags);
}
CKEMU_EXPORT hipError_t hipStreamBeginCapture_spt(void* stream, int mode) {
  return hipStreamBeginCapture(own(stream), mode);
}
CKEMU_EXPORT hipError_t hipStreamEndCapture_spt(void* stream, void** graph) {
  return hipStreamEndCapture(own(stream), graph);
}
CKEMU_EXPORT hipError_t hipStreamIsCapturing_spt(void* stream, CaptureStatus* status) {
  return hipStreamIsCapturing(own(stream), status);
}
CKEMU_EXPORT hipError_t hipLaunchHostFunc_spt(void* stream, void (*function)(void*), void* data) {
  return hipLaunchHostFunc(own(stream), function, data);
}
CKEMU_EXPORT hipError_t hipEventRecord_spt(void* event, void* stream) { return hipEventRecord(event, own(stream)); }
CKEMU_EXPORT hipError_t hipGraphLaunch_spt(void* executable, void* stream) {
  return hipGraphLaunch(executable, own(stream));
}
CKEMU_EXPORT hipError_t hipLaunchKernel_spt(const void* function, Dim3 grid, Dim3 block, void** parameters,
                                            size_t dynamic_lds, void* stream) {
  return hipLaunchKernel(function, grid, block, parameters, dynamic_lds, own(stream));
}
CKEMU_EXPORT hipError_t hipLaunchCooperativeKernel_spt(const void* function, Dim3 grid, Dim3 block, void** parameters,
                                                       u32 dynamic_lds, void* stream) {
  return hipLaunchCooperativeKernel(function, grid, block, parameters, dynamic_lds, own(stream));
}

}  // namespace ckemu
