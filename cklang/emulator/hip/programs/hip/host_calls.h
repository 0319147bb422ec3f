// SPDX-License-Identifier: MIT
// The calls of the host API that kernels of cklang do not need: arrays, textures and surfaces, pools, virtual memory,
// contexts, graphs built node by node, and rarer forms of other calls.
#pragma once

#include <hip/memory_types.h>
#include <hip/texture_types.h>

#define HIPRT_CB // a host function that HIP calls

extern "C" {
// Devices and contexts
hipError_t hipDeviceGetByPCIBusId(int* device, const char* id);
hipError_t hipDeviceGetCacheConfig(hipFuncCache_t* config);
hipError_t hipDeviceGetP2PAttribute(int* value, hipDeviceP2PAttr attribute, int from, int to);
hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig* config);
hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig config);
hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device);
hipError_t hipExtGetLastError();
hipError_t hipGetProcAddress(const char* name,
                             void** address,
                             int version,
                             uint64_t flags,
                             hipDriverProcAddressQueryResult* result = nullptr);
hipError_t hipCtxCreate(hipCtx_t* context, unsigned int flags, hipDevice_t device);
hipError_t hipCtxDestroy(hipCtx_t context);
hipError_t hipCtxGetApiVersion(hipCtx_t context, unsigned int* version);
hipError_t hipCtxGetCurrent(hipCtx_t* context);
hipError_t hipCtxGetDevice(hipDevice_t* device);
hipError_t hipCtxGetFlags(unsigned int* flags);
hipError_t hipCtxPopCurrent(hipCtx_t* context);
hipError_t hipCtxPushCurrent(hipCtx_t context);
hipError_t hipCtxSetCurrent(hipCtx_t context);
hipError_t hipCtxSynchronize();
hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned int* flags, int* active);
hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device);
hipError_t hipDevicePrimaryCtxReset(hipDevice_t device);
hipError_t hipDevicePrimaryCtxRetain(hipCtx_t* context, hipDevice_t device);
hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t device, unsigned int flags);

// Memory
hipError_t hipMalloc3D(hipPitchedPtr* pointer, hipExtent extent);
hipError_t hipMemAllocHost(void** pointer, size_t bytes);
hipError_t hipMemAllocPitch(
    hipDeviceptr_t* pointer, size_t* pitch, size_t width, size_t height, unsigned int element_bytes);
hipError_t hipMemPtrGetInfo(void* pointer, size_t* bytes);
hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute attribute, hipDeviceptr_t pointer);
hipError_t hipStreamAttachMemAsync(hipStream_t stream,
                                   void* pointer,
                                   size_t bytes       = 0,
                                   unsigned int flags = hipMemAttachSingle);
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int device);
hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int device);
hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool);
hipError_t
hipMallocFromPoolAsync(void** pointer, size_t bytes, hipMemPool_t pool, hipStream_t stream);
hipError_t hipMemPoolCreate(hipMemPool_t* pool, const hipMemPoolProps* properties);
hipError_t hipMemPoolDestroy(hipMemPool_t pool);
hipError_t
hipMemPoolGetAccess(hipMemAccessFlags* flags, hipMemPool_t pool, hipMemLocation* location);
hipError_t hipMemPoolSetAccess(hipMemPool_t pool, const hipMemAccessDesc* wanted, size_t count);
hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void* value);
hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void* value);
hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t bytes);
hipError_t hipMemAddressReserve(
    void** pointer, size_t bytes, size_t alignment, void* wanted, unsigned long long flags);
hipError_t hipMemAddressFree(void* pointer, size_t bytes);
hipError_t hipMemCreate(hipMemGenericAllocationHandle_t* handle,
                        size_t bytes,
                        const hipMemAllocationProp* properties,
                        unsigned long long flags);
hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle);
hipError_t hipMemMap(void* pointer,
                     size_t bytes,
                     size_t offset,
                     hipMemGenericAllocationHandle_t handle,
                     unsigned long long flags);
hipError_t hipMemUnmap(void* pointer, size_t bytes);
hipError_t
hipMemSetAccess(void* pointer, size_t bytes, const hipMemAccessDesc* wanted, size_t count);
hipError_t
hipMemGetAccess(unsigned long long* flags, const hipMemLocation* location, void* pointer);
hipError_t hipMemGetAllocationGranularity(size_t* bytes,
                                          const hipMemAllocationProp* properties,
                                          hipMemAllocationGranularity_flags option);
hipError_t hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp* properties,
                                                   hipMemGenericAllocationHandle_t handle);
