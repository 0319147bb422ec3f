// SPDX-License-Identifier: MIT
//
// HIP: device properties in the layout from before HIP 6 (the "R0000" symbols), which programs that were
// compiled then still ask for.
#include "hip/device.h"
#include "hip/hip_types.h"

namespace ckemu {

namespace {

struct OldProperties {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  int clockRate, memoryClockRate, memoryBusWidth;
  size_t totalConstMem;
  int major, minor, multiProcessorCount, l2CacheSize, maxThreadsPerMultiProcessor, computeMode;
  int clockInstructionRate;
  hipDeviceArch arch;
  int concurrentKernels, pciDomainID, pciBusID, pciDeviceID;
  size_t maxSharedMemoryPerMultiProcessor;
  int isMultiGpuBoard, canMapHostMemory, gcnArch;
  char gcnArchName[256];
  int integrated, cooperativeLaunch, cooperativeMultiDeviceLaunch;
  int textures[7];
  u32 *hdpMemFlushCntl, *hdpRegFlushCntl;
  size_t memPitch, textureAlignment, texturePitchAlignment;
  int kernelExecTimeoutEnabled, ECCEnabled, tccDriver;
  int cooperativeMultiDeviceUnmatched[4];
  int isLargeBar, asicRevision, managedMemory, directManagedMemAccessFromHost, concurrentManagedAccess;
  int pageableMemoryAccess, pageableMemoryAccessUsesHostPageTables;
};

void fill(const hipDeviceProperties& now, OldProperties& old) {
  old = OldProperties{};
  std::memcpy(old.name, now.name, sizeof old.name);
  std::memcpy(old.gcnArchName, now.gcnArchName, sizeof old.gcnArchName);
  for (int axis = 0; axis < 3; ++axis) {
    old.maxThreadsDim[axis] = now.maxThreadsDim[axis];
    old.maxGridSize[axis] = now.maxGridSize[axis];
  }
#define SAME(field) old.field = now.field
  SAME(totalGlobalMem), SAME(sharedMemPerBlock), SAME(regsPerBlock), SAME(warpSize), SAME(maxThreadsPerBlock);
  SAME(clockRate), SAME(memoryClockRate), SAME(memoryBusWidth), SAME(totalConstMem), SAME(major), SAME(minor);
  SAME(multiProcessorCount), SAME(l2CacheSize), SAME(maxThreadsPerMultiProcessor), SAME(computeMode);
  SAME(clockInstructionRate), SAME(arch), SAME(concurrentKernels), SAME(pciDomainID), SAME(pciBusID), SAME(pciDeviceID);
  SAME(maxSharedMemoryPerMultiProcessor), SAME(isMultiGpuBoard), SAME(canMapHostMemory), SAME(integrated);
  SAME(cooperativeLaunch), SAME(cooperativeMultiDeviceLaunch), SAME(memPitch), SAME(textureAlignment);
  SAME(texturePitchAlignment), SAME(kernelExecTimeoutEnabled), SAME(ECCEnabled), SAME(tccDriver), SAME(isLargeBar);
  SAME(asicRevision), SAME(managedMemory), SAME(directManagedMemAccessFromHost), SAME(concurrentManagedAccess);
  SAME(pageableMemoryAccess), SAME(pageableMemoryAccessUsesHostPageTables);
#undef SAME
  old.gcnArch = now.major * 100 + now.minor * 10;
}

}  // namespace

CKEMU_EXPORT hipError_t hipGetDevicePropertiesR0000(OldProperties* properties, int number) {
  if (properties == nullptr) return finish(hipErrorInvalidValue);
  if (!is_device(number)) return finish(hipErrorInvalidDevice);
  hipDeviceProperties now;
  describe_device(number, now);
  fill(now, *properties);
  return hipSuccess;
}
/// The name without a version is the old layout's.
CKEMU_EXPORT hipError_t hipGetDeviceProperties(OldProperties* properties, int number) {
  return hipGetDevicePropertiesR0000(properties, number);
}

}  // namespace ckemu
