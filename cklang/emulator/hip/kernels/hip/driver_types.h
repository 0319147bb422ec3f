// SPDX-License-Identifier: MIT
// The types of HIP's host API in the binary layout of ROCm's library: numbers and field orders are
// its interface, so that programs run with either library.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <hip/vector_types.h>

typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef struct ihipModule_t* hipModule_t;
typedef struct ihipModuleSymbol_t* hipFunction_t;
typedef struct ihipCtx_t* hipCtx_t;
typedef struct ihipGraph* hipGraph_t;
typedef struct hipGraphNode* hipGraphNode_t;
typedef struct hipGraphExec* hipGraphExec_t;
typedef struct ihipMemPoolHandle_t* hipMemPool_t;
typedef struct hipArray* hipArray_t;
typedef int hipDevice_t;
typedef void* hipDeviceptr_t;
typedef void (*hipHostFn_t)(void* data);

enum hipError_t
{
    hipSuccess                           = 0,
    hipErrorInvalidValue                 = 1,
    hipErrorOutOfMemory                  = 2,
    hipErrorMemoryAllocation             = 2,
    hipErrorNotInitialized               = 3,
    hipErrorInitializationError          = 3,
    hipErrorDeinitialized                = 4,
    hipErrorProfilerDisabled             = 5,
    hipErrorProfilerNotInitialized       = 6,
    hipErrorProfilerAlreadyStarted       = 7,
    hipErrorProfilerAlreadyStopped       = 8,
    hipErrorInvalidConfiguration         = 9,
    hipErrorInvalidPitchValue            = 12,
    hipErrorInvalidSymbol                = 13,
    hipErrorInvalidDevicePointer         = 17,
    hipErrorInvalidMemcpyDirection       = 21,
    hipErrorInsufficientDriver           = 35,
    hipErrorMissingConfiguration         = 52,
    hipErrorPriorLaunchFailure           = 53,
    hipErrorInvalidDeviceFunction        = 98,
    hipErrorNoDevice                     = 100,
    hipErrorInvalidDevice                = 101,
    hipErrorInvalidImage                 = 200,
    hipErrorInvalidContext               = 201,
    hipErrorContextAlreadyCurrent        = 202,
    hipErrorMapFailed                    = 205,
    hipErrorMapBufferObjectFailed        = 205,
    hipErrorUnmapFailed                  = 206,
    hipErrorArrayIsMapped                = 207,
    hipErrorAlreadyMapped                = 208,
    hipErrorNoBinaryForGpu               = 209,
    hipErrorAlreadyAcquired              = 210,
    hipErrorNotMapped                    = 211,
    hipErrorNotMappedAsArray             = 212,
    hipErrorNotMappedAsPointer           = 213,
    hipErrorECCNotCorrectable            = 214,
    hipErrorUnsupportedLimit             = 215,
    hipErrorContextAlreadyInUse          = 216,
    hipErrorPeerAccessUnsupported        = 217,
    hipErrorInvalidKernelFile            = 218,
    hipErrorInvalidGraphicsContext       = 219,
    hipErrorInvalidSource                = 300,
    hipErrorFileNotFound                 = 301,
    hipErrorSharedObjectSymbolNotFound   = 302,
    hipErrorSharedObjectInitFailed       = 303,
    hipErrorOperatingSystem              = 304,
    hipErrorInvalidHandle                = 400,
    hipErrorInvalidResourceHandle        = 400,
    hipErrorIllegalState                 = 401,
    hipErrorNotFound                     = 500,
    hipErrorNotReady                     = 600,
    hipErrorIllegalAddress               = 700,
    hipErrorLaunchOutOfResources         = 701,
    hipErrorLaunchTimeOut                = 702,
    hipErrorPeerAccessAlreadyEnabled     = 704,
    hipErrorPeerAccessNotEnabled         = 705,
    hipErrorSetOnActiveProcess           = 708,
    hipErrorContextIsDestroyed           = 709,
    hipErrorAssert                       = 710,
    hipErrorHostMemoryAlreadyRegistered  = 712,
    hipErrorHostMemoryNotRegistered      = 713,
    hipErrorLaunchFailure                = 719,
    hipErrorCooperativeLaunchTooLarge    = 720,
    hipErrorNotSupported                 = 801,
    hipErrorStreamCaptureUnsupported     = 900,
    hipErrorStreamCaptureInvalidated     = 901,
    hipErrorStreamCaptureMerge           = 902,
    hipErrorStreamCaptureUnmatched       = 903,
    hipErrorStreamCaptureUnjoined        = 904,
    hipErrorStreamCaptureIsolation       = 905,
    hipErrorStreamCaptureImplicit        = 906,
    hipErrorCapturedEvent                = 907,
    hipErrorStreamCaptureWrongThread     = 908,
    hipErrorGraphExecUpdateFailure       = 910,
    hipErrorInvalidChannelDescriptor     = 911,
    hipErrorInvalidTexture               = 912,
    hipErrorInvalidResourceType          = 914,
    hipErrorInvalidResourceConfiguration = 915,
    hipErrorStreamDetached               = 916,
    hipErrorUnknown                      = 999,
    hipErrorRuntimeMemory                = 1052,
    hipErrorRuntimeOther                 = 1053,
    hipErrorInvalidClusterSize           = 1054,
    hipErrorTbd                          = 1055,
};

