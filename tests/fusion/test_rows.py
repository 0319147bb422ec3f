# SPDX-License-Identifier: MIT
"""How programs with reductions, norms and pointwise steps become kernels."""

from collections.abc import Sequence

import numpy as np
import pytest

import cklang as ck
from cklang.families import plan_of
from cklang.families.rowwise.fuse import FusedRows
from cklang.families.rowwise.host import MAX_READS
from cklang.fusion.explain import explain
from cklang.fusion.plan import Plan
from cklang.fusion.unfuse import kernel_program
from cklang.ir.parser import parse_function
from cklang.reference.evaluate import evaluate
from tests.support.plan_evaluation import evaluate_plan
from tests.support.plans import SHAPE
from tests.support.plans import plan_of_statements as planned
from tests.support.written_ops import expression_op


def families(plan: Plan) -> list[str]:
    """Return the family of each kernel."""
    return [each.family for each in plan.kernels]


TWO = f"tuple[{SHAPE}, {SHAPE}]"
ROWS = "ck.f32[B, H, S]"


@pytest.mark.parametrize(
    ("body", "result", "count"),
    [
        # One space of rows is one kernel, however many reductions follow from one another ...
        ("return ck.softmax(ck.rms_norm(x, gain).to(ck.f16), axis=-1)", SHAPE, 1),
        # ... up to four, each a run over the row; then what is between is stored.
        ("; ".join(["a = x"] + ["a = ck.softmax(a, axis=-1)"] * 3 + ["return a"]), SHAPE, 2),
        # Results of the same rows come together, of elements, of rows, and of what is on the way.
        ("h = (x + y).to(ck.f16); return h, ck.rms_norm(h, gain)", TWO, 1),
        ("return x.sum(-1), ck.max(x * 2.0, axis=-1)", f"tuple[{ROWS}, {ROWS}]", 1),
        ("return x + y, x * y", TWO, 1),
        # Other rows are other kernels.
        ("return x.sum(-1), x.sum(2)", f"tuple[{ROWS}, ck.f32[B, H, D]]", 2),
        ("return x - ck.max(y, axis=-1, keepdims=True), y * 2.0", TWO, 1),
        ("return ck.softmax(ck.softmax(x, axis=-1), axis=2)", SHAPE, 2),
        # Three results, of which two could not be beside the same third.
        (
            "a = (x * 2.0).to(ck.f16); return a, a.sum(-1), a.sum(2)",
            f"tuple[{SHAPE}, {ROWS}, ck.f32[B, H, D]]",
            2,
        ),
    ],
)
def test_what_shares_rows_is_one_kernel(body: str, result: str, count: int) -> None:
    plan = planned(body, result)
    assert families(plan) == ["rowwise"] * count


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return ck.rms_norm(x, gain).to(ck.f16) @ w.T", ["rowwise", "gemm"]),
        ("return ck.softmax(x @ w.T, axis=-1)", ["gemm", "rowwise"]),
        # A product divided by sums of rows: they are numbers that its epilogue reads.
        ("return x @ w.T / (1.0 + x.sum(-1)[..., None])", ["rowwise", "gemm"]),
        # What follows reductions of the product itself cannot be in its epilogue.
        ("h = x @ w.T; return h / (1.0 + h.sum(-1)[..., None])", ["gemm", "rowwise"]),
        (
            "return ck.conv(ck.softmax(x, axis=-1).to(ck.f16), window, padding=1)",
            ["rowwise", "conv"],
        ),
        ("return ck.attention((x * 0.5).to(ck.f16), y, x)", ["rowwise", "attention"]),
        # The kernel of an attention writes o as it lies, in floats; others do the rest.
        ("return ck.attention(x, y, y).to(ck.i32).to(ck.f16)", ["attention"]),
    ],
)
def test_rows_beside_other_families(body: str, expected: list[str]) -> None:
    assert families(planned(body)) == expected


def test_a_product_stores_one_value_for_several_kernels_of_rows() -> None:
    # abs(h) could be an epilogue too: the product would run again for it.
    plan = planned(
        "h = ck.silu(x @ w.T).to(ck.f16); return (h / ck.max(ck.abs(h), axis=-1, keepdims=True))"
    )
    assert families(plan) == ["gemm", "rowwise"]
    assert "abs" in explain(plan).partition("kernel f_1")[2].partition("decisions")[0]


