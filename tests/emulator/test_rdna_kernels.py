# SPDX-License-Identifier: MIT
"""Whole kernels on RDNA: HIP C++, a CK Tile GEMM on WMMA, barriers of both kinds."""

import ctypes
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from cklang import emulator
from cklang.arch import arch as spec_of
from cklang.build.steps import compile_inline
from cklang.toolchain.compilers import find_ck_tree, find_toolchain
from tests.support.assembly import Module, assembled, hip, ok
from tests.support.rdna import BARRIERS, GFX11, GFX12, GROUP, RDNA, WAITS

pytestmark = pytest.mark.usefixtures("emulator")

_HIP = """
#include <hip/hip_runtime.h>

__device__ int lanes() { return __builtin_amdgcn_wavefrontsize(); }

extern "C" __global__ void block_sums(const float* x, float* y, int n)
{
    __shared__ float part[32];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = i < n ? x[i] : 0.0f;
    for(int step = lanes() / 2; step > 0; step /= 2)
        sum += __shfl_down(sum, step);
    if(threadIdx.x % lanes() == 0)
        part[threadIdx.x / lanes()] = sum;
    __syncthreads();
    if(threadIdx.x == 0)
    {
        for(int w = 1; w < blockDim.x / lanes(); ++w)
            sum += part[w];
        y[blockIdx.x] = sum;
    }
}

extern "C" __global__ void places(unsigned* y, const unsigned*, int)
{
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    const unsigned item  = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    y[block * (blockDim.x * blockDim.y * blockDim.z) + item] =
        blockIdx.x | blockIdx.y << 4 | blockIdx.z << 8 | threadIdx.x << 12 | threadIdx.y << 16 |
        threadIdx.z << 20;
}

extern "C" __global__ void histogram(const unsigned* x, unsigned* bins, int n)
{
    __shared__ unsigned local[16];
    if(threadIdx.x < 16)
        local[threadIdx.x] = 0;
    __syncthreads();
    for(int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        atomicAdd(&local[x[i] % 16], 1u);
    __syncthreads();
    if(threadIdx.x < 16)
        atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// An array whose index is not known lies in scratch; odd and even lanes go different ways.
extern "C" __global__ void sorted(const int* x, int* y, int n)
{
    int kept[24];
    const int i = threadIdx.x;
    for(int k = 0; k < n; ++k)
        kept[(k * 7 + i) % n] = x[i * n + k];
    for(int k = 1; k < n; ++k)
        for(int j = k; j > 0 && ((i & 1) ? kept[j - 1] < kept[j] : kept[j - 1] > kept[j]); --j)
        {
            const int held = kept[j];
            kept[j]        = kept[j - 1];
            kept[j - 1]    = held;
        }
    for(int k = 0; k < n; ++k)
        y[i * n + k] = kept[k];
}

extern "C" __global__ void arithmetic(const float* x, float* y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if(i >= n)
        return;
    const float a = x[i];
    const _Float16 h = static_cast<_Float16>(a);
    y[4 * i]     = expf(a) / (1.0f + a * a);
    y[4 * i + 1] = sqrtf(a * a + 1.0f) * static_cast<float>(h * h + h);
    y[4 * i + 2] = static_cast<float>(static_cast<double>(a) / 3.0 + 1e-12);
    y[4 * i + 3] = static_cast<float>(__popcll(__ballot(a > 0)) + (int)a % 7);
}
"""


@pytest.fixture(scope="module", params=RDNA)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Module:
    gpu: str = request.param
    folder = tmp_path_factory.mktemp(gpu)
    step = compile_inline(_HIP, gpu, folder, find_toolchain(), find_ck_tree())
    return Module(step.file.read_bytes(), gpu)


