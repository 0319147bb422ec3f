# SPDX-License-Identifier: MIT
"""Kernels that Triton compiled, against NumPy: code objects of a compiler we did not write."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.support.read_back import read_back
from tests.support.triton_kernels import FOLDER, MADE, run

pytestmark = pytest.mark.usefixtures("emulator")

GPUS = ("gfx942", "gfx950", "gfx1100", "gfx1201")

_FP8 = {"fp8e4b8": ml_dtypes.float8_e4m3fnuz, "fp8e4nv": ml_dtypes.float8_e4m3fn}
_TYPES = {
    "fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "i8": np.int8,
    "i32": np.int32, "i16": np.int16, "i64": np.int64, "fp64": np.float64, **_FP8,
}  # fmt: skip


def _types(gpu: str, name: str) -> list[Any]:
    return [_TYPES[kind[1:]] for kind in MADE[gpu][name]["arguments"] if kind[0] == "*"]


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: type) -> np.ndarray:
    if np.issubdtype(dtype, np.integer):
        return rng.integers(-100, 100, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def _of(kind: str) -> list[tuple[str, str]]:
    return [(gpu, name) for gpu in GPUS for name in MADE[gpu] if name.startswith(kind)]


@pytest.mark.parametrize(("gpu", "name"), _of("gemm"))
def test_gemm(gpu: str, name: str) -> None:
    """Full and ragged tiles in every direction."""
    rng = np.random.default_rng(1)
    left, right, out = _types(gpu, name)
    for m, n, k in ((64, 64, 64), (80, 112, 48)):
        a, b = _random(rng, (m, k), left), _random(rng, (k, n), right)
        c = np.zeros((m, n), out)
        run(gpu, name, (-(-m // 64), -(-n // 64)), a, b, c, m, n, k)
        if out is np.int32:
            np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32))
        else:
            exact = a.astype(np.float64) @ b.astype(np.float64)
            size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
            bound = size * k * 2.0**-24 + np.abs(exact) * float(ml_dtypes.finfo(out).eps) + 1e-7
            assert (np.abs(c.astype(np.float64) - exact) <= bound).all()


@pytest.mark.parametrize(("gpu", "name"), _of("softmax"))
def test_softmax(gpu: str, name: str) -> None:
    x = (4 * np.random.default_rng(2).standard_normal((3, 1000))).astype(_types(gpu, name)[0])
    y = np.zeros_like(x)
    run(gpu, name, (3, 1), x, y, 1000)
    weight = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    exact = weight / weight.sum(1, keepdims=True)
    np.testing.assert_allclose(y, exact, rtol=2 * np.finfo(x.dtype).eps + 4e-6, atol=1e-7)


@pytest.mark.parametrize(("gpu", "name"), _of("attention"))
def test_attention(gpu: str, name: str) -> None:
    rng = np.random.default_rng(3)
    dtype, heads, length, depth = _types(gpu, name)[0], 2, 128, 64
    q, k, v = (_random(rng, (heads, length, depth), dtype) for _ in range(3))
    o = np.zeros_like(q)
    run(gpu, name, (length // 64, heads), q, k, v, o, length, math.log2(math.e) / 8)
    score = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 2, 1) / 8
    if "causal" in name:
        score = np.where(np.tri(length, dtype=bool), score, -np.inf)
    share = np.exp(score - score.max(2, keepdims=True))
    exact = share / share.sum(2, keepdims=True) @ v.astype(np.float64)
    # The shares are rounded to the inputs' type, and so is the result.
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(o.astype(np.float64), exact, rtol=eps, atol=3 * eps)


KINDS = {"gemm": test_gemm, "softmax": test_softmax, "attention": test_attention}


def all_of(kind: str, gpu: str) -> None:
    """Run every kernel of a kind as its test does, with the checks that are on."""
    names = [name for name in MADE[gpu] if name.startswith(kind)]
    assert names
    for name in names:
        KINDS[kind](gpu, name)


@pytest.mark.parametrize("gpu", MADE)
def test_the_assembler_agrees_on_every_instruction(gpu: str) -> None:
    for name in MADE[gpu]:
        read_back((FOLDER / gpu / f"{name}.hsaco").read_bytes(), gpu)


@pytest.mark.parametrize(("gpu", "name"), _of("scan"))
def test_scan(gpu: str, name: str) -> None:
    """Sums along a row go from lane to lane, from wave to wave and through LDS."""
    dtype = _types(gpu, name)[0]
    x = np.random.default_rng(4).integers(-9, 10, (3, 500)).astype(dtype)
    y = np.zeros_like(x)
    run(gpu, name, (3, 1), x, y, 500)
    np.testing.assert_array_equal(y, x.cumsum(1) + 2 * x[:, ::-1].cumsum(1)[:, ::-1])


@pytest.mark.parametrize("gpu", GPUS)
def test_sort(gpu: str) -> None:
    x = np.random.default_rng(5).permuted(
        np.tile(np.arange(-99, 157, dtype=np.int32), (2, 1)), axis=1
    )
    y = np.zeros((2, 257), np.int32)
    run(gpu, "sort_i32", (2, 1), x, y, 256)
    np.testing.assert_array_equal(y[:, :256], np.sort(x, axis=1))
    np.testing.assert_array_equal(y[:, 256], x.argmax(1))


@pytest.mark.parametrize("gpu", GPUS)
def test_norm(gpu: str) -> None:
    rng = np.random.default_rng(6)
    x, weight = (rng.standard_normal(shape).astype(np.float16) for shape in ((5, 400), (400,)))
    y, total = np.zeros_like(x), np.zeros(1, np.float32)
    run(gpu, "norm_f16", (5, 1), x, weight, y, total, 400)
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    exact = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5) * weight
    np.testing.assert_allclose(y, exact, rtol=2e-3, atol=1e-5)
    np.testing.assert_allclose(total[0], wide.mean(1).sum(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("gpu", GPUS)
def test_histogram(gpu: str) -> None:
    x = np.random.default_rng(7).integers(0, 16, 1000, np.int32)
    y = np.zeros(16, np.int32)
    run(gpu, "histogram", (4, 1), x, y, 1000)
    np.testing.assert_array_equal(y, np.bincount(x, minlength=16))


@pytest.mark.parametrize(("gpu", "name"), _of("functions"))
def test_functions(gpu: str, name: str) -> None:
    """What the compiler makes of divisions, transcendental functions, rounding and conversions."""
    rng, dtype, count = np.random.default_rng(8), _types(gpu, name)[0], 300
    x, y = ((4 * rng.standard_normal(count)).astype(dtype) for _ in range(2))
    out = np.zeros((8, count), dtype)
    run(gpu, name, (3, 1), x, y, out, count)
    a, b = x.astype(np.float64), y.astype(np.float64)
    third = (a * 3) if dtype is np.float64 else (x * np.float32(3)).astype(np.float64)
    exact = (
        a / b,
        np.exp(a) / np.sqrt(b * b + 1),
        np.log(a * a + 1) - np.abs(b),
        np.floor(third) + np.ceil(b / 7),
        np.where(a > b, np.minimum(a, 0.5), np.maximum(b, -0.5)),
        a * b + (x - y),
        np.trunc(x * dtype(100)) + np.abs(b),
        x.astype(np.float16).astype(float) * y.astype(ml_dtypes.bfloat16).astype(float),
    )
    loose = 1e-6 if dtype is np.float32 else 1e-13
    for n, want in enumerate(exact):
        atol = loose * 10 if n in {2, 5} else 0  # sums that cancel
        np.testing.assert_allclose(out[n], want, rtol=4 * loose, atol=atol, err_msg=str(n))


@pytest.mark.parametrize(("gpu", "name"), _of("integers"))
def test_integers(gpu: str, name: str) -> None:
    rng, dtype, count = np.random.default_rng(9), _types(gpu, name)[0], 300
    info = np.iinfo(dtype)
    x = rng.integers(info.min + 1, info.max, count, dtype)
    y = np.where(rng.random(count) < 0.5, x // 7, rng.integers(1, 99, count)).astype(dtype)
    y[y == 0] = 5
    out = np.zeros((8, count), dtype)
    run(gpu, name, (3, 1), x, y, out, count)
    shift = y & dtype(15)
    quotient = np.trunc(x.astype(np.longdouble) / y.astype(np.longdouble)).astype(dtype)
    with np.errstate(over="ignore"):
        wanted = (
            x * y,
            quotient,
            x - quotient * y,
            x << shift,
            x >> shift,
            x ^ y & ~x,
            x - y,
            x < y,
        )
    for n, want in enumerate(wanted):
        np.testing.assert_array_equal(out[n], want, str(n))
