# SPDX-License-Identifier: MIT
"""Which products of one left operand are a pair, and what keeps them apart."""

import numpy as np
import pytest

from cklang.families import plan_of
from cklang.families.gemm.fuse.halves import with_halves
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.explain import explain
from cklang.fusion.plan import Plan
from cklang.ir.parser import parse_function
from cklang.ir.verifier import verify
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from tests.support.plans import kernel_function
from tests.support.typed import instance
from tests.support.written_ops import expression_op

PARAMS = (
    "%x: f16[M, K], %y: f16[M, K], %g: f16[K, N], %u: f16[K, N], %v: f16[N, K], %sq: f16[M, M], "
)
PARAMS += "%st: f16[M, M]"
GATE = "%a: f32[M, N] = gemm(%x, %g) %s: f32[M, N] = silu(%a) "
UP = "%b: f32[M, N] = gemm(%x, %u) "
SWIGLU = f"{GATE}{UP}%p: f32[M, N] = mul(%s, %b) %r: f16[M, N] = cast(%p) {{to = f16}} "


def planned(body: str, results: str = "%r", types: str = "f16[M, N]", params: str = PARAMS) -> Plan:
    return plan_of(parse_function(f"func @f({params}) -> {types} {{ {body} return {results} }}"))


def pairs(fusion_plan: Plan) -> list[str]:
    """Return both right operands of each kernel that has two."""
    kernels = [each for each in fusion_plan.kernels if isinstance(each, FusedGemm)]
    return [f"{each.b}, {each.b2}" for each in kernels if each.b2 is not None]


def test_a_gate_and_what_it_gates_are_one_kernel() -> None:
    fusion_plan = planned(SWIGLU)
    assert len(fusion_plan.kernels) == 1
    assert pairs(fusion_plan) == ["%u, %g"]
    text = explain(fusion_plan)
    assert "  acc = %x @ %u\n  acc1 = %x @ %g\n  %0: f32[] = silu(%acc1)\n" in text
    assert "pair %a and %b: one kernel multiplies %x by both right operands" in text


def test_a_kernel_of_both_is_the_function() -> None:
    fusion_plan = planned(SWIGLU)
    rng = np.random.default_rng(0)
    values = {"x": (5, 7), "u": (7, 6), "g": (7, 6)}
    arrays = {name: rng.standard_normal(shape).astype(np.float16) for name, shape in values.items()}
    kernel = instance(FusedGemm, fusion_plan.kernels[0])
    (got,) = evaluate(kernel_function(kernel), [arrays[v.name] for v in kernel.inputs])
    gate, up = (arrays["x"].astype(np.float32) @ arrays[n].astype(np.float32) for n in "gu")
    assert np.allclose(got.astype(np.float32), gate / (1 + np.exp(-gate)) * up, rtol=1e-2)


def test_a_pair_may_have_several_results() -> None:
    fusion_plan = planned(f"{SWIGLU}%e: f32[M, N] = relu(%b) ", "%r, %e", "f16[M, N], f32[M, N]")
    assert pairs(fusion_plan) == ["%u, %g"]
    assert [len(kernel.results) for kernel in fusion_plan.kernels] == [2]
    fusion_plan = planned(SWIGLU, "%r, %s", "f16[M, N], f32[M, N]")
    assert pairs(fusion_plan) == ["%u, %g"]
    assert [len(kernel.results) for kernel in fusion_plan.kernels] == [2]


def test_a_pair_feeds_the_next_product() -> None:
    fusion_plan = planned(f"{SWIGLU}%o: f32[M, K] = gemm(%r, %v) ", "%o", "f32[M, K]")
    assert pairs(fusion_plan) == ["%u, %g"]
    assert len(fusion_plan.kernels) == 2


TURNED = "{perm = [1, 0]}"
SEEN_TURNED = (
    "%a: f32[M, M] = gemm(%sq, %sq) %h: f16[M, M] = cast(%a) {to = f16} "
    f"%t: f16[M, M] = transpose(%h) {TURNED} %w: f32[M, M] = cast(%t) {{to = f32}} "
    "%b: f32[M, M] = gemm(%sq, %st) %r: f32[M, M] = add(%w, %b) "
)
BETWEEN = (
    f"{GATE}%h: f16[M, N] = cast(%s) {{to = f16}} %c: f32[M, K] = gemm(%h, %v) "
    f"%m: f32[M] = reduce_max(%c) {{axes = [1]}} %w: f32[M, N] = broadcast(%m) {{dims = [0]}} "
    f"{UP}%p: f32[M, N] = mul(%s, %b) %q: f32[M, N] = mul(%p, %w) "
    "%r: f16[M, N] = cast(%q) {to = f16} "
)
COMPUTED = (
    "%x1: f32[M, K] = cast(%x) {to = f32} %x2: f32[M, K] = relu(%x1) "
    "%x0: f16[M, K] = cast(%x2) {to = f16} "
)


