# SPDX-License-Identifier: MIT
"""Random whole programs: products, convolutions, attentions, norms, reductions, pointwise steps.

A value is f16[N, H, W, C]: rows of a product, the pixels of images or, in attention, heads of
sequences. A step gives another such value, whatever dtypes and shapes it has on the way; what
becomes a kernel is the planner's business. Results have shapes and dtypes of their own.
"""

import linecache
import re
from typing import Any

from hypothesis import strategies as st

import cklang as ck
from cklang.runtime.op import Op

DIMS = "N H W C"
"""The dims of every program."""

_HEADER = """\
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
def texts(draw: st.DrawFn, steps: int = 12) -> str:
    """Return the texts of ops called ``f`` of 3 to ``steps`` steps, with up to three results."""
    values, lines = ["x", "y"], []
    kinds = st.sampled_from((PRODUCTS, NORMS, NORMS, POINTWISE, POINTWISE))
    for number in range(draw(st.integers(3, steps))):
        # The newest value first, so that most programs are one chain with branches.
        operands = [values[-1], *(draw(st.sampled_from(values)) for _ in range(2))]
        step = draw(st.sampled_from(draw(kinds)))
        weight = draw(st.sampled_from(["w0", "w1"]))
        lines.append(f"v{number} = ({step.format(*operands, weight=weight)}).to(ck.f16)")
        values.append(f"v{number}")
    results = [(values[-1], draw(st.sampled_from(RESULTS)))]
    for value in draw(st.lists(st.sampled_from(values[2:-1]), unique=True, max_size=2)):
        results.append((value, draw(st.sampled_from(RESULTS))))
    returned = [text.format(value) for value, (text, _) in results]
    types = [annotation for _, (_, annotation) in results]
    z = draw(st.sampled_from(["ck.f16", "ck.bf16", "ck.f32"]))
    result = types[0] if len(types) == 1 else f"tuple[{', '.join(types)}]"
    body = "".join(f"    {line}\n" for line in _live(lines, returned))
    return _HEADER.format(result=result, z=z) + body + f"    return {', '.join(returned)}\n"


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


def op_of(text: str) -> Op:
    r"""Return the op of a text, which knows ``ck`` and :data:`DIMS`.

    Example:
        >>> op_of("@ck.op\ndef f(x: ck.f16[N, C]) -> ck.f16[N, C]:\n    return ck.relu(x)\n")
        <cklang op f>
    """
    file = f"<program {hash(text):x}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"ck": ck, **{dim.name: dim for dim in ck.dims(DIMS)}}
    exec(compile(text, file, "exec"), names)  # noqa: S102 - a text of this module
    op: Op = names["f"]
    return op


def ops(steps: int = 12) -> st.SearchStrategy[Op]:
    """Return random ops of 3 to ``steps`` steps of all kinds, with up to three results.

    The dims are N, H, W and C. C must be a multiple of 8 for attention. The steps keep small
    numbers small; a bound may still be infinite at the end of a long chain.

    Example:
        >>> from hypothesis import given
        >>> from hypothesis import strategies as st
        >>> from cklang.testing import calls, check_call, ops
        >>> @given(st.data(), ops(steps=4))
        ... def test_my_backend(data, op):
        ...     call = data.draw(calls(op, dims={"C": [8, 40], "N": 1, "W": [3, 20]}, largest=4))
        ...     check_call(call, unchecked=1)
    """
    return texts(steps).map(op_of)