def _launch(
    module: Module,
    name: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    *arguments: np.ndarray | int,
) -> str:
    """Run a kernel on pointers and then ints; the status of waiting for it."""
    ok(hip().hipSetDevice(module.device))
    function = ok(hip().hipModuleGetFunction(module.handle, name.encode()))
    kinds = "".join("Q" if isinstance(a, np.ndarray) else "i" for a in arguments)
    words = [a.ctypes.data if isinstance(a, np.ndarray) else a for a in arguments]
    packed = struct.pack(f"<{kinds}0Q", *words)
    buffer, size = ctypes.create_string_buffer(packed), ctypes.c_size_t(len(packed))
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
    ok(hip().hipModuleLaunchKernel(function, *grid, *block, 0, None, None, extra))
    status: str = hip().hipDeviceSynchronize()[0].name
    return status


def test_shuffles_and_shared_memory(program: Module) -> None:
    x = np.random.default_rng(0).integers(-8, 9, 1000).astype(np.float32)
    y = np.zeros(4, np.float32)
    assert _launch(program, "block_sums", (4, 1, 1), (256, 1, 1), x, y, len(x)) == "hipSuccess"
    np.testing.assert_array_equal(y, np.pad(x, (0, 24)).reshape(4, 256).sum(1))


def test_every_axis_of_grid_and_block(program: Module) -> None:
    grid, block = (3, 2, 4), (5, 4, 3)
    y = np.zeros(int(np.prod(grid)) * int(np.prod(block)), np.uint32)
    assert _launch(program, "places", grid, block, y, y, 0) == "hipSuccess"
    z, y_, x, tz, ty, tx = np.indices((*grid[::-1], *block[::-1])).reshape(6, -1)
    np.testing.assert_array_equal(y, x | y_ << 4 | z << 8 | tx << 12 | ty << 16 | tz << 20)


def test_atomics_on_both_memories(program: Module) -> None:
    x = np.random.default_rng(1).integers(0, 1 << 32, 5000, np.uint32)
    bins = np.zeros(16, np.uint32)
    assert _launch(program, "histogram", (3, 1, 1), (96, 1, 1), x, bins, len(x)) == "hipSuccess"
    np.testing.assert_array_equal(bins, np.bincount(x % 16, minlength=16))


def test_scratch_and_divergence(program: Module) -> None:
    x = np.random.default_rng(2).integers(-99, 99, (40, 24), np.int32)
    y = np.zeros_like(x)
    assert _launch(program, "sorted", (1, 1, 1), (40, 1, 1), x, y, 24) == "hipSuccess"
    want = np.sort(x, axis=1)
    want[1::2] = want[1::2, ::-1]
    np.testing.assert_array_equal(y, want)


def test_arithmetic_of_the_compiler(program: Module) -> None:
    x = np.random.default_rng(3).uniform(-20, 20, 96).astype(np.float32)
    y = np.zeros((96, 4), np.float32)
    assert _launch(program, "arithmetic", (3, 1, 1), (32, 1, 1), x, y, 96) == "hipSuccess"
    wide, half = x.astype(np.float64), x.astype(np.float16).astype(np.float64)
    np.testing.assert_allclose(y[:, 0], np.exp(wide) / (1 + wide**2), rtol=2e-6)
    product = np.float16(half * half + half).astype(np.float64)  # one rounding: fused
    np.testing.assert_allclose(y[:, 1], np.sqrt(wide**2 + 1) * product, rtol=2e-3)
    np.testing.assert_array_equal(y[:, 2], (wide / 3 + 1e-12).astype(np.float32))
    votes = (x.reshape(3, 32) > 0).sum(1).repeat(32)
    np.testing.assert_array_equal(y[:, 3], votes + np.fmod(np.trunc(x), 7))


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", RDNA)
def test_ck_tile_gemm_on_wmma(gpu: str, tmp_path: Path) -> None:
    """CK Tile's universal GEMM from its headers: whole tiles and ragged ones."""
    source = (Path(__file__).parent / "data" / "ck_wmma_gemm.hip").read_text("utf-8")
    if gpu == GFX12:
        source = "#define TYPES ck_tile::fp8_t, float, float\n" + source
    dtype, out = (ml_dtypes.float8_e4m3fn, np.float32) if gpu == GFX12 else (np.float16, np.float16)
    step = compile_inline(source, gpu, tmp_path, find_toolchain(), find_ck_tree())
    module, rng = Module(step.file.read_bytes(), gpu), np.random.default_rng(0)
    for m, n, k in ((128, 128, 64), (80, 112, 96)):
        a, b = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (n, k)))
        c = np.zeros((m, n), out)
        grid = (-(-m // 64) * -(-n // 64), 1, 1)
        assert _launch(module, "gemm", grid, (128, 1, 1), a, b, c, m, n, k) == "hipSuccess"
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64)).T
        bound = size * k * 2.0**-24 + np.abs(exact) * np.finfo(out).eps + 1e-7
        assert (np.abs(c - exact) <= bound).all()
        ran = emulator.fidelity(module.device)
        assert any(name.startswith("v_wmma_f32_16x16x16") for name in ran)


