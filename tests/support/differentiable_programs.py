# SPDX-License-Identifier: MIT
"""Random f32 programs of ops with gradients: pointwise, reductions, products, views and joins.

Their values stay small, and what divides or is under a root stays away from 0, so that gradients
may be compared with those of another implementation in the same precision.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from cklang.ir.builder import Builder, without_unused
from cklang.ir.nodes import Function, Value
from cklang.types import dims, f32

M, N, K = dims("M N K")

_ONE = (
    *("neg", "abs", "tanh", "erf", "sigmoid", "silu", "gelu", "gelu_tanh", "softplus", "mish"),
    *("hardsigmoid", "hardswish", "softsign", "relu", "floor", "round", "sign", "trunc", "ceil"),
)
_TWO = ("add", "sub", "mul", "minimum", "maximum")
_WITH_ATTRS: Mapping[str, Mapping[str, float]] = {
    "leaky_relu": {"slope": 0.125},
    "elu": {"alpha": 0.75},
    "clamp": {"lo": -1.5, "hi": 1.0},
}
_REDUCTIONS = ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod")

Draw = st.DrawFn


@st.composite
def differentiable_programs(draw: Draw, steps: int = 8) -> Function:
    """Return functions of f32 matrices, a row and a column, with one result of any shape."""
    builder = Builder("program")
    matrices = [builder.param("x", f32[M, N]), builder.param("y", f32[M, N])]
    weights = [builder.param("w", f32[N, N]), builder.param("v", f32[N, N])]
    row, column = builder.param("row", f32[N]), builder.param("column", f32[M])
    matrices += [builder.broadcast(row, (M, N)), builder.broadcast(column, (M, N), dims=(0,))]
    for _ in range(draw(st.integers(2, steps))):
        step = draw(st.sampled_from(_STEPS))
        matrices.append(step(draw, builder, matrices, weights))
    # All of the last values, so that gradients of several uses add up.
    total = matrices[-1]
    for other in matrices[-3:-1]:
        total = builder.append("add", total, other)
    return without_unused(builder.finish(_ended(draw, builder, total)))


def _any(draw: Draw, values: Sequence[Value]) -> Value:
    """Return one of the values; late ones come first."""
    return draw(st.sampled_from(values[::-1]))


def _limited(builder: Builder, value: Value) -> Value:
    """Keep a value within -2 and 2."""
    half = builder.broadcast(builder.constant(2.0), value.type.shape)
    return builder.append("mul", builder.append("softsign", value), half)


def _pointwise(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    op = draw(st.sampled_from([*_ONE, *_TWO, *_WITH_ATTRS]))
    operands = [_any(draw, values) for _ in range(2 if op in _TWO else 1)]
    value = builder.apply(op, operands, dict(_WITH_ATTRS.get(op, {})))
    return _limited(builder, value) if op == "mul" else value


def _positive(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    """Apply a function that has poles to a value above 1/2."""
    value = builder.append("square", _any(draw, values))
    above = builder.append("add", value, builder.broadcast(builder.constant(0.5), value.type.shape))
    op = draw(
        st.sampled_from(["log", "log2", "log1p", "sqrt", "rsqrt", "reciprocal", "div", "pow"])
    )
    if op == "div":
        return builder.append("div", _any(draw, values), above)
    if op == "pow":
        power = builder.append("pow", above, builder.append("tanh", _any(draw, values)))
        return _limited(builder, power)
    return builder.append(op, above)


def _exponential(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    op = draw(st.sampled_from(["exp", "exp2", "expm1"]))
    return builder.append(op, builder.append("tanh", _any(draw, values)))


def _choice(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    op = draw(st.sampled_from(["lt", "le", "gt", "ge", "eq"]))
    condition = builder.append(op, _any(draw, values), _any(draw, values))
    return builder.append("where", condition, _any(draw, values), _any(draw, values))


def _reduction(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    op, axis = draw(st.sampled_from(_REDUCTIONS)), draw(st.integers(0, 1))
    reduced = builder.append(op, _any(draw, values), axes=(axis,))
    return _limited(builder, builder.broadcast(reduced, (M, N), dims=(1 - axis,)))


def _softmax(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    x, axis = _any(draw, values), draw(st.integers(0, 1))

    def along(op: str, value: Value) -> Value:
        return builder.broadcast(builder.append(op, value, axes=(axis,)), (M, N), dims=(1 - axis,))

    powers = builder.append("exp", builder.append("sub", x, along("reduce_max", x)))
    return builder.append("div", powers, along("reduce_sum", powers))


def _product(draw: Draw, builder: Builder, values: Sequence[Value], weights: Any) -> Value:
    weight = draw(st.sampled_from(weights))
    if draw(st.booleans()):
        weight = builder.append("transpose", weight, perm=(1, 0))
    return _limited(builder, builder.append("gemm", _any(draw, values), weight))


def _gram(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    """Multiply a matrix by its own product with another one."""
    x = _any(draw, values)
    turned = builder.append("transpose", _any(draw, values), perm=(1, 0))
    gram = _limited(builder, builder.append("gemm", turned, x))
    return _limited(builder, builder.append("gemm", x, gram))


def _swapped(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    """Swap the first rows and the rest."""
    x = _any(draw, values)
    parts = [
        builder.append(
            "slice", x, shape=(extent, N), axes=(0, 1), start=(start, 0), stop=(stop, "N"),
            step=(1, 1),
        )
        for start, stop, extent in (("M//2", "M", M - M // 2), (0, "M//2", M // 2))
    ]  # fmt: skip
    return builder.append("concat", *parts, shape=(M, N), axis=0)


def _folded(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    """Stack two matrices, look at them as one list, and reduce the pairs."""
    pair = builder.append("stack", _any(draw, values), _any(draw, values), shape=(2, M, N), axis=0)
    flat = builder.append("reshape", pair, shape=(2, M * N))
    reduced = builder.append(draw(st.sampled_from(_REDUCTIONS)), flat, axes=(0,))
    return _limited(builder, builder.append("reshape", reduced, shape=(M, N)))


def _cast(draw: Draw, builder: Builder, values: Sequence[Value], _w: Any) -> Value:
    from cklang.types import bf16, f16, i32

    to = draw(st.sampled_from([f16, bf16, i32]))
    return builder.cast(builder.cast(_any(draw, values), to), f32)


_STEPS: tuple[Callable[..., Value], ...] = (
    *(_pointwise, _pointwise, _pointwise, _positive, _exponential, _choice, _reduction, _softmax),
    *(_product, _product, _gram, _swapped, _folded, _cast),
)


def _ended(draw: Draw, builder: Builder, value: Value) -> Value:
    """Return a matrix, its transpose or a reduction of it."""
    end = draw(st.sampled_from(["matrix", "transpose", "rows", "all"]))
    if end == "transpose":
        return builder.append("transpose", value, perm=(1, 0))
    axes = {"rows": (0,), "all": (0, 1)}.get(end)
    return value if axes is None else builder.append("reduce_mean", value, axes=axes)
