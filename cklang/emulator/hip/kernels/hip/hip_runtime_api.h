// SPDX-License-Identifier: MIT
// Host API of HIP: the prototypes, and the forms of them that C++ programs call. What is not here
// (textures, surfaces, arrays, IPC, virtual memory) is not offered without ROCm.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hip/driver_types.h>
#include <hip/hip_version.h>
#include <hip/vector_types.h>

typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void* data);

extern "C" {
// Initialisation, errors, devices
hipError_t hipInit(unsigned int flags);
hipError_t hipDriverGetVersion(int* version);
hipError_t hipRuntimeGetVersion(int* version);
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
const char* hipGetErrorString(hipError_t error);
const char* hipGetErrorName(hipError_t error);
hipError_t hipDrvGetErrorName(hipError_t error, const char** name);
hipError_t hipDrvGetErrorString(hipError_t error, const char** text);
hipError_t hipGetDevice(int* device);
hipError_t hipSetDevice(int device);
hipError_t hipGetDeviceCount(int* count);
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device);
hipError_t hipDeviceGet(hipDevice_t* handle, int device);
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device);
hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device);
hipError_t hipDeviceTotalMem(size_t* bytes, hipDevice_t device);
hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t device);
hipError_t hipDeviceGetPCIBusId(char* id, int length, int device);
hipError_t hipDeviceGetLimit(size_t* value, hipLimit_t limit);
hipError_t hipDeviceSetLimit(hipLimit_t limit, size_t value);
hipError_t hipDeviceSetCacheConfig(hipFuncCache_t config);
hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest);
hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags);
hipError_t hipDeviceDisablePeerAccess(int peer);
hipError_t hipSetDeviceFlags(unsigned int flags);
hipError_t hipGetDeviceFlags(unsigned int* flags);
hipError_t hipDeviceSynchronize();
hipError_t hipDeviceReset();

// Memory
hipError_t hipMalloc(void** pointer, size_t bytes);
hipError_t hipExtMallocWithFlags(void** pointer, size_t bytes, unsigned int flags);
hipError_t hipMallocManaged(void** pointer, size_t bytes, unsigned int flags = hipMemAttachGlobal);
hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height);
hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream);
hipError_t hipFree(void* pointer);
hipError_t hipFreeAsync(void* pointer, hipStream_t stream);
hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int flags = hipHostMallocDefault);
hipError_t hipHostAlloc(void** pointer, size_t bytes, unsigned int flags);
hipError_t hipMallocHost(void** pointer, size_t bytes);
hipError_t hipHostFree(void* pointer);
hipError_t hipFreeHost(void* pointer);
hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned int flags);
hipError_t hipHostGetFlags(unsigned int* flags, void* host);
hipError_t hipHostRegister(void* host, size_t bytes, unsigned int flags);
hipError_t hipHostUnregister(void* host);
hipError_t hipMemGetInfo(size_t* free_bytes, size_t* total_bytes);
hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, size_t* bytes, hipDeviceptr_t pointer);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer);
hipError_t hipMemAdvise(const void* pointer, size_t bytes, hipMemoryAdvise advice, int device);
hipError_t hipMemPrefetchAsync(
    const void* pointer, size_t bytes, int device, hipStream_t stream = nullptr);
hipError_t hipMemset(void* pointer, int value, size_t bytes);
hipError_t hipMemsetAsync(void* pointer, int value, size_t bytes, hipStream_t stream = nullptr);
hipError_t hipMemsetD8(hipDeviceptr_t pointer, unsigned char value, size_t count);
hipError_t hipMemsetD16(hipDeviceptr_t pointer, unsigned short value, size_t count);
hipError_t hipMemsetD32(hipDeviceptr_t pointer, int value, size_t count);
hipError_t hipMemsetD32Async(
    hipDeviceptr_t pointer, int value, size_t count, hipStream_t stream = nullptr);
hipError_t hipMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height);
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(
    void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream = nullptr);
