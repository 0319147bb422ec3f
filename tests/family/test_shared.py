# SPDX-License-Identifier: MIT
"""Workgroups that share the K of a tile: split-K and stream-K, with a fused epilogue."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.families.gemm.key import Algorithm, Reduction
from cklang.testing.strategies import extents
from tests.support.algorithms import narrow, wide
from tests.support.arrays import drawn, mnk
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.gemm_ops import fused

pytestmark = pytest.mark.usefixtures("stencils")

SPLIT = narrow(2, split_k=5, reduction=Reduction.WORKSPACE)
STREAM = narrow(2, stream_k=True, reduction=Reduction.WORKSPACE)
CASES = [
    ("split-K", "gfx942", SPLIT),
    ("split-K", "gfx90a", wide(2, split_k=2, reduction=Reduction.ATOMIC)),
    ("stream-K", "gfx942", STREAM),
    pytest.param(
        *("stream-K", "gfx950", wide(2, stream_k=True, reduction=Reduction.ATOMIC)),
        marks=pytest.mark.full,  # block scales are summed like this
    ),
]
SHAPES = [(128, 136, 1000), (72, 64, 0), (64, 64, 32), (200, 72, 4000), (40, 520, 104)]


def operands(m: int, n: int, k: int) -> list[Any]:
    return drawn(fused, mnk(m, n, k), T=ck.f16)


@pytest.mark.parametrize(("variant", "arch", "algorithm"), CASES)
def test_the_epilogue_sees_the_whole_sum(
    variant: str, arch: str, algorithm: Algorithm, covered: Covered
) -> None:
    op = fused.using(algorithm)
    for shape in SHAPES:
        args = operands(*shape)
        got = check(op, args, arch)
        if algorithm.reduction is Reduction.WORKSPACE:
            assert np.array_equal(op(*args, device=f"emu:{arch}"), got), "one order of summation"
    covered(f"{variant} {algorithm.reduction.value}", "f16", arch)


@pytest.mark.parametrize("algorithm", [SPLIT, STREAM], ids=["split-K", "stream-K"])
@settings(max_examples=12)
@given(shape=st.tuples(extents(200), extents(200), st.just(0) | st.integers(2, 900)))
def test_every_shape(algorithm: Algorithm, shape: tuple[int, int, int]) -> None:
    check(fused.using(algorithm), operands(*shape))


@pytest.mark.usefixtures("compiler")
def test_one_element_along_k() -> None:
    """It has another layout, whose stencil no other test needs."""
    check(fused.using(SPLIT), operands(72, 64, 1))


def test_all_workgroups_of_a_small_problem_take_part() -> None:
    op = fused.using(STREAM)
    op(*operands(64, 64, 512), device="emu:gfx942")
    assert launches(op)[0].grid == (16, 1, 1), "a step along K each"
    split = fused.using(SPLIT)
    split(*operands(64, 64, 512), device="emu:gfx942")
    assert launches(split)[0].grid == (1, 1, 5)
