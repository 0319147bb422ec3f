// SPDX-License-Identifier: MIT
// A graph that is built once and launched with other parameters: of its nodes, and of a whole graph of the same shape.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

static int failed = 0;
#define CHECK(condition) \
    if(!(condition))     \
        ++failed, printf("FAILED at %d: %s\n", __LINE__, #condition);
#define OK(call) CHECK((call) == hipSuccess)

constexpr int kCount = 64;

__global__ void scale(int* values, int factor) { values[threadIdx.x] *= factor; }
__global__ void shift(int* values, int amount) { values[threadIdx.x] += amount; }

static void count_call(void* counter) { ++*static_cast<int*>(counter); }

struct Kernel
{
    int* values;
    int number;
    void* arguments[2] = {&values, &number};
    hipKernelNodeParams parameters{};
    Kernel(void (*function)(int*, int), int* values_, int number_) : values(values_), number(number_)
    {
        parameters.func         = reinterpret_cast<void*>(function);
        parameters.gridDim      = dim3(1);
        parameters.blockDim     = dim3(kCount);
        parameters.kernelParams = arguments;
    }
};

static hipMemcpy3DParms copy_of(int* to, const int* from)
{
    hipMemcpy3DParms copy{};
    copy.srcPtr = make_hipPitchedPtr(const_cast<int*>(from), kCount * 4, kCount * 4, 1);
    copy.dstPtr = make_hipPitchedPtr(to, kCount * 4, kCount * 4, 1);
    copy.extent = make_hipExtent(kCount * 4, 1, 1);
    copy.kind   = hipMemcpyDefault;
    return copy;
}

int main()
{
    int *device, first = 0, second = 0;
    OK(hipMalloc(&device, kCount * 4))
    std::vector<int> start(kCount), back(kCount), other(kCount);
    for(int n = 0; n < kCount; ++n)
        start[n] = n;

    hipGraph_t graph, child;
    hipGraphNode_t upload, inner, nested, doubled, note, download;
    OK(hipGraphCreate(&graph, 0))
    OK(hipGraphCreate(&child, 0))
    hipMemcpy3DParms in = copy_of(device, start.data()), out = copy_of(back.data(), device);
    Kernel plus(shift, device, 1), times(scale, device, 2);
    OK(hipGraphAddMemcpyNode(&upload, graph, nullptr, 0, &in))
    OK(hipGraphAddKernelNode(&inner, child, nullptr, 0, &plus.parameters))
    OK(hipGraphAddChildGraphNode(&nested, graph, &upload, 1, child))
    OK(hipGraphAddKernelNode(&doubled, graph, &nested, 1, &times.parameters))
    hipHostNodeParams host{count_call, &first};
    OK(hipGraphAddHostNode(&note, graph, &doubled, 1, &host))
    OK(hipGraphAddMemcpyNode(&download, graph, &note, 1, &out))
    hipGraphExec_t ready;
    OK(hipGraphInstantiate(&ready, graph, nullptr, nullptr, 0))
    const auto run = [&](std::vector<int>& result, int factor, int amount) {
        OK(hipGraphLaunch(ready, nullptr))
        OK(hipDeviceSynchronize())
        for(int n = 0; n < kCount; ++n)
            CHECK(result[n] == (n + amount) * factor)
    };
    run(back, 2, 1);

    // Nodes of the executable graph.
    Kernel three(scale, device, 3), seven(shift, device, 7);
    OK(hipGraphExecKernelNodeSetParams(ready, doubled, &three.parameters))
    run(back, 3, 1);
    host.userData = &second;
    OK(hipGraphExecHostNodeSetParams(ready, note, &host))
    hipMemcpy3DParms elsewhere = copy_of(other.data(), device);
    OK(hipGraphExecMemcpyNodeSetParams(ready, download, &elsewhere))
    OK(hipGraphKernelNodeSetParams(inner, &seven.parameters))  // the graph that was copied does not change,
    run(other, 3, 1);
    OK(hipGraphExecChildGraphNodeSetParams(ready, nested, child))  // until it is given the new one
    run(other, 3, 7);
    CHECK(first == 2 && second == 2)
    CHECK(hipGraphExecHostNodeSetParams(ready, doubled, &host) == hipErrorInvalidValue)
    CHECK(hipGraphExecMemcpyNodeSetParams(ready, note, &elsewhere) == hipErrorInvalidValue)

    // Nodes of the graph, and the executable one updated from it.
    Kernel five(scale, device, 5);
    OK(hipGraphKernelNodeSetParams(doubled, &five.parameters))
    OK(hipGraphHostNodeSetParams(note, &host))
    OK(hipGraphMemcpyNodeSetParams(download, &out))
    OK(hipGraphMemcpyNodeSetParams1D(upload, device, start.data(), kCount * 4, hipMemcpyHostToDevice))
    hipGraphExecUpdateResult result;
    hipGraphNode_t differing;
    OK(hipGraphExecUpdate(ready, graph, &differing, &result))
    CHECK(result == hipGraphExecUpdateSuccess)
    run(back, 5, 1);
    CHECK(second == 3)
    Kernel wrong(shift, device, 5);
    OK(hipGraphKernelNodeSetParams(doubled, &wrong.parameters))
    CHECK(hipGraphExecUpdate(ready, graph, &differing, &result) == hipErrorGraphExecUpdateFailure)
    CHECK(result == hipGraphExecUpdateErrorFunctionChanged && differing == doubled)

    // Fills.
    hipGraph_t fills;
    hipGraphNode_t fill;
    hipMemsetParams set{device, 4, 1, kCount * 4, 9, kCount};
    OK(hipGraphCreate(&fills, 0))
    OK(hipGraphAddMemsetNode(&fill, fills, nullptr, 0, &set))
    set.value = 11;
    OK(hipGraphMemsetNodeSetParams(fill, &set))
    CHECK(hipGraphHostNodeSetParams(fill, &host) == hipErrorInvalidValue)
    hipGraphExec_t filling;
    OK(hipGraphInstantiate(&filling, fills, nullptr, nullptr, 0))
    OK(hipGraphLaunch(filling, nullptr))
    OK(hipMemcpy(back.data(), device, kCount * 4, hipMemcpyDeviceToHost))
    CHECK(back[0] == 11 && back[kCount - 1] == 11)
    for(const auto executable : {ready, filling})
        OK(hipGraphExecDestroy(executable))
    for(const auto one : {graph, child, fills})
        OK(hipGraphDestroy(one))
    OK(hipFree(device))
    (void)hipGetLastError();
    printf("%d failed\n", failed);
    return failed != 0;
}
