# SPDX-License-Identifier: MIT
"""Which lane holds which element, against what Triton's and IREE's packages say."""

from collections import Counter

import numpy as np
import pytest

from cklang.emulator.engine.fragments import fragment, holder, matrix_instruction
from cklang.errors import CkValueError
from tests.support.layouts import DATA, Instruction, instructions, layout

OPS = [
    op
    for op in instructions()
    if any((known := layout(package, op)) and known.blocks == op.blocks for package in DATA)
]


def _permuted(mine: np.ndarray, other: np.ndarray, depth_axis: int) -> bool:
    """Whether two layouts of an input differ by an order of K at most."""
    order = np.full(mine[..., depth_axis].max() + 1, -1)
    order[mine[..., depth_axis]] = other[..., depth_axis]
    rest = [axis for axis in range(3) if axis != depth_axis]
    return np.array_equal(mine[..., rest], other[..., rest]) and np.array_equal(
        order[mine[..., depth_axis]], other[..., depth_axis]
    )


@pytest.mark.parametrize("op", OPS, ids=[op.label for op in OPS])
def test_lanes_are_those_of_other_packages(op: Instruction) -> None:
    text = op.name + op.modifiers
    a, b, d = (fragment(op.arch, op.name, name, text).places for name in "ABD")
    for package in DATA:
        known = layout(package, op)
        if known is None or known.blocks != op.blocks:
            continue
        np.testing.assert_array_equal(d, known.d)
        if "f8f6f4" in op.name:  # a product is the same in any order of K
            assert _permuted(a, known.a, 2)
            assert _permuted(b, known.b, 1)
        else:
            np.testing.assert_array_equal(a, known.a)
            np.testing.assert_array_equal(b, known.b)


def test_all_gpus_are_compared() -> None:
    assert min(Counter(op.arch for op in OPS).values()) > 2
    assert len({op.arch for op in OPS}) == 5


@pytest.mark.parametrize("op", OPS, ids=[op.label for op in OPS])
def test_each_element_has_a_holder(op: Instruction) -> None:
    for name in "ABD":
        each = fragment(op.arch, op.name, name, op.name + op.modifiers)
        seen = {tuple(place) for place in each.places.reshape(-1, 3).tolist()}
        assert len(seen) == np.prod(each.shape)


def test_registers_of_halves() -> None:
    text = "v_mfma_f32_16x16x16_f16 a[4:7], v[8:9], v[10:11], a[4:7]"
    operands = matrix_instruction("gfx942", text).operands
    ((lane, element),) = holder(operands["A"], 3, 6)
    assert (lane, operands["A"].register(element)) == (3 + 16, 9)
    ((lane, element),) = holder(operands["D"], 6, 3)
    assert (lane, operands["D"].register(element)) == (3 + 16, 6)


@pytest.mark.parametrize(
    "text", ["v_add_f32 v0, v1, v2", "v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10"]
)
def test_what_has_no_layout(text: str) -> None:
    with pytest.raises(CkValueError, match="D038"):
        matrix_instruction("gfx942", text)