# Each wave writes its number; after the barrier it reads that of the wave before it.
_NEIGHBOUR = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_add_nc_u32 v2, 100, v0
  ds_store_b32 v1, v2
  {wait}
  {arrive}
  v_sub_nc_u32 v3, v0, 32
  v_and_b32 v3, 0x7f, v3
  v_lshlrev_b32 v3, 2, v3
  {leave}
  ds_load_b32 v4, v3
  {wait}
  s_mov_b32 s3, {group}
  s_lshl_b32 s3, s3, 9
  v_add_nc_u32 v1, s3, v1
  global_store_b32 v1, v4, s[6:7]
"""


@pytest.mark.parametrize("gpu", RDNA)
def test_barriers(gpu: str) -> None:
    arrive, _, leave = BARRIERS[gpu].partition("\n")
    body = _NEIGHBOUR.format(wait=WAITS[gpu], arrive=arrive, leave=leave, group=GROUP[gpu])
    module = assembled({"k": body}, gpu, lds=512, wave=32)
    output = np.zeros((3, 128), np.uint32)
    assert module.launch("k", output, output, grid=3, block=128) == "hipSuccess"
    want = 100 + (np.arange(128) - 32) % 128
    np.testing.assert_array_equal(output, np.broadcast_to(want, (3, 128)))


# The first wave to signal gets scc; the wave's number stands in ttmp8.
_FIRST = """
  s_load_b128 s[4:7], s[0:1], 0x0
  s_bfe_u32 s8, ttmp8, 0x50019
  s_barrier_signal_isfirst -1
  s_cselect_b32 s9, 1, 0
  s_barrier_wait -1
  s_barrier_signal_isfirst -1
  s_cselect_b32 s10, 1, 0
  s_barrier_wait -1
  v_mov_b32 v2, s9
  v_mov_b32 v3, s10
  v_mov_b32 v4, s8
  v_mul_u32_u24 v1, 12, v0
  s_wait_kmcnt 0x0
  global_store_b96 v1, v[2:4], s[6:7]
"""
# Wave 0 has signalled and looks at the barrier; the others wait for its flag. Then all look again.
_STATE = """
  s_load_b128 s[4:7], s[0:1], 0x0
  s_bfe_u32 s8, ttmp8, 0x50019
  v_mov_b32 v1, 0
  v_mov_b32 v2, 1
  s_barrier_signal 0
  s_barrier_signal_isfirst 0
  s_cselect_b32 s11, 1, 0
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc0 .Lpoll
  s_barrier_signal -1
  s_get_barrier_state s9, -1
  ds_store_b32 v1, v2
  s_branch .Lmeet
.Lpoll:
  ds_load_b32 v3, v1
  s_wait_dscnt 0x0
  v_readfirstlane_b32 s10, v3
  s_cmp_eq_u32 s10, 0
  s_cbranch_scc1 .Lpoll
  s_mov_b32 s9, 0
  s_barrier_signal -1
