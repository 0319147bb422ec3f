# SPDX-License-Identifier: MIT
"""Programs as objects: specialisations, snapshots of constants, places, errors as values."""

from __future__ import annotations

import math
import pickle
import threading
import traceback
from typing import Any

import numpy as np
import pytest

import cklang as anything
import cklang.types as ty
from cklang import gelu as activation
from cklang.errors import CkError
from cklang.frontend import functions
from cklang.frontend.helper import fn
from cklang.frontend.program import Program
from cklang.reference.evaluate import evaluate
from tests.support.errors import expect_error

M, N, K = ty.dims("M N K")
T: Any = ty.dtype_var("T")
LIMIT = 3.0


@fn
def scaled(y, factor=2.0):
    """Scale."""
    return y * factor


def scaled_product(x: T[M, K], w: T[N, K], *, factor: anything.const[float] = 0.5) -> T[M, N]:
    """Multiply, then scale."""
    return scaled(x @ w.T, factor)


def test_parameters_and_result_are_described():
    program = Program.from_function(scaled_product)
    x, w, factor = program.parameters
    assert (x.name, str(x.type), x.is_const, x.has_default) == ("x", "T[M, K]", False, False)
    assert (factor.name, str(factor.type), factor.default) == ("factor", "const[float]", 0.5)
    assert factor.is_const
    assert (factor.keyword_only, w.keyword_only) == (True, False)
    assert program.signature.tensors == (x, w)
    assert program.signature.consts == (factor,)
    assert str(program.signature.result) == "T[M, N]"
    assert dict(program.signature.variables) == {"T": T}


def test_equal_requests_give_the_same_function():
    program = Program.from_function(scaled_product)
    one = program.specialise({"T": ty.f16}, {"factor": 0.5})
    assert program.specialise({"T": ty.f16}) is one
    assert program.specialise({"T": ty.f16}, {"factor": 0.25}) is not one
    assert program.specialise({"T": ty.bf16}) is not one
    assert program.specialise({"T": ty.f16}, {"factor": math.nan}) is program.specialise(
        {"T": ty.f16}, {"factor": math.nan}
    )


def test_equal_constants_of_different_signs_are_different_programs(run_text):
    text = "@ck.op\ndef f(x: ck.f32[M], *, c: ck.const[float]) -> ck.f32[M]:\n    return x * c\n"
    program = run_text(text, "signs")["f"]
    assert program.specialise({}, {"c": 0.0}) != program.specialise({}, {"c": -0.0})


def test_operations_know_their_lines():
    function = Program.from_function(scaled_product).specialise({"T": ty.f16})
    places = {
        operation.op: (operation.span.line, operation.span.column, operation.span.end_column)
        for operation in function.body
        if operation.span is not None
    }
    first = scaled_product.__code__.co_firstlineno
    assert places["gemm"] == (first + 2, 18, 25)
    assert places["transpose"] == (first + 2, 22, 25)
    assert places["mul"][0] == scaled.definition.text.node.body[1].lineno
    assert function.span is not None
    assert function.span.source.name == __file__
    assert function.span.line == first


def test_outside_constants_are_taken_when_the_function_is_decorated(run_text):
    text = "C = 2.0\n\n@ck.op\ndef f(x: ck.f32[M]) -> ck.f32[M]:\n    return x * C\n"
    namespace = run_text(text, "snapshot")
    program = namespace["f"]
    assert "value = 2.0" in str(program.specialise())
    namespace["C"] = 3.0
    with expect_error("F017"):
        program.specialise()


def test_names_of_the_enclosing_function_resolve():
    width = 64
    bound = 1.5

    def clipped(x: anything.f16[M, width]) -> anything.f16[M, width]:
        return functions.clamp(x, -bound, bound)

    text = str(Program.from_function(clipped).specialise())
    assert "f16[M, 64]" in text
    assert "{hi = 1.5, lo = -1.5}" in text


def test_two_functions_of_one_name_are_told_apart():
    def first():
        def f(x: anything.f32[M]) -> anything.f32[M]:
            return x + 1

        return f

    def second():
        def f(x: anything.f32[M]) -> anything.f32[M]:
            return x - 1

        return f

    assert "add" in str(Program.from_function(first()).specialise())
    assert "sub" in str(Program.from_function(second()).specialise())


def test_a_helper_is_its_function_outside_a_program():
    assert scaled(1.5) == 3.0
    assert scaled.__doc__ == "Scale."
    assert repr(scaled) == "<ck.fn scaled(y, factor=2.0)>"


def test_errors_pickle_and_print_in_full(run_text):
    text = "@ck.op\ndef f(x: ck.f32[M]) -> ck.f32[M]:\n    return x + missing\n"
    with pytest.raises(SyntaxError) as caught:
        run_text(text, "pickled")
    problem = caught.value
    assert isinstance(problem, CkError)
    again = pickle.loads(pickle.dumps(problem))
    assert str(again) == str(problem)
    assert problem.to_json()["at"] == "pickled.py:3:16"
    shown = "".join(traceback.format_exception(problem))
    assert str(problem) in shown
    # The frames of the compiler are not the user's business.
    assert "names.py" not in shown


