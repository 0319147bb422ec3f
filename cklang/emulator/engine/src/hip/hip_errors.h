// SPDX-License-Identifier: MIT
//
// HIP's error codes: CKEMU_ERROR(name, number, text) for each.
#pragma once

#define CKEMU_ERRORS(CKEMU_ERROR)                                                                                      \
  CKEMU_ERROR(hipSuccess, 0, "no error")                                                                               \
  CKEMU_ERROR(hipErrorInvalidValue, 1, "invalid argument")                                                             \
  CKEMU_ERROR(hipErrorOutOfMemory, 2, "out of memory")                                                                 \
  CKEMU_ERROR(hipErrorNotInitialized, 3, "initialization error")                                                       \
  CKEMU_ERROR(hipErrorDeinitialized, 4, "driver shutting down")                                                        \
  CKEMU_ERROR(hipErrorProfilerDisabled, 5, "profiler disabled while using external profiling tool")                    \
  CKEMU_ERROR(hipErrorProfilerNotInitialized, 6, "profiler is not initialized")                                        \
  CKEMU_ERROR(hipErrorProfilerAlreadyStarted, 7, "profiler already started")                                           \
  CKEMU_ERROR(hipErrorProfilerAlreadyStopped, 8, "profiler already stopped")                                           \
  CKEMU_ERROR(hipErrorInvalidConfiguration, 9, "invalid configuration argument")                                       \
  CKEMU_ERROR(hipErrorInvalidPitchValue, 12, "invalid pitch argument")                                                 \
  CKEMU_ERROR(hipErrorInvalidSymbol, 13, "invalid device symbol")                                                      \
  CKEMU_ERROR(hipErrorInvalidDevicePointer, 17, "invalid device pointer")                                              \
  CKEMU_ERROR(hipErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                 \
  CKEMU_ERROR(hipErrorInsufficientDriver, 35, "driver version is insufficient for runtime version")                    \
  CKEMU_ERROR(hipErrorMissingConfiguration, 52, "__global__ function call is not configured")                          \
  CKEMU_ERROR(hipErrorPriorLaunchFailure, 53, "unspecified launch failure in prior launch")                            \
  CKEMU_ERROR(hipErrorInvalidDeviceFunction, 98, "invalid device function")                                            \
  CKEMU_ERROR(hipErrorNoDevice, 100, "no ROCm-capable device is detected")                                             \
  CKEMU_ERROR(hipErrorInvalidDevice, 101, "invalid device ordinal")                                                    \
  CKEMU_ERROR(hipErrorInvalidImage, 200, "device kernel image is invalid")                                             \
  CKEMU_ERROR(hipErrorInvalidContext, 201, "invalid device context")                                                   \
  CKEMU_ERROR(hipErrorContextAlreadyCurrent, 202, "context is already current context")                                \
  CKEMU_ERROR(hipErrorMapFailed, 205, "mapping of buffer object failed")                                               \
  CKEMU_ERROR(hipErrorUnmapFailed, 206, "unmapping of buffer object failed")                                           \
  CKEMU_ERROR(hipErrorArrayIsMapped, 207, "array is mapped")                                                           \
  CKEMU_ERROR(hipErrorAlreadyMapped, 208, "resource already mapped")                                                   \
  CKEMU_ERROR(hipErrorNoBinaryForGpu, 209, "no kernel image is available for execution on the device")                 \
  CKEMU_ERROR(hipErrorAlreadyAcquired, 210, "resource already acquired")                                               \
  CKEMU_ERROR(hipErrorNotMapped, 211, "resource not mapped")                                                           \
  CKEMU_ERROR(hipErrorNotMappedAsArray, 212, "resource not mapped as array")                                           \
  CKEMU_ERROR(hipErrorNotMappedAsPointer, 213, "resource not mapped as pointer")                                       \
  CKEMU_ERROR(hipErrorECCNotCorrectable, 214, "uncorrectable ECC error encountered")                                   \
  CKEMU_ERROR(hipErrorUnsupportedLimit, 215, "limit is not supported on this architecture")                            \
  CKEMU_ERROR(hipErrorContextAlreadyInUse, 216, "exclusive-thread device already in use by another thread")            \
  CKEMU_ERROR(hipErrorPeerAccessUnsupported, 217, "peer access is not supported between these two devices")            \
  CKEMU_ERROR(hipErrorInvalidKernelFile, 218, "invalid kernel file")                                                   \
  CKEMU_ERROR(hipErrorInvalidGraphicsContext, 219, "invalid OpenGL or DirectX context")                                \
  CKEMU_ERROR(hipErrorInvalidSource, 300, "device kernel image is invalid")                                            \
  CKEMU_ERROR(hipErrorFileNotFound, 301, "file not found")                                                             \
  CKEMU_ERROR(hipErrorSharedObjectSymbolNotFound, 302, "shared object symbol not found")                               \
  CKEMU_ERROR(hipErrorSharedObjectInitFailed, 303, "shared object initialization failed")                              \
  CKEMU_ERROR(hipErrorOperatingSystem, 304, "OS call failed or operation not supported on this OS")                    \
  CKEMU_ERROR(hipErrorInvalidHandle, 400, "invalid resource handle")                                                   \
  CKEMU_ERROR(hipErrorIllegalState, 401, "the operation cannot be performed in the present state")                     \
  CKEMU_ERROR(hipErrorNotFound, 500, "named symbol not found")                                                         \
  CKEMU_ERROR(hipErrorNotReady, 600, "device not ready")                                                               \
  CKEMU_ERROR(hipErrorIllegalAddress, 700, "an illegal memory access was encountered")                                 \
  CKEMU_ERROR(hipErrorLaunchOutOfResources, 701, "too many resources requested for launch")                            \
  CKEMU_ERROR(hipErrorLaunchTimeOut, 702, "the launch timed out and was terminated")                                   \
  CKEMU_ERROR(hipErrorPeerAccessAlreadyEnabled, 704, "peer access is already enabled")                                 \
  CKEMU_ERROR(hipErrorPeerAccessNotEnabled, 705, "peer access has not been enabled")                                   \
  CKEMU_ERROR(hipErrorSetOnActiveProcess, 708, "cannot set while device is active in this process")                    \
  CKEMU_ERROR(hipErrorContextIsDestroyed, 709, "context is destroyed")                                                 \
  CKEMU_ERROR(hipErrorAssert, 710, "device-side assert triggered")                                                     \
  CKEMU_ERROR(hipErrorHostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped") \
  CKEMU_ERROR(hipErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")       \
  CKEMU_ERROR(hipErrorLaunchFailure, 719, "unspecified launch failure")                                                \
  CKEMU_ERROR(hipErrorCooperativeLaunchTooLarge, 720, "too many blocks in cooperative launch")                         \
  CKEMU_ERROR(hipErrorNotSupported, 801, "operation not supported")                                                    \
  CKEMU_ERROR(hipErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")               \
  CKEMU_ERROR(hipErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")        \
  CKEMU_ERROR(hipErrorStreamCaptureMerge, 902, "operation would result in a merge of separate capture sequences")      \
  CKEMU_ERROR(hipErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")             \
  CKEMU_ERROR(hipErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                                \
  CKEMU_ERROR(hipErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")          \
  CKEMU_ERROR(hipErrorStreamCaptureImplicit, 906,                                                                      \
              "operation would make the legacy stream depend on a capturing blocking stream")                          \
  CKEMU_ERROR(hipErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream")   \
  CKEMU_ERROR(hipErrorStreamCaptureWrongThread, 908,                                                                   \
              "attempt to terminate a thread-local capture sequence from another thread")                              \
  CKEMU_ERROR(hipErrorGraphExecUpdateFailure, 910,                                                                     \
              "the graph update was not performed because it included changes which violated constraints "             \
              "specific to instantiated graph update")                                                                 \
  CKEMU_ERROR(hipErrorInvalidChannelDescriptor, 911, "invalid channel descriptor")                                     \
  CKEMU_ERROR(hipErrorInvalidTexture, 912, "invalid texture")                                                          \
  CKEMU_ERROR(hipErrorInvalidResourceType, 914, "invalid resource type")                                               \
  CKEMU_ERROR(hipErrorInvalidResourceConfiguration, 915, "invalid resource configuration")                             \
  CKEMU_ERROR(hipErrorStreamDetached, 916, "stream is detached")                                                       \
  CKEMU_ERROR(hipErrorUnknown, 999, "unknown error")                                                                   \
  CKEMU_ERROR(hipErrorRuntimeMemory, 1052, "runtime memory call returned error")                                       \
  CKEMU_ERROR(hipErrorRuntimeOther, 1053, "runtime call other than memory returned error")                             \
  CKEMU_ERROR(hipErrorInvalidClusterSize, 1054, "invalid cluster size")
