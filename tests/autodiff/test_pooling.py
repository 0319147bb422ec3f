# SPDX-License-Identifier: MIT
"""Gradients of pooling: each window's goes to its greatest element, or to all of them."""

import importlib.util
from itertools import product
from typing import Any

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.autodiff.terms import Emitter
from cklang.autodiff.transform import backward
from cklang.families import plan_of
from cklang.ir.builder import Builder
from cklang.ir.indices import TAKE
from cklang.ir.nodes import Function
from cklang.ir.pooling import Windows, avg_pooled, max_pooled, window_count
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.types import f32, i32
from tests.support.written_ops import expression_op

Pair = tuple[int, int]


def pooled(
    kind: str, extents: Pair, size: Pair, step: Pair, pads: Pair, apart: Pair, counts: bool
) -> Function:
    """Return the pooling of an image [2, H, W, 3]."""
    builder = Builder("pool")
    x = builder.param("x", f32[2, extents[0], extents[1], 3])
    windows = [
        Windows(
            axis=axis + 1,
            count=window_count(extents[axis], size[axis], step[axis], pads[axis], apart[axis]),
            size=size[axis],
            step=step[axis],
            before=pads[axis],
            dilation=apart[axis],
        )
        for axis in (0, 1)
    ]
    if kind == "max":
        return builder.finish(max_pooled(Emitter(builder), x, windows))
    return builder.finish(avg_pooled(Emitter(builder), x, windows, counts_padding=counts))


def by_windows(
    kind: str, x: Any, dy: Any, size: Pair, step: Pair, pads: Pair, apart: Pair, counts: bool
) -> Any:
    """Return the gradient window by window."""
    dx = np.zeros(x.shape)
    for row, column in product(range(dy.shape[1]), range(dy.shape[2])):
        starts = (row * step[0] - pads[0], column * step[1] - pads[1])
        rows, columns = (
            [at for at in range(start, start + own * every, every) if 0 <= at < extent]
            for start, own, every, extent in zip(starts, size, apart, x.shape[1:3], strict=True)
        )
        places = list(product(rows, columns))
        window = np.stack([x[:, i, j] for i, j in places])
        greatest = window.argmax(axis=0)
        share = 1 / (size[0] * size[1] if counts else len(places))
        for place, (i, j) in enumerate(places):
            part = greatest == place if kind == "max" else share
            dx[:, i, j] += part * dy[:, row, column]
    return dx


def by_torch(
    kind: str, x: Any, dy: Any, size: Pair, step: Pair, pads: Pair, apart: Pair, counts: bool
) -> Any:
    """Return the gradient of torch in float64."""
    import torch

    image = torch.from_numpy(np.moveaxis(x, -1, 1).astype("d")).requires_grad_()
    functional: Any = torch.nn.functional
    if kind == "max":
        y = functional.max_pool2d(image, size, step, pads, apart)
    else:
        y = functional.avg_pool2d(image, size, step, pads, count_include_pad=counts)
    (dx,) = torch.autograd.grad(y, image, torch.from_numpy(np.moveaxis(dy, -1, 1).astype("d")))
    return np.moveaxis(dx.numpy(), 1, -1)


ORACLES = [by_windows, *([by_torch] if importlib.util.find_spec("torch") else [])]


@given(
    kind=st.sampled_from(["max", "mean"]),
    extents=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    size=st.tuples(st.integers(1, 4), st.integers(1, 5)),
    step=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    pads=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    apart=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    counts=st.booleans(),
    seed=st.integers(0, 99),
)
@example("max", (6, 1), (3, 1), (2, 1), (1, 0), (1, 1), False, 0)
@example("max", (7, 5), (3, 2), (2, 1), (1, 1), (3, 2), False, 0)
@settings(max_examples=60, deadline=None)
def test_gradients_of_distinct_elements(
    kind: str,
    extents: Pair,
    size: Pair,
    step: Pair,
    pads: Pair,
    apart: Pair,
    counts: bool,
    seed: int,
) -> None:
    assume(all(2 * pad <= own for pad, own in zip(pads, size, strict=True)))
    apart = apart if kind == "max" else (1, 1)
    room = zip(extents, pads, size, apart, strict=True)
    assume(all(extent + 2 * pad > (own - 1) * every for extent, pad, own, every in room))
    assume(all(extent >= every for extent, every in zip(extents, apart, strict=True)))
    function = pooled(kind, extents, size, step, pads, apart, counts)
    rng = np.random.default_rng(seed)
    x = rng.permutation(2 * extents[0] * extents[1] * 3).reshape(2, *extents, 3).astype("f")
    dy = rng.integers(-8, 8, evaluate(function, [x])[0].shape).astype("f")
    derived = verify(backward(function, ["x"], ["dy"], name="pool_vjp"), allow_unused=True)
    (got,) = evaluate(derived, [x, dy])
    for oracle in ORACLES:
        want = oracle(kind, x, dy, size, step, pads, apart, counts)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5, err_msg=oracle.__name__)


def test_the_gradient_of_a_row_goes_where_a_computed_index_was_limited_to() -> None:
    builder = Builder("f")
    table, ids = builder.param("table", f32[3, 2]), builder.param("ids", i32[4])
    computed = builder.append("sub", ids, builder.broadcast(builder.constant(1), (4,)))
    function = builder.finish(builder.append(TAKE, table, computed, axis=0))
    derived = verify(backward(function, ["table"], ["dy"], name="t"), allow_unused=True)
    rows = np.arange(6, dtype="f").reshape(3, 2)
    dy = np.array([[1, 2], [10, 20], [100, 200], [1000, 2000]], "f")
    # These are -2, 0, 2 and 5: the rows 0, 0, 2 and 2.
    (got,) = evaluate(derived, [rows, np.array([-1, 1, 3, 6], "i"), dy])
    assert got.tolist() == [[11, 22], [0, 0], [1100, 2200]]


def test_a_window_that_begins_before_the_first_element() -> None:
    """It has that element twice as it is computed, which halved the gradient."""
    result = "ck.f32[N, (H - 1)//2 + 1, C]"
    op = expression_op("x: ck.f32[N, H, C]", result, "ck.max_pool(x, 3, stride=2, padding=1)")
    function = ck.vjp(op).program.specialise()
    x = np.array([5, 1, 2, 3, 4, 9], "f").reshape(1, 6, 1)
    dy = np.array([1, 10, 100], "f").reshape(1, 3, 1)
    (got,) = evaluate(function, [x, dy])
    assert got.ravel().tolist() == [1, 0, 0, 10, 0, 100]
    # The indices of all three elements are computed at once.
    families = [kernel.family for kernel in plan_of(function).kernels]
    assert families == ["rowwise"] * 2 + ["scatter"] * 3 + ["rowwise"]
