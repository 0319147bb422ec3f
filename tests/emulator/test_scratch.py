# SPDX-License-Identifier: MIT
"""Private memory at any byte: what compilers make of packed structures that they keep there."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from cklang import emulator
from cklang.emulator.hipcc import driver
from tests.support.assembly import DEVICES, Module

pytestmark = pytest.mark.usefixtures("emulator")

# `place` is not known when it is compiled and the array's address is given away, so the array is in
# memory; the compiler reaches volatile variables by flat addresses, others as scratch.
_HEAD = """
#include <hip/hip_runtime.h>
template <class T> struct __attribute__((packed)) Packed { T value; };
"""
_KERNEL = """
template <class T> __device__ void NAME_move(unsigned char* bytes, int from, int to)
{
    auto* source = reinterpret_cast<QUALIFIER Packed<T>*>(bytes + from);
    auto* target = reinterpret_cast<QUALIFIER Packed<T>*>(bytes + to);
    target->value = source->value;
}
extern "C" __global__ void NAME(const int* place, unsigned char* out)
{
    unsigned char local[64];
    for(int n = 0; n < 64; ++n) local[n] = n * 3 + threadIdx.x;
    asm volatile("" ::"v"(local) : "memory");
    const int from = place[threadIdx.x] & 31, to = 32 + (place[threadIdx.x] >> 5 & 15);
    switch(place[threadIdx.x] >> 9)
    {
    case 0: NAME_move<unsigned short>(local, from, to); break;
    case 1: NAME_move<unsigned>(local, from, to); break;
    default: NAME_move<unsigned long long>(local, from, to); break;
    }
    asm volatile("" ::"v"(local) : "memory");
    for(int n = 0; n < 64; ++n) out[threadIdx.x * 64 + n] = local[n];
}
"""
_KERNELS = {"flat": "volatile", "scratch": ""}
_SOURCE = _HEAD + "".join(
    _KERNEL.replace("NAME", name).replace("QUALIFIER", word) for name, word in _KERNELS.items()
)
LANES = 32


@pytest.mark.parametrize("arch", DEVICES)
def test_unaligned_accesses(arch: str, tmp_path: Path) -> None:
    """Every offset of 2, 4 and 8 bytes in a dword, by each lane at another place."""
    source, output = tmp_path / "bytes.hip", tmp_path / "bytes.co"
    source.write_text(_SOURCE)
    words = ["-O1", f"--offload-arch={arch}", "--offload-device-only", "-c", str(source)]
    driver.build([*words, "-o", str(output)], print)
    module = Module(output.read_bytes(), arch)
    text = emulator.disassemble(arch, output.read_bytes())
    assert "flat_load_" in text
    assert ("buffer_load_" if arch == "gfx90a" else "scratch_load_") in text
    rng = np.random.default_rng(0)
    for name, (kind, size) in product(_KERNELS, enumerate((2, 4, 8))):
        start, end = rng.integers(0, 25, LANES), rng.integers(0, 16, LANES)
        start[:4], end[:16] = range(4), range(16)
        place = (start | end << 5 | kind << 9).astype(np.int32)
        out = np.zeros((LANES, 64), np.uint8)
        assert module.launch(name, place, out, block=LANES) == "hipSuccess"
        want = (np.arange(64) * 3 + np.arange(LANES)[:, None]).astype(np.uint8)
        for lane in range(LANES):
            to = 32 + end[lane]
            want[lane, to : to + size] = want[lane, start[lane] : start[lane] + size].copy()
        np.testing.assert_array_equal(out, want)