hipError_t
hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t* handle, void* pointer);
hipError_t hipMemExportToShareableHandle(void* shareable,
                                         hipMemGenericAllocationHandle_t handle,
                                         hipMemAllocationHandleType type,
                                         unsigned long long flags);
hipError_t hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t* handle,
                                           void* shareable,
                                           hipMemAllocationHandleType type);
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* handle, void* pointer);
hipError_t hipIpcOpenMemHandle(void** pointer, hipIpcMemHandle_t handle, unsigned int flags);
hipError_t hipIpcCloseMemHandle(void* pointer);
hipError_t hipIpcGetEventHandle(hipIpcEventHandle_t* handle, hipEvent_t event);
hipError_t hipIpcOpenEventHandle(hipEvent_t* event, hipIpcEventHandle_t handle);

// Copies and fills
hipError_t hipMemcpyDtoDAsync(
    hipDeviceptr_t to, hipDeviceptr_t from, size_t bytes, hipStream_t stream);
hipError_t hipMemcpyParam2D(const hip_Memcpy2D* parameters);
hipError_t hipMemcpyParam2DAsync(const hip_Memcpy2D* parameters, hipStream_t stream = nullptr);
hipError_t hipMemcpy3DAsync(const hipMemcpy3DParms* parameters, hipStream_t stream = nullptr);
hipError_t hipDrvMemcpy3D(const HIP_MEMCPY3D* parameters);
hipError_t hipDrvMemcpy3DAsync(const HIP_MEMCPY3D* parameters, hipStream_t stream);
hipError_t hipMemset2DAsync(void* pointer,
                            size_t pitch,
                            int value,
                            size_t width,
                            size_t height,
                            hipStream_t stream = nullptr);
hipError_t hipMemset3D(hipPitchedPtr pointer, int value, hipExtent extent);
hipError_t
hipMemset3DAsync(hipPitchedPtr pointer, int value, hipExtent extent, hipStream_t stream = nullptr);
hipError_t hipMemsetD8Async(
    hipDeviceptr_t pointer, unsigned char value, size_t count, hipStream_t stream = nullptr);
hipError_t hipMemsetD16Async(
    hipDeviceptr_t pointer, unsigned short value, size_t count, hipStream_t stream = nullptr);

// Arrays
hipError_t hipMallocArray(hipArray_t* array,
                          const hipChannelFormatDesc* channels,
                          size_t width,
                          size_t height      = 0,
                          unsigned int flags = hipArrayDefault);
hipError_t hipMalloc3DArray(hipArray_t* array,
                            const hipChannelFormatDesc* channels,
                            hipExtent extent,
                            unsigned int flags = hipArrayDefault);
hipError_t hipFreeArray(hipArray_t array);
hipError_t hipArrayCreate(hipArray_t* array, const HIP_ARRAY_DESCRIPTOR* wanted);
hipError_t hipArray3DCreate(hipArray_t* array, const HIP_ARRAY3D_DESCRIPTOR* wanted);
hipError_t hipArrayDestroy(hipArray_t array);
hipError_t hipArrayGetInfo(
    hipChannelFormatDesc* channels, hipExtent* extent, unsigned int* flags, hipArray_t array);
hipError_t hipArrayGetDescriptor(HIP_ARRAY_DESCRIPTOR* description, hipArray_t array);
hipError_t hipArray3DGetDescriptor(HIP_ARRAY3D_DESCRIPTOR* description, hipArray_t array);
hipError_t hipGetChannelDesc(hipChannelFormatDesc* channels, hipArray_const_t array);
hipError_t hipMemcpy2DToArray(hipArray_t to,
                              size_t x,
                              size_t y,
                              const void* from,
                              size_t pitch,
                              size_t width,
                              size_t height,
                              hipMemcpyKind kind);
hipError_t hipMemcpy2DToArrayAsync(hipArray_t to,
                                   size_t x,
                                   size_t y,
                                   const void* from,
                                   size_t pitch,
                                   size_t width,
                                   size_t height,
                                   hipMemcpyKind kind,
                                   hipStream_t stream = nullptr);
hipError_t hipMemcpy2DFromArray(void* to,
                                size_t pitch,
                                hipArray_const_t from,
                                size_t x,
                                size_t y,
                                size_t width,
                                size_t height,
                                hipMemcpyKind kind);
hipError_t hipMemcpy2DFromArrayAsync(void* to,
                                     size_t pitch,
                                     hipArray_const_t from,
                                     size_t x,
                                     size_t y,
                                     size_t width,
                                     size_t height,
                                     hipMemcpyKind kind,
                                     hipStream_t stream = nullptr);
