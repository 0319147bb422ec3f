// SPDX-License-Identifier: MIT
//
// HIP: devices, their properties and attributes.
#include "core/environment.h"
#include "hip/array.h"
#include "hip/device.h"
#include "hip/hip_types.h"
#include "hip/queue.h"

namespace ckemu {

namespace {

constexpr int kMaxGrid = 0x7fffffff, kMaxGridYZ = 65535;

/// How many vector registers an instruction can name.
u32 nameable_registers(const DeviceSpec& spec) { return spec.wave_size == kLanes ? 512 : 256; }

/// Sizes of textures and surfaces; none where a GPU has no image instructions.
void describe_images(hipDeviceProperties& p) {
  const auto fill = [](int* sizes, std::initializer_list<size_t> values) {
    for (const size_t value : values) *sizes++ = static_cast<int>(value);
  };
  p.maxTexture1D = p.maxSurface1D = static_cast<int>(kMostElements);
  p.maxTexture1DLinear = static_cast<int>(kMostLinear);
  for (int* sizes : {p.maxTexture2D, p.maxTexture2DGather, p.maxSurface2D}) fill(sizes, {kMostElements, kMostElements});
  for (int* sizes : {p.maxTexture1DLayered, p.maxSurface1DLayered}) fill(sizes, {kMostElements, kMostPlanes});
  fill(p.maxTexture2DLinear, {kMostElements, kMostElements, kMostElements * kMostElementBytes});
  for (int* sizes : {p.maxTexture3D, p.maxTexture2DLayered, p.maxSurface3D, p.maxSurface2DLayered}) {
    fill(sizes, {kMostElements, kMostElements, kMostPlanes});
  }
}

int clamped(u64 value) { return value > 0x7fffffff ? 0x7fffffff : static_cast<int>(value); }

}  // namespace

void describe_device(int number, hipDeviceProperties& p) {
  const DeviceSpec& spec = *device(number)->spec;
  p = hipDeviceProperties{};
  std::snprintf(p.name, sizeof p.name, "%s (emulated)", spec.product);
  std::snprintf(p.uuid, sizeof p.uuid, "emu-%s", spec.arch);
  std::snprintf(p.gcnArchName, sizeof p.gcnArchName, "%s%s", spec.arch,
                spec.wave_size == kLanes ? ":sramecc+:xnack-" : "");
  const int threads = static_cast<int>(spec.max_threads_per_block);
  const int registers = static_cast<int>(spec.vgprs_per_simd_lane * spec.simds_per_cu * spec.wave_size);
  p.totalGlobalMem = spec.memory_bytes;
  p.sharedMemPerBlock = p.sharedMemPerMultiprocessor = spec.lds_bytes;
  p.sharedMemPerBlockOptin = p.maxSharedMemoryPerMultiProcessor = spec.lds_bytes;
  p.regsPerBlock = p.regsPerMultiprocessor = registers;
  p.warpSize = static_cast<int>(spec.wave_size);
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = threads;
  for (int axis = 0; axis < 3; ++axis) p.maxThreadsDim[axis] = threads;
  p.maxGridSize[0] = kMaxGrid;
  p.maxGridSize[1] = p.maxGridSize[2] = kMaxGridYZ;
  p.clockRate = static_cast<int>(spec.clock_khz);
  p.memoryClockRate = static_cast<int>(spec.memory_clock_khz);
  p.memoryBusWidth = static_cast<int>(spec.memory_bus_bits);
  p.totalConstMem = 0x7fffffff;
  p.major = static_cast<int>(spec.major);
  p.minor = static_cast<int>(spec.minor);
  p.textureAlignment = p.texturePitchAlignment = 256;
  p.multiProcessorCount = static_cast<int>(spec.compute_units);
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.managedMemory = 1;
  p.hostNativeAtomicSupported = p.concurrentManagedAccess = 1;
  p.pageableMemoryAccess = p.pageableMemoryAccessUsesHostPageTables = host_memory_reachable();
  p.canUseHostPointerForRegisteredMem = p.cooperativeLaunch = p.hostRegisterSupported = 1;
  p.directManagedMemAccessFromHost = p.isLargeBar = 1;
  p.streamPrioritiesSupported = p.memoryPoolsSupported = p.asyncEngineCount = 1;
  p.pciBusID = device(number)->place.number + 1;  // the same GPU has the same one in every process
  p.ipcEventSupported = 1;
  p.l2CacheSize = static_cast<int>(spec.l2_bytes);
  p.maxThreadsPerMultiProcessor = static_cast<int>(spec.simds_per_cu * spec.max_waves_per_simd * spec.wave_size);
  p.maxBlocksPerMultiProcessor = static_cast<int>(spec.simds_per_cu * spec.max_waves_per_simd);
  p.singleToDoublePrecisionPerfRatio = 1;
  p.clockInstructionRate = 100000;
  if (spec.images) describe_images(p);
  p.arch = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0, 1, 0};
}

