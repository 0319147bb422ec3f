# SPDX-License-Identifier: MIT
"""The programs with which the clock is compared do what those do that were timed."""

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hip_programs import ok
from norm_programs import WIDTH, Launch, Module, layer_norm, rotary

pytestmark = pytest.mark.usefixtures("compiler")

BF16 = ml_dtypes.bfloat16
Array = npt.NDArray[Any]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Module:
    return Module(tmp_path_factory.mktemp("norms"))


def drawn(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(BF16)


def run(module: Module, launch: Launch, inputs: Mapping[int, Array], results: set[int]) -> Any:
    """Return some operands after a launch, by the number of their parameter."""
    hip, copy = module.hip, module.hip.hipMemcpyKind
    memory = [int(ok(hip.hipMalloc(size))) for size in launch.bytes]
    for at, array in inputs.items():
        ok(hip.hipMemcpy(memory[at], array, array.nbytes, copy.hipMemcpyHostToDevice))
    module.run(launch, memory)
    out = {at: np.empty(launch.bytes[at] // 2, BF16) for at in results}
    for at, array in out.items():
        ok(hip.hipMemcpy(array, memory[at], array.nbytes, copy.hipMemcpyDeviceToHost))
    for each in memory:
        ok(hip.hipFree(each))
    return out


def sums(rows: Array) -> Array:
    """Sums of rows of 2048 in bf16: 32 neighbours a lane, then halves of a wave."""
    lanes = rows.reshape(len(rows), 64, 32)
    total = lanes[..., 0]
    for n in range(1, 32):
        total = total + lanes[..., n]
    for half in (32, 16, 8, 4, 2, 1):
        total = total[:, :half] + total[:, half : 2 * half]
    return total


def test_rows_are_dropped_out_added_and_normalised(module: Module) -> None:
    x, residual, weight, bias = drawn(8, WIDTH), drawn(WIDTH, 8).T, drawn(WIDTH), drawn(1, WIDTH)[0]
    inputs = {0: x, 1: np.ascontiguousarray(residual), 4: weight, 5: bias}
    out = run(module, layer_norm(4, batch=2), inputs, {2, 3})
    norm, total = (out[at].reshape(8, WIDTH) for at in (2, 3))
    dropped = total != residual + x * BF16(1 / 0.99)
    assert 0.005 < dropped.mean() < 0.02
    np.testing.assert_array_equal(total[dropped], residual[dropped])
    apart = total - sums(total) * BF16(1 / WIDTH)
    variance = sums(apart * apart) * BF16(1 / WIDTH)
    deviation = np.sqrt((variance + BF16(1e-5)).astype(np.float32)).astype(BF16)
    scaled = (apart.astype(np.float32) / deviation.astype(np.float32)).astype(BF16)
    np.testing.assert_array_equal(norm, scaled * weight + bias)


def test_halves_of_heads_are_turned(module: Module) -> None:
    x, sine, cosine = drawn(2, 3, 64, 128), drawn(64, 64), drawn(1, 64, 64)[0]
    out = run(module, rotary(64, batch=2, heads=3), {0: x, 1: sine, 2: cosine}, {3})
    left, right = x[..., :64], x[..., 64:]
    expected = [left * cosine - right * sine, right * cosine + left * sine]
    np.testing.assert_array_equal(out[3].reshape(x.shape), np.concatenate(expected, -1))