hipError_t hipMemcpy2DArrayToArray(hipArray_t to,
                                   size_t to_x,
                                   size_t to_y,
                                   hipArray_const_t from,
                                   size_t from_x,
                                   size_t from_y,
                                   size_t width,
                                   size_t height,
                                   hipMemcpyKind kind);
hipError_t hipMemcpyToArray(
    hipArray_t to, size_t x, size_t y, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyFromArray(
    void* to, hipArray_const_t from, size_t x, size_t y, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyHtoA(hipArray_t to, size_t offset, const void* from, size_t bytes);
hipError_t hipMemcpyAtoH(void* to, hipArray_t from, size_t offset, size_t bytes);

// Textures and surfaces
hipError_t hipCreateTextureObject(hipTextureObject_t* texture,
                                  const hipResourceDesc* resource,
                                  const hipTextureDesc* sampling,
                                  const hipResourceViewDesc* view);
hipError_t hipDestroyTextureObject(hipTextureObject_t texture);
hipError_t
hipGetTextureObjectResourceDesc(hipResourceDesc* resource, hipTextureObject_t texture);
hipError_t hipGetTextureObjectTextureDesc(hipTextureDesc* sampling, hipTextureObject_t texture);
hipError_t
hipGetTextureObjectResourceViewDesc(hipResourceViewDesc* view, hipTextureObject_t texture);
hipError_t hipCreateSurfaceObject(hipSurfaceObject_t* surface, const hipResourceDesc* resource);
hipError_t hipDestroySurfaceObject(hipSurfaceObject_t surface);
hipError_t hipBindTexture(size_t* offset,
                          const textureReference* reference,
                          const void* pointer,
                          const hipChannelFormatDesc* channels,
                          size_t bytes = 0xffffffff);
hipError_t hipBindTexture2D(size_t* offset,
                            const textureReference* reference,
                            const void* pointer,
                            const hipChannelFormatDesc* channels,
                            size_t width,
                            size_t height,
                            size_t pitch);
hipError_t hipBindTextureToArray(const textureReference* reference,
                                 hipArray_const_t array,
                                 const hipChannelFormatDesc* channels);
hipError_t hipUnbindTexture(const textureReference* reference);
hipError_t hipGetTextureAlignmentOffset(size_t* offset, const textureReference* reference);

// Streams and events
hipError_t
hipExtStreamCreateWithCUMask(hipStream_t* stream, uint32_t words, const uint32_t* mask);
int hipGetStreamDeviceId(hipStream_t stream);
hipError_t hipStreamWaitValue32(hipStream_t stream,
                                void* pointer,
                                uint32_t value,
                                unsigned int flags,
                                uint32_t mask = 0xffffffff);
hipError_t hipStreamWaitValue64(hipStream_t stream,
                                void* pointer,
                                uint64_t value,
                                unsigned int flags,
                                uint64_t mask = 0xffffffffffffffff);
hipError_t
hipStreamWriteValue32(hipStream_t stream, void* pointer, uint32_t value, unsigned int flags);
hipError_t
hipStreamWriteValue64(hipStream_t stream, void* pointer, uint64_t value, unsigned int flags);
hipError_t hipEventRecordWithFlags(
    hipEvent_t event, hipStream_t stream = nullptr, unsigned int flags = 0);

// Modules and functions
hipError_t hipGetFuncBySymbol(hipFunction_t* function, const void* symbol);
const char* hipKernelNameRef(hipFunction_t function);
const char* hipKernelNameRefByPtr(const void* function, hipStream_t stream);
hipError_t hipModuleGetFunctionCount(unsigned int* count, hipModule_t module);
hipError_t hipModuleLoadDataEx(hipModule_t* module,
                               const void* image,
                               unsigned int count,
                               hipJitOption* options,
                               void** values);
hipError_t hipModuleLoadFatBinary(hipModule_t* module, const void* binary);
hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, hipFunction_t function, int block_size, size_t shared_bytes, unsigned int flags);
hipError_t hipModuleOccupancyMaxPotentialBlockSize(
    int* grid, int* block, hipFunction_t function, size_t shared_bytes, int block_limit);
hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid,
                                                            int* block,
                                                            hipFunction_t function,
                                                            size_t shared_bytes,
                                                            int block_limit,
                                                            unsigned int flags);
hipError_t hipOccupancyAvailableDynamicSMemPerBlock(size_t* bytes,
                                                    const void* function,
                                                    int blocks,
                                                    int block_size);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                 const void* function,
                                                                 int block_size,
                                                                 size_t shared_bytes,
                                                                 unsigned int flags);

