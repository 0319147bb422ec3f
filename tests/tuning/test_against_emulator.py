# SPDX-License-Identifier: MIT
"""The cost model counts what the emulator counts: workgroups, waves, matrix work, bytes."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang import emulator
from cklang.device.device import open_device
from cklang.families.gemm.cost.model import Estimate, GemmShape, estimate
from cklang.families.gemm.key import Algorithm, GemmKey, Reduction
from cklang.families.gemm.problem import Problem
from cklang.runtime.op import Op
from tests.support.algorithms import DEEP, narrow, wide
from tests.support.gemm_ops import linear
from tests.support.typed import only

pytestmark = pytest.mark.usefixtures("compiler")

M, N, K = ck.dims("M N K")
DEVICE = "emu:gfx942"

WHOLE = wide(warp_tile=DEEP)
SPLIT = narrow(warp_tile=DEEP, split_k=3, reduction=Reduction.WORKSPACE)


@cache
def using(algorithm: Algorithm) -> Op:
    return linear.using(algorithm)


def both(algorithm: Algorithm, m: int, n: int, k: int) -> tuple[Estimate, emulator.Stats]:
    x, w = np.ones((m, k), np.float16), np.ones((n, k), np.float16)
    op = using(algorithm)
    op(x, w, device=DEVICE)
    counted = emulator.stats(open_device(DEVICE).index)
    problem = only(Problem, op.problems(x, w))
    key = GemmKey(problem.signature, algorithm, "gfx942")
    return estimate(key, GemmShape(m=m, n=n, k=k)), counted


@pytest.mark.parametrize(("algorithm", "unit"), [(WHOLE, 8), (SPLIT, 1)], ids=["whole", "split"])
def test_counts(algorithm: Algorithm, unit: int) -> None:
    arguments: set[float] = set()

    @settings(max_examples=25)
    @given(*[st.integers(1, 300 // unit)] * 3)
    def check(m: int, n: int, k: int) -> None:
        m, n, k = m * unit, n * unit, k * unit
        predicted, counted = both(algorithm, m, n, k)
        assert counted.workgroups == predicted.workgroups
        assert counted.waves == predicted.waves
        assert counted.mfma_flops == predicted.padded_flops
        assert 1 - 2 * m * n * k / counted.mfma_flops == pytest.approx(predicted.padding)
        if algorithm.split_k == 1:
            assert counted.bytes_stored == 2 * m * n
            # Loads beyond K move no byte. Beside A and B a wave reads its arguments, nothing else.
            arguments.add((counted.bytes_loaded - predicted.bytes_loaded) / counted.workgroups)

    check()
    assert len(arguments) == (algorithm.split_k == 1)
    assert all(0 < each < 1024 for each in arguments)