def test_threads_may_specialise_at_once():
    program = Program.from_function(scaled_product)
    results = []

    def work():
        results.append(program.specialise({"T": ty.f32}, {"factor": 0.125}))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(result == results[0] for result in results)


def test_tabs_and_wide_characters_keep_the_caret_right(run_text):
    text = "@ck.op\ndef f(x: ck.f32[M]) -> ck.f32[M]:\n\tß = 'äöü'; return x + ß\n"
    with pytest.raises(CkError) as caught:
        run_text(text, "wide")["f"].specialise()
    *_, line, carets, _ = str(caught.value).splitlines()
    assert line[carets.index("^") : carets.rindex("^") + 1] == "x + ß"


@anything.op
def linear(x: anything.f16[M, K], w: anything.f16[K, N]) -> anything.f16[M, N]:
    return activation(x @ w) + anything.relu(x @ w)


def test_names_mean_the_same_however_they_were_imported():
    assert isinstance(linear.program, Program)
    text = str(linear.program.specialise())
    assert "gelu" in text
    assert "relu" in text


SCALE = 3


def test_a_list_comprehension_is_a_tuple():
    def f(x: anything.f32[M, 6], *, count: anything.const[int] = 2) -> anything.f32[M, 6]:
        i = 7
        parts = [x[:, i : i + 2] * SCALE for i in range(0, count, 2)]
        signs = [a * b for a in (1.0, 2.0) for b in (a, -a) if a != b]
        return anything.concat(parts, axis=1) * i + signs[0] * x

    x = np.arange(12, dtype=np.float32).reshape(2, 6)
    (got,) = evaluate(Program.from_function(f).specialise(consts={"count": 6}), [x])
    np.testing.assert_array_equal(got, x * SCALE * 7 - x)
    np.testing.assert_array_equal(f(x, count=6), got)


@anything.fn
def twice(f, x, y):
    y = f(x, y)
    return f(y, y=x)


@anything.fn
def through(f, x):
    return twice(lambda x, y: f(x) + y, x, 1)


def test_lambdas_are_arguments_of_helpers():
    def f(x: anything.f32[M], z: anything.f32[M]) -> anything.f32[M]:
        y = x * z
        return through(lambda x: x * y + z, x) + twice(lambda a, y: a - SCALE * y, y, z)

    x, z = np.arange(4, dtype=np.float32), np.arange(1, 5, dtype=np.float32)
    (got,) = evaluate(Program.from_function(f).specialise(), [x, z])
    np.testing.assert_array_equal(got, f(x, z))


B, H, S, D = anything.dims("B H S D")
X = anything.f16[B, H, S, D]


@anything.fn
def scored(f, q, k, v):
    return anything.attention(q, k, v, score=lambda s, i: f(s, i), mask=anything.causal())


@anything.fn
def passed_on(f, q, k, v):
    return anything.attention(q, k, v, score=f, mask=anything.causal())


def test_lambdas_from_outside_of_a_region_read_tensors_at_indices(run_text):
    # FACTOR is a name of the text that has the lambdas, not of the helpers' module.
    text = """
from tests.frontend.test_program import S, X, passed_on, scored
FACTOR = 2.0
def through_a_helper(q: X, k: X, v: X, t: ck.f32[S]) -> X:
    return scored(lambda s, i: s * FACTOR + t[i], q, k, v)
def at_once(q: X, k: X, v: X, t: ck.f32[S]) -> X:
    return ck.attention(q, k, v, score=lambda s, i: s * FACTOR + t[i], mask=ck.causal())
def as_it_is(q: X, k: X, v: X, t: ck.f32[S]) -> X:
    return passed_on(lambda s, i: s * FACTOR + t[i], q, k, v)
"""
    functions = run_text(text, "regions")
    texts = {
        str(Program.from_function(functions[name]).specialise()).replace(name, "f")
        for name in ("through_a_helper", "at_once", "as_it_is")
    }
    assert len(texts) == 1


def test_a_lambda_is_called_with_what_it_takes():
    def f(x: anything.f32[M]) -> anything.f32[M]:
        return twice(lambda x: x, x, x)

    with expect_error("F061", match="the arguments do not fit the lambda: too many positional"):
        Program.from_function(f).specialise()


def test_arguments_of_functions_are_checked_at_decoration():
    def f(x: anything.f32[M]) -> anything.f32[M]:
        return functions.exp(x, 2)

    def g(x: anything.f32[M]) -> anything.f32[M]:
        return anything.softmax(x, dim=-1)

    def h(x: anything.f32[M]) -> anything.f32[M]:
        return scaled(x, factors=2.0)

    for function, words in ((f, "ck.exp"), (g, "axis= in the place of dim="), (h, "factors")):
        with expect_error("F061", match=words):
            Program.from_function(function)
