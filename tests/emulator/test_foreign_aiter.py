# SPDX-License-Identifier: MIT
"""Hand-written kernels of the amd-aiter package against NumPy: code objects that we did not make.

What a kernel takes is written in the package's own sources (``csrc/py_itfs_cu``): each argument
begins 16 bytes after the one before.
"""

import ctypes
import importlib.util
import struct
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tests.support.assembly import DEVICES, hip, ok
from tests.support.hip_programs import built, run_ranks

pytestmark = pytest.mark.usefixtures("emulator")

BF16, F32 = ml_dtypes.bfloat16, np.float32


def _package() -> Path:
    spec = importlib.util.find_spec("aiter_meta")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations)))


def code_of(file: str) -> bytes:
    """The code object of the package's file ``gfx.../name.co``."""
    return (_package() / "hsa" / file).read_bytes()


def launch(
    file: str, kernel: str, arguments: tuple[object, ...], grid: tuple[int, int, int], block: int
) -> None:
    """Run a kernel of the package's file ``gfx.../name.co``; arrays are passed by address."""
    ok(hip().hipSetDevice(DEVICES.index(file.split("/")[0])))
    module = ok(hip().hipModuleLoadData(code_of(file)))
    function = ok(hip().hipModuleGetFunction(module, kernel.encode()))
    words = bytearray(b"".join(_slot(argument) for argument in arguments))
    size = ctypes.c_size_t(len(words))
    buffer = (ctypes.c_char * len(words)).from_buffer(words)
    extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
    ok(hip().hipModuleLaunchKernel(function, *grid, block, 1, 1, 0, None, None, extra))
    ok(hip().hipDeviceSynchronize())
    ok(hip().hipModuleUnload(module))


def _slot(argument: object) -> bytes:
    if isinstance(argument, float):
        return struct.pack("<f12x", argument)
    address = argument.ctypes.data if isinstance(argument, np.ndarray) else argument
    return struct.pack("<Q8x", address)


def mangled(name: str) -> str:
    return f"_ZN5aiter{len(name)}{name}E"


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