enum hipMemcpyKind
{
    hipMemcpyHostToHost         = 0,
    hipMemcpyHostToDevice       = 1,
    hipMemcpyDeviceToHost       = 2,
    hipMemcpyDeviceToDevice     = 3,
    hipMemcpyDefault            = 4,
    hipMemcpyDeviceToDeviceNoCU = 1024,
};

enum hipMemoryType
{
    hipMemoryTypeUnregistered = 0,
    hipMemoryTypeHost         = 1,
    hipMemoryTypeDevice       = 2,
    hipMemoryTypeManaged      = 3,
    hipMemoryTypeArray        = 10,
    hipMemoryTypeUnified      = 11,
};

enum hipDeviceAttribute_t
{
    hipDeviceAttributeEccEnabled                               = 0,
    hipDeviceAttributeAccessPolicyMaxWindowSize                = 1,
    hipDeviceAttributeAsyncEngineCount                         = 2,
    hipDeviceAttributeCanMapHostMemory                         = 3,
    hipDeviceAttributeCanUseHostPointerForRegisteredMem        = 4,
    hipDeviceAttributeClockRate                                = 5,
    hipDeviceAttributeComputeMode                              = 6,
    hipDeviceAttributeComputePreemptionSupported               = 7,
    hipDeviceAttributeConcurrentKernels                        = 8,
    hipDeviceAttributeConcurrentManagedAccess                  = 9,
    hipDeviceAttributeCooperativeLaunch                        = 10,
    hipDeviceAttributeCooperativeMultiDeviceLaunch             = 11,
    hipDeviceAttributeDeviceOverlap                            = 12,
    hipDeviceAttributeDirectManagedMemAccessFromHost           = 13,
    hipDeviceAttributeGlobalL1CacheSupported                   = 14,
    hipDeviceAttributeHostNativeAtomicSupported                = 15,
    hipDeviceAttributeIntegrated                               = 16,
    hipDeviceAttributeIsMultiGpuBoard                          = 17,
    hipDeviceAttributeKernelExecTimeout                        = 18,
    hipDeviceAttributeL2CacheSize                              = 19,
    hipDeviceAttributeLocalL1CacheSupported                    = 20,
    hipDeviceAttributeLuid                                     = 21,
    hipDeviceAttributeLuidDeviceNodeMask                       = 22,
    hipDeviceAttributeComputeCapabilityMajor                   = 23,
    hipDeviceAttributeManagedMemory                            = 24,
    hipDeviceAttributeMaxBlocksPerMultiProcessor               = 25,
    hipDeviceAttributeMaxBlockDimX                             = 26,
    hipDeviceAttributeMaxBlockDimY                             = 27,
    hipDeviceAttributeMaxBlockDimZ                             = 28,
    hipDeviceAttributeMaxGridDimX                              = 29,
    hipDeviceAttributeMaxGridDimY                              = 30,
    hipDeviceAttributeMaxGridDimZ                              = 31,
    hipDeviceAttributeMaxSurface1D                             = 32,
    hipDeviceAttributeMaxSurface1DLayered                      = 33,
    hipDeviceAttributeMaxSurface2D                             = 34,
    hipDeviceAttributeMaxSurface2DLayered                      = 35,
    hipDeviceAttributeMaxSurface3D                             = 36,
    hipDeviceAttributeMaxSurfaceCubemap                        = 37,
    hipDeviceAttributeMaxSurfaceCubemapLayered                 = 38,
    hipDeviceAttributeMaxTexture1DWidth                        = 39,
    hipDeviceAttributeMaxTexture1DLayered                      = 40,
    hipDeviceAttributeMaxTexture1DLinear                       = 41,
    hipDeviceAttributeMaxTexture1DMipmap                       = 42,
    hipDeviceAttributeMaxTexture2DWidth                        = 43,
    hipDeviceAttributeMaxTexture2DHeight                       = 44,
    hipDeviceAttributeMaxTexture2DGather                       = 45,
    hipDeviceAttributeMaxTexture2DLayered                      = 46,
    hipDeviceAttributeMaxTexture2DLinear                       = 47,
    hipDeviceAttributeMaxTexture2DMipmap                       = 48,
    hipDeviceAttributeMaxTexture3DWidth                        = 49,
    hipDeviceAttributeMaxTexture3DHeight                       = 50,
    hipDeviceAttributeMaxTexture3DDepth                        = 51,
    hipDeviceAttributeMaxTexture3DAlt                          = 52,
    hipDeviceAttributeMaxTextureCubemap                        = 53,
    hipDeviceAttributeMaxTextureCubemapLayered                 = 54,
    hipDeviceAttributeMaxThreadsDim                            = 55,
    hipDeviceAttributeMaxThreadsPerBlock                       = 56,
    hipDeviceAttributeMaxThreadsPerMultiProcessor              = 57,
    hipDeviceAttributeMaxPitch                                 = 58,
    hipDeviceAttributeMemoryBusWidth                           = 59,
    hipDeviceAttributeMemoryClockRate                          = 60,
    hipDeviceAttributeComputeCapabilityMinor                   = 61,
    hipDeviceAttributeMultiGpuBoardGroupID                     = 62,
    hipDeviceAttributeMultiprocessorCount                      = 63,
    hipDeviceAttributePageableMemoryAccess                     = 65,
    hipDeviceAttributePageableMemoryAccessUsesHostPageTables   = 66,
    hipDeviceAttributePciBusId                                 = 67,
    hipDeviceAttributePciDeviceId                              = 68,
    hipDeviceAttributePciDomainId                              = 69,
    hipDeviceAttributePciDomainID                              = 69,
    hipDeviceAttributePersistingL2CacheMaxSize                 = 70,
    hipDeviceAttributeMaxRegistersPerBlock                     = 71,
    hipDeviceAttributeMaxRegistersPerMultiprocessor            = 72,
    hipDeviceAttributeReservedSharedMemPerBlock                = 73,
    hipDeviceAttributeMaxSharedMemoryPerBlock                  = 74,
    hipDeviceAttributeSharedMemPerBlockOptin                   = 75,
    hipDeviceAttributeSharedMemPerMultiprocessor               = 76,
    hipDeviceAttributeSingleToDoublePrecisionPerfRatio         = 77,
    hipDeviceAttributeStreamPrioritiesSupported                = 78,
    hipDeviceAttributeSurfaceAlignment                         = 79,
    hipDeviceAttributeTccDriver                                = 80,
    hipDeviceAttributeTextureAlignment                         = 81,
    hipDeviceAttributeTexturePitchAlignment                    = 82,
    hipDeviceAttributeTotalConstantMemory                      = 83,
    hipDeviceAttributeTotalGlobalMem                           = 84,
    hipDeviceAttributeUnifiedAddressing                        = 85,
    hipDeviceAttributeWarpSize                                 = 87,
    hipDeviceAttributeMemoryPoolsSupported                     = 88,
    hipDeviceAttributeVirtualMemoryManagementSupported         = 89,
    hipDeviceAttributeHostRegisterSupported                    = 90,
    hipDeviceAttributeMemoryPoolSupportedHandleTypes           = 91,
    hipDeviceAttributeHostNumaId                               = 92,
    hipDeviceAttributeDmaBufSupported                          = 93,
    hipDeviceAttributeGPUDirectRDMAWithHipVMMSupported         = 94,
    hipDeviceAttributeHandleTypeFabricSupported                = 95,
    hipDeviceAttributeClockInstructionRate                     = 10000,
    hipDeviceAttributeMaxSharedMemoryPerMultiprocessor         = 10002,
    hipDeviceAttributeHdpMemFlushCntl                          = 10005,
    hipDeviceAttributeHdpRegFlushCntl                          = 10006,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc      = 10007,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim   = 10008,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim  = 10009,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem = 10010,
    hipDeviceAttributeIsLargeBar                               = 10011,
    hipDeviceAttributeAsicRevision                             = 10012,
    hipDeviceAttributeCanUseStreamWaitValue                    = 10013,
    hipDeviceAttributeImageSupport                             = 10014,
    hipDeviceAttributePhysicalMultiProcessorCount              = 10015,
    hipDeviceAttributeFineGrainSupport                         = 10016,
    hipDeviceAttributeWallClockRate                            = 10017,
    hipDeviceAttributeNumberOfXccs                             = 10018,
    hipDeviceAttributeMaxAvailableVgprsPerThread               = 10019,
    hipDeviceAttributePciChipId                                = 10020,
    hipDeviceAttributeExpertSchedMode                          = 10021,
    hipDeviceAttributeMaxDynDataPrefetchRegions                = 10022,
};

