# SPDX-License-Identifier: MIT
# needs: emulator

# %% [markdown]
# # Debugging a race
#
# A kernel that is right on most days: find the missing barrier with `cklang check`, and a read of memory that nobody wrote as well.
#
# The kernel below reverses each block of 256 numbers through LDS, the memory that a workgroup shares. Each thread stores one number and loads the number of another thread. Between the two, all threads must
# have stored: `__syncthreads()`. It is missing.

# %%
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = r"""
#include <cstdio>
#include <hip/hip_runtime.h>

__global__ void reverse(const int* from, int* to)
{
    __shared__ int block[256];
    if(threadIdx.x < STORED)
        block[threadIdx.x] = from[blockIdx.x * 256 + threadIdx.x];
    BARRIER;
    to[blockIdx.x * 256 + threadIdx.x] = block[255 - threadIdx.x];
}

int main()
{
    int host[1024], *from, *to;
    for(int i = 0; i < 1024; ++i)
        host[i] = i;
    (void)hipMalloc(&from, sizeof(host));
    (void)hipMalloc(&to, sizeof(host));
    (void)hipMemcpy(from, host, sizeof(host), hipMemcpyHostToDevice);
    reverse<<<4, 256>>>(from, to);
    (void)hipMemcpy(host, to, sizeof(host), hipMemcpyDeviceToHost);
    int wrong = 0;
    for(int i = 0; i < 1024; ++i)
        wrong += host[i] != i / 256 * 256 + 255 - i % 256;
    std::printf("%d wrong\n", wrong);
    (void)hipFree(from);
    (void)hipFree(to);
    return 0;
}
"""

folder = Path(tempfile.mkdtemp())
(folder / "reverse.cpp").write_text(SOURCE)


def cklang(*words):
    """Run the command line of cklang in the folder, and return what it prints."""
    command = [sys.executable, "-m", "cklang.cli.main", *words]
    environment = {**os.environ, "CKLANG_FAULT": "continue"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    return (done.stdout + done.stderr).strip()


def build(name, barrier="__syncthreads()", stored=256):
    """Compile the program with a barrier or without, with line tables (-g)."""
    words = [f"-DBARRIER={barrier}", f"-DSTORED={stored}"]
    print(cklang("hipcc", "reverse.cpp", "-g", "-O2", *words, "-o", name), end="")


build("raced", barrier="(void)0")

# %% [markdown]
# ## The check
#
# `cklang check` runs a program with checks of every access. `races` remembers, for each word of LDS, who stored and who loaded it since the last barrier. It reports a pair that no barrier orders
# even if the result was right this time: the order of the waves does not matter.

# %%
report = cklang("check", "--only", "races", "./raced")
for line in report.splitlines():
    if "race" in line or "reverse.cpp" in line:
        print(re.sub(r"/\S*/", "", line).strip())
#: race in local memory: ds_write_b32 writes byte 0x200, which wave 1 has read at pc 0x68: ds_read_b32 v3, v1 offset:1020 (reverse.cpp:11), and no barrier is between
#: at reverse.cpp:9

# %% [markdown]
# The report names both instructions and, because of `-g`, their lines: the store to `block` and the load of another thread's number.
#
# ## The remedy
#
# With the barrier the program passes all checks.

# %%
build("ordered")
print(cklang("check", "./ordered"))
#: 0 wrong

# %% [markdown]
# ## Other checks
#
# | `--only` | finds |
# |---|---|
# | `waits` | a register that is used before the load into it has arrived |
# | `races` | accesses of LDS that no barrier orders |
# | `global_races` | accesses of two workgroups that no fence and atomic operation orders |
# | `uninitialized` | reads of memory that nobody wrote |
# | `memory` | accesses beyond the end of an allocation |
# | `hazards` | wait states that an instruction needs and does not have |
#
# Here the last thread stores nothing, and the first one loads what nobody has written.

# %%
build("unwritten", stored=255)
report = cklang("check", "--only", "uninitialized", "./unwritten")
for line in report.splitlines():
    if "uninitialized" in line or "reverse.cpp" in line:
        print(re.sub(r"/\S*/", "", line).strip())
#: uninitialized local memory: ds_read_b32 reads byte 0x3fc, which the workgroup has not written
#: at reverse.cpp:11

# %% [markdown]
# The same checks run in Python on the kernels of ops: `CKLANG_SANITIZE=all python script.py` (`docs/emulator_checks.md`).
