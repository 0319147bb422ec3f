// SPDX-License-Identifier: MIT
// Host API of HIP: the types and prototypes that CK Tile's host headers name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <hip/hip_version.h>
#include <hip/vector_types.h>

typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef struct ihipModule_t* hipModule_t;
typedef struct ihipModuleSymbol_t* hipFunction_t;
typedef int hipDevice_t;
typedef void* hipDeviceptr_t;

enum hipError_t
{
    hipSuccess                   = 0,
    hipErrorInvalidValue         = 1,
    hipErrorOutOfMemory          = 2,
    hipErrorNotInitialized       = 3,
    hipErrorInvalidConfiguration = 9,
    hipErrorNoDevice             = 100,
    hipErrorInvalidDevice        = 101,
    hipErrorInvalidHandle        = 400,
    hipErrorNotFound             = 500,
    hipErrorNotReady             = 600,
    hipErrorLaunchFailure        = 719,
    hipErrorNotSupported         = 801,
    hipErrorUnknown              = 999,
};

enum hipMemcpyKind
{
    hipMemcpyHostToHost     = 0,
    hipMemcpyHostToDevice   = 1,
    hipMemcpyDeviceToHost   = 2,
    hipMemcpyDeviceToDevice = 3,
    hipMemcpyDefault        = 4,
};

/// The fields that CK Tile reads. These headers are only used where no HIP runtime of another
/// maker is linked, so the layout is ours to choose.
struct hipDeviceProp_t
{
    char name[256];
    size_t totalGlobalMem;
    size_t sharedMemPerBlock;
    int regsPerBlock;
    int warpSize;
    int maxThreadsPerBlock;
    int clockRate;
    int major;
    int minor;
    int multiProcessorCount;
    int l2CacheSize;
    char gcnArchName[256];
};

#define hipStreamDefault 0x00
#define hipStreamNonBlocking 0x01

extern "C" {
hipError_t hipGetLastError();
hipError_t hipPeekAtLastError();
const char* hipGetErrorString(hipError_t error);
const char* hipGetErrorName(hipError_t error);

hipError_t hipGetDevice(int* device);
hipError_t hipSetDevice(int device);
hipError_t hipGetDeviceCount(int* count);
hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device);
hipError_t hipDeviceSynchronize();

hipError_t hipMalloc(void** pointer, size_t bytes);
hipError_t hipFree(void* pointer);
hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned int flags = 0);
hipError_t hipHostFree(void* pointer);
hipError_t hipMemset(void* pointer, int value, size_t bytes);
hipError_t hipMemsetAsync(void* pointer, int value, size_t bytes, hipStream_t stream = nullptr);
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(
    void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream = nullptr);
hipError_t hipMemcpyWithStream(
    void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);

hipError_t hipStreamCreate(hipStream_t* stream);
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned int flags);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipExtStreamGetCUMask(hipStream_t stream, uint32_t words, uint32_t* mask);

hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop);

hipError_t hipLaunchKernel(const void* function,
                           dim3 grid,
                           dim3 block,
                           void** arguments,
                           size_t shared_bytes,
                           hipStream_t stream);
hipError_t __hipPushCallConfiguration(
    dim3 grid, dim3 block, size_t shared_bytes = 0, hipStream_t stream = nullptr);
hipError_t __hipPopCallConfiguration(
    dim3* grid, dim3* block, size_t* shared_bytes, hipStream_t* stream);
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                        const void* function,
                                                        int block_size,
                                                        size_t dynamic_shared_bytes);
}

template <typename T>
hipError_t hipMalloc(T** pointer, size_t bytes)
{
    return hipMalloc(reinterpret_cast<void**>(pointer), bytes);
}

template <typename Function>
hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, Function function, int block_size, size_t dynamic_shared_bytes)
{
    return hipOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks, reinterpret_cast<const void*>(function), block_size, dynamic_shared_bytes);
}
