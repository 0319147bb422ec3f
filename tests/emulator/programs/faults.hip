// SPDX-License-Identifier: MIT
// What goes wrong in programs that never ask HIP for errors: argv[1] says what shall.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

__global__ void touch(int* x, int at)
{
    if(threadIdx.x == 3)
        x[at] = 7; // the faulty line
}
struct Pair { int* first; int count; };
__global__ void through(Pair pair) { pair.first[threadIdx.x] = pair.count; }
__global__ void forever(volatile int* x)
{
    unsigned state = threadIdx.x + 1;
    while(state != 0)
    {
        state = (state * 1664525u + 1013904223u) | 1u;
        asm volatile("" : "+v"(state));
    }
    x[0] = 1;
}

int main(int, char** words)
{
    const char* what = words[1];
    const auto is = [what](const char* word) { return std::strcmp(what, word) == 0; };
    int *device = nullptr, *registered = static_cast<int*>(std::malloc(4096)), count = 0;
    (void)hipGetDeviceCount(&count);
    hipDeviceProp_t properties;
    (void)hipGetDeviceProperties(&properties, count - 1);
    if(is("devices"))
        return std::printf("%d, the last is %.6s\n", count, properties.gcnArchName), 0;
    (void)hipMalloc(&device, 1000);
    if(is("freed"))
        (void)hipFree(device);
    if(is("registered"))
        (void)hipHostRegister(registered, 4096, 0);
    if(is("struct"))
        through<<<1, 64>>>(Pair{registered, 5});
    else if(is("forever"))
        forever<<<1, 64>>>(device);
    else
        touch<<<1, 64>>>(is("host") || is("registered") ? registered : device,
                         is("page") ? 4096 / 4 + 2 : is("beyond") ? 250 : 1);
    const hipError_t error = hipDeviceSynchronize();
    std::printf("%s %d\n", hipGetErrorName(error), registered[1]);
}