enum hipFuncAttribute
{
    hipFuncAttributeMaxDynamicSharedMemorySize        = 8,
    hipFuncAttributePreferredSharedMemoryCarveout     = 9,
    hipFuncAttributeClusterDimMustBeSet               = 10,
    hipFuncAttributeRequiredClusterWidth              = 11,
    hipFuncAttributeRequiredClusterHeight             = 12,
    hipFuncAttributeRequiredClusterDepth              = 13,
    hipFuncAttributeNonPortableClusterSizeAllowed     = 14,
    hipFuncAttributeClusterSchedulingPolicyPreference = 15,
    hipFuncAttributeMax                               = 16,
};

enum hipFuncCache_t
{
    hipFuncCachePreferNone   = 0,
    hipFuncCachePreferShared = 1,
    hipFuncCachePreferL1     = 2,
    hipFuncCachePreferEqual  = 3,
};

enum hipSharedMemConfig
{
    hipSharedMemBankSizeDefault   = 0,
    hipSharedMemBankSizeFourByte  = 1,
    hipSharedMemBankSizeEightByte = 2,
};

enum hipLimit_t
{
    hipLimitStackSize         = 0,
    hipLimitPrintfFifoSize    = 1,
    hipLimitMallocHeapSize    = 2,
    hipExtLimitScratchMin     = 4096,
    hipExtLimitScratchMax     = 4097,
    hipExtLimitScratchCurrent = 4098,
    hipLimitRange             = 4099,
};

