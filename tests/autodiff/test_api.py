# SPDX-License-Identifier: MIT
"""``ck.vjp`` and ``ck.grad``: parameters, results, dtypes, errors, second derivatives."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.families import plan_of
from cklang.ir.nodes import Function
from cklang.reference.evaluate import evaluate
from tests.support.written_ops import expression_op, written_op

M, N = ck.dims("M N")
linear = written_op(
    """\
T = ck.dtype_var("T", ck.f16, ck.bf16, ck.f32)
@ck.op
def linear(
    x: T[M, K], w: T[N, K], scale: ck.f32[()], act: ck.const[str] = "relu"
) -> T[M, N]:
    y = x @ w.T * scale
    return ck.relu(y) if act == "relu" else ck.tanh(y)
""",
    "M N K",
    "linear",
)


@ck.op
def loss(x: ck.f32[M, N], y: ck.f32[M, N]) -> ck.f32[()]:
    return ck.mean(ck.square(ck.tanh(x) - y))


def ones(*shape: int, dtype: Any = np.float16) -> Any:
    return np.ones(shape, dtype)


def signature(function: Function) -> tuple[list[str], list[str]]:
    params = [f"{param.name} {param.type}" for param in function.params]
    return params, [str(value.type) for value in function.results]


def test_results_are_like_the_tensors() -> None:
    ir = ck.vjp(linear).ir(ones(4, 8), ones(6, 8), 2.0, dy=ones(4, 6))
    assert signature(ir) == (
        ["x f16[M, K]", "w f16[N, K]", "scale f32[]", "dy f16[M, N]"],
        ["f16[M, K]", "f16[N, K]"],
    )


def test_constants_and_dtype_variables_are_those_of_the_op() -> None:
    wide = [ones(*shape, dtype=np.float32) for shape in ((4, 8), (6, 8), (4, 6))]
    ir = ck.vjp(linear, wrt=("w", "scale")).ir(*wide[:2], 2.0, "tanh", wide[2])
    assert [str(value.type) for value in ir.results] == ["f32[N, K]", "f32[]"]
    assert any(operation.op == "tanh" for operation in ir.body)


def test_the_gradient_is_known_when_it_is_asked_for_again() -> None:
    assert ck.vjp(linear) is ck.vjp(linear)
    assert ck.vjp(linear, wrt="x") is ck.vjp(linear, wrt=("x",))
    assert ck.vjp(linear) is not ck.vjp(linear, wrt="x")
    assert ck.vjp(linear.using(strategy="first_fit")).request.strategy is not None


def test_a_gradient_is_an_op_in_a_pickle() -> None:
    gradient = ck.grad(loss, wrt="y")
    args = ones(4, 8, dtype="f"), ones(4, 8, dtype="f")
    again = pickle.loads(pickle.dumps(gradient))
    assert str(again.ir(*args)) == str(gradient.ir(*args))


def test_names_of_cotangents_are_new() -> None:
    params = "dy: ck.f32[M], dy_: ck.f32[M]"
    op = ck.vjp(expression_op(params, "(ck.f32[M], ck.f32[M])", "(dy * dy_, dy + dy_)"))
    assert [each.name for each in op.program.parameters] == ["dy", "dy_", "dy__0", "dy__1"]


def test_results_of_integers_have_no_cotangent() -> None:
    op = ck.vjp(written("(ck.max(x, -1), ck.argmax(x, -1))", "(ck.f32[M], ck.i32[M])"))
    assert [each.name for each in op.program.parameters] == ["x", "dy0"]
    assert evaluate(op.program.specialise(), [np.eye(2, dtype="f"), np.ones(2, "f")])[0].sum() == 2


@pytest.mark.parametrize("product", ["x @ w.T", "ck.conv(x, w)"])
def test_the_sum_for_a_bias_reads_what_products_read(product: str) -> None:
    """So one kernel stores the gradient before the bias, and stores it once."""
    axes = ("M, ", "") if "conv" in product else ("", "")
    shapes = {"x": f"M, {axes[0]}K", "w": "N, 1, K" if axes[0] else "N, K"}
    params = ", ".join(f"{name}: ck.f16[{shape}]" for name, shape in shapes.items())
    result = f"ck.f16[M, {axes[0]}N]"
    op = ck.vjp(expression_op(f"{params}, b: ck.f16[N]", result, f"ck.tanh({product} + b)"))
    function = op.program.specialise()
    (total,) = (each for each in function.body if each.op == "reduce_sum")
    assert total.operands[0].type.dtype == ck.f16
    assert len(plan_of(function).kernels) == 4


def test_two_equal_gradients_are_two_results() -> None:
    ir = ck.vjp(written("x + y", params="x: ck.f32[M], y: ck.f32[M]")).program.specialise()
    assert len({value.name for value in ir.results}) == 2


def numeric(function: Callable[[Any], float], x: Any, u: Any) -> float:
    step = 1e-3
    return (function(x + step * u) - function(x - step * u)) / (2 * step)


def test_second_derivatives_are_gradients_of_gradients() -> None:
    """The gradient of <grad loss, u> beside a difference of gradients along u."""
    rng = np.random.default_rng(0)
    x, y, u = rng.standard_normal((3, 4, 5))
    first = ck.grad(loss, wrt="x")
    second = ck.vjp(first, wrt="x").program.specialise()
    (got,) = evaluate(second, [x.astype("f"), y.astype("f"), u.astype("f")])
    t, inside = np.tanh(x), 2 / x.size
    # The derivative of 2/n (tanh x - y) (1 - tanh^2 x), by hand.
    want = inside * ((1 - t**2) ** 2 - 2 * (t - y) * t * (1 - t**2)) * u
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_second_derivatives_of_products_and_softmax() -> None:
    params = "x: ck.f32[M, K], w: ck.f32[K, N]"
    first = ck.vjp(written("ck.softmax(ck.tanh(x @ w))", "ck.f32[M, N]", params), wrt="x")
    second = ck.vjp(first, wrt=("x", "w", "dy")).program.specialise()
    rng = np.random.default_rng(1)
    x, w, dy, u = (rng.standard_normal(s).astype("f") for s in ((3, 4), (4, 5), (3, 5), (3, 4)))
    got = evaluate(second, [x, w, dy, u])
    ir = first.program.specialise()

    def pulled(place: int) -> Callable[[Any], float]:
        def at(value: Any) -> float:
            arrays = [x, w, dy]
            arrays[place] = value.astype("f")
            return float(np.vdot(evaluate(ir, arrays)[0].astype("d"), u))

        return at

    for place, mine in enumerate(got):
        along = rng.standard_normal(mine.shape)
        want = numeric(pulled(place), (x, w, dy)[place].astype("d"), along)
        np.testing.assert_allclose(np.vdot(mine, along), want, rtol=3e-3, atol=3e-3)


def written(body: str, result: str = "ck.f32[M]", params: str = "x: ck.f32[M, N]") -> Any:
    return expression_op(params, result, body)


def code(function: Callable[[], object]) -> str:
    with pytest.raises(ck.CkError) as caught:
        function()
    return caught.value.code


SPARSE = "ck.gemm(x, w, sparse='a').to(ck.f16)"
OPERANDS = "x: ck.f16[M, K], w: ck.f16[K, N], y: ck.f16[M, N]"


def test_an_op_without_a_rule_is_named_with_its_line() -> None:
    op = written(SPARSE, "ck.f16[M, N]", OPERANDS)
    with pytest.raises(ck.CkError) as caught:
        ck.vjp(op).program.specialise()
    text = str(caught.value)
    assert caught.value.code == "G020"
    assert "gemm24" in text
    assert SPARSE in text


def test_what_is_not_asked_for_needs_no_rule() -> None:
    op = written(f"{SPARSE} * y", "ck.f16[M, N]", OPERANDS)
    assert len(ck.vjp(op, wrt="y").program.specialise().results) == 1


def test_attentions_without_a_rule_say_what_to_write() -> None:
    heads = "ck.f16[M, 2, 8]"
    lists = "starts: ck.i32[M], lengths: ck.i32[N], table: ck.i32[K], at: ck.i32[M]"
    params = f"q: {heads}, k: ck.f16[N, 2, 4, 8], {lists}"
    keys = "cu_seqlens_q=starts, seqlens_k=lengths, block_table=table, page_starts=at"
    body = f"ck.attention(q, k, k, {keys})"
    op = written(body, heads, params)
    assert code(ck.vjp(op).program.specialise) == "G025"


@pytest.mark.parametrize("wrt", ["y", "ids", ("x", "x"), ()])
def test_wrt_names_tensors_of_floats_once(wrt: Any) -> None:
    op = written("ck.sum(x, -1) + ids", params="x: ck.f32[M, N], ids: ck.i32[M]")
    assert code(lambda: ck.vjp(op, wrt=wrt)) == "G021"


def test_grad_takes_one_element() -> None:
    assert code(lambda: ck.grad(written("ck.sum(x, -1)"))) == "G022"


def test_a_tensor_that_a_call_leaves_out_has_no_gradient() -> None:
    op = written(
        "x if y is None else x + y", "ck.f32[M]", "x: ck.f32[M], y: ck.f32[M] | None = None"
    )
    gradient = ck.vjp(op)
    x = ones(3, dtype="f")
    assert len(gradient.ir(x, x, x).results) == 2
    assert code(lambda: gradient.ir(x, None, x)) == "G023"
    assert len(ck.vjp(op, wrt="x").ir(x, None, x).results) == 1


def test_an_op_of_integers_has_no_gradient() -> None:
    assert code(lambda: ck.vjp(written("x + 1", "ck.i32[M]", "x: ck.i32[M]"))) == "G024"
    assert code(lambda: ck.vjp(written("ck.argmax(x, -1)", "ck.i32[M]"))) == "G024"


def test_the_rule_of_a_product_of_elements_is_not_differentiable() -> None:
    first = ck.vjp(written("ck.prod(x, -1)"))
    assert len(first.program.specialise().results) == 1
    assert code(ck.vjp(first, wrt="x").program.specialise) == "G026"


def test_only_ops_have_gradients() -> None:
    not_an_op: Any = np.sum
    assert code(lambda: ck.vjp(not_an_op)) == "G027"
