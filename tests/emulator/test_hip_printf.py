# SPDX-License-Identifier: MIT
"""printf and assert in device code, through our HIP headers and the emulator's host calls."""

from pathlib import Path

import pytest

from tests.support.hip_programs import built, run

pytestmark = pytest.mark.usefixtures("emulator")

_GPUS = ("gfx942", "gfx90a", "gfx1201")
_PROGRAM = r"""
#include <hip/hip_runtime.h>
__global__ void quiet(int* x) { x[threadIdx.x] += 1; }
__global__ void say(unsigned most, float scale, const char* none)
{
    char local[] = "a string of more than eight letters";
    if(threadIdx.x < most)
        printf("lane %d: %.2f %5u|%-4x|%lld %p %c%% %s\n",
               int(threadIdx.x), scale * threadIdx.x, 7u, 0xabc, -5ll, (void*)16, 'z', local);
    if(blockIdx.x == 1 && threadIdx.x == 0)
        std::printf("block %u, %*d, %s\n", blockIdx.x, 4, 12, none);
}
__global__ void check(int limit) { assert(int(threadIdx.x) < limit && "too far"); }
int main()
{
    hipFuncAttributes plain;
    hipFuncGetAttributes(&plain, (const void*)quiet);
    say<<<2, 64>>>(2, 1.5f, nullptr);
    int error = hipDeviceSynchronize();
    printf("say: %d, scratch of quiet: %zu\n", error, plain.localSizeBytes);
    check<<<1, 64>>>(64);
    error = hipDeviceSynchronize();
    printf("check 64: %d\n", error);
    check<<<1, 64>>>(63);
    error = hipDeviceSynchronize();
    printf("check 63: %d\n", error);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("printf") / "say.hip"
    source.write_text(_PROGRAM)
    return built(source, *_GPUS)


@pytest.mark.parametrize("gpu", _GPUS)
def test_kernels_print_and_assert(program: Path, gpu: str) -> None:
    done = run(program, CKLANG_FAULT="continue", CKLANG_GPUS=gpu)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    text = "7|abc |-5 0x10 z% a string of more than eight letters"
    assert sorted(lines[:5]) == [
        "block 1,   12, (null)",
        *(f"lane {lane}: {1.5 * lane:.2f}     {text}" for lane in (0, 0, 1, 1)),
    ]
    assert lines[5:] == ["say: 0, scratch of quiet: 0", "check 64: 0", "check 63: 710"]
    assert done.stderr.count("Device-side assertion") == 1
    assert "say.hip:13: void check(int)" in done.stderr
    assert '`int(threadIdx.x) < limit && "too far"\' failed.' in done.stderr