namespace {

/// Numbers of hipDeviceAttribute_t and the property that answers them.
struct AttributeRow {
  int attribute;
  int (*value)(const hipDeviceProperties&, const DeviceSpec&);
};
#define ATTRIBUTE(number, field) \
  {number, [](const hipDeviceProperties& p, const DeviceSpec&) { return clamped(static_cast<u64>(p.field)); }}
#define OF_SPEC(number, expression) \
  {number, [](const hipDeviceProperties&, [[maybe_unused]] const DeviceSpec& spec) { return clamped(expression); }}
constexpr AttributeRow kAttributes[] = {
    ATTRIBUTE(0, ECCEnabled),
    ATTRIBUTE(1, accessPolicyMaxWindowSize),
    ATTRIBUTE(2, asyncEngineCount),
    ATTRIBUTE(3, canMapHostMemory),
    ATTRIBUTE(4, canUseHostPointerForRegisteredMem),
    ATTRIBUTE(5, clockRate),
    ATTRIBUTE(6, computeMode),
    ATTRIBUTE(7, computePreemptionSupported),
    ATTRIBUTE(8, concurrentKernels),
    ATTRIBUTE(9, concurrentManagedAccess),
    ATTRIBUTE(10, cooperativeLaunch),
    ATTRIBUTE(11, cooperativeMultiDeviceLaunch),
    ATTRIBUTE(12, deviceOverlap),
    ATTRIBUTE(13, directManagedMemAccessFromHost),
    ATTRIBUTE(14, globalL1CacheSupported),
    ATTRIBUTE(15, hostNativeAtomicSupported),
    ATTRIBUTE(16, integrated),
    ATTRIBUTE(17, isMultiGpuBoard),
    ATTRIBUTE(18, kernelExecTimeoutEnabled),
    ATTRIBUTE(19, l2CacheSize),
    ATTRIBUTE(20, localL1CacheSupported),
    ATTRIBUTE(22, luidDeviceNodeMask),
    ATTRIBUTE(23, major),
    ATTRIBUTE(24, managedMemory),
    ATTRIBUTE(25, maxBlocksPerMultiProcessor),
    ATTRIBUTE(26, maxThreadsDim[0]),
    ATTRIBUTE(27, maxThreadsDim[1]),
    ATTRIBUTE(28, maxThreadsDim[2]),
    ATTRIBUTE(29, maxGridSize[0]),
    ATTRIBUTE(30, maxGridSize[1]),
    ATTRIBUTE(31, maxGridSize[2]),
    ATTRIBUTE(32, maxSurface1D),
    ATTRIBUTE(33, maxSurface1DLayered[0]),
    ATTRIBUTE(34, maxSurface2D[0]),
    ATTRIBUTE(35, maxSurface2DLayered[0]),
    ATTRIBUTE(36, maxSurface3D[0]),
    ATTRIBUTE(37, maxSurfaceCubemap),
    ATTRIBUTE(38, maxSurfaceCubemapLayered[0]),
    ATTRIBUTE(39, maxTexture1D),
    ATTRIBUTE(40, maxTexture1DLayered[0]),
    ATTRIBUTE(41, maxTexture1DLinear),
    ATTRIBUTE(42, maxTexture1DMipmap),
    ATTRIBUTE(43, maxTexture2D[0]),
    ATTRIBUTE(44, maxTexture2D[1]),
    ATTRIBUTE(45, maxTexture2DGather[0]),
    ATTRIBUTE(46, maxTexture2DLayered[0]),
    ATTRIBUTE(47, maxTexture2DLinear[0]),
    ATTRIBUTE(48, maxTexture2DMipmap[0]),
    ATTRIBUTE(49, maxTexture3D[0]),
    ATTRIBUTE(50, maxTexture3D[1]),
    ATTRIBUTE(51, maxTexture3D[2]),
    ATTRIBUTE(52, maxTexture3DAlt[0]),
    ATTRIBUTE(53, maxTextureCubemap),
    ATTRIBUTE(54, maxTextureCubemapLayered[0]),
    ATTRIBUTE(56, maxThreadsPerBlock),
    ATTRIBUTE(57, maxThreadsPerMultiProcessor),
    ATTRIBUTE(58, memPitch),
    ATTRIBUTE(59, memoryBusWidth),
    ATTRIBUTE(60, memoryClockRate),
    ATTRIBUTE(61, minor),
    ATTRIBUTE(62, multiGpuBoardGroupID),
    ATTRIBUTE(63, multiProcessorCount),
    ATTRIBUTE(65, pageableMemoryAccess),
    ATTRIBUTE(66, pageableMemoryAccessUsesHostPageTables),
    ATTRIBUTE(67, pciBusID),
    ATTRIBUTE(68, pciDeviceID),
    ATTRIBUTE(69, pciDomainID),
    ATTRIBUTE(70, persistingL2CacheMaxSize),
    ATTRIBUTE(71, regsPerBlock),
    ATTRIBUTE(72, regsPerMultiprocessor),
    ATTRIBUTE(73, reservedSharedMemPerBlock),
    ATTRIBUTE(74, sharedMemPerBlock),
    ATTRIBUTE(75, sharedMemPerBlockOptin),
    ATTRIBUTE(76, sharedMemPerMultiprocessor),
    ATTRIBUTE(77, singleToDoublePrecisionPerfRatio),
    ATTRIBUTE(78, streamPrioritiesSupported),
    ATTRIBUTE(79, surfaceAlignment),
    ATTRIBUTE(80, tccDriver),
    ATTRIBUTE(81, textureAlignment),
    ATTRIBUTE(82, texturePitchAlignment),
    ATTRIBUTE(83, totalConstMem),
    ATTRIBUTE(84, totalGlobalMem),
    ATTRIBUTE(85, unifiedAddressing),
    ATTRIBUTE(87, warpSize),
    ATTRIBUTE(88, memoryPoolsSupported),
    OF_SPEC(89, 1),  // virtual memory management
    ATTRIBUTE(90, hostRegisterSupported),
    ATTRIBUTE(91, memoryPoolSupportedHandleTypes),
    OF_SPEC(93, 0),  // dma-buf
    OF_SPEC(94, 0),  // GPUDirect RDMA
    OF_SPEC(95, 0),  // fabric handles
    ATTRIBUTE(10000, clockInstructionRate),
    ATTRIBUTE(10002, maxSharedMemoryPerMultiProcessor),
    ATTRIBUTE(10007, cooperativeMultiDeviceUnmatchedFunc),
    ATTRIBUTE(10008, cooperativeMultiDeviceUnmatchedGridDim),
    ATTRIBUTE(10009, cooperativeMultiDeviceUnmatchedBlockDim),
    ATTRIBUTE(10010, cooperativeMultiDeviceUnmatchedSharedMem),
    ATTRIBUTE(10011, isLargeBar),
    ATTRIBUTE(10012, asicRevision),
    OF_SPEC(10013, 1),  // hipStreamWaitValue
    OF_SPEC(10014, spec.images),
    ATTRIBUTE(10015, multiProcessorCount),
    OF_SPEC(10016, 1),  // fine-grained memory
    ATTRIBUTE(10017, clockInstructionRate),
    OF_SPEC(10018, spec.chiplets),
    OF_SPEC(10019, nameable_registers(spec)),
};
#undef ATTRIBUTE
#undef OF_SPEC

}  // namespace

