# SPDX-License-Identifier: MIT
"""Laws: a program means what its Python text means in NumPy, for random texts and shapes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cklang.errors import CkError
from cklang.ir.parser import parse
from cklang.ir.verifier import verify
from cklang.reference.bounds import evaluate_with_bound
from cklang.reference.distance import largest_ratio
from cklang.reference.evaluate import evaluate

# A constant of a kernel is an f32 number, so constants here stay exact: no quotient and no power of
# constants alone.
LEAVES = (
    *("a", "b", "row", "flat", "turned.T", "column[:, None]", "row[None, :]", "row[None]", "s"),
    *("0.5", "2", "-1.25", "-3", "(1 + 0.5)", "SCALE", "(s + s)"),
)
UNARY = (
    *("-({0})", "+({0})", "abs({0})", "(s + {0}) ** 2", "helper({0})", "helper({0}, scale=s)"),
    *(f"ck.{name}({{0}})" for name in ("relu", "gelu", "silu", "tanh", "floor", "sign", "square")),
    *("ck.leaky_relu({0}, 0.25)", "ck.clamp({0}, -1, 1.5)", "ck.clamp({0}, s, 2)"),
)
BINARY = (
    *("({0}) + ({1})", "({0}) - ({1})", "({0}) * ({1})", "(s + {0}) / (2 + abs({1}))"),
    *("ck.minimum({0}, {1})", "ck.maximum({0}, {1})", "ck.where({0} < {1}, {0}, {1})"),
    *(
        "ck.where(({0} >= s) & ck.logical_not({1} != 0.5) | (s > {1}), {1}, {0})",
        "ck.where(~(s == 0), {0}, {1})",
    ),
)
EXPRESSIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(str.format, st.sampled_from(UNARY), inner),
        st.builds(str.format, st.sampled_from(BINARY), inner, inner),
    ),
    max_leaves=8,
)
TEXT = """
SCALE = 0.75

@ck.fn
def helper(x, scale=2.0):
    y = x * scale
    return y + x

@ck.op
def program(
    a: ck.f32[M, N], b: ck.f32[M, N], row: ck.f32[N], flat: ck.f32[1, N],
    turned: ck.f32[N, M], column: ck.f32[M], s: ck.f32,
) -> ck.f32[M, N]:
    first = {0}
    second = a + ({1})
    return second - first
"""


@settings(deadline=None)
@given(EXPRESSIONS, EXPRESSIONS, st.integers(1, 5), st.integers(1, 5), st.integers(0, 9))
def test_a_program_means_what_its_text_means_in_numpy(run_text, first, second, m, n, seed):
    program = run_text(TEXT.format(first, second), "law")["program"]
    function = program.specialise()
    verify(function)
    assert parse(str(function)).functions == (function,)

    random = np.random.default_rng(seed)
    shapes = [(m, n), (m, n), (n,), (1, n), (n, m), (m,), ()]
    arrays = [np.asarray(random.integers(-8, 9, shape) / 4, np.float32) for shape in shapes]
    (got,), (bound,) = evaluate_with_bound(function, arrays)
    want = program.function(*(array.astype(np.float64) for array in arrays))
    assert got.shape == np.shape(want)
    assert largest_ratio(got, want, bound) <= 1


SHAPES = st.lists(st.sampled_from(["M", "N", "1", "4"]), max_size=3).map(tuple)
EXTENTS = {"M": 5, "N": 7, "1": 1, "4": 4}


def annotation(shape):
    return f"ck.f32[{', '.join(shape)}]" if shape else "ck.f32"


@settings(deadline=None)
@given(st.tuples(SHAPES, SHAPES, SHAPES))
def test_shapes_broadcast_when_numpy_says_so(run_text, shapes):
    sizes = [tuple(EXTENTS[extent] for extent in shape) for shape in shapes]
    try:
        wanted = np.broadcast_shapes(*sizes)
    except ValueError:
        wanted = None
    names = {size: extent for extent, size in EXTENTS.items()}
    result = annotation([names[size] for size in wanted or ()])
    x, y, z = map(annotation, shapes)
    text = f"@ck.op\ndef f(x: {x}, y: {y}, z: {z}) -> {result}:\n    return ck.where(x > y, y, z)\n"
    if wanted is None:
        with pytest.raises(CkError) as caught:
            run_text(text, "shapes")["f"].specialise()
        assert caught.value.code in ("F042", "F026")
        return
    function = run_text(text, "shapes")["f"].specialise()
    verify(function)
    arrays = [np.zeros(size, np.float32) for size in sizes]
    assert evaluate(function, arrays)[0].shape == wanted


INDICES = st.lists(st.sampled_from([":", "None", "..."]), min_size=1, max_size=4)


@settings(deadline=None)
@given(SHAPES, INDICES)
def test_indexing_is_numpys(run_text, shape, index):
    size = tuple(EXTENTS[extent] for extent in shape)
    array = np.arange(np.prod(size), dtype=np.float32).reshape(size)
    text = f"[{', '.join(index)}]"
    try:
        wanted = eval(f"array{text}")
    except IndexError:
        wanted = None
    names = {size: extent for extent, size in EXTENTS.items()}
    result = annotation([names[s] for s in (() if wanted is None else wanted.shape)])
    program = f"@ck.op\ndef f(x: {annotation(shape)}) -> {result}:\n    return x{text}\n"
    function = run_text(program, "index")["f"]
    if wanted is None:
        with pytest.raises(CkError) as caught:
            function.specialise()
        assert caught.value.code == ("F053" if index.count("...") > 1 else "F054")
        return
    np.testing.assert_array_equal(evaluate(function.specialise(), [array])[0], wanted)
