// SPDX-License-Identifier: MIT
// A vector that grows in place: addresses reserved once, memory mapped behind them as it is needed.
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

static int failed = 0;
#define CHECK(condition) \
    if(!(condition))     \
        ++failed, printf("FAILED at %d: %s\n", __LINE__, #condition);
#define OK(call) CHECK((call) == hipSuccess)

class Growing
{
    char* base_     = nullptr;
    size_t reserved_ = 0, mapped_ = 0, step_ = 0;
    std::vector<hipMemGenericAllocationHandle_t> handles_;
    hipMemAllocationProp properties_{};

public:
    explicit Growing(size_t reserved)
    {
        properties_.type          = hipMemAllocationTypePinned;
        properties_.location.type = hipMemLocationTypeDevice;
        OK(hipMemGetAllocationGranularity(&step_, &properties_, hipMemAllocationGranularityRecommended))
        reserved_ = (reserved + step_ - 1) / step_ * step_;
        OK(hipMemAddressReserve(reinterpret_cast<void**>(&base_), reserved_, 0, nullptr, 0))
    }
    char* data() const { return base_; }
    size_t size() const { return mapped_; }
    size_t step() const { return step_; }
    void grow()
    {
        hipMemGenericAllocationHandle_t handle;
        OK(hipMemCreate(&handle, step_, &properties_, 0))
        OK(hipMemMap(base_ + mapped_, step_, 0, handle, 0))
        hipMemAccessDesc access{properties_.location, hipMemAccessFlagsProtReadWrite};
        OK(hipMemSetAccess(base_ + mapped_, step_, &access, 1))
        handles_.push_back(handle);
        mapped_ += step_;
    }
    ~Growing()
    {
        OK(hipMemUnmap(base_, mapped_))
        for(const auto handle : handles_)
            OK(hipMemRelease(handle))
        OK(hipMemAddressFree(base_, reserved_))
    }
};

__global__ void number(unsigned* words, size_t count)
{
    for(size_t n = threadIdx.x; n < count; n += blockDim.x)
        words[n * 1024] += static_cast<unsigned>(n) + 1;
}

// One memory behind two addresses.
static void twice()
{
    hipMemAllocationProp properties{}, told{};
    properties.type          = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    size_t step              = 0;
    OK(hipMemGetAllocationGranularity(&step, &properties, hipMemAllocationGranularityMinimum))
    hipMemGenericAllocationHandle_t handle, again;
    OK(hipMemCreate(&handle, step, &properties, 0))
    CHECK(hipMemCreate(&again, step - 1, &properties, 0) == hipErrorInvalidValue)
    int *first, *second;
    hipMemAccessDesc access{properties.location, hipMemAccessFlagsProtReadWrite};
    for(int** pointer : {&first, &second})
    {
        OK(hipMemAddressReserve(reinterpret_cast<void**>(pointer), step, 0, nullptr, 0))
        OK(hipMemMap(*pointer, step, 0, handle, 0))
        CHECK(hipMemMap(*pointer, step, 0, handle, 0) == hipErrorInvalidValue)
    }
    const int value = 42;
    int back        = 0;
    unsigned long long flags;
    OK(hipMemGetAccess(&flags, &properties.location, first))
    CHECK(flags == hipMemAccessFlagsProtNone)
    OK(hipMemSetAccess(first, step, &access, 1))
    OK(hipMemSetAccess(second, step, &access, 1))
    OK(hipMemGetAccess(&flags, &properties.location, first))
    CHECK(flags == hipMemAccessFlagsProtReadWrite)
    OK(hipMemcpy(first + 5, &value, sizeof value, hipMemcpyHostToDevice))
    OK(hipMemcpy(&back, second + 5, sizeof value, hipMemcpyDeviceToHost))
    CHECK(back == value)
    OK(hipMemRetainAllocationHandle(&again, second))
    OK(hipMemGetAllocationPropertiesFromHandle(&told, again))
    CHECK(told.type == hipMemAllocationTypePinned && told.location.id == 0)
    CHECK(hipFree(first) != hipSuccess)
    int shared = 0;
    hipMemGenericAllocationHandle_t imported;
    OK(hipMemExportToShareableHandle(&shared, again, hipMemHandleTypePosixFileDescriptor, 0))
    OK(hipMemImportFromShareableHandle(&imported, &shared, hipMemHandleTypePosixFileDescriptor))
    OK(hipMemRelease(imported))
    close(shared);
    CHECK(hipMemImportFromShareableHandle(&imported, &shared, hipMemHandleTypePosixFileDescriptor) == hipErrorInvalidValue)
    CHECK(hipMemExportToShareableHandle(&shared, nullptr, hipMemHandleTypePosixFileDescriptor, 0) == hipErrorInvalidValue)
    CHECK(hipMemAddressFree(first, step) == hipErrorInvalidValue)  // still mapped
    for(int* pointer : {first, second})
    {
        OK(hipMemUnmap(pointer, step))
        CHECK(hipMemcpy(&back, pointer, sizeof back, hipMemcpyDeviceToHost) != hipSuccess)
        OK(hipMemAddressFree(pointer, step))
    }
    OK(hipMemRelease(handle))
    OK(hipMemRelease(again))
    CHECK(hipMemRelease(again) == hipErrorInvalidValue)
}

// Managed memory has no handle for other processes, and is where everybody reaches it.
static void sharing()
{
    hipIpcMemHandle_t memory{};
    hipIpcEventHandle_t event{};
    hipEvent_t one;
    int* pointer;
    OK(hipMallocManaged(&pointer, 4096))
    OK(hipEventCreate(&one))
    CHECK(hipIpcGetMemHandle(&memory, pointer) == hipErrorInvalidValue)
    CHECK(hipIpcOpenMemHandle(reinterpret_cast<void**>(&pointer), memory, 0) == hipErrorInvalidValue)
    CHECK(hipIpcCloseMemHandle(pointer) == hipErrorInvalidValue)
    CHECK(hipIpcGetEventHandle(&event, one) == hipErrorInvalidHandle)
    CHECK(hipIpcOpenEventHandle(&one, event) == hipErrorInvalidValue)
    pointer[7] = 1;
    OK(hipMemPrefetchAsync(pointer, 4096, 0))
    OK(hipMemPrefetchAsync(pointer, 4096, hipCpuDeviceId, nullptr))
    OK(hipDeviceSynchronize())
    CHECK(pointer[7] == 1)
    OK(hipEventDestroy(one))
    OK(hipFree(pointer))
    (void)hipGetLastError();
}

int main()
{
    int supported = 0;
    OK(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0))
    CHECK(supported == 1)
    {
        Growing memory(size_t{64} << 20);
        size_t count = 0;
        for(int round = 1; round <= 3; ++round)
        {
            memory.grow();
            count = memory.size() / 4096;
            number<<<1, 256>>>(reinterpret_cast<unsigned*>(memory.data()), count);
        }
        // One copy across all that was mapped.
        std::vector<unsigned> words(memory.size() / 4);
        OK(hipMemcpy(words.data(), memory.data(), memory.size(), hipMemcpyDeviceToHost))
        for(size_t n = 0; n < count; ++n)
            CHECK(words[n * 1024] == (3 - n * 4096 / memory.step()) * (n + 1))
        CHECK(hipMemcpy(words.data(), memory.data() + 4, memory.size(), hipMemcpyDeviceToHost) == hipErrorInvalidValue)
        (void)hipGetLastError();
    }
    twice();
    sharing();
    printf("%d failed\n", failed);
    return failed != 0;
}
