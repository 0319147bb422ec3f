// SPDX-License-Identifier: MIT
// A program without kernels that frees one allocation of two, the other one if there are arguments.
#include <hip/hip_runtime.h>

struct Kept
{
    void* memory = nullptr;
    bool freed   = false;
    ~Kept()
    {
        if(freed)
            (void)hipFree(memory);
    }
} kept;

int main(int count, char**)
{
    void* other = nullptr;
    (void)hipMalloc(&other, 64);
    (void)hipMalloc(&kept.memory, 4096);
    kept.freed = count > 1;
    (void)hipFree(other);
}