.Lmeet:
  s_barrier_wait -1
  s_get_barrier_state s10, -1
  v_mov_b32 v2, s9
  v_mov_b32 v3, s10
  v_mov_b32 v4, s11
  v_mul_u32_u24 v1, 12, v0
  s_wait_kmcnt 0x0
  global_store_b96 v1, v[2:4], s[6:7]
"""
_ENDS_EARLY = """
  s_bfe_u32 s8, ttmp8, 0x50019
  s_cmp_eq_u32 s8, 1
  s_cbranch_scc1 .Lend
  s_barrier_signal -1
  s_barrier_wait -1
.Lend:
"""
_BAD = {
    "unsignalled": ("  s_barrier_wait -1\n", "a barrier that it has not signalled"),
    "twice": ("  s_barrier_signal -1\n  s_barrier_signal -1\n", "twice without waiting"),
    "named": ("  s_barrier_signal 3\n", "barrier 3 is not emulated"),
    "exec_hi": ("  s_mov_b64 exec, -1\n", "exec_hi, which a wave of 32 lanes does not have"),
}


def test_split_barrier_of_gfx12() -> None:
    bodies = {"first": _FIRST, "ends_early": _ENDS_EARLY, **{k: v[0] for k, v in _BAD.items()}}
    module = assembled(bodies, GFX12, wave=32)
    output = np.zeros((128, 3), np.uint32)
    assert module.launch("first", output, output, block=128) == "hipSuccess"
    waves = output.reshape(4, 32, 3)
    assert (waves == waves[:, :1]).all()
    assert waves[:, 0, :2].sum(0).tolist() == [1, 1]  # one wave was the first, each time
    np.testing.assert_array_equal(waves[:, 0, 2], range(4))
    assert module.launch("ends_early", output, output, block=128) == "hipSuccess"
    for name, (_, message) in _BAD.items():
        assert message in module.fault(name, output, output)


def test_the_state_of_a_barrier() -> None:
    """Members from bit 4 on, signals from bit 16 on; number 0 is no barrier."""
    module = assembled({"k": _STATE}, GFX12, lds=64, wave=32)
    output = np.zeros((96, 3), np.uint32)
    assert module.launch("k", output, output, block=96) == "hipSuccess"
    waves = output.reshape(3, 32, 3)[:, 0]
    assert waves[0, 0] == 1 << 16 | 3 << 4 | 1
    later = waves[:, 1]  # nobody has signalled again, and who has ended is no member
    assert (later & 0xFFFF_000F == 1).all()
    assert (later >> 4).max() == 3
    assert not waves[:, 2].any()


# Each pass of the loop gives its number to the lanes that it has.
_HALVES = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_mov_b32 v2, 0
  s_mov_b32 s8, 0
  s_mov_b32 s10, 55
  s_mov_b32 exec_lo, {low}
  s_mov_b32 exec_hi, {high}
  s_subvector_loop_begin s10, .Lend{number}
.Lbody{number}:
  s_add_u32 s8, s8, 1
  v_mov_b32 v2, s8
  s_subvector_loop_end s10, .Lbody{number}
.Lend{number}:
  s_mov_b64 s[12:13], exec
  s_mov_b64 exec, -1
  v_mov_b32 v3, s12
  v_mov_b32 v4, s13
  v_mul_u32_u24 v1, 12, v0
  s_waitcnt lgkmcnt(0)
  global_store_b96 v1, v[2:4], s[6:7]
"""