def test_what_is_stored_for_a_product_is_read_by_its_epilogue_too() -> None:
    # The norm could also be computed again from its statistics.
    plan = planned("y = ck.layer_norm(x + y).to(ck.f16); return (y @ w.T) + y")
    assert families(plan) == ["rowwise", "gemm"]
    assert [len(kernel.results) for kernel in plan.kernels] == [1, 1]


@pytest.mark.parametrize(
    ("expression", "result"),
    [("o.mT", "ck.f16[B, H, D, S]"), ("o.to(ck.i32)", "ck.i32[B, H, S, D]")],
)
def test_what_an_attention_cannot_store_is_another_kernel(expression: str, result: str) -> None:
    plan = planned(f"o = ck.attention(x, y, y); return {expression}", result)
    assert families(plan) == ["attention", "rowwise"]


def plan_of_product(value: str, parameters: str = "", before: Sequence[str] = ()) -> Plan:
    """Return the plan of an expression of x, w and other parameters."""
    params = f"x: ck.f16[M, K], w: ck.f16[N, K], {parameters}"
    return plan_of(expression_op(params, "ck.f16[M, N]", value, before).program.specialise())


def test_an_epilogue_that_reads_too_much_is_cut() -> None:
    names = [f"a{number}" for number in range(10)]
    parameters = ", ".join(f"{name}: ck.f16[N]" for name in names)
    plan = plan_of_product(f"x @ w.T + {' + '.join(names)}", parameters)
    assert families(plan) == ["gemm", "rowwise"]
    product = explain(plan).partition("kernel f_1")[0]
    # It adds the eight that it can read.
    assert all(f"%{name}" in product for name in names[:8])
    assert "%a8" not in product


def test_a_prologue_that_reads_too_much_is_stored() -> None:
    names = [f"a{number}" for number in range(10)]
    parameters = ", ".join(f"{name}: ck.f16[K]" for name in names)
    plan = plan_of_product(f"(x + {' + '.join(names)}).to(ck.f16) @ w.T", parameters)
    assert families(plan) == ["rowwise", "gemm"]


def test_an_extent_of_a_computed_value_orders_no_kernels() -> None:
    """The indices of a pool's second axis are computed beside what that axis is an extent of."""
    image = "ck.f16[N, H, W, C]"
    params = f"x: {image}, y: {image}, z: ck.f32[N, H, W, C]"
    value = "ck.avg_pool(ck.where(z > 0.0, x, y).to(ck.f16), 3, stride=1, padding=1)"
    plan = plan_of(ck.vjp(expression_op(params, image, value)).program.specialise())
    assert families(plan).count("scatter") == 6


@pytest.mark.parametrize(
    ("table", "taken", "result"),
    [
        ("x.T", "ck.take(y, i)", "ck.f16[K, M]"),
        ("x.T", "ck.take(y, i) + 1.0", "ck.f16[K, M]"),
        ("x[:, :4].T", "ck.take(y, i)", "ck.f16[4, M]"),
        ("ck.softmax(x).to(ck.f16).T", "ck.take(y, i)", "ck.f16[K, M]"),
        ("ck.sort(x).T", "ck.take(y, i)", "ck.f16[K, M]"),
    ],
)
def test_a_transpose_is_a_table_and_a_result(table: str, taken: str, result: str) -> None:
    results = f"tuple[ck.f16[R, M], {result}]"
    op = expression_op("x: ck.f16[M, K], i: ck.i32[R]", results, f"({taken}, y)", [f"y = {table}"])
    plan = plan_of(op.program.specialise())
    written = {value.name for kernel in plan.kernels for value in kernel.results}
    assert {value.name for value in plan.function.results} <= written


def test_a_product_does_not_run_again_after_kernels_that_read_it() -> None:
    plan = plan_of_product("ck.cumsum(y * 0.5, 1) + y", before=["y = x @ w.T"])
    assert families(plan) == ["gemm", "scan", "rowwise"]


