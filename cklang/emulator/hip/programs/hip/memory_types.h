// SPDX-License-Identifier: MIT
// The types of memory pools, virtual memory, copies of the driver's and handles for other processes, in the layout
// of ROCm's.
#pragma once

#include <hip/driver_types.h>

enum hipMemLocationType
{
    hipMemLocationTypeInvalid = 0,
    hipMemLocationTypeNone    = 0,
    hipMemLocationTypeDevice  = 1,
    hipMemLocationTypeHost    = 2,
};
struct hipMemLocation
{
    hipMemLocationType type;
    int id;
};
enum hipMemAllocationType
{
    hipMemAllocationTypeInvalid = 0,
    hipMemAllocationTypePinned  = 1,
};
enum hipMemAllocationHandleType
{
    hipMemHandleTypeNone                = 0,
    hipMemHandleTypePosixFileDescriptor = 1,
    hipMemHandleTypeWin32               = 2,
    hipMemHandleTypeWin32Kmt            = 4,
};
enum hipMemAccessFlags
{
    hipMemAccessFlagsProtNone      = 0,
    hipMemAccessFlagsProtRead      = 1,
    hipMemAccessFlagsProtReadWrite = 3,
};
struct hipMemAccessDesc
{
    hipMemLocation location;
    hipMemAccessFlags flags;
};
struct hipMemPoolProps
{
    hipMemAllocationType allocType;
    hipMemAllocationHandleType handleTypes;
    hipMemLocation location;
    void* win32SecurityAttributes;
    size_t maxSize;
    unsigned char reserved[56];
};

typedef struct ihipMemGenericAllocationHandle* hipMemGenericAllocationHandle_t;
enum hipMemAllocationGranularity_flags
{
    hipMemAllocationGranularityMinimum     = 0,
    hipMemAllocationGranularityRecommended = 1,
};
struct hipMemAllocationProp
{
    hipMemAllocationType type;
    union
    {
        hipMemAllocationHandleType requestedHandleType, requestedHandleTypes;
    };
    hipMemLocation location;
    void* win32HandleMetaData;
    struct
    {
        unsigned char compressionType, gpuDirectRDMACapable;
        unsigned short usage;
    } allocFlags;
};

struct hip_Memcpy2D
{
    size_t srcXInBytes, srcY;
    hipMemoryType srcMemoryType;
    const void* srcHost;
    hipDeviceptr_t srcDevice;
    hipArray_t srcArray;
    size_t srcPitch;
    size_t dstXInBytes, dstY;
    hipMemoryType dstMemoryType;
    void* dstHost;
    hipDeviceptr_t dstDevice;
    hipArray_t dstArray;
    size_t dstPitch;
    size_t WidthInBytes, Height;
};
struct HIP_MEMCPY3D
{
    size_t srcXInBytes, srcY, srcZ, srcLOD;
    hipMemoryType srcMemoryType;
    const void* srcHost;
    hipDeviceptr_t srcDevice;
    hipArray_t srcArray;
    size_t srcPitch, srcHeight;
    size_t dstXInBytes, dstY, dstZ, dstLOD;
    hipMemoryType dstMemoryType;
    void* dstHost;
    hipDeviceptr_t dstDevice;
    hipArray_t dstArray;
    size_t dstPitch, dstHeight;
    size_t WidthInBytes, Height, Depth;
};

typedef struct
{
    char reserved[64];
} hipIpcMemHandle_t, hipIpcEventHandle_t;
#define hipIpcMemLazyEnablePeerAccess 0x01
#define hipMallocSignalMemory 0x2 // of hipExtMallocWithFlags, as is the next
#define hipDeviceMallocUncached 0x3

enum hipDeviceP2PAttr
{
    hipDevP2PAttrPerformanceRank         = 0,
    hipDevP2PAttrAccessSupported         = 1,
    hipDevP2PAttrNativeAtomicSupported   = 2,
    hipDevP2PAttrHipArrayAccessSupported = 3,
};
enum hipPointer_attribute
{
    HIP_POINTER_ATTRIBUTE_CONTEXT          = 1,
    HIP_POINTER_ATTRIBUTE_MEMORY_TYPE      = 2,
    HIP_POINTER_ATTRIBUTE_DEVICE_POINTER   = 3,
    HIP_POINTER_ATTRIBUTE_HOST_POINTER     = 4,
    HIP_POINTER_ATTRIBUTE_IS_MANAGED       = 8,
    HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL   = 9,
    HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    HIP_POINTER_ATTRIBUTE_RANGE_SIZE       = 12,
    HIP_POINTER_ATTRIBUTE_MAPPED           = 13,
};
enum hipDriverProcAddressQueryResult
{
    HIP_GET_PROC_ADDRESS_SUCCESS                = 0,
    HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND       = 1,
    HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};
enum hipJitOption
{
    hipJitOptionMaxRegisters            = 0,
    hipJitOptionThreadsPerBlock         = 1,
    hipJitOptionWallTime                = 2,
    hipJitOptionInfoLogBuffer           = 3,
    hipJitOptionInfoLogBufferSizeBytes  = 4,
    hipJitOptionErrorLogBuffer          = 5,
    hipJitOptionErrorLogBufferSizeBytes = 6,
    hipJitOptionOptimizationLevel       = 7,
};

#define hipStreamWaitValueGte 0x0
#define hipStreamWaitValueEq 0x1
#define hipStreamWaitValueAnd 0x2
#define hipStreamWaitValueNor 0x3

#ifdef __cplusplus
static inline hipExtent make_hipExtent(size_t width, size_t height, size_t depth)
{
    return {width, height, depth};
}
static inline hipPos make_hipPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
static inline hipPitchedPtr make_hipPitchedPtr(void* pointer, size_t pitch, size_t width, size_t height)
{
    return {pointer, pitch, width, height};
}
#endif
