// SPDX-License-Identifier: MIT
// One of several processes that share memory of emulated GPUs: `ranks CASE FOLDER`, with its number and theirs in RANK
// and WORLD_SIZE. Files in the folder take handles from one to the others.
#include <fcntl.h>
#include <hip/hip_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

extern "C" const char* ckemu_last_error(void);

static int failed = 0, self = 0, ranks = 0;
static std::string folder;
#define CHECK(condition) \
    if(!(condition))     \
        ++failed, printf("FAILED at %d: %s\n", __LINE__, #condition);
#define OK(call)                                                                                           \
    if(const hipError_t error_ = (call); error_ != hipSuccess)                                             \
        ++failed, fflush(stdout), printf("FAILED at %d: %s: %s, %s\n", __LINE__, #call, hipGetErrorName(error_), ckemu_last_error());

constexpr int kMostRanks = 8, kBlocks = 4, kThreads = 256, kCount = 5000;

static std::string path_of(const char* name, int rank) { return folder + "/" + name + std::to_string(rank); }

template <class T>
static void publish(const char* name, const T& value)
{
    const std::string path = path_of(name, self), draft = path + ".draft";
    FILE* file = fopen(draft.c_str(), "wb");
    fwrite(&value, sizeof value, 1, file);
    fclose(file);
    rename(draft.c_str(), path.c_str());
}

template <class T>
static T read_from(const char* name, int rank)
{
    T value{};
    for(int n = 0; n < 60000; ++n, usleep(1000))
    {
        FILE* file = fopen(path_of(name, rank).c_str(), "rb");
        if(file == nullptr)
            continue;
        const bool whole = fread(&value, sizeof value, 1, file) == 1;
        fclose(file);
        if(whole)
            return value;
    }
    printf("rank %d has not published %s\n", rank, name);
    exit(3);
}

static void meet(const char* name)
{
    publish(name, self);
    for(int rank = 0; rank < ranks; ++rank)
        (void)read_from<int>(name, rank);
}

// What each rank shares: its numbers, and who has arrived at its blocks.
struct Shared
{
    unsigned begun[kBlocks][kMostRanks], done[kBlocks][kMostRanks];
    unsigned count;
    float numbers[kCount];
};
struct All
{
    Shared* of[kMostRanks];
};

__device__ void arrive(unsigned (*flags)[kMostRanks], int from, unsigned round)
{
    __hip_atomic_store(&flags[blockIdx.x][from], round, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
__device__ void await(unsigned (*flags)[kMostRanks], int from, unsigned round)
{
    while(__hip_atomic_load(&flags[blockIdx.x][from], __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) < round)
        __builtin_amdgcn_s_sleep(1);
}

__global__ void all_reduce(All all, float* sum, int self, int ranks, unsigned round)
{
    const int peer = static_cast<int>(threadIdx.x);
    if(peer < ranks)
    {
        arrive(all.of[peer]->begun, self, round);
        await(all.of[self]->begun, peer, round);
    }
    __syncthreads();
    for(int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); n < kCount;
        n += static_cast<int>(gridDim.x * blockDim.x))
    {
        float total = all.of[0]->numbers[n];
        for(int rank = 1; rank < ranks; ++rank)
            total += all.of[rank]->numbers[n];
        sum[n] = total;
    }
    __syncthreads();
    if(peer < ranks)
    {
        arrive(all.of[peer]->done, self, round);
        await(all.of[self]->done, peer, round);
    }
}
__global__ void count_up(unsigned* count) { atomicAdd_system(count, 1u); }
__global__ void put(unsigned* word, unsigned value) { *word = value; }
__global__ void copy_words(const unsigned* from, unsigned* to, int count)
{
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if(n < count)
        to[n] = from[n];
}
__global__ void wait_for(unsigned* flag, unsigned value)
{
    while(__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) != value)
        __builtin_amdgcn_s_sleep(1);
}
__global__ void answer(unsigned* flag, unsigned value)
{
    __hip_atomic_store(flag, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

static Shared* make_shared(All& all)
{
    Shared* mine;
    OK(hipMalloc(&mine, sizeof(Shared)))
    OK(hipMemset(mine, 0, sizeof(Shared)))
    hipIpcMemHandle_t handle;
    OK(hipIpcGetMemHandle(&handle, mine))
    publish("memory", handle);
    for(int rank = 0; rank < ranks; ++rank)
    {
        all.of[rank] = mine;
        if(rank == self)
            continue;
        void* memory = nullptr;
        OK(hipIpcOpenMemHandle(&memory, read_from<hipIpcMemHandle_t>("memory", rank), hipIpcMemLazyEnablePeerAccess))
        all.of[rank] = static_cast<Shared*>(memory);
    }
    return mine;
}

static float number(int rank, int round, int n) { return 0.37f * static_cast<float>(n % 101) + 1.1f * static_cast<float>(rank * round); }

static void reduce_rounds(const char* ending)
{
    All all;
    Shared* mine = make_shared(all);
    float* sum;
    OK(hipMalloc(&sum, kCount * sizeof(float)))
    std::vector<float> numbers(kCount), result(kCount);
    for(unsigned round = 1; round <= 3; ++round)
    {
        for(int n = 0; n < kCount; ++n)
            numbers[n] = number(self, static_cast<int>(round), n);
        OK(hipMemcpy(mine->numbers, numbers.data(), sizeof mine->numbers, hipMemcpyHostToDevice))
        if(self == 1 && round == 2 && strcmp(ending, "killed") == 0)
            raise(SIGKILL);
        if(self == 1 && round == 2 && strcmp(ending, "absent") == 0)
        {
            sleep(5);
            exit(0);
        }
        if(self == 1 && round == 2 && strcmp(ending, "failed") == 0)
            exit(5);
        all_reduce<<<kBlocks, kThreads>>>(all, sum, self, ranks, round);
        OK(hipMemcpy(result.data(), sum, kCount * sizeof(float), hipMemcpyDeviceToHost))
        if(failed)
            exit(1);
        for(int n = 0; n < kCount; ++n)
        {
            float total = number(0, static_cast<int>(round), n);
            for(int rank = 1; rank < ranks; ++rank)
                total += number(rank, static_cast<int>(round), n);
            if(failed < 5)
                CHECK(result[n] == total)
        }
    }
    FILE* file = fopen(path_of("sum", self).c_str(), "wb");
    fwrite(result.data(), sizeof(float), kCount, file);
    fclose(file);
    for(int rank = 0; rank < ranks; ++rank)
        if(rank != self)
            OK(hipIpcCloseMemHandle(all.of[rank]))
    meet("closed");
    OK(hipFree(sum))
    OK(hipFree(mine))
}

static void count_together()
{
    All all;
    Shared* mine = make_shared(all);
    count_up<<<10, 100>>>(&all.of[0]->count);
    OK(hipDeviceSynchronize())
    meet("counted");
    unsigned count = 0;
    OK(hipMemcpy(&count, &all.of[0]->count, sizeof count, hipMemcpyDeviceToHost))
    CHECK(count == 1000u * static_cast<unsigned>(ranks))
    (void)mine;
}

// What was written before keeps its place and its value, and an inner address has a handle, too.
static void keep_contents()
{
    constexpr int count = 3 << 20;
    std::vector<unsigned> words(count), others(count);
    for(int n = 0; n < count; ++n)
        words[n] = n < count / 2 ? 0u : static_cast<unsigned>(n * ranks + self);
    unsigned* memory;
    OK(hipMalloc(&memory, count * sizeof(unsigned)))
    OK(hipMemcpy(memory, words.data(), count * sizeof(unsigned), hipMemcpyHostToDevice))
    hipIpcMemHandle_t handle;
    OK(hipIpcGetMemHandle(&handle, memory + count / 2))
    OK(hipMemcpy(others.data(), memory, count * sizeof(unsigned), hipMemcpyDeviceToHost))
    CHECK(others == words)
    publish("words", handle);
    const int peer = (self + 1) % ranks;
    void *opened = nullptr, *again = nullptr;
    const auto from_peer = read_from<hipIpcMemHandle_t>("words", peer);
    OK(hipIpcOpenMemHandle(&opened, from_peer, hipIpcMemLazyEnablePeerAccess))
    OK(hipIpcOpenMemHandle(&again, from_peer, hipIpcMemLazyEnablePeerAccess))
    CHECK(opened == again)
    OK(hipMemcpy(others.data(), opened, count / 2 * sizeof(unsigned), hipMemcpyDeviceToHost))
    for(int n = count / 2; n < count; n += 997)
        CHECK(others[n - count / 2] == static_cast<unsigned>(n * ranks + peer))
    size_t size = 0;
    void* base = nullptr;
    OK(hipMemGetAddressRange(reinterpret_cast<hipDeviceptr_t*>(&base), &size, opened))
    CHECK(size == count * sizeof(unsigned) && base == static_cast<unsigned*>(opened) - count / 2)
    CHECK(hipFree(base) == hipErrorInvalidValue)
    meet("read");
    OK(hipFree(memory))
    meet("freed");
    OK(hipMemcpy(others.data(), opened, sizeof(unsigned), hipMemcpyDeviceToHost)) // the pages stay until they are closed
    OK(hipIpcCloseMemHandle(opened))
    OK(hipMemcpy(others.data(), opened, sizeof(unsigned), hipMemcpyDeviceToHost))
    OK(hipIpcCloseMemHandle(again))
    CHECK(hipIpcCloseMemHandle(again) == hipErrorInvalidValue)
    CHECK(hipMemcpy(others.data(), opened, sizeof(unsigned), hipMemcpyDeviceToHost) == hipErrorInvalidValue)
}

static void refuse_mistakes()
{
    void *memory, *host, *opened = nullptr;
    hipIpcMemHandle_t handle, garbage{};
    OK(hipMalloc(&memory, 100))
    OK(hipHostMalloc(&host, 100, 0))
    OK(hipIpcGetMemHandle(&handle, memory))
    publish("mistake", handle);
    CHECK(hipIpcGetMemHandle(&handle, host) == hipErrorInvalidValue)
    CHECK(hipIpcGetMemHandle(&handle, nullptr) == hipErrorInvalidValue)
    CHECK(hipIpcGetMemHandle(nullptr, memory) == hipErrorInvalidValue)
    CHECK(hipIpcOpenMemHandle(&opened, handle, hipIpcMemLazyEnablePeerAccess) == hipErrorInvalidContext)
    CHECK(hipIpcOpenMemHandle(&opened, garbage, hipIpcMemLazyEnablePeerAccess) == hipErrorInvalidValue)
    CHECK(hipIpcOpenMemHandle(&opened, read_from<hipIpcMemHandle_t>("mistake", 1 - self), 0) == hipErrorInvalidValue)
    CHECK(hipIpcCloseMemHandle(memory) == hipErrorInvalidValue)
    hipEvent_t event;
    hipIpcEventHandle_t event_handle{};
    CHECK(hipEventCreateWithFlags(&event, hipEventInterprocess) == hipErrorInvalidValue)
    OK(hipEventCreateWithFlags(&event, hipEventDisableTiming))
    CHECK(hipIpcGetEventHandle(&event_handle, event) == hipErrorInvalidHandle)
    CHECK(hipIpcOpenEventHandle(&event, event_handle) == hipErrorInvalidValue)
    if(self == 0)
    {
        publish("over", self);
        return;
    }
    (void)read_from<int>("over", 0);
    usleep(300000);
    hipError_t error = hipSuccess;
    for(int n = 0; n < 100 && error == hipSuccess; ++n, usleep(50000))
        error = hipIpcOpenMemHandle(&opened, read_from<hipIpcMemHandle_t>("mistake", 0), hipIpcMemLazyEnablePeerAccess);
    CHECK(error == hipErrorMapFailed)
}

static void other_machine()
{
    void *memory, *opened = nullptr;
    hipIpcMemHandle_t handle;
    OK(hipSetDevice(1))
    OK(hipMalloc(&memory, 100))
    OK(hipIpcGetMemHandle(&handle, memory))
    publish("machine", handle);
    const hipError_t error = hipIpcOpenMemHandle(&opened, read_from<hipIpcMemHandle_t>("machine", 1 - self), hipIpcMemLazyEnablePeerAccess);
    CHECK(error == hipErrorInvalidDevice)
    meet("seen");
}

// Rank 0 records, the others wait: in a stream, by query, and on the host.
static void order_by_event()
{
    All all;
    Shared* mine = make_shared(all);
    hipEvent_t event;
    hipStream_t stream;
    OK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking)) // the null stream does not wait for it
    if(self == 0)
    {
        OK(hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming))
        hipIpcEventHandle_t handle;
        OK(hipIpcGetEventHandle(&handle, event))
        wait_for<<<1, 1, 0, stream>>>(&mine->count, 7u);
        usleep(20000);
        hipIpcMemHandle_t again; // a further handle does not wait for the kernel
        OK(hipIpcGetMemHandle(&again, mine))
        for(int rank = 1; rank < ranks; ++rank)
            put<<<1, 1, 0, stream>>>(&all.of[rank]->begun[0][0], 11u);
        OK(hipEventRecord(event, stream))
        publish("event", handle);
        meet("waiting");
        OK(hipEventSynchronize(event))
    }
    else
    {
        OK(hipIpcOpenEventHandle(&event, read_from<hipIpcEventHandle_t>("event", 0)))
        CHECK(hipEventQuery(event) == hipErrorNotReady)
        OK(hipStreamWaitEvent(stream, event, 0))
        copy_words<<<1, 1, 0, stream>>>(&mine->begun[0][0], &mine->count, 1);
        meet("waiting");
        if(self == 1)
            answer<<<1, 1>>>(&all.of[0]->count, 7u);
        OK(hipEventSynchronize(event))
        OK(hipEventQuery(event))
        OK(hipStreamSynchronize(stream))
        unsigned word = 0;
        OK(hipMemcpy(&word, &mine->count, sizeof word, hipMemcpyDeviceToHost))
        CHECK(word == 11u)
    }
    OK(hipEventDestroy(event))
    meet("passed");
}

// Rank 0 is killed before it records; rank 1 waits on the host, in a stream for the event, and in one for a word.
static void lose_recorder()
{
    All all;
    make_shared(all);
    hipEvent_t event;
    if(self == 0)
    {
        OK(hipEventCreateWithFlags(&event, hipEventInterprocess | hipEventDisableTiming))
        hipIpcEventHandle_t handle;
        OK(hipIpcGetEventHandle(&handle, event))
        wait_for<<<1, 1>>>(&all.of[0]->count, 7u);
        OK(hipEventRecord(event, nullptr))
        publish("event", handle);
        (void)read_from<int>("opened", 1);
        raise(SIGKILL);
    }
    OK(hipIpcOpenEventHandle(&event, read_from<hipIpcEventHandle_t>("event", 0)))
    publish("opened", self);
    CHECK(hipEventSynchronize(event) == hipErrorLaunchTimeOut)
    OK(hipStreamWaitEvent(nullptr, event, 0))
    CHECK(hipStreamSynchronize(nullptr) == hipErrorLaunchTimeOut)
    OK(hipDeviceReset())
    OK(hipStreamWaitValue32(nullptr, &all.of[0]->count, 99, hipStreamWaitValueEq, ~0u))
    CHECK(hipStreamSynchronize(nullptr) == hipErrorLaunchTimeOut)
    CHECK(strstr(ckemu_last_error(), "was killed") != nullptr)
}

static unsigned* map_physical(hipMemGenericAllocationHandle_t physical, size_t size)
{
    void* memory = nullptr;
    hipMemAccessDesc access{};
    access.location = {hipMemLocationTypeDevice, 0};
    access.flags    = hipMemAccessFlagsProtReadWrite;
    OK(hipMemAddressReserve(&memory, size, 0, nullptr, 0))
    OK(hipMemMap(memory, size, 0, physical, 0))
    OK(hipMemSetAccess(memory, size, &access, 1))
    return static_cast<unsigned*>(memory);
}

struct Descriptor
{
    int process, number;
};

static void share_virtual_memory()
{
    constexpr size_t size = size_t{2} << 20;
    hipMemAllocationProp properties{};
    properties.type                 = hipMemAllocationTypePinned;
    properties.requestedHandleTypes = hipMemHandleTypePosixFileDescriptor;
    properties.location             = {hipMemLocationTypeDevice, 0};
    hipMemGenericAllocationHandle_t physical, imported;
    OK(hipMemCreate(&physical, size, &properties, 0))
    int descriptor = -1;
    CHECK(hipMemExportToShareableHandle(&descriptor, physical, hipMemHandleTypeWin32, 0) == hipErrorNotSupported)
    OK(hipMemExportToShareableHandle(&descriptor, physical, hipMemHandleTypePosixFileDescriptor, 0))
    unsigned* mine = map_physical(physical, size);
    OK(hipMemset(mine, 0, size))
    publish("descriptor", Descriptor{getpid(), descriptor});
    const auto other       = read_from<Descriptor>("descriptor", (self + 1) % ranks);
    const std::string path = "/proc/" + std::to_string(other.process) + "/fd/" + std::to_string(other.number);
    int file               = open(path.c_str(), O_RDWR);
    CHECK(file >= 0)
    void* direct = reinterpret_cast<void*>(static_cast<uintptr_t>(file));
    CHECK(hipMemImportFromShareableHandle(&imported, direct, hipMemHandleTypeWin32) == hipErrorNotSupported)
    OK(hipMemImportFromShareableHandle(&imported, self == 0 ? direct : &file, hipMemHandleTypePosixFileDescriptor))
    close(file);
    unsigned* theirs = map_physical(imported, size);
    answer<<<1, 1>>>(theirs + 5, 40u + static_cast<unsigned>(self));
    wait_for<<<1, 1>>>(mine + 5, 40u + static_cast<unsigned>((self + ranks - 1) % ranks));
    OK(hipDeviceSynchronize())
    meet("imported");
}

// A file that all map and register: flags of kernels in host memory.
static void register_together()
{
    const std::string path = folder + "/registered";
    const int file         = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    CHECK(ftruncate(file, 4096) == 0)
    auto* words = static_cast<unsigned*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    void* address = nullptr;
    OK(hipHostRegister(words, 4096, hipHostRegisterMapped))
    OK(hipHostGetDevicePointer(&address, words, 0))
    meet("registered-");
    for(unsigned round = 1; round <= 3; ++round)
    {
        answer<<<1, 1>>>(words + self, round);
        for(int rank = 0; rank < ranks; ++rank)
            wait_for<<<1, 1>>>(words + rank, round);
        OK(hipDeviceSynchronize())
        meet(round == 1 ? "first" : round == 2 ? "second" : "third");
    }
    OK(hipHostUnregister(words))
}

int main(int, char** words)
{
    const std::string what = words[1];
    folder = words[2];
    self   = atoi(getenv("RANK"));
    ranks  = atoi(getenv("WORLD_SIZE"));
    int devices = 0;
    OK(hipGetDeviceCount(&devices))
    OK(hipSetDevice(devices == 1 ? 0 : self % devices))
    char bus[32];
    OK(hipDeviceGetPCIBusId(bus, sizeof bus, devices == 1 ? 0 : self % devices))
    if(what == "reduce" || what == "killed" || what == "absent" || what == "failed")
        reduce_rounds(what.c_str());
    else if(what == "count")
        count_together();
    else if(what == "contents")
        keep_contents();
    else if(what == "mistakes")
        refuse_mistakes();
    else if(what == "machine")
        other_machine();
    else if(what == "event")
        order_by_event();
    else if(what == "lost")
        lose_recorder();
    else if(what == "virtual")
        share_virtual_memory();
    else if(what == "registered")
        register_together();
    printf("%s: %d failed\n", bus, failed);
    return failed != 0;
}