hipError_t hipMemcpyWithStream(
    void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyHtoD(hipDeviceptr_t to, const void* from, size_t bytes);
hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes);
hipError_t hipMemcpyHtoDAsync(
    hipDeviceptr_t to, const void* from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyDtoHAsync(void* to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes);
hipError_t hipMemcpyPeerAsync(void* to,
                              int to_device,
                              const void* from,
                              int from_device,
                              size_t bytes,
                              hipStream_t stream = nullptr);
hipError_t hipMemcpy2D(void* to,
                       size_t to_pitch,
                       const void* from,
                       size_t from_pitch,
                       size_t width,
                       size_t height,
                       hipMemcpyKind kind);
hipError_t hipMemcpy2DAsync(void* to,
                            size_t to_pitch,
                            const void* from,
                            size_t from_pitch,
                            size_t width,
                            size_t height,
                            hipMemcpyKind kind,
                            hipStream_t stream = nullptr);
hipError_t hipMemcpy3D(const hipMemcpy3DParms* parameters);
hipError_t hipMemcpyToSymbol(const void* symbol,
                             const void* from,
                             size_t bytes,
                             size_t offset      = 0,
                             hipMemcpyKind kind = hipMemcpyHostToDevice);
hipError_t hipMemcpyToSymbolAsync(const void* symbol,
                                  const void* from,
                                  size_t bytes,
                                  size_t offset,
                                  hipMemcpyKind kind,
                                  hipStream_t stream = nullptr);
hipError_t hipMemcpyFromSymbol(void* to,
                               const void* symbol,
                               size_t bytes,
                               size_t offset      = 0,
                               hipMemcpyKind kind = hipMemcpyDeviceToHost);
hipError_t hipMemcpyFromSymbolAsync(void* to,
                                    const void* symbol,
                                    size_t bytes,
                                    size_t offset,
                                    hipMemcpyKind kind,
                                    hipStream_t stream = nullptr);
hipError_t hipGetSymbolAddress(void** pointer, const void* symbol);
hipError_t hipGetSymbolSize(size_t* bytes, const void* symbol);

// Streams and events
hipError_t hipStreamCreate(hipStream_t* stream);
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags);
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned int flags, int priority);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags = 0);
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int* flags);
hipError_t hipStreamGetPriority(hipStream_t stream, int* priority);
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t* device);
hipError_t hipStreamAddCallback(
    hipStream_t stream, hipStreamCallback_t callback, void* data, unsigned int flags);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* data);
hipError_t hipExtStreamGetCUMask(hipStream_t stream, uint32_t words, uint32_t* mask);
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned int flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop);

// Modules and launches
hipError_t hipModuleLoad(hipModule_t* module, const char* file);
hipError_t hipModuleLoadData(hipModule_t* module, const void* image);
hipError_t hipModuleUnload(hipModule_t module);
hipError_t hipModuleGetFunction(hipFunction_t* function, hipModule_t module, const char* name);
hipError_t hipModuleGetGlobal(
    hipDeviceptr_t* pointer, size_t* bytes, hipModule_t module, const char* name);
hipError_t hipModuleLaunchKernel(hipFunction_t function,
                                 unsigned int grid_x,
                                 unsigned int grid_y,
                                 unsigned int grid_z,
                                 unsigned int block_x,
                                 unsigned int block_y,
                                 unsigned int block_z,
                                 unsigned int shared_bytes,
                                 hipStream_t stream,
                                 void** arguments,
                                 void** extra);
hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function,
                                            unsigned int grid_x,
                                            unsigned int grid_y,
                                            unsigned int grid_z,
                                            unsigned int block_x,
                                            unsigned int block_y,
                                            unsigned int block_z,
                                            unsigned int shared_bytes,
                                            hipStream_t stream,
                                            void** arguments);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, hipFunction_t function, int block_size, size_t shared_bytes);
hipError_t hipLaunchKernel(const void* function,
                           dim3 grid,
                           dim3 block,
                           void** arguments,
                           size_t shared_bytes,
                           hipStream_t stream);
hipError_t hipExtLaunchKernel(const void* function,
                              dim3 grid,
                              dim3 block,
                              void** arguments,
                              size_t shared_bytes,
                              hipStream_t stream,
                              hipEvent_t start,
                              hipEvent_t stop,
                              int flags);
hipError_t hipLaunchCooperativeKernel(const void* function,
                                      dim3 grid,
                                      dim3 block,
                                      void** arguments,
                                      unsigned int shared_bytes,
                                      hipStream_t stream);
hipError_t __hipPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared_bytes = 0, hipStream_t stream = nullptr);
hipError_t __hipPopCallConfiguration(
    dim3* grid, dim3* block, size_t* shared_bytes, hipStream_t* stream);
hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* function);
hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute, hipFunction_t function);
hipError_t hipFuncSetAttribute(const void* function, hipFuncAttribute attribute, int value);
hipError_t hipFuncSetCacheConfig(const void* function, hipFuncCache_t config);
hipError_t hipFuncSetSharedMemConfig(const void* function, hipSharedMemConfig config);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                        const void* function,
                                                        int block_size,
                                                        size_t shared_bytes);
