# SPDX-License-Identifier: MIT
"""Sums in a tree, and stream-K after whole tiles: orders of summation, workspaces and extents."""

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

TREE: dict[str, Any] = {"stream_k": True, "reduction": Reduction.TREE}
AFTER_TILES = narrow(2, **TREE, persistent=True)
SHAPES = [(128, 136, 1000), (72, 64, 0), (64, 64, 32), (200, 72, 4000), (40, 520, 104)]
MANY = (1096, 1160, 200)
"""342 tiles of 64 x 64 and 7 steps: one for each of 304 compute units, and 38 that they share."""
OTHERS = {
    "stream-K tree": ("gfx950", wide(2, **TREE)),
    "split-K tree": ("gfx90a", wide(2, split_k=5, reduction=Reduction.TREE)),
    "stream-K after whole tiles": (
        "gfx950",
        wide(2, stream_k=True, reduction=Reduction.WORKSPACE, persistent=True),
    ),
}


def operands(m: int, n: int, k: int) -> list[Any]:
    return drawn(fused, mnk(m, n, k), T=ck.f16)


def over_all_shapes(algorithm: Algorithm, arch: str) -> None:
    """The sums are right, and those of a second call are the same bits."""
    op = fused.using(algorithm)
    for shape in (*SHAPES, MANY):
        args = operands(*shape)
        first = check(op, args, arch)
        assert np.array_equal(op(*args, device=f"emu:{arch}"), first), "one order of summation"


@pytest.mark.usefixtures("compiler")
def test_stream_k_in_a_tree_after_whole_tiles(covered: Covered) -> None:
    over_all_shapes(AFTER_TILES, "gfx942")
    op = fused.using(AFTER_TILES)
    op(*operands(*MANY), device="emu:gfx942")
    assert launches(op)[0].grid == (304, 1, 1), "a compute unit each"
    covered("stream-K tree after whole tiles", "f16", "gfx942")


@pytest.mark.usefixtures("compiler")
@settings(max_examples=12)
@given(shape=st.tuples(extents(200), extents(200), st.integers(0, 900)))
def test_every_shape(shape: tuple[int, int, int]) -> None:
    check(fused.using(AFTER_TILES), operands(*shape))


@pytest.mark.full
@pytest.mark.parametrize("variant", OTHERS)
def test_other_ways_to_share(variant: str, covered: Covered) -> None:
    arch, algorithm = OTHERS[variant]
    over_all_shapes(algorithm, arch)
    covered(variant, "f16", arch)
