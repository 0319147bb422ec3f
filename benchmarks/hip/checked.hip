// SPDX-License-Identifier: MIT
// Kernels that hardly do more than access global memory, for what checks cost: all threads at one place, each
// thread at its own place again and again, and each thread in an array of its own.
#include <hip/hip_runtime.h>

/// The largest number of all threads, by a loop that compares and swaps.
extern "C" __global__ void largest(unsigned long long* at)
{
    const unsigned long long own = blockIdx.x * blockDim.x + threadIdx.x + 1;
    unsigned long long old = *at, expected;
    do
    {
        expected = old;
        old      = atomicCAS(at, expected, own > expected ? own : expected);
    } while(old != expected);
}

/// Adds 1 to neighbouring elements, some times.
extern "C" __global__ void raise(int* out, const int* in, int count, int times)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if(i >= count)
        return;
    for(int n = 0; n < times; ++n)
        out[i] = (n == 0 ? in[i] : out[i]) + 1;
}

/// The turning points of a series of each thread, then pairs of them from a stack: what is where depends on the values.
extern "C" __global__ void turns(const double* all, double* peaks, int* stack, double* results, int* sizes, int series, int length)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if(i >= series)
        return;
    const double* x = all + i * length;
    double* peak = peaks + i * length;
    int* top     = stack + i * length;
    double* out  = results + i * length;
    int last = 0, depth = -1, size = 0;
    peak[0] = x[0];
    for(int n = 1; n < length - 1; ++n)
        if((x[n] > peak[last] && x[n] > x[n + 1]) || (x[n] < peak[last] && x[n] < x[n + 1]))
            peak[++last] = x[n];
    for(int n = 0; n <= last; ++n)
    {
        top[++depth] = n;
        while(depth >= 2 && fabs(peak[top[depth - 1]] - peak[top[depth]]) >= fabs(peak[top[depth - 2]] - peak[top[depth - 1]]))
        {
            out[size++] = fabs(peak[top[depth - 2]] - peak[top[depth - 1]]);
            top[depth - 2] = top[depth];
            depth -= 2;
        }
    }
    sizes[i] = size;
}
