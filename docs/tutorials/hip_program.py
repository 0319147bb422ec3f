# SPDX-License-Identifier: MIT
# needs: emulator

# %% [markdown]
# # A HIP program without a GPU
#
# Compile a C++ HIP program with `cklang hipcc` and run it on emulated GPUs, on a machine without ROCm and without a GPU.
#
# `cklang hipcc` takes the words of clang and of ROCm's `hipcc`. The program that it makes is an ordinary executable with AMD's machine code in it. It calls the HIP library; without a GPU that is the emulator.

# %%
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = r"""
#include <cstdio>
#include <vector>
#include <hip/hip_runtime.h>

__global__ void histogram(const unsigned char* text, int n, int* counts)
{
    __shared__ int own[8];
    if(threadIdx.x < 8)
        own[threadIdx.x] = 0;
    __syncthreads();
    for(int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&own[text[i] % 8], 1);
    __syncthreads();
    if(threadIdx.x < 8)
        atomicAdd(&counts[threadIdx.x], own[threadIdx.x]);
}

int main()
{
    hipDeviceProp_t device;
    (void)hipGetDeviceProperties(&device, 0);
    const int n = 100000;
    std::vector<unsigned char> text(n);
    for(int i = 0; i < n; ++i)
        text[i] = static_cast<unsigned char>(i * i % 251);
    unsigned char* input;
    int* counts;
    (void)hipMalloc(&input, n);
    (void)hipMalloc(&counts, 8 * sizeof(int));
    (void)hipMemcpy(input, text.data(), n, hipMemcpyHostToDevice);
    (void)hipMemset(counts, 0, 8 * sizeof(int));
    histogram<<<64, 256>>>(input, n, counts);
    int result[8], sum = 0;
    (void)hipMemcpy(result, counts, sizeof(result), hipMemcpyDeviceToHost);
    for(int each : result)
        sum += each;
    std::printf("%s, waves of %d lanes: %d of %d counted\n", device.gcnArchName, device.warpSize, sum, n);
    return sum != n;
}
"""

folder = Path(tempfile.mkdtemp())
(folder / "histogram.cpp").write_text(SOURCE)


def hipcc(*words):
    """Call the compiler driver, as a shell or a build script would."""
    command = [sys.executable, "-m", "cklang.cli.main", "hipcc", *words]
    subprocess.run(command, check=True, cwd=folder)


def execute(program, **environment):
    """Run a program and return what it prints."""
    words = {**os.environ, **environment}
    done = subprocess.run([folder / program], capture_output=True, text=True, env=words)
    return (done.stdout + done.stderr).strip()


hipcc("histogram.cpp", "-O2", "-o", "histogram")
print(execute("histogram"))
#: gfx942:sramecc+:xnack-, waves of 64 lanes: 100000 of 100000 counted

# %% [markdown]
# ## Other GPUs
#
# `--offload-arch` names GPUs, as in ROCm: one executable holds code for several. `CKLANG_GPUS` says what is in the machine. RDNA's waves have 32 lanes.

# %%
hipcc("histogram.cpp", "-O2", "--offload-arch=gfx950", "--offload-arch=gfx1201", "-o", "several")
print(execute("several", CKLANG_GPUS="gfx950"))
print(execute("several", CKLANG_GPUS="gfx1201"))
#: gfx950:sramecc+:xnack-, waves of 64 lanes: 100000 of 100000 counted
#: gfx1201, waves of 32 lanes: 100000 of 100000 counted

# %% [markdown]
# ## Look at the code
#
# `cklang disasm` prints the instructions of a program, a code object or a cached kernel.

# %%
command = [sys.executable, "-m", "cklang.cli.main", "disasm", str(folder / "histogram")]
text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
print("atomics in LDS:", "ds_add_u32" in text, "- barriers:", text.count("s_barrier"))
#: atomics in LDS: True - barriers: 2

# %% [markdown]
# The emulator executes these instructions one by one, and an instruction that it does not know is an error. `docs/emulator.md` lists what HIP programs may call.
