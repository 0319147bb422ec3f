# SPDX-License-Identifier: MIT
"""Which roots of a product are results of one kernel, and which cannot be."""

import numpy as np

import cklang as ck
from cklang.families import plan_of
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.explain import explain
from cklang.fusion.plan import Plan
from cklang.ir.parser import parse_function
from tests.support.typed import instance

M, N, K = ck.dims("M N K")
PARAMS = "%x: f16[M, K], %w: f16[K, N], %v: f16[N, K], %sq: f16[M, M], %res: f16[M, N]"
G = "%g: f32[M, N] = gemm(%x, %w) "
H = "%h: f32[M, M] = gemm(%sq, %sq) "
HALF = "%a: f16[M, N] = cast(%g) {to = f16} "
GELU = "%b0: f32[M, N] = gelu(%g) %b: bf16[M, N] = cast(%b0) {to = bf16} "


def planned(body: str, results: str, types: str, params: str = PARAMS) -> Plan:
    return plan_of(parse_function(f"func @f({params}) -> {types} {{ {body} return {results} }}"))


def written(fusion_plan: Plan) -> list[list[str]]:
    """Return the names of what each kernel writes."""
    return [[value.name for value in kernel.results] for kernel in fusion_plan.kernels]


def test_results_of_one_product_are_one_kernel() -> None:
    fusion_plan = planned(G + HALF + GELU, "%a, %b", "f16[M, N], bf16[M, N]")
    assert written(fusion_plan) == [["a", "b"]]
    kernel = instance(FusedGemm, fusion_plan.kernels[0])
    assert str(kernel.functions["epilogue"]).split("\n")[1:-1] == [
        "  %0: f32[] = gelu(%acc)",
        "  return %acc, %0",
    ]
    text = explain(fusion_plan)
    assert "kernel f: f16[M, N] %a, bf16[M, N] %b" in text
    assert "store %acc as f16\n  store %0 as bf16" in text
    assert "results %a, %b: one kernel of %g writes them" in text


def test_the_narrowest_result_has_the_widest_stores() -> None:
    body = f"{G}%e: f32[M, N] = exp(%g) {HALF}"
    assert written(planned(body, "%e, %a", "f32[M, N], f16[M, N]")) == [["a", "e"]]


def test_a_result_with_its_axes_exchanged_is_written_so() -> None:
    body = f"{G}{HALF}%t0: f32[N, M] = transpose(%g) {{perm = [1, 0]}} %t: f32[N, M] = relu(%t0) "
    fusion_plan = planned(body, "%t, %a", "f32[N, M], f16[M, N]")
    assert written(fusion_plan) == [["a", "t"]]
    kernel = instance(FusedGemm, fusion_plan.kernels[0])
    assert (kernel.axes, kernel.more[0].axes) == ((0, 1), (1, 0))


def test_a_result_that_another_kernel_reads_is_one_of_them() -> None:
    body = f"{G}{HALF}{GELU}%c: f32[M, K] = gemm(%a, %v) "
    fusion_plan = planned(body, "%b, %c", "bf16[M, N], f32[M, K]")
    assert written(fusion_plan) == [["a", "b"], ["c"]]


def test_a_kernel_does_not_read_what_it_writes() -> None:
    body = f"{H}%e: f32[M, M] = exp(%h) %t: f32[M, M] = transpose(%e) {{perm = [1, 0]}} "
    fusion_plan = planned(f"{body}%r: f32[M, M] = add(%e, %t)", "%r", "f32[M, M]")
    assert written(fusion_plan) == [["e"], ["r"]]
    assert "%e is computed again for %h: another kernel stores it" in explain(fusion_plan)


def test_a_kernel_does_not_read_a_view_of_what_it_writes() -> None:
    join = "%j: f32[2*M, M] = concat(%h, %e) {axis = 0} "
    upper = '%u: f32[M, M] = slice(%j) {axes = [0, 1], start = ["M", 0], step = [1, 1], '
    body = f'{H}%e: f32[M, M] = exp(%h) {join}{upper}stop = ["2*M", "M"]}} '
    fusion_plan = planned(f"{body}%r: f32[M, M] = add(%h, %u)", "%r", "f32[M, M]")
    assert all("r" not in names or names == ["r"] for names in written(fusion_plan))


@ck.op
def scaled(x: ck.f16[M, K], w: ck.f16[N, K], v: ck.f16[N]) -> tuple[ck.f16[M, N], ck.f32[M, N]]:
    h = x @ w.T
    y = h.to(ck.f16)
    return y, h * (y @ v)[:, None]


def test_what_another_kernel_makes_of_a_result_keeps_them_apart() -> None:
    args = [np.zeros(shape, np.float16) for shape in ((3, 4), (5, 4), (5,))]
    fusion_plan = instance(Plan, scaled.fusion(*args))
    first, between, last = (each.results for each in fusion_plan.kernels)
    y, scaled_result = fusion_plan.function.results
    assert (first, last) == ((y,), (scaled_result,))
    assert y in fusion_plan.kernels[1].inputs
    assert between[0] in fusion_plan.kernels[2].inputs


def test_reads_and_results_are_at_most_eight() -> None:
    params = "%x: f16[M, K], %w: f16[K, N], " + ", ".join(f"%d{i}: f16[M, N]" for i in range(8))

    def body(count: int) -> str:
        lines, total = [G], "g"
        for place in range(count):
            lines.append(f"%w{place}: f32[M, N] = cast(%d{place}) {{to = f32}} ")
            lines.append(f"%s{place}: f32[M, N] = add(%{total}, %w{place}) ")
            total = f"s{place}"
        return "".join([*lines, f"%r: f16[M, N] = cast(%{total}) {{to = f16}} {GELU}"])

    types = "f16[M, N], bf16[M, N]"
    for count, kernels in ((7, [["r", "b"]]), (8, [["b"], ["r"]])):
        unused = params.split(", %d")[0] + "".join(f", %d{i}: f16[M, N]" for i in range(count))
        got = written(planned(body(count), "%r, %b", types, unused))
        assert sorted(got) == sorted(kernels)
