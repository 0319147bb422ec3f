# SPDX-License-Identifier: MIT
"""Ops that call ops: the called program becomes part of the caller's, with its own annotations."""

import pickle
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.algorithms import DEEP, narrow
from tests.support.errors import expect_error

Array = np.ndarray[Any, Any]
B, M, N, K, H, P, Q = ck.dims("B M N K H P Q")
T: Any = ck.dtype_var("T", ck.f16, ck.bf16)


@ck.op
def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return x @ w.T


@ck.op
def scaled(
    x: ck.f16[M, K], factor: ck.f32, *, offset: ck.const[float] = 0.5
) -> tuple[ck.f16[M, K], ck.f32[M]]:
    return x * factor + offset, ck.sum(x, axis=1)


@ck.op
def of_any(x: T[M, K], y: T[M, K]) -> T[M, K]:
    return x.to(T) + y


@ck.op
def halves(x: ck.f16[M, K], half: ck.f16[M, K // 2]) -> ck.f32[M, K // 2]:
    return x[:, : K // 2] * half / K


def ir_of(op: Op) -> Any:
    return op.program.specialise()


def error_of(decorated: Any) -> CkError:
    with pytest.raises(CkError) as caught:
        decorated().program.specialise()
    return caught.value


def test_a_called_op_is_rounded_as_its_annotation_says_and_fused() -> None:
    @ck.op
    def mlp(x: ck.f16[B, H], w: ck.f16[Q, H]) -> ck.f16[B, Q]:
        return ck.gelu(linear(x, w))

    function = ir_of(mlp)
    product = next(each for each in function.body if each.op == "gemm")
    assert str(product.result.type) == "f32[B, Q]"
    casts = [str(each.result.type) for each in function.body if each.op == "cast"]
    assert casts == ["f16[B, Q]", "f32[B, Q]", "f16[B, Q]"]
    (kernel,) = plan_of(function).kernels
    assert kernel.family == "gemm"


def test_two_calls_have_dims_of_their_own() -> None:
    @ck.op
    def chain(x: ck.f16[M, K], up: ck.f16[N, K], down: ck.f16[K, N]) -> ck.f16[M, K]:
        return linear(ck.relu(linear(x, up)), down)

    random = np.random.default_rng(0)
    x, up, down = (random.standard_normal(s).astype(np.float16) for s in ((3, 8), (5, 8), (8, 5)))
    (got,) = evaluate(ir_of(chain), [x, up, down])
    (inner,) = evaluate(ir_of(linear), [x, up])
    (want,) = evaluate(ir_of(linear), [np.maximum(inner, np.float16(0)), down])
    np.testing.assert_array_equal(got, want)
    assert len(plan_of(ir_of(chain)).kernels) == 2


def test_several_results_constants_and_numbers() -> None:
    @ck.op
    def both(x: ck.f16[P, Q]) -> tuple[ck.f16[P, Q], ck.f32[P]]:
        y, total = scaled(x, 2.0, offset=1.0)
        return y, total + scaled(y, Q)[1]

    x = np.arange(6, dtype=np.float16).reshape(2, 3)
    y, total = evaluate(ir_of(both), [x])
    np.testing.assert_array_equal(y, x * 2 + 1)
    np.testing.assert_array_equal(total, x.sum(1) + y.sum(1))


def test_dims_and_formulas_in_the_body_are_those_of_the_call() -> None:
    @ck.op
    def caller(a: ck.f16[N, 8], b: ck.f16[N, 4]) -> ck.f32[N, 4]:
        return halves(a, b)

    @ck.op
    def wide(a: ck.f16[N, B * 2], b: ck.f16[N, B]) -> ck.f32[N, B]:
        return halves(a, b)

    a, b = np.full((2, 8), 3, np.float16), np.full((2, 4), 8, np.float16)
    for op in (caller, wide):
        np.testing.assert_array_equal(evaluate(ir_of(op), [a, b])[0], np.full((2, 4), 3.0))


def test_a_dtype_variable_follows_the_arguments() -> None:
    @ck.op
    def caller(x: ck.bf16[M, K]) -> ck.bf16[M, K]:
        return of_any(x, x)

    assert "f16[M, K] = cast" in str(ir_of(caller))

    def mixed() -> Op:
        @ck.op
        def wrong(x: ck.bf16[M, K]) -> ck.bf16[M, K]:
            return of_any(x, x.to(ck.f16))

        return wrong

    error = error_of(mixed)
    assert error.code == "F086"
    assert "T is bf16 in the argument x: write .to(ck.bf16)" in str(error)


def test_a_helper_calls_an_op() -> None:
    @ck.fn
    def twice(x, w):
        return linear(linear(x, w), w)

    @ck.op
    def caller(x: ck.f16[M, K], w: ck.f16[K, K]) -> ck.f16[M, K]:
        return twice(x, w)

    assert [each.op for each in ir_of(caller).body].count("gemm") == 2


def test_extents_that_contradict_name_both_places() -> None:
    def caller() -> Op:
        @ck.op
        def wrong(x: ck.f16[M, K], w: ck.f16[N, P]) -> ck.f16[M, N]:
            return linear(x, w)

        return wrong

    error = error_of(caller)
    assert error.code == "F087"
    assert "axis 1 of the argument w of linear is P, but K is K, axis 1 of x" in str(error)


def test_formulas_that_contradict() -> None:
    def caller() -> Op:
        @ck.op
        def wrong(a: ck.f16[N, 8], b: ck.f16[N, 3]) -> ck.f32[N, 3]:
            return halves(a, b)

        return wrong

    assert error_of(caller).code == "F087"


@pytest.mark.parametrize("bad", ["x[0]", "x.to(ck.i32)", "'x'", "(x, x)"])
def test_arguments_that_do_not_fit(bad: str, run_text: Any) -> None:
    text = (
        "@ck.op\ndef inner(x: ck.f16[M, K]) -> ck.f16[M, K]:\n    return x * 2.0\n"
        f"@ck.op\ndef f(x: ck.f16[M, K]) -> ck.f16[M, K]:\n    return inner({bad})\n"
    )
    with expect_error("F086") as caught:
        run_text(text, "bad_argument")["f"].specialise()
    assert "line 6" in str(caught.value) or ":6:" in str(caught.value)


def test_a_mistake_in_a_called_op_shows_the_call() -> None:
    @ck.op
    def picky(x: ck.f16[M, K], *, rows: ck.const[int]) -> ck.f16[M, K]:
        assert rows > 2, "rows"
        return x * 2.0

    def caller() -> Op:
        @ck.op
        def wrong(x: ck.f16[M, K]) -> ck.f16[M, K]:
            return picky(x, rows=1)

        return wrong

    error = error_of(caller)
    assert error.code == "F074"
    assert "in the call of picky at" in str(error)


def test_other_choices_of_kernels_are_the_same_program_and_another_op_is_not() -> None:
    space: dict[str, Any] = {"inner": linear}

    @ck.op
    def caller(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return space["inner"](x, w)

    space["inner"] = linear.using(strategy="first_fit")
    ir_of(caller)
    space["inner"] = scaled
    with expect_error("F017", "the op at"):
        ir_of(caller)


def test_a_caller_is_pickled_with_what_it_calls() -> None:
    @ck.op
    def caller(x: ck.f16[B, H], w: ck.f16[Q, H]) -> ck.f16[B, Q]:
        return ck.relu(linear(x, w))

    copy = pickle.loads(pickle.dumps(caller))
    assert str(ir_of(copy)) == str(ir_of(caller))
    x, w = np.eye(2, dtype=np.float16), np.full((3, 2), -1, np.float16)
    np.testing.assert_array_equal(copy.program.function(x, w), np.zeros((2, 3)))


def test_an_inner_result_may_have_a_dim_of_a_convolution() -> None:
    @ck.op
    def conv(x: ck.f16[N, H, K], w: ck.f16[M, 3, K]) -> ck.f16[N, P, M]:
        return ck.conv(x, w)

    @ck.op
    def block(x: ck.f16[B, H, K], w: ck.f16[K, 3, K]) -> ck.f16[B, Q, K]:
        return conv(conv(x, w), w)

    assert [each.op for each in ir_of(block).body].count("conv") == 2


@ck.op
def fused(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
    return linear(x, w) * 3.0


@pytest.mark.usefixtures("emulator", "stencils")
def test_one_kernel_gives_the_bits_of_two() -> None:
    random = np.random.default_rng(1)
    x, w = (random.standard_normal(shape).astype(np.float16) for shape in ((5, 40), (7, 40)))
    algorithm = narrow(0, warp_tile=DEEP)
    inner = linear.using(algorithm)(x, w)
    got = fused.using(algorithm)(x, w)
    np.testing.assert_array_equal(got, (inner.astype(np.float32) * 3).astype(np.float16))
    unrounded = (x.astype(np.float32) @ w.T.astype(np.float32) * 3).astype(np.float16)
    assert (got != unrounded).any()


def test_a_call_of_ir_text_is_refused() -> None:
    from_text = ck.parse(str(ir_of(linear)))

    def caller() -> Op:
        @ck.op
        def wrong(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
            return from_text(x, w)

        return wrong

    assert error_of(caller).code == "F013"