def normals(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(BF16)


@pytest.mark.parametrize("quantised", [False, True])
def test_layer_norm(quantised: bool) -> None:
    """The package's "layer norm" adds up a mean and does not use it, so ours has none.

    Its waves reuse local memory without a barrier: run one after the other they would disagree.
    """
    rng = np.random.default_rng(0)
    rows, columns, epsilon = 6, 8192, 1e-5
    x, residual = normals(rng, rows, columns), normals(rng, rows, columns)
    weight, bias = normals(rng, columns), normals(rng, columns)
    scale = rng.normal(size=columns).astype(F32)
    total = np.zeros((rows, columns), BF16)
    out = np.zeros((rows, columns), np.int8 if quantised else BF16)
    out_scale = np.zeros(rows, F32)
    name = "layer_norm_qnt" if quantised else "layer_norm_kernel_func"
    arguments = (
        out, x, weight, bias, epsilon, rows, columns, total, residual, out_scale, scale,
    )  # fmt: skip
    file = f"gfx942/{'layer_norm_qnt' if quantised else 'layer_norm'}.co"
    launch(file, name, arguments, (rows // 2, 1, 1), 256)

    added = x.astype(F32) + residual.astype(F32)
    np.testing.assert_array_equal(total.view(np.uint16), added.view(np.uint32) >> 16)  # truncated
    root = np.sqrt((wide(added) ** 2).mean(axis=1, keepdims=True) + epsilon)
    want = wide(added) / root * wide(weight) + wide(bias)
    if quantised:
        want *= scale
        np.testing.assert_allclose(out_scale, abs(want).max(axis=1) / 127, rtol=1e-6)
        codes = want / out_scale[:, None]
        assert abs(out - codes).max() <= 1 + 1e-4  # truncated
    else:
        assert np.all(abs(wide(out) - want) <= 2.0**-7 * abs(want) + 1e-5)


@pytest.mark.parametrize(("experts", "chosen"), [(128, 8), (256, 6)])
def test_softmax_of_the_best(experts: int, chosen: int) -> None:
    rng = np.random.default_rng(1)
    tokens = 10
    gate = rng.normal(size=(tokens, experts)).astype(F32)
    weights, indices = np.zeros((tokens, chosen), F32), np.zeros((tokens, chosen), np.int32)
    name = f"topksoftmax_4x{experts}x{chosen}"
    arguments = (indices, weights, gate, tokens, experts, chosen, 1, chosen * 4)
    launch(f"gfx942/topksoftmax/{name}.co", mangled(name), arguments, (-(-tokens // 4), 1, 1), 256)
    best = np.argsort(-gate, axis=1)[:, :chosen]
    np.testing.assert_array_equal(indices, best)
    share = np.exp(wide(np.take_along_axis(gate, best, axis=1)))
    np.testing.assert_allclose(weights, share / share.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("tile", "split", "m", "n", "k"),
    [(32, 1, 40, 128, 256), (64, 2, 64, 64, 512), (96, 1, 100, 192, 128)],
)
def test_gemm(arch: str, tile: int, split: int, m: int, n: int, k: int) -> None:
    """bf16 to f32; with K split in two, both parts are added to C by atomic operations."""
    rng = np.random.default_rng(2)
    a, b, c = normals(rng, m, k), normals(rng, n, k), np.zeros((m, n), F32)
    name = f"bf16gemm_outf32_tn_{tile}x64_pf3"
    strides = (0, n * 4, 0, k * 2, 0, k * 2, 0)
    arguments = (c, 0, a, b, 1.0, 0.0, 0, *strides, m, n, k, split)
    grid = (n // 64, -(-m // tile), split)
    launch(f"{arch}/bf16gemm/{name}.co", mangled(name), arguments, grid, 256)
    size = abs(wide(a)) @ abs(wide(b)).T
    assert np.all(abs(c - wide(a) @ wide(b).T) <= (k + 2) * 2.0**-24 * size)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_attention(arch: str, causal: bool) -> None:
    """Forward, bf16, heads of 128; two heads of Q share one of K and V."""
    rng = np.random.default_rng(3)
    batch, heads, shared, length, depth, tile = 1, 2, 1, 384, 128, 256
    q = normals(rng, batch, length, heads, depth)
    k, v = (normals(rng, batch, length, shared, depth) for _ in range(2))
    out = np.zeros_like(q)
    log_sum = np.zeros((batch, heads, length), F32)
    scale = depth**-0.5
    row, row_kv, head = heads * depth * 2, shared * depth * 2, depth * 2  # strides in bytes
    arguments = (
        out, q, k, v, log_sum, scale, length, row, tile * row, head, length * row,
        heads // shared, row_kv, head, length * row_kv, 3 if causal else 5, 1, length, depth, depth,
        heads, row_kv, head, length * row_kv, row, head, length * row, 0, 0, length * 4, 0, 0,
    )  # fmt: skip
    name = "fmha_fwd_hd128_bf16" + "_causal" * causal + "_rtne" * (arch == "gfx942")
    folder = "fmha_v3_fwd/" + "MI300/" * (arch == "gfx942")
    tiles = -(-length // tile)
    grid = (-(-tiles // 2) if causal else tiles, heads, batch)
    launch(f"{arch}/{folder}{name[5:]}.co", mangled(name), arguments, grid, 512)

    score = np.einsum("bqhd,bkd->bhqk", wide(q), wide(k[:, :, 0])) * scale
    if causal:
        score = np.where(np.tri(length, dtype=bool), score, -np.inf)
    top = score.max(axis=-1, keepdims=True)
    share = np.exp(score - top)
    total = share.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(log_sum, (top + np.log(total))[..., 0], rtol=0, atol=1e-5)
    share /= total
    want = np.einsum("bhqk,bkd->bqhd", share, wide(v[:, :, 0]))
    size = np.einsum("bhqk,bkd->bqhd", share, abs(wide(v[:, :, 0])))
    # P and the result are rounded to bf16; gfx950's kernel truncates.
    assert np.all(abs(wide(out) - want) <= 2.0**-7 * (size + abs(want)))


def shuffled(weights: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """[n, k] bytes in the order of the package's ``shuffle_weight(layout=(rows, columns))``."""
    n, k = weights.shape
    parts = weights.reshape(n // rows, rows, k // (2 * columns), 2 * columns // 16, 16)
    return np.ascontiguousarray(parts.transpose(0, 2, 3, 1, 4)).reshape(n, k)


@pytest.mark.parametrize("tile", [128, 192])
def test_gemm_of_int8(tile: int) -> None:
    """A scale for each row and each column, and a bias."""
    rng = np.random.default_rng(4)
    m, n, k = 100, 256, 512
    a, b = (rng.integers(-128, 128, (extent, k)).astype(np.int8) for extent in (m, n))
    scale_a, scale_b = rng.uniform(0.5, 1, (m, 1)).astype(F32), rng.uniform(0.5, 1, n).astype(F32)
    bias, c = rng.normal(scale=1000, size=n).astype(F32), np.zeros((m, n), BF16)
    name = f"I8gemm_bf16_perTokenI8_BpreShuffle_{tile}x128"
    arguments = (c, a, shuffled(b, 32, 16), scale_a, scale_b, bias, m, n, k, k, k, n * 2, 1)
    launch(f"gfx942/i8gemm/{name}.co", mangled(name), arguments, (n // 128, -(-m // tile), 1), 256)
    product = (wide(a) @ wide(b).T) * scale_a * scale_b
    assert np.all(abs(wide(c) - (product + bias)) <= 2.0**-8 * (abs(product) + abs(bias)) + 1)


@pytest.mark.parametrize(("m", "tile"), [(32, 32), (100, 128)])
def test_gemm_of_fp8_with_block_scales(m: int, tile: int) -> None:
    """A scale for 1 × 128 elements of A and for 128 × 128 of B.

    The smaller tile's waves reuse local memory without a barrier, as those of the layer norm do.
    """
    rng = np.random.default_rng(5)
    n, k = 512, 1024
    a, b = (rng.normal(size=(extent, k)).astype(ml_dtypes.float8_e4m3fn) for extent in (m, n))
    scale_a = rng.uniform(0.5, 1, (k // 128, m)).astype(F32)
    scale_b = rng.uniform(0.5, 1, (n // 128, k // 128)).astype(F32)
    c = np.zeros((m, n), BF16)
    name = f"f8_block_scale_mi350_x{tile}"
    arguments = (
        c, a, shuffled(b.view(np.uint8), 16, 16), 0, scale_a, scale_b, 0, 0, 0, k, n, m, 1,
        k, k, n * 2, 0, 0, 0, 0, 0, 0, 0,
    )  # fmt: skip
    launch(f"gfx950/{name}.co", name, arguments, (n // 256, -(-m // tile), 1), 256)
    left = wide(a) * np.repeat(scale_a.T, 128, axis=1)
    right = wide(b) * np.repeat(np.repeat(scale_b, 128, axis=0), 128, axis=1)
    size = abs(left) @ abs(right).T
    assert np.all(abs(wide(c) - left @ right.T) <= 2.0**-8 * abs(left @ right.T) + 2.0**-18 * size)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("ranks", "count", "checks"),
    [(2, 4096, "all"), (4, 4096, "all"), (4, 98_304, ""), (8, 4096, ""), (4, 1000, "")],
)
def test_custom_all_reduce(tmp_path: Path, ranks: int, count: int, checks: str) -> None:
    """Processes with a GPU each: one stage, from 160 KB on two, and kernels without vectors."""
    folders = ("csrc/include", "3rdparty/composable_kernel/include")
    options = ("-std=c++20", "-DUSE_ROCM", "-w", *(f"-I{_package() / each}" for each in folders))
    program = built("aiter_ranks", "gfx942", options=options)
    numbers = np.random.default_rng(0).normal(size=(2, ranks, count)).astype(np.float16)
    for name, rounds in zip(("first", "second"), numbers, strict=True):
        for rank in range(ranks):
            rounds[rank].tofile(tmp_path / f"{name}{rank}")
    assert run_ranks([program, tmp_path, str(count)], ranks, CKLANG_SANITIZE=checks) == ranks * [
        (0, "", "")
    ]
    total = np.sum(numbers[1], axis=0, dtype=np.float32).astype(np.float16)
    for rank in range(ranks):
        np.testing.assert_array_equal(np.fromfile(tmp_path / f"sum{rank}", np.float16), total)