enum hipComputeMode
{
    hipComputeModeDefault          = 0,
    hipComputeModeExclusive        = 1,
    hipComputeModeProhibited       = 2,
    hipComputeModeExclusiveProcess = 3,
};

enum hipStreamCaptureMode
{
    hipStreamCaptureModeGlobal      = 0,
    hipStreamCaptureModeThreadLocal = 1,
    hipStreamCaptureModeRelaxed     = 2,
};

enum hipStreamCaptureStatus
{
    hipStreamCaptureStatusNone        = 0,
    hipStreamCaptureStatusActive      = 1,
    hipStreamCaptureStatusInvalidated = 2,
};

enum hipGraphExecUpdateResult
{
    hipGraphExecUpdateSuccess                        = 0,
    hipGraphExecUpdateError                          = 1,
    hipGraphExecUpdateErrorTopologyChanged           = 2,
    hipGraphExecUpdateErrorNodeTypeChanged           = 3,
    hipGraphExecUpdateErrorFunctionChanged           = 4,
    hipGraphExecUpdateErrorParametersChanged         = 5,
    hipGraphExecUpdateErrorNotSupported              = 6,
    hipGraphExecUpdateErrorUnsupportedFunctionChange = 7,
};

enum hipGraphNodeType
{
    hipGraphNodeTypeKernel             = 0,
    hipGraphNodeTypeMemcpy             = 1,
    hipGraphNodeTypeMemset             = 2,
    hipGraphNodeTypeHost               = 3,
    hipGraphNodeTypeGraph              = 4,
    hipGraphNodeTypeEmpty              = 5,
    hipGraphNodeTypeWaitEvent          = 6,
    hipGraphNodeTypeEventRecord        = 7,
    hipGraphNodeTypeExtSemaphoreSignal = 8,
    hipGraphNodeTypeExtSemaphoreWait   = 9,
    hipGraphNodeTypeMemAlloc           = 10,
    hipGraphNodeTypeMemFree            = 11,
    hipGraphNodeTypeMemcpyFromSymbol   = 12,
    hipGraphNodeTypeMemcpyToSymbol     = 13,
    hipGraphNodeTypeBatchMemOp         = 14,
    hipGraphNodeTypeCount              = 15,
};

