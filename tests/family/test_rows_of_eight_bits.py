# SPDX-License-Identifier: MIT
"""Kernels of rows round what they store to 8-bit floats once, as casts of the language do."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.ir.numeric import round_float
from cklang.runtime.op import Op
from tests.support.checks import launches

M, K = ck.dims("M K")


@ck.op
def ocp(x: ck.f32[M, K]) -> tuple[ck.fp8[M, K], ck.bf8[M, K]]:
    return (x * 1).to(ck.fp8), (x * 1).to(ck.bf8)


@ck.op
def fnuz(x: ck.f32[M, K]) -> tuple[ck.fp8_fnuz[M, K], ck.bf8_fnuz[M, K]]:
    return (x * 1).to(ck.fp8_fnuz), (x * 1).to(ck.bf8_fnuz)


def numbers() -> Any:
    """Return every number of 8 bits, what lies halfway, beside that, and at the ends."""
    exponents = np.arange(-20, 20, dtype=np.float32)
    mantissas = np.arange(16, 32, dtype=np.float32) / 16
    positive = (2.0 ** exponents[:, None] * mantissas).ravel()
    beside = [np.nextafter(positive, np.float32(0)), np.nextafter(positive, np.float32(np.inf))]
    some = np.concatenate([positive, *beside, [0, 1e-45, 3e38, np.inf, np.nan]])
    return np.concatenate([some, -some]).astype(np.float32)


CASES = (
    pytest.param(fnuz, "gfx942"),
    pytest.param(ocp, "gfx950", marks=pytest.mark.full),
    pytest.param(ocp, "gfx1201", marks=pytest.mark.full),
)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "gpu"), CASES)
def test_every_rounding(op: Op, gpu: str) -> None:
    x = numbers()
    x = np.tile(x, 2)[: x.size // 8 * 8].reshape(8, -1)
    results = op(x, device=f"emu:{gpu}")
    for result, value in zip(results, op.program.specialise().results, strict=True):
        got = np.asarray(result).astype(np.float32)
        want = round_float(x, value.type.dtype)
        np.testing.assert_array_equal(got, want)
        zeros = got == 0
        np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(want[zeros]))
    assert all(each.resources.spills == 0 for each in launches(op))