// Graphs
hipError_t hipGraphAddChildGraphNode(hipGraphNode_t* node,
                                     hipGraph_t graph,
                                     const hipGraphNode_t* after,
                                     size_t after_count,
                                     hipGraph_t child);
hipError_t hipGraphAddDependencies(hipGraph_t graph,
                                   const hipGraphNode_t* from,
                                   const hipGraphNode_t* to,
                                   size_t count);
hipError_t hipGraphRemoveDependencies(hipGraph_t graph,
                                      const hipGraphNode_t* from,
                                      const hipGraphNode_t* to,
                                      size_t count);
hipError_t hipGraphAddEmptyNode(hipGraphNode_t* node,
                                hipGraph_t graph,
                                const hipGraphNode_t* after,
                                size_t after_count);
hipError_t hipGraphAddHostNode(hipGraphNode_t* node,
                               hipGraph_t graph,
                               const hipGraphNode_t* after,
                               size_t after_count,
                               const hipHostNodeParams* parameters);
hipError_t hipGraphAddMemcpyNode(hipGraphNode_t* node,
                                 hipGraph_t graph,
                                 const hipGraphNode_t* after,
                                 size_t after_count,
                                 const hipMemcpy3DParms* parameters);
hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t* node,
                                   hipGraph_t graph,
                                   const hipGraphNode_t* after,
                                   size_t after_count,
                                   void* to,
                                   const void* from,
                                   size_t bytes,
                                   hipMemcpyKind kind);
hipError_t hipGraphAddMemsetNode(hipGraphNode_t* node,
                                 hipGraph_t graph,
                                 const hipGraphNode_t* after,
                                 size_t after_count,
                                 const hipMemsetParams* parameters);
hipError_t hipGraphClone(hipGraph_t* clone, hipGraph_t graph);
hipError_t hipGraphGetRootNodes(hipGraph_t graph, hipGraphNode_t* nodes, size_t* count);
hipError_t hipGraphNodeGetType(hipGraphNode_t node, hipGraphNodeType* type);
hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream);
hipError_t hipGraphExecUpdate(hipGraphExec_t exec,
                              hipGraph_t graph,
                              hipGraphNode_t* differing,
                              hipGraphExecUpdateResult* result);
hipError_t hipGraphKernelNodeSetParams(hipGraphNode_t node, const hipKernelNodeParams* parameters);
hipError_t hipGraphMemcpyNodeSetParams(hipGraphNode_t node, const hipMemcpy3DParms* parameters);
hipError_t hipGraphMemcpyNodeSetParams1D(
    hipGraphNode_t node, void* to, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipGraphMemsetNodeSetParams(hipGraphNode_t node, const hipMemsetParams* parameters);
hipError_t hipGraphHostNodeSetParams(hipGraphNode_t node, const hipHostNodeParams* parameters);
hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec,
                                           hipGraphNode_t node,
                                           const hipKernelNodeParams* parameters);
hipError_t hipGraphExecMemcpyNodeSetParams(hipGraphExec_t exec,
                                           hipGraphNode_t node,
                                           hipMemcpy3DParms* parameters);
hipError_t hipGraphExecMemcpyNodeSetParams1D(hipGraphExec_t exec,
                                             hipGraphNode_t node,
                                             void* to,
                                             const void* from,
                                             size_t bytes,
                                             hipMemcpyKind kind);
hipError_t hipGraphExecMemsetNodeSetParams(hipGraphExec_t exec,
                                           hipGraphNode_t node,
                                           const hipMemsetParams* parameters);
hipError_t hipGraphExecHostNodeSetParams(hipGraphExec_t exec,
                                         hipGraphNode_t node,
                                         const hipHostNodeParams* parameters);
hipError_t hipGraphExecChildGraphNodeSetParams(hipGraphExec_t exec,
                                               hipGraphNode_t node,
                                               hipGraph_t child);
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode* mode);
}

template <typename T>
hipError_t
hipMallocFromPoolAsync(T** pointer, size_t bytes, hipMemPool_t pool, hipStream_t stream)
{
    return hipMallocFromPoolAsync(reinterpret_cast<void**>(pointer), bytes, pool, stream);
}
template <typename T>
hipError_t hipMallocAsync(T** pointer, size_t bytes, hipMemPool_t pool, hipStream_t stream)
{
    return hipMallocFromPoolAsync(reinterpret_cast<void**>(pointer), bytes, pool, stream);
}
