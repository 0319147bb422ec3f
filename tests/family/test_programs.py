# SPDX-License-Identifier: MIT
"""Random whole programs of ``cklang.testing``: the planner chooses every kernel."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.testing.whole_programs import DIMS, op_of, texts
from tests.support.arrays import drawn
from tests.support.checks import check
from tests.support.kept_plans import run_kept


def arguments(text: str, sizes: tuple[int, ...], steps: tuple[int, ...]) -> list[Any]:
    """Return small numbers: weights keep the size of a value. ``z`` has strides of its own.

    The bound of a long chain may still be infinite; what has a bound is within it.
    """
    op = op_of(text)
    extents = dict(zip(DIMS.split(), sizes, strict=True))
    args = [(each / 4).astype(each.dtype) for each in drawn(op, extents)]
    args[4:7] = [(each / 2).astype(each.dtype) for each in args[4:7]]
    shape = [extent * abs(step) for extent, step in zip(sizes, steps, strict=True)]
    strided = np.resize(args[2], shape)
    args[2] = strided[tuple(slice(None, None, step) for step in steps)]
    return args


SIZES = st.tuples(
    st.integers(1, 2), st.integers(1, 4), st.integers(1, 70), st.sampled_from([8, 40, 64])
)
STEPS = st.tuples(*[st.sampled_from([1, 1, 1, 2, 3])] * 4)


@pytest.mark.usefixtures("compiler")
@settings(max_examples=30, deadline=None)
@given(text=texts(), sizes=SIZES, steps=STEPS)
def test_any_program(text: str, sizes: tuple[int, ...], steps: tuple[int, ...]) -> None:
    check(op_of(text), arguments(text, sizes, steps), unchecked=1)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@settings(max_examples=300, deadline=None, derandomize=False)
@given(text=texts(), sizes=SIZES, steps=STEPS)
def test_any_other_program(text: str, sizes: tuple[int, ...], steps: tuple[int, ...]) -> None:
    op, args = op_of(text), arguments(text, sizes, steps)
    want = check(op, args, unchecked=1)
    got, _ = run_kept(op, args, "emu:gfx942")
    for one, other in zip(several(got), several(want), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