enum hipMemoryAdvise
{
    hipMemAdviseSetReadMostly          = 1,
    hipMemAdviseUnsetReadMostly        = 2,
    hipMemAdviseSetPreferredLocation   = 3,
    hipMemAdviseUnsetPreferredLocation = 4,
    hipMemAdviseSetAccessedBy          = 5,
    hipMemAdviseUnsetAccessedBy        = 6,
    hipMemAdviseSetCoarseGrain         = 100,
    hipMemAdviseUnsetCoarseGrain       = 101,
};

enum hipMemPoolAttr
{
    hipMemPoolReuseFollowEventDependencies   = 1,
    hipMemPoolReuseAllowOpportunistic        = 2,
    hipMemPoolReuseAllowInternalDependencies = 3,
    hipMemPoolAttrReleaseThreshold           = 4,
    hipMemPoolAttrReservedMemCurrent         = 5,
    hipMemPoolAttrReservedMemHigh            = 6,
    hipMemPoolAttrUsedMemCurrent             = 7,
    hipMemPoolAttrUsedMemHigh                = 8,
};

enum hipFunction_attribute
{
    HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK                = 0,
    HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES                    = 1,
    HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES                     = 2,
    HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES                     = 3,
    HIP_FUNC_ATTRIBUTE_NUM_REGS                             = 4,
    HIP_FUNC_ATTRIBUTE_PTX_VERSION                          = 5,
    HIP_FUNC_ATTRIBUTE_BINARY_VERSION                       = 6,
    HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA                        = 7,
    HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES        = 8,
    HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT     = 9,
    HIP_FUNC_ATTRIBUTE_CLUSTER_DIM_MUST_BE_SET              = 10,
    HIP_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH               = 11,
    HIP_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT              = 12,
    HIP_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH               = 13,
    HIP_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED    = 14,
    HIP_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15,
    HIP_FUNC_ATTRIBUTE_MAX                                  = 16,
};

#define hipDeviceScheduleAuto 0x0
#define hipDeviceScheduleSpin 0x1
#define hipDeviceScheduleYield 0x2
#define hipDeviceScheduleBlockingSync 0x4
#define hipDeviceScheduleMask 0x7
#define hipDeviceMapHost 0x8
#define hipDeviceLmemResizeToMax 0x10
#define hipEventDefault 0x0
#define hipEventBlockingSync 0x1
#define hipEventDisableTiming 0x2
#define hipEventInterprocess 0x4
#define hipEventReleaseToDevice 0x40000000u
#define hipEventReleaseToSystem 0x80000000u
#define hipHostMallocDefault 0x0
#define hipHostMallocPortable 0x1
#define hipHostMallocMapped 0x2
#define hipHostMallocWriteCombined 0x4
#define hipHostMallocNumaUser 0x20000000
#define hipHostMallocCoherent 0x40000000u
#define hipHostMallocNonCoherent 0x80000000u
#define hipHostRegisterDefault 0x0
#define hipHostRegisterPortable 0x1
#define hipHostRegisterMapped 0x2
#define hipHostRegisterIoMemory 0x4
#define hipExtHostRegisterCoarseGrained 0x8
#define hipMemAttachGlobal 0x1
#define hipMemAttachHost 0x2
#define hipMemAttachSingle 0x4
#define hipOccupancyDefault 0x0
#define hipStreamDefault 0x0
#define hipStreamNonBlocking 0x1
#define hipDeviceMallocDefault 0x0
#define hipDeviceMallocFinegrained 0x1
#define hipMallocSignalMemory 0x2
#define hipCpuDeviceId (-1)
#define hipInvalidDeviceId (-2)
#define hipStreamLegacy ((hipStream_t)1)
#define hipStreamPerThread ((hipStream_t)2)

// The list of a launch's packed arguments: pairs of a key and a pointer, up to the end.
#define HIP_LAUNCH_PARAM_BUFFER_POINTER ((void*)1)
#define HIP_LAUNCH_PARAM_BUFFER_SIZE ((void*)2)
#define HIP_LAUNCH_PARAM_END ((void*)3)