CKEMU_EXPORT hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return finish(hipErrorInvalidValue);
  *count = device_count();
  return finish(*count != 0 ? hipSuccess : hipErrorNoDevice);
}
CKEMU_EXPORT hipError_t hipSetDevice(int number) {
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  set_current_device(number);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipGetDevice(int* number) {
  if (number == nullptr) return finish(hipErrorInvalidValue);
  *number = current_device_number();
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceGet(int* handle, int number) {
  if (handle == nullptr) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  *handle = number;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipGetDevicePropertiesR0600(hipDeviceProperties* properties, int number) {
  if (properties == nullptr) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  describe_device(number, *properties);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceGetAttribute(int* value, int attribute, int number) {
  if (value == nullptr) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  hipDeviceProperties properties;
  describe_device(number, properties);
  for (const AttributeRow& row : kAttributes) {
    if (row.attribute != attribute) continue;
    *value = row.value(properties, *device(number)->spec);
    return hipSuccess;
  }
  return finish(hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipDeviceGetName(char* name, int length, int number) {
  if (name == nullptr || length <= 0) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  std::snprintf(name, static_cast<size_t>(length), "%s (emulated)", device(number)->spec->product);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceGetUuid(char* uuid, int number) {
  if (uuid == nullptr) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  hipDeviceProperties properties;
  describe_device(number, properties);
  std::memcpy(uuid, properties.uuid, sizeof properties.uuid);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceGetPCIBusId(char* text, int length, int number) {
  if (text == nullptr || length <= 0) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  std::snprintf(text, static_cast<size_t>(length), "0000:%02x:00.0", device(number)->place.number + 1);
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceGetByPCIBusId(int* number, const char* text) {
  u32 domain = 0, bus = 0;
  if (number == nullptr || text == nullptr) return finish(hipErrorInvalidValue);
  if (std::sscanf(text, "%x:%x", &domain, &bus) != 2 || domain != 0) return finish(hipErrorInvalidValue);
  for (int n = 0; n < device_count(); ++n) {
    if (device(n)->place.number + 1u != bus) continue;
    *number = n;
    return hipSuccess;
  }
  return finish(hipErrorInvalidValue);
}
CKEMU_EXPORT hipError_t hipDeviceTotalMem(size_t* bytes, int number) {
  if (bytes == nullptr) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  *bytes = device(number)->spec->memory_bytes;
  return hipSuccess;
}
CKEMU_EXPORT hipError_t hipDeviceComputeCapability(int* major, int* minor, int number) {
  if (major == nullptr || minor == nullptr) return finish(hipErrorInvalidValue);
  if (device(number) == nullptr) return finish(hipErrorInvalidDevice);
  *major = static_cast<int>(device(number)->spec->major);
  *minor = static_cast<int>(device(number)->spec->minor);
  return hipSuccess;
}

CKEMU_EXPORT hipError_t hipDeviceSynchronize() {
  await_device(current_device());
  return finish(current_device().report_failure());
}
CKEMU_EXPORT hipError_t hipDeviceReset() {
  await_device(current_device());
  current_device().reset();
  return hipSuccess;
}

}  // namespace ckemu