@pytest.mark.parametrize(
    ("body", "results", "types"),
    [
        # Another left operand.
        (SWIGLU.replace("gemm(%x, %u)", "gemm(%y, %u)"), "%r", "f16[M, N]"),
        # One product twice.
        (SWIGLU.replace("gemm(%x, %u)", "gemm(%x, %g)"), "%r", "f16[M, N]"),
        # Another kernel needs what follows the first product, and is needed by what follows both.
        (BETWEEN, "%r", "f16[M, N]"),
        # A computed left operand.
        (f"{COMPUTED}{SWIGLU}".replace("gemm(%x,", "gemm(%x0,"), "%r", "f16[M, N]"),
        # The gate is seen with its axes exchanged.
        (SEEN_TURNED, "%r", "f32[M, M]"),
        # The kernel computes the transpose of its product.
        (f"{SWIGLU}%t: f16[N, M] = transpose(%r) {TURNED} ", "%t", "f16[N, M]"),
    ],
)
def test_what_keeps_products_apart(body: str, results: str, types: str) -> None:
    assert pairs(planned(body, results, types)) == []


def test_a_product_of_the_other_is_no_pair() -> None:
    body = "%a: f32[M, M] = gemm(%sq, %st) %h: f16[M, M] = cast(%a) {to = f16} "
    body += "%b: f32[M, M] = gemm(%sq, %h) %r: f32[M, M] = mul(%a, %b) "
    assert pairs(planned(body, "%r", "f32[M, M]")) == []


def test_the_sums_of_one_product_count_as_a_read() -> None:
    params = PARAMS + "".join(f", %d{i}: f16[M, N]" for i in range(8))

    def body(count: int) -> str:
        lines, total = [SWIGLU.partition("%r")[0]], "p"
        for place in range(count):
            lines.append(f"%w{place}: f32[M, N] = cast(%d{place}) {{to = f32}} ")
            lines.append(f"%s{place}: f32[M, N] = add(%{total}, %w{place}) ")
            total = f"s{place}"
        return "".join([*lines, f"%r: f16[M, N] = cast(%{total}) {{to = f16}} "])

    assert pairs(planned(body(7), params=params)) == ["%u, %g"]
    # One more is left to a kernel of rows.
    cut = planned(body(8), params=params)
    assert pairs(cut) == ["%u, %g"]
    assert [kernel.family for kernel in cut.kernels] == ["gemm", "rowwise"]


# --- two parts of the columns of one product

TOGETHER = {
    "halves": "y = x @ w.T; ck.silu(y[:, :N // 2]) * y[:, N // 2:]",
    "every other": "y = x @ w.T; ck.silu(y[:, ::2]) * y[:, 1::2]",
    "with a bias": "y = x @ w.T + b; ck.gelu(y[:, :N // 2]) + y[:, N // 2:]",
    "rounded before": "y = (x @ w.T + b).to(ck.f16); y[:, ::2] * ck.sigmoid(y[:, 1::2])",
    "with a number for each row": (
        "y = ck.relu((x @ w.T) * s[:, None]); y[:, :N // 2] - y[:, N // 2:]"
    ),
    "by split": "g, u = ck.split(x @ w.T, 2, axis=1); ck.silu(g) * u",
}
APART = {
    "one part": "y = x @ w.T; y[:, :N // 2] * 2.0",
    "parts that do not meet": (
        "y = x @ w.T; ck.softmax(y[:, :N // 2]) + ck.softmax(y[:, N // 2:])"
    ),
    "three readers": "y = x @ w.T; y[:, ::2] * y[:, 1::2] + ck.sum(y, axis=1)[:, None]",
    "rows": "y = x @ w.T; (y[:M // 2] * y[M // 2:]).reshape(M, N // 2)",
}


def op_of(body: str) -> Op:
    """Return the op of statements and an expression."""
    *before, value = body.split("; ")
    params = "x: ck.f16[M, K], w: ck.f16[N, K], b: ck.f16[N], s: ck.f32[M]"
    return expression_op(params, "ck.f32[M, N // 2]", value, before)


def families(op: Op) -> list[str]:
    return [kernel.family for kernel in plan_of(op.program.specialise()).kernels]


@pytest.mark.parametrize("name", TOGETHER)
def test_parts_that_meet_are_one_kernel(name: str) -> None:
    op = op_of(TOGETHER[name])
    assert families(op) == ["gemm"]
    function = op.program.specialise()
    halved = verify(with_halves(function))
    assert [each.op for each in halved.body].count("gemm") == 2
    rng = np.random.default_rng(0)
    x, w, b = (rng.standard_normal(s).astype(np.float16) for s in ((4, 6), (8, 6), (8,)))
    arrays = [x, w, b, rng.standard_normal(4).astype(np.float32)]
    got, want = (evaluate(each, arrays)[0] for each in (halved, function))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", APART)
def test_other_parts_are_read_from_memory(name: str) -> None:
    function = op_of(APART[name]).program.specialise()
    assert with_halves(function) is function