typedef struct hipUUID_t
{
    char bytes[16];
} hipUUID;

struct hipDeviceArch_t
{
    unsigned hasGlobalInt32Atomics : 1, hasGlobalFloatAtomicExch : 1, hasSharedInt32Atomics : 1,
        hasSharedFloatAtomicExch : 1, hasFloatAtomicAdd : 1, hasGlobalInt64Atomics : 1,
        hasSharedInt64Atomics : 1, hasDoubles : 1, hasWarpVote : 1, hasWarpBallot : 1,
        hasWarpShuffle : 1, hasFunnelShift : 1, hasThreadFenceSystem : 1, hasSyncThreadsExt : 1,
        hasSurfaceFuncs : 1, has3dGrid : 1, hasDynamicParallelism : 1;
};

/// The properties of a device as HIP 6 and later lay them out.
struct hipDeviceProp_tR0600
{
    char name[256];
    hipUUID uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], clockRate;
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    int deviceOverlap, multiProcessorCount, kernelExecTimeoutEnabled, integrated, canMapHostMemory;
    int computeMode;
    int maxTexture1D, maxTexture1DMipmap, maxTexture1DLinear;
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
    int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap;
    int maxTexture1DLayered[2], maxTexture2DLayered[3], maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2];
    int maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing, memoryClockRate, memoryBusWidth, l2CacheSize;
    int persistingL2CacheMaxSize, maxThreadsPerMultiProcessor, streamPrioritiesSupported;
    int globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported, singleToDoublePrecisionPerfRatio, pageableMemoryAccess;
    int concurrentManagedAccess, computePreemptionSupported, canUseHostPointerForRegisteredMem;
    int cooperativeLaunch, cooperativeMultiDeviceLaunch;
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseHipArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingHipArraySupported, ipcEventSupported, clusterLaunch, unifiedFunctionPointers;
    int reserved[63], hipReserved[32];
    char gcnArchName[256];
    size_t maxSharedMemoryPerMultiProcessor;
    int clockInstructionRate;
    struct hipDeviceArch_t arch;
    unsigned int *hdpMemFlushCntl, *hdpRegFlushCntl;
    int cooperativeMultiDeviceUnmatchedFunc, cooperativeMultiDeviceUnmatchedGridDim;
    int cooperativeMultiDeviceUnmatchedBlockDim, cooperativeMultiDeviceUnmatchedSharedMem;
    int isLargeBar, asicRevision;
};
#define hipDeviceProp_t hipDeviceProp_tR0600
#define hipGetDeviceProperties hipGetDevicePropertiesR0600
static_assert(sizeof(hipDeviceProp_t) == 1472, "hipDeviceProp_t has the layout of HIP 6");

struct hipPointerAttribute_t
{
    hipMemoryType type;
    int device;
    void* devicePointer;
    void* hostPointer;
    int isManaged;
    unsigned allocationFlags;
};

struct hipFuncAttributes
{
    int binaryVersion, cacheModeCA;
    size_t constSizeBytes, localSizeBytes;
    int maxDynamicSharedSizeBytes, maxThreadsPerBlock, numRegs, preferredShmemCarveout, ptxVersion;
    size_t sharedSizeBytes;
};

struct hipPitchedPtr
{
    void* ptr;
    size_t pitch, xsize, ysize;
};
struct hipExtent
{
    size_t width, height, depth;
};
struct hipPos
{
    size_t x, y, z;
};
struct hipMemcpy3DParms
{
    hipArray_t srcArray;
    hipPos srcPos;
    hipPitchedPtr srcPtr;
    hipArray_t dstArray;
    hipPos dstPos;
    hipPitchedPtr dstPtr;
    hipExtent extent;
    hipMemcpyKind kind;
};

struct hipKernelNodeParams
{
    dim3 blockDim;
    void** extra;
    void* func;
    dim3 gridDim;
    void** kernelParams;
    unsigned int sharedMemBytes;
};
struct hipMemsetParams
{
    void* dst;
    unsigned int elementSize;
    size_t height, pitch;
    unsigned int value;
    size_t width;
};
struct hipHostNodeParams
{
    hipHostFn_t fn;
    void* userData;
};

struct hipLaunchParams
{
    void* func;
    dim3 gridDim, blockDim;
    void** args;
    size_t sharedMem;
    hipStream_t stream;
};
