// SPDX-License-Identifier: MIT
// A program that calls nothing of libm, with a kernel that the emulator needs libm for.
#include <hip/hip_runtime.h>

__global__ void powers(float* x) { x[threadIdx.x] = __builtin_amdgcn_exp2f(x[threadIdx.x]); }

int main()
{
    float host[64];
    for(int i = 0; i < 64; ++i)
        host[i] = i / 8.0f;
    float* x;
    if(hipMalloc(&x, sizeof host) != hipSuccess)
        return 2;
    (void)hipMemcpy(x, host, sizeof host, hipMemcpyHostToDevice);
    powers<<<1, 64>>>(x);
    (void)hipMemcpy(host, x, sizeof host, hipMemcpyDeviceToHost);
    return host[8] == 2 && host[24] == 8 ? 0 : 1;
}
