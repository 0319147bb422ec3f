// SPDX-License-Identifier: MIT
//
// Calls of AMD's library that this one exports and does not support.
#pragma once

// clang-format off
#define CKEMU_UNSUPPORTED_CALLS(X) \
  X(hipBindTextureToMipmappedArray) X(hipChooseDevice) X(hipChooseDeviceR0000) X(hipChooseDeviceR0600) \
  X(hipConfigureCall) X(hipCtxDisablePeerAccess) X(hipCtxEnablePeerAccess) X(hipCtxGetCacheConfig) \
  X(hipCtxGetSharedMemConfig) X(hipCtxSetCacheConfig) X(hipCtxSetSharedMemConfig) X(hipDestroyExternalMemory) \
  X(hipDestroyExternalSemaphore) X(hipDeviceGetGraphMemAttribute) X(hipDeviceGraphMemTrim) \
  X(hipDeviceSetGraphMemAttribute) X(hipDrvGraphAddMemFreeNode) X(hipDrvGraphAddMemcpyNode) \
  X(hipDrvGraphAddMemsetNode) X(hipDrvGraphExecMemcpyNodeSetParams) X(hipDrvGraphExecMemsetNodeSetParams) \
  X(hipDrvGraphMemcpyNodeGetParams) X(hipDrvGraphMemcpyNodeSetParams) X(hipDrvMemcpy2DUnaligned) \
  X(hipDrvPointerGetAttributes) X(hipExtGetLinkTypeAndHopCount) X(hipExtLaunchMultiKernelMultiDevice) \
  X(hipExternalMemoryGetMappedBuffer) X(hipFreeMipmappedArray) X(hipGLGetDevices) X(hipGetMipmappedArrayLevel) \
  X(hipGetTextureReference) X(hipGraphAddBatchMemOpNode) X(hipGraphAddEventRecordNode) X(hipGraphAddEventWaitNode) \
  X(hipGraphAddMemAllocNode) X(hipGraphAddMemFreeNode) X(hipGraphAddMemcpyNodeFromSymbol) \
  X(hipGraphAddMemcpyNodeToSymbol) X(hipGraphAddNode) X(hipGraphBatchMemOpNodeGetParams) \
  X(hipGraphBatchMemOpNodeSetParams) X(hipGraphChildGraphNodeGetGraph) X(hipGraphDebugDotPrint) \
  X(hipGraphDestroyNode) X(hipGraphEventRecordNodeGetEvent) X(hipGraphEventRecordNodeSetEvent) \
  X(hipGraphEventWaitNodeGetEvent) X(hipGraphEventWaitNodeSetEvent) X(hipGraphExecBatchMemOpNodeSetParams) \
  X(hipGraphExecEventRecordNodeSetEvent) X(hipGraphExecEventWaitNodeSetEvent) X(hipGraphExecGetFlags) \
  X(hipGraphExecMemcpyNodeSetParamsFromSymbol) X(hipGraphExecMemcpyNodeSetParamsToSymbol) \
  X(hipGraphExecNodeSetParams) X(hipGraphGetEdges) X(hipGraphHostNodeGetParams) X(hipGraphInstantiateWithParams) \
  X(hipGraphKernelNodeCopyAttributes) X(hipGraphKernelNodeGetAttribute) X(hipGraphKernelNodeGetParams) \
  X(hipGraphKernelNodeSetAttribute) X(hipGraphMemAllocNodeGetParams) X(hipGraphMemFreeNodeGetParams) \
  X(hipGraphMemcpyNodeGetParams) X(hipGraphMemcpyNodeSetParamsFromSymbol) X(hipGraphMemcpyNodeSetParamsToSymbol) \
  X(hipGraphMemsetNodeGetParams) X(hipGraphNodeFindInClone) X(hipGraphNodeGetDependencies) \
  X(hipGraphNodeGetDependentNodes) X(hipGraphNodeGetEnabled) X(hipGraphNodeSetEnabled) X(hipGraphNodeSetParams) \
  X(hipGraphReleaseUserObject) X(hipGraphRetainUserObject) X(hipGraphicsGLRegisterBuffer) \
  X(hipGraphicsGLRegisterImage) X(hipGraphicsMapResources) X(hipGraphicsResourceGetMappedPointer) \
  X(hipGraphicsSubResourceGetMappedArray) X(hipGraphicsUnmapResources) X(hipGraphicsUnregisterResource) \
  X(hipImportExternalMemory) X(hipImportExternalSemaphore) X(hipLaunchByPtr) \
  X(hipLaunchCooperativeKernelMultiDevice) X(hipLinkAddData) X(hipLinkAddFile) X(hipLinkComplete) X(hipLinkCreate) \
  X(hipLinkDestroy) X(hipMallocMipmappedArray) X(hipMemMapArrayAsync) X(hipMemPoolExportPointer) \
  X(hipMemPoolExportToShareableHandle) X(hipMemPoolImportFromShareableHandle) X(hipMemPoolImportPointer) \
  X(hipMemRangeGetAttribute) X(hipMemRangeGetAttributes) X(hipMemcpy2DFromArrayAsync_spt) \
  X(hipMemcpy2DFromArray_spt) X(hipMemcpy2DToArrayAsync_spt) X(hipMemcpy2DToArray_spt) X(hipMemcpy3DAsync_spt) \
  X(hipMemcpy3D_spt) X(hipMemcpyAtoA) X(hipMemcpyAtoD) X(hipMemcpyAtoHAsync) X(hipMemcpyDtoA) \
  X(hipMemcpyFromArray_spt) X(hipMemcpyFromSymbol_spt) X(hipMemcpyHtoAAsync) X(hipMemcpyToSymbol_spt) \
  X(hipMemset2DAsync_spt) X(hipMemset2D_spt) X(hipMemset3DAsync_spt) X(hipMemset3D_spt) X(hipMipmappedArrayCreate) \
  X(hipMipmappedArrayDestroy) X(hipMipmappedArrayGetLevel) X(hipModuleGetTexRef) \
  X(hipModuleLaunchCooperativeKernelMultiDevice) X(hipPointerSetAttribute) X(hipProfilerStart) X(hipProfilerStop) \
  X(hipRegisterTracerCallback) X(hipSetValidDevices) X(hipSetupArgument) X(hipSignalExternalSemaphoresAsync) \
  X(hipStreamBatchMemOp) X(hipStreamBeginCaptureToGraph) X(hipStreamGetCaptureInfo) X(hipStreamGetCaptureInfo_spt) \
  X(hipStreamGetCaptureInfo_v2) X(hipStreamGetCaptureInfo_v2_spt) X(hipStreamUpdateCaptureDependencies) \
  X(hipTexObjectCreate) X(hipTexObjectDestroy) X(hipTexObjectGetResourceDesc) X(hipTexObjectGetResourceViewDesc) \
  X(hipTexObjectGetTextureDesc) X(hipTexRefGetAddress) X(hipTexRefGetAddressMode) X(hipTexRefGetArray) \
  X(hipTexRefGetBorderColor) X(hipTexRefGetFilterMode) X(hipTexRefGetFlags) X(hipTexRefGetFormat) \
  X(hipTexRefGetMaxAnisotropy) X(hipTexRefGetMipMappedArray) X(hipTexRefGetMipmapFilterMode) \
  X(hipTexRefGetMipmapLevelBias) X(hipTexRefGetMipmapLevelClamp) X(hipTexRefSetAddress) X(hipTexRefSetAddress2D) \
  X(hipTexRefSetAddressMode) X(hipTexRefSetArray) X(hipTexRefSetBorderColor) X(hipTexRefSetFilterMode) \
  X(hipTexRefSetFlags) X(hipTexRefSetFormat) X(hipTexRefSetMaxAnisotropy) X(hipTexRefSetMipmapFilterMode) \
  X(hipTexRefSetMipmapLevelBias) X(hipTexRefSetMipmapLevelClamp) X(hipTexRefSetMipmappedArray) \
  X(hipUserObjectCreate) X(hipUserObjectRelease) X(hipUserObjectRetain) X(hipWaitExternalSemaphoresAsync)
// clang-format on