def test_what_an_attention_cannot_store_its_reader_computes() -> None:
    """A product reads it with its axes exchanged; its prologue scales and rounds it."""
    params = "q: ck.f16[B, H, S, D], w: ck.f16[D, D], g: ck.f32[D]"
    before = ["o = (ck.attention(q, q, q) * g).transpose(1, 0, 2, 3)"]
    op = expression_op(params, "ck.f16[H, B, S, D]", "(o * 0.5).to(ck.f16) @ w", before)
    plan = plan_of(op.program.specialise())
    assert families(plan) == ["attention", "gemm"]


# --- kernels that would read more than they can

SIZES = {"M": 3, "K": 8, "N": 12}


def layers(count: int) -> ck.Op:
    """Return layers of BERT without attention: two products and a norm around a residual."""
    weights = ", ".join(
        f"u{at}: ck.f16[N, K], d{at}: ck.f16[K, N], g{at}: ck.f16[K], b{at}: ck.f16[K]"
        for at in range(count)
    )
    steps = [
        step
        for at in range(count)
        for step in (
            f"y = ck.layer_norm(x, g{at}, b{at}).to(ck.f16)",
            f"x = x + (ck.gelu(y @ u{at}.T).to(ck.f16) @ d{at}.T)",
        )
    ]
    return expression_op(f"x: ck.f32[M, K], {weights}", "ck.f32[M, K]", "x", steps)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_the_gradient_of_many_layers_is_cut_where_a_kernel_would_read_too_much(count: int) -> None:
    op = ck.vjp(layers(count))
    plan = op._plan_for(op.program.specialise())
    rows = [each for each in plan.kernels if isinstance(each, FusedRows)]
    assert max(len(each.reads) for each in rows) <= MAX_READS
    assert len(plan.kernels) <= 12 * count


def test_sums_of_many_tensors_are_two_kernels() -> None:
    names = [f"x{at}" for at in range(MAX_READS + 4)]
    params = ", ".join(f"{name}: ck.f32[M, K]" for name in names)
    body = " + ".join(f"ck.tanh({name})" for name in names)
    op = expression_op(params, "ck.f32[M, K]", body)
    function = op.program.specialise()
    plan = op._plan_for(function)
    assert len(plan.kernels) == 2
    rng = np.random.default_rng(0)
    known = {name: rng.standard_normal((3, 8)).astype("f") for name in names}
    for kernel in plan.kernels:
        part = kernel_program(plan.function, kernel)
        results = evaluate(part, [known[value.name] for value in kernel.inputs])
        known |= dict(zip((value.name for value in kernel.results), results, strict=True))
    (want,) = evaluate(function, [known[name] for name in names])
    np.testing.assert_allclose(known[plan.function.results[0].name], want, rtol=1e-6)


@pytest.mark.parametrize(
    ("axis", "dims", "ids"),
    [(0, (0, 2), (5,)), (1, (0, 2), (5,)), (2, (0, 2), (2, 3)), (1, (1, 3), (3, 2)), (3, (1,), ())],
)
def test_rows_are_taken_before_they_repeat(
    axis: int, dims: tuple[int, ...], ids: tuple[int, ...]
) -> None:
    extents = (4, 3, 6, 5)
    shape = ", ".join(map(str, extents))
    table = ", ".join(str(extents[dim]) for dim in dims)
    taken = ", ".join(map(str, (*extents[:axis], *ids, *extents[axis + 1 :])))
    function = parse_function(
        f"""func @f(%x: f32[{table}], %ids: i32[{", ".join(map(str, ids))}]) -> f16[{taken}] {{
          %0: f32[{shape}] = broadcast(%x) {{dims = [{", ".join(map(str, dims))}]}}
          %1: f16[{shape}] = cast(%0) {{to = f16}}
          %2: f16[{taken}] = take(%1, %ids) {{axis = {axis}}}
          return %2
        }}"""
    )
    rng = np.random.default_rng(0)
    x = rng.standard_normal([extents[dim] for dim in dims]).astype("f")
    indices = rng.integers(0, extents[axis], ids).astype("i4")
    plan = plan_of(function)
    assert len(plan.kernels) == 1
    (got,), (want,) = evaluate_plan(plan, [x, indices]), evaluate(function, [x, indices])
    np.testing.assert_array_equal(got, want)
