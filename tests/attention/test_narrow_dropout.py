# SPDX-License-Identifier: MIT
"""Dropout of attention in 8-bit floats, whose random bytes lie where those of f16 do."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.testing import report
from tests.support.coverage import Covered

_GPUS = [("fp8_fnuz", "gfx942"), ("fp8", "gfx950"), ("fp8", "gfx1201")]

B, H, S, T, D = ck.dims("B H S T D")
Q: Any = ck.dtype_var("Q", ck.fp8, ck.fp8_fnuz)


@ck.op
def dropped(
    q: Q[B, H, S, D], k: Q[B, H, T, D], v: Q[B, H, T, D], scale: ck.const[float]
) -> ck.f32[B, H, S, D]:
    return ck.attention(q, k, v, scale=scale, dropout=0.25, seed=11, offset=5)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("name", "arch"), _GPUS)
def test_weights_are_dropped_where_the_formula_says(name: str, arch: str, covered: Covered) -> None:
    rng = np.random.default_rng(4)
    dtype = getattr(ck, name)
    shapes = ((1, 2, 70, 64), (1, 2, 150, 64), (1, 2, 150, 64))
    args = [rng.uniform(-8, 8, shape).astype(dtype.numpy) for shape in shapes]
    consts = {"scale": 1 / 128}
    result = dropped(*args, device=f"emu:{arch}", **consts)
    comparison = report(dropped, args, result, **consts)
    comparison.check()
    covered("attention: dropout", f"{name} f32", arch)