def test_a_loop_over_the_halves_of_a_wave() -> None:
    masks = [(0x0F0F0F0F, 0x7000_0001), (0xF, 0), (0, 0xF0), (0, 0)]
    bodies = {
        f"k{n}": _HALVES.format(low=low, high=high, number=n) for n, (low, high) in enumerate(masks)
    }
    module = assembled(bodies, GFX11, wave=64)
    lane = np.arange(64)
    for n, (low, high) in enumerate(masks):
        output = np.zeros((64, 3), np.uint32)
        assert module.launch(f"k{n}", output, output) == "hipSuccess"
        enabled = ((low | high << 32) >> lane.astype(object) & 1).astype(np.uint32)
        passes = np.where(lane < 32, 1, 2 if low else 1)
        np.testing.assert_array_equal(output[:, 0], enabled * passes)
        assert output[0, 1:].tolist() == [low, high]  # exec is as before


# Masks take two registers, and on gfx11 a permute stays in its half of the wave.
_WIDE = """
  s_load_b128 s[4:7], s[0:1], 0x0
  v_mov_b32 v5, 0
  v_cmp_lt_u32 vcc, 40, v0
  v_cndmask_b32 v2, 1, 2, vcc
  v_mov_b32 v3, v0
  v_permlane64_b32 v3, v0
  v_mov_b32 v4, 4 * 33
  ds_bpermute_b32 v4, v4, v0
  s_mov_b64 exec, 0xf000000f
  s_mov_b32 exec_hi, 1
  v_mov_b32 v5, 7
  s_mov_b64 exec, -1
  v_lshlrev_b32 v1, 4, v0
  {wait}
  global_store_b128 v1, v[2:5], s[6:7]
"""


@pytest.mark.parametrize("gpu", RDNA)
def test_waves_of_64_lanes(gpu: str) -> None:
    module = assembled({"k": _WIDE.format(wait=WAITS[gpu])}, gpu, wave=64)
    output = np.zeros((64, 4), np.uint32)
    assert module.launch("k", output, output) == "hipSuccess"
    lane = np.arange(64)
    np.testing.assert_array_equal(output[:, 0], np.where(lane > 40, 2, 1))
    np.testing.assert_array_equal(output[:, 1], lane ^ 32)
    np.testing.assert_array_equal(output[:, 2], lane // 32 * 32 + 1 if gpu == GFX11 else 33)
    np.testing.assert_array_equal(output[:, 3], np.where((0x1F000000F >> lane) & 1, 7, 0))


_SPIN = """
  s_load_b128 s[4:7], s[0:1], 0x0
  {wait}
.Lagain:
  s_load_b32 s8, s[4:5], 0x0
  {wait}
  s_cmp_eq_u32 s8, 0
  s_cbranch_scc1 .Lagain
"""


@pytest.mark.parametrize("gpu", RDNA)
def test_a_deadlock_is_reported(gpu: str) -> None:
    module = assembled({"k": _SPIN.format(wait=WAITS[gpu])}, gpu, wave=32)
    flag = np.zeros(4, np.uint32)
    emulator.deadlock_threshold(32)
    message = module.fault("k", flag, flag, block=64)
    assert "deadlock: " in message
    assert "wave 1 repeats" in message
    assert any(name in message for name in ("s_load_b32", "s_wait", "s_cbranch_scc1"))


@pytest.mark.parametrize(("gpu", "wave", "blocks"), [(GFX11, 32, 10), (GFX12, 64, 5)])
def test_occupancy_of_a_multiprocessor(gpu: str, wave: int, blocks: int) -> None:
    """128 registers become 144 of the 1,536 rows of a SIMD, or 132 of 768 with 64 lanes."""
    module = assembled({"k": "  s_nop 0"}, gpu, wave=wave)
    ok(hip().hipSetDevice(module.device))
    function = ok(hip().hipModuleGetFunction(module.handle, b"k"))
    occupancy = hip().hipModuleOccupancyMaxActiveBlocksPerMultiprocessor
    spec = spec_of(gpu)
    simds = spec.simds_per_cu * spec.compute_units_per_multiprocessor
    assert ok(occupancy(function, wave, 0)) == blocks * simds
    # Two work groups that take all they may have of LDS fit into the two compute units.
    assert ok(occupancy(function, wave, spec.lds_bytes)) == 2
