# SPDX-License-Identifier: MIT
"""Slices, other orders of axes and shapes: extents, meaning, views of memory, and mistakes."""

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.families.tensor_layout import TensorLayout
from cklang.families.views import reshaped_strides, views_of
from cklang.ir.derive import derive
from cklang.ir.nodes import Function
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.types import Dim, Extent, by_name, extent_from_text, extent_value, f16
from tests.support.errors import expect_error
from tests.support.written_ops import expression_op, written_op

Array = np.ndarray[Any, Any]
NUMBERS = {"M": 6, "K": 9, "N": 4}


# --- extents


@st.composite
def formulas(draw: st.DrawFn, depth: int = 3) -> tuple[Extent, int]:
    """Return an extent and its number, computed apart."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        name = draw(st.sampled_from(sorted(NUMBERS)))
        number = draw(st.integers(-4, 9))
        leaves: list[tuple[Extent, int]] = [(Dim(name), NUMBERS[name]), (number, number)]
        return draw(st.sampled_from(leaves))
    (a, x), (b, y) = draw(formulas(depth - 1)), draw(formulas(depth - 1))
    size = draw(st.integers(1, 5))
    results: list[tuple[Extent, int]] = [
        (a + b, x + y),
        (a - b, x - y),
        (a * b, x * y),
        (a // size, x // size),
    ]
    if y > 0:
        results.append((a // b, x // y))
    return draw(st.sampled_from(results))


@given(formulas())
@example((-(Dim("K") // 2), -4))
def test_an_extent_is_its_number_and_its_text(pair: tuple[Extent, int]) -> None:
    extent, number = pair
    assert extent_value(extent, NUMBERS) == number
    assert extent_from_text(str(extent)) == extent


def test_equal_extents_are_the_same() -> None:
    m, k = ck.dims("M K")
    assert k // 2 + (k - k // 2) == k
    assert (2 * k + 6) // 2 == k + 3
    assert (m * k * 4) // 4 == k * m
    assert (k // 2) // 3 == k // 6
    assert k - k == 0
    assert (m * k) // m == k
    assert (m * k) // (3 * m) == k // 3
    assert k // m // 2 == k // 2 // m == k // (2 * m)
    assert extent_value(k // m, {"K": 9, "M": 0}) == 0
    assert str(ck.f16[m * k, (k + 1) // 2, 3 - m]) == "f16[K*M, (K + 1)//2, 3 - M]"
    with pytest.raises(TypeError):
        k // 0
    with pytest.raises(ValueError, match="is no extent"):
        extent_from_text("f(K)")


# --- meaning


def extents_of(function: Function, *arrays: Array) -> dict[str, int]:
    dims = {
        extent: got
        for param, array in zip(function.params, arrays, strict=True)
        for extent, got in zip(param.type.shape, array.shape, strict=True)
        if isinstance(extent, Dim)
    }
    return by_name(derive(function, dims))


@st.composite
def views(draw: st.DrawFn) -> tuple[str, Any]:
    """Return a chain of views of x, as the language writes it and as NumPy does."""
    words, shape = "x", [4, 5, 6]
    for _ in range(draw(st.integers(1, 4))):
        rank = len(shape)
        kind = draw(st.sampled_from(["slice", "slice", "permute", "element", "new"]))
        if kind == "permute":
            perm = draw(st.permutations(range(rank)))
            words += f".transpose({tuple(perm)})"
            shape = [shape[axis] for axis in perm]
        elif kind == "element" and rank > 1 and shape[0]:
            words += f"[{draw(st.integers(-shape[0], shape[0] - 1))}]"
            shape = shape[1:]
        elif kind == "new" and rank < 5:
            words += "[..., None]"
            shape = [*shape, 1]
        else:
            axis = draw(st.integers(0, rank - 1))
            low = draw(st.integers(0, shape[axis]))
            high = draw(st.integers(low, shape[axis]))
            step = draw(st.integers(1, 3))
            bounds = f"{low - shape[axis] if low < shape[axis] else low}:{high}:{step}"
            words += f"[{', '.join([':'] * axis + [bounds])}]"
            shape[axis] = len(range(low, high, step))
    return words, shape


@given(views())
def test_views_are_numpys_and_lie_in_the_memory_of_their_operand(pair: tuple[str, Any]) -> None:
    words, shape = pair
    result = f"ck.f16[{', '.join(map(str, shape))}]" if shape else "ck.f16"
    op = expression_op("x: ck.f16[4, 5, 6]", result, words)
    x = np.arange(120, dtype=np.float16).reshape(4, 5, 6)
    want = eval(words, {"x": x})
    function = op.program.specialise()
    (got,) = evaluate(function, [x])
    np.testing.assert_array_equal(got, want)
    # The reader gets strides and an offset: they lead to the same elements.
    layout = TensorLayout(name="x", dtype=f16, shape=x.shape, strides=(30, 6, 1), alignment=4)
    places = views_of(function, {"x": layout}, extents_of(function, x))
    if function.results[0].name in places:
        place = places[function.results[0].name]
        assert place.memory == "x"
        bytes_ = [2 * stride for stride in place.layout.strides]
        flat = x.reshape(-1)[place.offset :] if place.layout.shape and 0 not in got.shape else x
        if 0 not in got.shape:
            read = np.lib.stride_tricks.as_strided(flat, place.layout.shape, bytes_)
            np.testing.assert_array_equal(read, want)
            assert place.layout.alignment == (4 if place.bytes % 4 == 0 else 2)


HALVES = """
@ck.op
def f(x: ck.f16[M, K]) -> ck.f16[M, K//2]:
    half = x.shape[-1] // 2
    return x[:, :half] * x[:, half:]
"""


def test_extents_that_a_call_makes_equal_are_one() -> None:
    op = written_op(HALVES, "M K")
    x = np.arange(12, dtype=np.float16).reshape(2, 6)
    (got,) = evaluate(op.program.specialise(), [x])
    np.testing.assert_array_equal(got, x[:, :3] * x[:, 3:])
    with expect_error("I037", match="a slice has 4 elements where K//2 is 3"):
        evaluate(op.program.specialise(), [np.ones((2, 7), np.float16)])
    again = ck.parse(str(op.program.specialise()))
    assert again.ir(x) == op.program.specialise()


def test_errors_of_moved_elements_move_with_them() -> None:
    op = expression_op("x: ck.f32[M, K]", "ck.f32[K - 2]", "ck.exp(x)[0, 2:]")
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    _, (error,) = evaluate_with_bound(op.program.specialise(), [x])
    assert np.all(error > 0)
    assert np.all(np.diff(error) > 0)


# --- mistakes


@pytest.mark.parametrize(
    ("words", "result", "code"),
    [
        ("x[:, 2:1]", "M, K", "F069"),
        ("x[:, :K + 1]", "M, K + 1", "F069"),
        ("x[:, ::-1]", "M, K", "F053"),
        ("x[:, 0.5:]", "M, K", "F053"),
        ("x[0, 0, 0]", "M, K", "F054"),
        ("x[:, 1:] + x", "M, K", "F042"),
        ("x[:, 1:]", "M, K", "F084"),
        ("x.permute(0, 0)", "M, K", "F067"),
        ("x.swapaxes(0, 2)", "M, K", "F067"),
        ("ck.permute(2.0, (0, 1))", "M, K", "F066"),
        ("ck.broadcast_to(x, (2, M))", "2, M", "F042"),
        ("x.broadcast_to(2.0)", "M, K", "F067"),
        ("x.swapaxes", "M, K", "F052"),
    ],
)
def test_a_mistake_is_an_error_with_its_place(words: str, result: str, code: str) -> None:
    with expect_error(code) as refusal:
        expression_op("x: ck.f16[M, K]", f"ck.f16[{result}]", words).program.specialise()
    assert refusal.value.at is not None


def test_bounds_are_checked_at_the_call() -> None:
    op = expression_op("x: ck.f16[M]", "ck.f16[20]", "x[:20]")
    with expect_error("I036", match="the slice 0:20 of axis 0 leaves it: M is 16"):
        op.ir(np.ones(16, np.float16))


def test_extents_of_annotations_are_checked_at_the_call() -> None:
    op = expression_op("x: ck.f16[M, K], y: ck.f16[K//2 + 1]", "ck.f16[K]", "x[0]")
    with expect_error("A046", match="K//2 \\+ 1 is 4"):
        op.explain(np.ones((2, 6), np.float16), np.ones(5, np.float16), device="emu:gfx942")
    with pytest.raises(CkError, match="K - N follows from N"):
        expression_op("x: ck.f16[K - N, K]", "ck.f16[K]", "x[0]")


# --- partition


def planned(op: Op) -> list[str]:
    return [f"{each.family} of {', '.join(map(str, each.inputs))}" for each in kernels(op)]


def kernels(op: Op) -> tuple[Any, ...]:
    return plan_of(op.program.specialise()).kernels


def test_readers_read_views_in_place() -> None:
    params = "x: ck.f16[M, K], w: ck.f16[N, K//2]"
    value = "(x[:, K//2:] @ w.T).to(ck.f16)[:, 1:]"
    product = expression_op(params, "ck.f16[M, N - 1]", value)
    assert planned(product) == ["gemm of %0, %w", "rowwise of %4"]
    plan = plan_of(product.program.specialise())
    assert {"part", "memory"} <= {each.rule for each in plan.decisions}
    results = "tuple[ck.f16[M, K], ck.f16[K], ck.f16[K, M]]"
    copies = expression_op("x: ck.f16[M, K]", results, "(x, x[0], x.T)")
    assert [kernel.family for kernel in kernels(copies)] == ["rowwise"] * 3


@pytest.mark.parametrize(
    "k",
    [
        "cache[:, None]",
        "cache[:, :, None].transpose(0, 2, 1, 3)",
        "pair[:, 0][:, None]",
        "(cache @ w).to(ck.f16)[:, None]",
    ],
)
def test_an_attention_reads_an_axis_of_one_without_a_copy(k: str) -> None:
    keys = "cache: ck.f16[B, T, D], pair: ck.f16[B, 2, T, D], w: ck.f16[D, D]"
    heads = "ck.f16[B, H, S, D]"
    op = expression_op(f"q: {heads}, {keys}", heads, "ck.attention(q, k, k)", [f"k = {k}"])
    families = [kernel.family for kernel in kernels(op)]
    assert families == ["gemm"] * k.startswith("(") + ["attention"]
    rng = np.random.default_rng(0)
    q, cache, pair, w = (
        rng.standard_normal(shape).astype(np.float16)
        for shape in ((2, 3, 4, 8), (2, 5, 8), (2, 2, 5, 8), (8, 8))
    )
    (got,) = evaluate(op.program.specialise(), [q, cache, pair, w])
    names = {"cache": cache, "pair": pair, "w": w, "np": np}
    keys = eval(k.replace(".to(ck.f16)", ".astype(np.float16)"), names)
    np.testing.assert_allclose(got, ck.attention(q, keys, keys), rtol=4e-3, atol=4e-3)


# --- joins and other shapes


@given(st.integers(0, 2), st.integers(1, 3), st.booleans())
def test_joins_splits_and_shapes_are_numpys(axis: int, parts: int, stacks: bool) -> None:
    shape = [4, 3, 6]
    shape[axis] *= parts
    x = np.arange(np.prod(shape), dtype=np.float16).reshape(shape)
    name = "stack" if stacks else "concat"
    result = list(shape)
    if stacks:
        result[axis] //= parts
        result.insert(axis, parts)
    flat = np.prod(result)
    op = expression_op(
        f"x: ck.f16{shape}",
        f"tuple[ck.f16{result}, ck.f16[{flat}]]",
        f"(y, y.transpose({', '.join(map(str, range(len(result))[::-1]))}).reshape(-1))",
        before=[f"y = ck.{name}(x.split({parts}, {axis})[::-1], axis={axis})"],
    )
    pieces = np.split(x, parts, axis)[::-1]
    want = np.stack(pieces, axis) if stacks else np.concatenate(pieces, axis)
    got, flattened = evaluate(op.program.specialise(), [x])
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(flattened, want.T.reshape(-1))


JOINS_OF_FORMULAS = {
    "rolled": ("ck.concat([x[:, 3:], x[:, :3]], axis=1)", "M, K", lambda x: np.roll(x, -3, 1)),
    "shifted": (
        "ck.concat([x[:1] * 0.0, x[:-1]])",
        "M, K",
        lambda x: np.vstack([0 * x[:1], x[:-1]]),
    ),
    "with a class token": (
        "ck.concat([ck.broadcast_to(x[0], (1, K)), x[1:].reshape((-1, K))])",
        "M, K",
        lambda x: x,
    ),
    "of two formulas": (
        "ck.concat([x[:, 1:], x[:, :K // 2], x[:, 2:]], axis=-1)",
        "M, 2*K + K//2 - 3",
        lambda x: np.hstack([x[:, 1:], x[:, : x.shape[1] // 2], x[:, 2:]]),
    ),
}


@pytest.mark.parametrize("words", JOINS_OF_FORMULAS)
def test_joined_parts_have_extents_of_their_own(words: str) -> None:
    joined, shape, formula = JOINS_OF_FORMULAS[words]
    op = expression_op("x: ck.f16[M, K]", f"ck.f16[{shape}]", joined)
    x = np.arange(35, dtype=np.float16).reshape(5, 7)
    (got,) = evaluate(op.program.specialise(), [x])
    np.testing.assert_array_equal(got, formula(x))


@given(st.data())
def test_shapes_have_strides_where_numpy_finds_them(data: st.DataObject) -> None:
    shape = data.draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=4))
    grown = [extent * data.draw(st.integers(1, 2)) for extent in shape]
    memory = np.zeros(grown, np.int8)[tuple(slice(extent) for extent in shape)]
    array = memory.transpose(data.draw(st.permutations(range(len(shape)))))
    wanted: list[int] = []
    left = array.size
    while left > 1:
        wanted.append(data.draw(st.sampled_from([n for n in range(2, left + 1) if left % n == 0])))
        left //= wanted[-1]
    got = reshaped_strides(array.shape, array.strides, wanted)
    view = array.view()
    try:
        view.shape = tuple(wanted)
    except AttributeError:
        assert got is None
    else:
        assert got == view.strides


@pytest.mark.parametrize(
    ("words", "result", "code"),
    [
        ("x.reshape(M, -1, -1)", "M, K", "F067"),
        ("x.reshape(-1, N)", "M, K", "F084"),
        ("x.reshape(-1, 0)", "M, K", "F067"),
        ("ck.concat([x, x.T])", "M, K", "F067"),
        ("ck.concat(x)", "M, K", "F067"),
        ("ck.concat([x, x > 0])", "M, K", "F067"),
        ("ck.stack([x, x[0]])", "M, K", "F067"),
        ("x.split((K, 1), 1)[0]", "M, K", "F067"),
        ("x.split(0, 1)[0]", "M, K", "F067"),
        ("ck.concat([x, x])", "M, K", "F084"),
    ],
)
def test_a_wrong_join_or_shape_is_an_error_with_its_place(
    words: str, result: str, code: str
) -> None:
    op = expression_op("x: ck.f16[M, K], y: ck.f16[N]", f"ck.f16[{result}]", words)
    with expect_error(code) as refusal:
        op.program.specialise()
    assert refusal.value.at is not None


def test_numbers_of_elements_are_checked_at_the_call() -> None:
    op = expression_op("x: ck.f16[M, K], y: ck.f16[N]", "ck.f16[N, 2]", "x.reshape(N, 2)")
    with expect_error("I038", match="6 elements, cannot have the shape"):
        op.explain(np.ones((2, 3), np.float16), np.ones(4, np.float16), device="emu:gfx942")
    op = expression_op("x: ck.f16[M], y: ck.f16[N]", "ck.f16[N]", "ck.concat([x, x])")
    with expect_error("I039", match="the parts of a concatenation have 4"):
        op.explain(np.ones(2, np.float16), np.ones(5, np.float16), device="emu:gfx942")
