# SPDX-License-Identifier: MIT
"""Random whole programs: products, convolutions, attentions, norms, reductions, pointwise steps.

A value is f16[N, H, W, C]: rows of a product, the pixels of images or, in attention, heads of
sequences. A step gives another such value, whatever dtypes and shapes it has on the way; what
becomes a kernel is the planner's business. Results have shapes and dtypes of their own.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.arrays import drawn
from tests.support.checks import check
from tests.support.kept_plans import run_kept
from tests.support.written_ops import written_op

DIMS = "N H W C"
HEADER = """\
@ck.op
def f(
    x: ck.f16[N, H, W, C], y: ck.f16[N, H, W, C], z: {z}[N, H, W, C], row: ck.f32[N, H, W],
    w0: ck.f16[C, C], w1: ck.f16[C, C], point: ck.f16[C, 1, 1, C], gain: ck.f16[C], bias: ck.f16[C],
) -> {result}:
"""

PRODUCTS = (
    "({0} @ {weight}.T + bias) + {1}",
    "ck.relu({0} @ {weight}.T + bias)",
    "ck.conv({0}, point) + bias",
    "ck.attention({0}, {1}, {2}, mask=ck.causal())",
)
"""Steps whose kernels hold matrix instructions."""

NORMS = (
    "ck.rms_norm({0}, gain)",
    "ck.layer_norm({0}, gain, bias)",
    "ck.softmax({0}, axis=-1) * 4.0",
    "ck.softmax({0}, axis=2) * 2.0",
    "ck.log_softmax({0}, axis=(2, 3)) * 0.25",
    "{0} - ck.mean({0}, axis=(1, 2), keepdims=True)",
    "{0} / (1.0 + ck.max(ck.abs({1}), axis=3, keepdims=True))",
    "{0} + ck.logsumexp({1}, axis=-1, keepdims=True) * 0.1",
    "{0} * ck.sigmoid(ck.sum({1} * {1}, axis=(0, 3), keepdims=True))",
)
"""Steps that reduce."""

POINTWISE = (
    "ck.tanh({0}) * {1}",
    "ck.gelu({0} + bias) - z",
    "ck.where(z > row[..., None], {0}, {1})",
    "ck.maximum({0}, z) * 0.5",
    "ck.silu({0}).to(ck.bf16) + {1} / C",
    "{0} * (row[..., None] % 2.0)",
)
"""Steps that do neither. Comparisons are of arguments: what jumps has no bound."""

RESULTS = (
    ("{0}", "ck.f16[N, H, W, C]"),
    ("{0}.to(ck.f32)", "ck.f32[N, H, W, C]"),
    ("ck.sum({0}, axis=-1)", "ck.f32[N, H, W]"),
    ("ck.max({0}, axis=(0, 2), keepdims=True)", "ck.f16[1, H, 1, C]"),
    ("ck.mean({0}, axis=(1, 2, 3))", "ck.f32[N]"),
    ("{0}.mT", "ck.f16[N, H, C, W]"),
    ("ck.relu({0}) * 2.0", "ck.bf16[N, H, W, C]"),
)
"""What an op returns of a value."""


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Draw the text of an op."""
    values, lines = ["x", "y"], []
    kinds = st.sampled_from((PRODUCTS, NORMS, NORMS, POINTWISE, POINTWISE))
    for number in range(draw(st.integers(3, 12))):
        # The newest value first, so that most programs are one chain with branches.
        operands = [values[-1], *(draw(st.sampled_from(values)) for _ in range(2))]
        step = draw(st.sampled_from(draw(kinds)))
        weight = draw(st.sampled_from(["w0", "w1"]))
        lines.append(f"v{number} = ({step.format(*operands, weight=weight)}).to(ck.f16)")
        values.append(f"v{number}")
    results = [(values[-1], draw(st.sampled_from(RESULTS)))]
    for value in draw(st.lists(st.sampled_from(values[2:-1]), unique=True, max_size=2)):
        results.append((value, draw(st.sampled_from(RESULTS))))
    texts = [text.format(value) for value, (text, _) in results]
    types = [annotation for _, (_, annotation) in results]
    z = draw(st.sampled_from(["ck.f16", "ck.bf16", "ck.f32"]))
    result = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
    body = "".join(f"    {line}\n" for line in _live(lines, texts))
    return HEADER.format(result=result, z=z) + body + f"    return {', '.join(texts)}\n"


def _live(lines: list[str], results: list[str]) -> list[str]:
    """Return the lines whose values something needs."""
    needed = {*re.findall(r"\w+", " ".join(results))}
    live: list[str] = []
    for line in reversed(lines):
        name, _, value = line.partition(" = ")
        if name in needed:
            needed |= {*re.findall(r"\w+", value)}
            live.insert(0, line)
    return live


def arguments(text: str, sizes: tuple[int, ...], steps: tuple[int, ...]) -> list[Any]:
    """Return small numbers: weights keep the size of a value. ``z`` has strides of its own.

    The bound of a long chain may still be infinite; what has a bound is within it.
    """
    op = written_op(text, DIMS)
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
@given(text=programs(), sizes=SIZES, steps=STEPS)
def test_any_program(text: str, sizes: tuple[int, ...], steps: tuple[int, ...]) -> None:
    check(written_op(text, DIMS), arguments(text, sizes, steps), unchecked=1)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@settings(max_examples=300, deadline=None, derandomize=False)
@given(text=programs(), sizes=SIZES, steps=STEPS)
def test_any_other_program(text: str, sizes: tuple[int, ...], steps: tuple[int, ...]) -> None:
    op, args = written_op(text, DIMS), arguments(text, sizes, steps)
    want = check(op, args, unchecked=1)
    got, _ = run_kept(op, args, "emu:gfx942")
    for one, other in zip(several(got), several(want), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def several(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)
