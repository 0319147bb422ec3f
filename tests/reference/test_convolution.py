# SPDX-License-Identifier: MIT
"""The convolutions' NumPy meaning: beside loops over single numbers, and beside torch."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.ir.builder import Builder
from cklang.ir.nodes import Function
from cklang.ir.numeric import Array
from cklang.ir.windows import DIRECTIONS, Role, Window
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.types import DType, TensorType, f16, f32, i8

Axes = list[tuple[int, int, int]]
"""Of each axis in space: the extents of the input, the weight and the output."""
Groups = tuple[int, int, int, int]
"""Images, groups, and the features and channels of a group."""
Shapes = dict[Role, tuple[int, ...]]
Drawn = tuple[list[Window], Axes, Groups, bool]


@st.composite
def convolutions(draw: st.DrawFn, most: int = 5) -> Drawn:
    """Draw attributes, extents (n, g, k, c and for each axis input, weight, output) and a form."""
    spatial = draw(st.integers(1, 3))
    axes: Axes = []
    windows: list[Window] = []
    for _ in range(spatial):
        window = Window(
            stride=draw(st.integers(1, 3)),
            before=draw(st.integers(0, 2)),
            after=draw(st.integers(0, 2)),
            dilation=draw(st.integers(1, 2)),
        )
        weight = draw(st.integers(1, 3))
        least = max(window.reach(weight) - window.before - window.after, 1)
        extent = draw(st.integers(least, least + most))
        (output,) = window.outputs(extent, weight)
        windows.append(window)
        axes.append((extent, weight, output))
    n, g, k, c = (draw(st.integers(1, 3)) for _ in range(4))
    return windows, axes, (n, g, k, c), draw(st.booleans())


def shapes_of(axes: Axes, extents: Groups, apart: bool) -> Shapes:
    n, g, k, c = extents
    size, weight, output = (tuple(each) for each in zip(*axes, strict=True))
    if apart:
        return {
            Role.INPUT: (n, *size, g, c),
            Role.WEIGHT: (g, k, *weight, c),
            Role.OUTPUT: (n, *output, g, k),
        }
    return {
        Role.INPUT: (n, *size, g * c),
        Role.WEIGHT: (g * k, *weight, c),
        Role.OUTPUT: (n, *output, g * k),
    }


def attributes(windows: list[Window], groups: int) -> dict[str, Any]:
    return {
        "stride": tuple(w.stride for w in windows),
        "padding": tuple((w.before, w.after) for w in windows),
        "dilation": tuple(w.dilation for w in windows),
        "groups": groups,
    }


def function_of(
    op: str, windows: list[Window], shapes: Shapes, groups: int, dtype: DType = f32
) -> Function:
    builder = Builder("f")
    direction = DIRECTIONS[op]
    params = [
        builder.param(name, TensorType(dtype, shapes[role]))
        for name, role in zip("ab", direction.operands, strict=True)
    ]
    attrs = attributes(windows, groups)
    return builder.finish(builder.apply(op, params, attrs, shape=shapes[direction.result]))


def by_loops(
    windows: list[Window], axes: Axes, extents: Groups, tensors: dict[Role, Array], missing: Role
) -> Array:
    """Compute the missing tensor number by number, with the groups apart."""
    n_, g_, k_, c_ = extents
    x, w, y = (tensors[role] for role in Role)
    ranges = [range(n_), range(g_), range(k_), range(c_)]
    outputs = [range(output) for _, _, output in axes]
    taps = [range(weight) for _, weight, _ in axes]
    for n, g, k, c in itertools.product(*ranges):
        for p, t in itertools.product(itertools.product(*outputs), itertools.product(*taps)):
            q = tuple(
                i * v.stride + j * v.dilation - v.before
                for i, j, v in zip(p, t, windows, strict=True)
            )
            if any(not 0 <= i < axis[0] for i, axis in zip(q, axes, strict=True)):
                continue
            at_x, at_w, at_y = (n, *q, g, c), (g, k, *t, c), (n, *p, g, k)
            if missing is Role.OUTPUT:
                y[at_y] += x[at_x] * w[at_w]
            elif missing is Role.INPUT:
                x[at_x] += y[at_y] * w[at_w]
            else:
                w[at_w] += x[at_x] * y[at_y]
    return tensors[missing]


@pytest.mark.parametrize("op", DIRECTIONS)
@given(case=convolutions(most=2), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_meaning_is_the_sum_over_taps(op: str, case: Drawn, seed: int) -> None:
    windows, axes, extents, apart = case
    direction = DIRECTIONS[op]
    shapes = shapes_of(axes, extents, apart)
    groups = 1 if apart else extents[1]
    rng = np.random.default_rng(seed)
    a, b = (rng.integers(-3, 4, shapes[role]).astype(np.int8) for role in direction.operands)
    function = function_of(op, windows, shapes, groups, i8)
    (got,) = evaluate(function, (a, b))
    loops = shapes_of(axes, extents, True)
    tensors = {
        role: array.astype(np.int64).reshape(loops[role])
        for role, array in zip(direction.operands, (a, b), strict=True)
    }
    tensors[direction.result] = np.zeros(loops[direction.result], np.int64)
    want = by_loops(windows, axes, extents, tensors, direction.result)
    np.testing.assert_array_equal(got, want.reshape(got.shape))


@pytest.mark.parametrize("op", DIRECTIONS)
@given(case=convolutions(), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_meaning_is_torchs(torch: Any, op: str, case: Drawn, seed: int) -> None:
    windows, axes, extents, _ = case
    direction = DIRECTIONS[op]
    shapes = shapes_of(axes, extents, False)
    rng = np.random.default_rng(seed)
    arrays = {role: rng.uniform(-1, 1, shapes[role]).astype(np.float32) for role in Role}
    function = function_of(op, windows, shapes, extents[1])
    operands = [arrays[role] for role in direction.operands]
    (got,), (bound,) = evaluate_with_bound(function, operands)

    def channels_second(array: Array) -> Any:
        # Contiguous: torch refuses the gradient of some weights that are not.
        moved = np.ascontiguousarray(np.moveaxis(array, -1, 1), np.float64)
        return torch.tensor(moved, requires_grad=True)

    x, w = channels_second(arrays[Role.INPUT]), channels_second(arrays[Role.WEIGHT])
    pads = [count for v in reversed(windows) for count in (v.before, v.after)]
    convolve = getattr(torch.nn.functional, f"conv{len(windows)}d")
    y = convolve(
        torch.nn.functional.pad(x, pads),
        w,
        stride=[v.stride for v in windows],
        dilation=[v.dilation for v in windows],
        groups=extents[1],
    )
    y.backward(channels_second(arrays[Role.OUTPUT]))
    want = {Role.OUTPUT: y, Role.INPUT: x.grad, Role.WEIGHT: w.grad}[direction.result]
    moved = np.moveaxis(want.detach().numpy(), 1, -1)
    assert (np.abs(got - moved) <= bound + 1e-7).all()


def test_bound_counts_what_is_summed() -> None:
    """The bound of ones is gamma times the number of ones that are added up."""
    windows = [Window(before=1, after=1), Window(stride=2)]
    shapes: Shapes = {
        Role.INPUT: (2, 4, 5, 6),
        Role.WEIGHT: (4, 3, 1, 3),
        Role.OUTPUT: (2, 4, 3, 4),
    }
    sums = {"conv": 3 * 3, "conv_grad_input": 3 * 2, "conv_grad_weight": 2 * 4 * 3}
    for op, count in sums.items():
        function = function_of(op, windows, shapes, 2, f16)
        ones = [np.ones(shapes[role], np.float16) for role in DIRECTIONS[op].operands]
        (value,), (bound,) = evaluate_with_bound(function, ones)
        assert value.max() == count
        worst = bound.flat[value.argmax()]
        assert worst == pytest.approx((2 * count + 8) * 2.0**-24 * count, rel=1e-6)


def test_infinite_weight_may_meet_padding() -> None:
    windows = [Window(before=1, after=1)]
    shapes: Shapes = {Role.INPUT: (1, 4, 1), Role.WEIGHT: (1, 3, 1), Role.OUTPUT: (1, 4, 1)}
    function = function_of("conv_grad_input", windows, shapes, 1)
    weight = np.array([0.0, np.inf, 0.0], np.float32).reshape(1, 3, 1)
    _, (bound,) = evaluate_with_bound(function, [np.ones((1, 4, 1), np.float32), weight])
    assert np.isinf(bound).all()
