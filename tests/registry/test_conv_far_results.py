# SPDX-License-Identifier: MIT
"""Convolutions whose results span almost 2 GiB: no store beyond the end may come round."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cklang.arch import arch
from cklang.families.conv.problem import ConvProblem, conv_problem
from cklang.families.conv.rules import RULES
from cklang.families.gemm.key import Pipeline
from tests.support.algorithms import WIDE, pipelined

GPU = arch("gfx942")


def comes_round(problem: ConvProblem, tile: tuple[int, int, int]) -> bool:
    algorithm = replace(pipelined(WIDE, Pipeline.MEM), tile=tile)
    rejections = RULES.rejections(algorithm, problem.signature, GPU, problem)
    return "conv-store-span" in {each.rule for each in rejections}


def apart(problem: ConvProblem, axis: int, stride: int) -> ConvProblem:
    """The problem with another stride of E along an axis."""
    n, z, y, x, g, last = (
        stride if place == axis else own for place, own in enumerate(problem.e.strides)
    )
    return replace(problem, e=replace(problem.e, strides=(n, z, y, x, g, last)))


@pytest.mark.parametrize(
    ("x", "tile", "wrong"),
    [
        # 2^21 pixels are whole tiles, and span 2 GiB.
        ((128, 128, 128, 8), (128, 128, 32), False),
        # 104 pixels less: of a larger tile more than that are beyond the end.
        ((3, 667, 1048, 8), (128, 128, 32), False),
        ((3, 667, 1048, 8), (192, 128, 32), True),
        ((3, 667, 1048, 8), (256, 128, 32), False),
        ((2, 4, 4, 8), (128, 128, 32), False),
        # Columns beyond the end of the last row.
        ((128, 128, 128, 8), (128, 192, 32), True),
    ],
)
def test_packed_results(x: Sequence[int], tile: tuple[int, int, int], wrong: bool) -> None:
    problem = conv_problem(x, (512, 3, 3, 8), padding=1)
    assert comes_round(problem, tile) is wrong


@pytest.mark.parametrize(
    ("direction", "axis"), [("conv", 0), ("conv_grad_input", 0), ("conv_grad_weight", 1)]
)
def test_results_with_far_rows(direction: str, axis: int) -> None:
    problem = conv_problem((2, 4, 4, 32), (2, 3, 3, 32), padding=1, direction=direction)
    assert not comes_round(problem, (64, 64, 32))
    assert comes_round(apart(problem, axis, 1 << 29), (64, 64, 32))
    near = apart(problem, axis, 1 << 22)
    assert not comes_round(near, (64, 64, 32))