hipError_t hipOccupancyMaxPotentialBlockSize(
    int* grid, int* block, const void* function, size_t shared_bytes, int block_limit);

// Graphs
hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode);
hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph);
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus* status);
hipError_t hipGraphCreate(hipGraph_t* graph, unsigned int flags);
hipError_t hipGraphDestroy(hipGraph_t graph);
hipError_t hipGraphAddKernelNode(hipGraphNode_t* node,
                                 hipGraph_t graph,
                                 const hipGraphNode_t* after,
                                 size_t after_count,
                                 const hipKernelNodeParams* parameters);
hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count);
hipError_t hipGraphInstantiate(hipGraphExec_t* exec,
                               hipGraph_t graph,
                               hipGraphNode_t* error_node,
                               char* log,
                               size_t log_bytes);
hipError_t hipGraphInstantiateWithFlags(
    hipGraphExec_t* exec, hipGraph_t graph, unsigned long long flags);
hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphExecDestroy(hipGraphExec_t exec);
}

// Typed pointers and functions, where the API has untyped ones.
template <typename T>
hipError_t hipMalloc(T** pointer, size_t bytes)
{
    return hipMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <typename T>
hipError_t hipMallocManaged(T** pointer, size_t bytes, unsigned int flags = hipMemAttachGlobal)
{
    return hipMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
hipError_t hipMallocAsync(T** pointer, size_t bytes, hipStream_t stream)
{
    return hipMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
template <typename T>
hipError_t hipMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height)
{
    return hipMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height);
}
template <typename T>
hipError_t hipHostMalloc(T** pointer, size_t bytes, unsigned int flags = hipHostMallocDefault)
{
    return hipHostMalloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
hipError_t hipHostGetDevicePointer(T** device, void* host, unsigned int flags)
{
    return hipHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}
template <typename T>
hipError_t hipMemcpyToSymbol(const T& symbol,
                             const void* from,
                             size_t bytes,
                             size_t offset      = 0,
                             hipMemcpyKind kind = hipMemcpyHostToDevice)
{
    return hipMemcpyToSymbol(static_cast<const void*>(&symbol), from, bytes, offset, kind);
}
template <typename T>
hipError_t hipMemcpyFromSymbol(void* to,
                               const T& symbol,
                               size_t bytes,
                               size_t offset      = 0,
                               hipMemcpyKind kind = hipMemcpyDeviceToHost)
{
    return hipMemcpyFromSymbol(to, static_cast<const void*>(&symbol), bytes, offset, kind);
}
template <typename T>
hipError_t hipGetSymbolAddress(void** pointer, const T& symbol)
{
    return hipGetSymbolAddress(pointer, static_cast<const void*>(&symbol));
}
template <typename T>
hipError_t hipGetSymbolSize(size_t* bytes, const T& symbol)
{
    return hipGetSymbolSize(bytes, static_cast<const void*>(&symbol));
}
template <typename Result, typename... Parameters>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, Result (*function)(Parameters...), int block_size, size_t shared_bytes)
{
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, reinterpret_cast<const void*>(function), block_size, shared_bytes);
}
template <typename Result, typename... Parameters>
hipError_t hipOccupancyMaxPotentialBlockSize(int* grid,
                                             int* block,
                                             Result (*function)(Parameters...),
                                             size_t shared_bytes = 0,
                                             int block_limit     = 0)
{
    return hipOccupancyMaxPotentialBlockSize(
        grid, block, reinterpret_cast<const void*>(function), shared_bytes, block_limit);
}
template <typename Result, typename... Parameters>
hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, Result (*function)(Parameters...))
{
    return hipFuncGetAttributes(attributes, reinterpret_cast<const void*>(function));
}
template <typename Result, typename... Parameters>
hipError_t
hipFuncSetAttribute(Result (*function)(Parameters...), hipFuncAttribute attribute, int value)
{
    return hipFuncSetAttribute(reinterpret_cast<const void*>(function), attribute, value);
}
template <typename Result, typename... Parameters>
hipError_t hipLaunchCooperativeKernel(Result (*function)(Parameters...),
                                      dim3 grid,
                                      dim3 block,
                                      void** arguments,
                                      unsigned int shared_bytes,
                                      hipStream_t stream)
{
    return hipLaunchCooperativeKernel(
        reinterpret_cast<const void*>(function), grid, block, arguments, shared_bytes, stream);
}

// Launches by macro, as programs that were once written for older compilers have them.
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...)                        \
    do                                                                                            \
    {                                                                                             \
        kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__);                       \
    } while(0)
