# SPDX-License-Identifier: MIT
"""Gradients of random programs beside torch's autograd in float64."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.autodiff.transform import backward
from cklang.ir.nodes import Function
from cklang.ir.verifier import verify
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from tests.support.differentiable_programs import differentiable_programs
from tests.support.torch_ir import derivative, gradients

pytestmark = pytest.mark.usefixtures("torch")

EXTENTS = st.fixed_dictionaries({name: st.integers(2, 5) for name in "MN"})


def normal(rng: np.random.Generator, shape: Any) -> Any:
    return rng.standard_normal(shape).astype("f")


def expect_gradients(function: Function, extents: dict[str, int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = [normal(rng, param.type.extents(extents)) for param in function.params]
    dy = normal(rng, evaluate(function, arrays)[0].shape)
    names = [param.name for param in function.params]
    derived = verify(backward(function, names, ["dy"], name="program_vjp"), allow_unused=True)
    got, bounds = evaluate_with_bound(derived, [*arrays, dy])
    want = gradients(function, arrays, names, [dy])
    for name, mine, bound, theirs in zip(names, got, bounds, want, strict=True):
        scale = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6 * scale, err_msg=name)
        assert bound.shape == mine.shape


@given(differentiable_programs(), EXTENTS, st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_gradients_of_programs_follow_torch(
    function: Function, extents: dict[str, int], seed: int
) -> None:
    expect_gradients(function, extents, seed)


@pytest.mark.full
@given(differentiable_programs(steps=14), EXTENTS, st.integers(0, 99))
@settings(max_examples=100, deadline=None)
def test_gradients_of_many_programs_follow_torch(
    function: Function, extents: dict[str, int], seed: int
) -> None:
    expect_gradients(function, extents, seed)


@given(differentiable_programs(), EXTENTS, st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_gradients_are_the_transpose_of_the_derivative(
    function: Function, extents: dict[str, int], seed: int
) -> None:
    """<v, J u> = <J'v, u>, where J u is the derivative by t of the program at x + t u."""
    rng = np.random.default_rng(seed)
    arrays = [normal(rng, param.type.extents(extents)) for param in function.params]
    steps = [normal(rng, array.shape) for array in arrays]
    v = normal(rng, evaluate(function, arrays)[0].shape)
    names = [param.name for param in function.params]
    pulled = evaluate(backward(function, names, ["dy"], name="t"), [*arrays, v])
    right = sum(np.vdot(a.astype("d"), u) for a, u in zip(pulled, steps, strict=True))
    left = float(np.vdot(v, derivative(function, arrays, steps)))
    np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-5)
