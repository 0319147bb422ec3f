// SPDX-License-Identifier: MIT
// Memory that kernels take and give back, objects with virtual functions in it, and launches between events.
#include <hip/hip_ext.h>

#include <cstdio>
#include <vector>

constexpr int threads = 256, groups = 8, rounds = 6;

__device__ unsigned failures;
#define CHECK(condition)                                                                   \
    if(!(condition))                                                                       \
        atomicAdd(&failures, 1u), printf("FAILED at %d: %s\n", __LINE__, #condition);

struct Node
{
    Node* next;
    int value;
};

struct Shape
{
    __device__ virtual float area() const = 0;
    __device__ virtual ~Shape() {}
};
struct Square : Shape
{
    float side;
    __device__ explicit Square(float s) : side(s) {}
    __device__ float area() const override { return side * side; }
};
struct Rectangle : Square
{
    float height;
    __device__ Rectangle(float s, float h) : Square(s), height(h) {}
    __device__ float area() const override { return side * height; }
};

// Each thread builds a list of its own, twice, from blocks of different sizes that it has given back.
__global__ void lists(long long* sums)
{
    const int me = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    for(int round = 0; round < 2; ++round)
    {
        Node* first = nullptr;
        for(int n = 0; n < rounds; ++n)
        {
            Node* node = static_cast<Node*>(malloc(sizeof(Node) + 16 * (me % 5)));
            CHECK(node != nullptr && reinterpret_cast<size_t>(node) % 16 == 0)
            if(node == nullptr)
                return;
            *node = {first, me + n};
            first = node;
        }
        __syncthreads();
        long long sum = 0;
        for(const Node* node = first; node != nullptr; node = node->next)
            sum += node->value;
        sums[me] = sum;
        while(first != nullptr)
        {
            Node* next = first->next;
            free(first);
            first = next;
        }
    }
}

__global__ void objects(float* areas)
{
    const int me = static_cast<int>(threadIdx.x);
    Shape* shape = me % 2 ? new Square(float(me)) : static_cast<Shape*>(new Rectangle(float(me), 3));
    areas[me]    = shape->area();
    delete shape;
    int* many = new int[me + 1];
    many[me]  = me;
    CHECK(many[me] == me)
    delete[] many;
}

__global__ void too_much()
{
    CHECK(malloc(size_t{64} << 20) == nullptr)
    free(nullptr);
    void* large = malloc(size_t{3} << 20);
    CHECK(large != nullptr)
    free(large);
    CHECK(malloc(size_t{3} << 20) == large)
    free(large);
}

__global__ void scale(float* data, double factor, int count)
{
    const int n = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if(n < count)
        data[n] *= static_cast<float>(factor);
}

int main()
{
    const int count = threads * groups;
    long long* sums;
    float* data;
    hipMalloc(&sums, count * sizeof *sums);
    hipMalloc(&data, count * sizeof *data);
    lists<<<groups, threads>>>(sums);
    std::vector<long long> host(count);
    hipMemcpy(host.data(), sums, count * sizeof *sums, hipMemcpyDeviceToHost);
    int wrong = 0;
    for(int n = 0; n < count; ++n)
        wrong += host[n] != static_cast<long long>(rounds) * n + rounds * (rounds - 1) / 2;
    objects<<<1, threads>>>(data);
    std::vector<float> areas(count);
    hipMemcpy(areas.data(), data, threads * sizeof *data, hipMemcpyDeviceToHost);
    for(int n = 0; n < threads; ++n)
        wrong += areas[n] != (n % 2 ? float(n) * n : 3.0f * n);
    too_much<<<1, 1>>>();
    hipEvent_t start, stop;
    hipEventCreate(&start);
    hipEventCreate(&stop);
    hipExtLaunchKernelGGL(scale, dim3(1), dim3(threads), 0, nullptr, start, stop, 0, data, 2, threads);
    hipEventSynchronize(stop);
    float milliseconds = -1;
    wrong += hipEventElapsedTime(&milliseconds, start, stop) != hipSuccess || milliseconds < 0;
    hipMemcpy(areas.data(), data, threads * sizeof *data, hipMemcpyDeviceToHost);
    for(int n = 0; n < threads; ++n)
        wrong += areas[n] != (n % 2 ? float(n) * n : 3.0f * n) * 2;
    unsigned failed = 1;
    hipMemcpyFromSymbol(&failed, failures, sizeof failed);
    std::printf("%u failed, %d wrong\n", failed, wrong);
    return failed != 0 || wrong != 0;
}
