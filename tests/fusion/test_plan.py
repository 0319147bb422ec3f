# SPDX-License-Identifier: MIT
"""What fuses, what does not, and the reasons given."""

import pytest

import cklang as ck
from cklang.errors import CkUnsupportedError
from cklang.families import plan_of
from cklang.families.gemm.plan import FusedGemm
from cklang.fusion.explain import explain
from cklang.fusion.kernel import RULES
from cklang.fusion.plan import Computed, Plan, View, epilogue_hash
from cklang.ir.ops import OPS, Kind
from cklang.ir.parser import parse_function
from cklang.types import dims
from tests.support.errors import expect_error
from tests.support.plans import plan, product_kernels
from tests.support.written_ops import expression_op

M, N, K = dims("M N K")

PARAMS = """%x: f16[M, K], %w: f16[K, N], %v: f16[N, K], %res: f16[M, N], %rt: f32[N, M],
  %bias: f16[N], %col: f32[M], %s: f32[], %sq: f16[M, M], %m1: f32[M, 1], %k: i32[N]"""


def planned(body: str, result: str = "f32[M, N]", params: str = PARAMS) -> Plan:
    return plan(parse_function(f"func @f({params}) -> {result} {{ {body} return %r }}"))


def reads(fusion_plan: Plan) -> list[str]:
    return [str(read) for read in product_kernels(fusion_plan)[-1].reads]


def epilogue(fusion_plan: Plan) -> list[str]:
    return str(product_kernels(fusion_plan)[-1].epilogue).split("\n")[1:-1]


def rules(fusion_plan: Plan) -> set[str]:
    return {each.rule for each in fusion_plan.decisions}


G = "%g: f32[M, N] = gemm(%x, %w) "


def test_a_bare_gemm() -> None:
    fusion_plan = planned("%r: f32[M, N] = gemm(%x, %w)")
    (kernel,) = product_kernels(fusion_plan)
    assert (str(kernel.a), str(kernel.b), kernel.reads) == ("%x", "%w", ())
    assert str(kernel.epilogue) == "func @epilogue(%acc: f32[]) -> f32[] {\n  return %acc\n}"
    assert kernel.name == "f"
    assert rules(fusion_plan) == {"operand", "store"}


def test_transposed_operands_are_views() -> None:
    fusion_plan = planned(
        "%t: f16[K, N] = transpose(%v) {perm = [1, 0]} %r: f32[M, N] = gemm(%x, %t)"
    )
    (kernel,) = product_kernels(fusion_plan)
    assert isinstance(kernel.b, View)
    assert kernel.b.perm == (1, 0)
    assert kernel.b.value.name == "v"
    assert "view" in rules(fusion_plan)


def test_two_transposes_are_none() -> None:
    fusion_plan = planned(
        "%a: f16[N, K] = transpose(%w) {perm = [1, 0]}"
        "%b: f16[K, N] = transpose(%a) {perm = [1, 0]} %r: f32[M, N] = gemm(%x, %b)"
    )
    (kernel,) = product_kernels(fusion_plan)
    assert isinstance(kernel.b, View)
    assert kernel.b.perm == (0, 1)


@pytest.mark.parametrize(
    ("read", "want"),
    [
        (
            "%d: f32[N] = cast(%bias) {to = f32} %e: f32[M, N] = broadcast(%d) {dims = [1]}",
            "%bias[n]",
        ),
        ("%e: f32[M, N] = broadcast(%col) {dims = [0]}", "%col[m]"),
        ("%e: f32[M, N] = broadcast(%s) {dims = []}", "%s[]"),
        ("%e: f32[M, N] = broadcast(%m1) {dims = [0, 1]}", "%m1[m, 0]"),
        ("%e: f32[M, N] = cast(%res) {to = f32}", "%res[m, n]"),
        ("%e: f32[M, N] = transpose(%rt) {perm = [1, 0]}", "%rt[n, m]"),
        (
            (
                "%t: f32[1, M] = transpose(%m1) {perm = [1, 0]} %u: f32[M, 1] = transpose(%t) "
                "{perm = [1, 0]} %e: f32[M, N] = broadcast(%u) {dims = [0, 1]}"
            ),
            "%m1[m, 0]",
        ),
        ("%d: f32[N] = cast(%k) {to = f32} %e: f32[M, N] = broadcast(%d) {dims = [1]}", "%k[n]"),
    ],
)
def test_reads_carry_their_index_map(read: str, want: str) -> None:
    fusion_plan = planned(f"{G} {read} %r: f32[M, N] = add(%g, %e)")
    assert reads(fusion_plan) == [want]
    (param,) = product_kernels(fusion_plan)[0].epilogue.params[1:]
    assert str(param.type) == ("i32[]" if "%k" in read else "f32[]")


def test_one_value_at_two_maps_is_two_reads() -> None:
    params = "%a: f16[M, K], %b: f16[K, M], %d: f32[M, M], %row: f32[M]"
    fusion_plan = planned(
        "%g: f32[M, M] = gemm(%a, %b) %t: f32[M, M] = transpose(%d) {perm = [1, 0]}"
        "%h: f32[M, M] = mul(%g, %d) %i: f32[M, M] = mul(%h, %t)"
        "%n: f32[M, M] = broadcast(%row) {dims = [1]} %m: f32[M, M] = broadcast(%row) {dims = [0]}"
        "%j: f32[M, M] = mul(%i, %n) %r: f32[M, M] = mul(%j, %m)",
        "f32[M, M]",
        params,
    )
    assert reads(fusion_plan) == ["%d[m, n]", "%d[n, m]", "%row[n]", "%row[m]"]


def test_the_region_is_canonical() -> None:
    one = planned(
        f"{G} %dead: f32[M, N] = exp(%g) %a: f32[M, N] = sigmoid(%g) %b: f32[M, N] = sigmoid(%g)"
        "%e: f32[M, N] = broadcast(%col) {dims = [0]} %p: f32[M, N] = mul(%a, %e)"
        "%r: f32[M, N] = add(%p, %b)"
    )
    other = planned(
        "%e: f32[M, N] = broadcast(%col) {dims = [0]} %h: f32[M, N] = gemm(%x, %w)"
        "%b: f32[M, N] = sigmoid(%h) %q: f32[M, N] = mul(%b, %e) %r: f32[M, N] = add(%q, %b)"
    )
    assert epilogue(one) == [
        "  %0: f32[] = sigmoid(%acc)",
        "  %1: f32[] = mul(%0, %d0)",
        "  %2: f32[] = add(%1, %0)",
        "  return %2",
    ]
    region = product_kernels(one)[0].epilogue
    assert region == product_kernels(other)[0].epilogue
    assert epilogue_hash(region) == epilogue_hash(product_kernels(other)[0].epilogue)
    assert len(epilogue_hash(region)) == 64
    assert "dead" in rules(one)
    swapped = planned(f"{G} %e: f32[M, N] = sigmoid(%g) %r: f32[M, N] = add(%e, %g)")
    straight = planned(f"{G} %e: f32[M, N] = sigmoid(%g) %r: f32[M, N] = add(%g, %e)")
    assert epilogue_hash(product_kernels(swapped)[0].epilogue) != (
        epilogue_hash(product_kernels(straight)[0].epilogue)
    )


EPILOGUES: dict[str, tuple[str, str, list[str]]] = {
    "pointwise ops on a read": (
        (
            "%d: f32[N] = cast(%bias) {to = f32} %e: f32[N] = exp(%d)"
            "%b: f32[M, N] = broadcast(%e) {dims = [1]} %r: f32[M, N] = mul(%b, %g)"
        ),
        "f32[M, N]",
        ["%0: f32[] = exp(%d0)", "%1: f32[] = mul(%0, %acc)", "return %1"],
    ),
    "the last cast is the store and others stay": (
        (
            "%h: f16[M, N] = cast(%g) {to = f16} %i: f32[M, N] = cast(%h) {to = f32}"
            "%r: bf16[M, N] = cast(%i) {to = bf16}"
        ),
        "bf16[M, N]",
        ["%0: f16[] = cast(%acc) {to = f16}", "%1: f32[] = cast(%0) {to = f32}", "return %1"],
    ),
    "an integer goes to the store as f32": (
        "%h: i32[M, N] = cast(%g) {to = i32} %r: f16[M, N] = cast(%h) {to = f16}",
        "f16[M, N]",
        ["%0: i32[] = cast(%acc) {to = i32}", "%1: f32[] = cast(%0) {to = f32}", "return %1"],
    ),
}


@pytest.mark.parametrize("what", EPILOGUES)
def test_the_epilogue(what: str) -> None:
    body, result, lines = EPILOGUES[what]
    assert epilogue(planned(f"{G} {body}", result)) == [f"  {line}" for line in lines]


def test_the_accumulator_may_be_unused() -> None:
    fusion_plan = planned(
        f"{G} %y: bool[M, N] = ne(%g, %g) %d: f32[M, N] = cast(%res) {{to = f32}}"
        "%z: f32[M, N] = where(%y, %d, %d) %r: f32[M, N] = exp(%z)"
    )
    assert reads(fusion_plan) == ["%res[m, n]"]


def test_a_transposed_result_exchanges_a_and_b() -> None:
    fusion_plan = planned(
        f"{G} %b: f32[M, N] = broadcast(%col) {{dims = [0]}} %h: f32[M, N] = add(%g, %b)"
        "%r: f32[N, M] = transpose(%h) {perm = [1, 0]}",
        "f32[N, M]",
    )
    (kernel,) = product_kernels(fusion_plan)
    assert isinstance(kernel, FusedGemm)
    assert kernel.transposed
    assert (str(kernel.a), str(kernel.b)) == ("%w.T", "%x.T")
    assert reads(fusion_plan) == ["%col[n]"]


CHAIN = """%g: f32[M, N] = gemm(%x, %w) %a: f32[M, N] = relu(%g)
  %h: f16[M, N] = cast(%a) {to = f16} %g2: f32[M, K] = gemm(%h, %v)"""


def test_a_chain_of_gemms_is_cut_at_the_operand() -> None:
    fusion_plan = planned(f"{CHAIN} %r: f32[M, K] = exp(%g2)", "f32[M, K]")
    first, second = product_kernels(fusion_plan)
    assert first.result.name == "h"
    assert second.a.value == first.result
    assert (first.name, second.name) == ("f_0", "f_1")
    (cut,) = [each for each in fusion_plan.decisions if each.rule == "materialise"]
    assert not cut.fused
    assert cut.reason == "%h comes from gemm %g: its kernel writes it, %g2 loads it"


def test_a_value_read_by_a_later_kernel_is_written_narrow() -> None:
    fusion_plan = planned(
        "%g: f32[M, M] = gemm(%sq, %sq) %h: f16[M, M] = cast(%g) {to = f16}"
        "%i: f32[M, M] = cast(%h) {to = f32} %t: f32[M, M] = transpose(%i) {perm = [1, 0]}"
        "%j: f32[M, M] = gemm(%sq, %sq) %r: f32[M, M] = add(%t, %j)",
        "f32[M, M]",
    )
    assert [str(kernel.result.type) for kernel in product_kernels(fusion_plan)] == [
        "f16[M, M]",
        "f32[M, M]",
    ]
    assert reads(fusion_plan) == ["%h[n, m]"]


def test_several_crossings_follow_from_one_value() -> None:
    fusion_plan = planned(
        "%g: f32[M, M] = gemm(%sq, %sq) %p: f32[M, M] = neg(%g) %a: f32[M, M] = exp(%p)"
        "%b: f32[M, M] = tanh(%p) %j: f32[M, M] = gemm(%sq, %sq) %c: f32[M, M] = mul(%a, %j)"
        "%r: f32[M, M] = add(%c, %b)",
        "f32[M, M]",
    )
    assert [kernel.result.name for kernel in product_kernels(fusion_plan)] == ["p", "r"]
    assert len(product_kernels(fusion_plan)[-1].epilogue.body) == 4


def test_a_bool_crossing_is_computed_by_its_reader() -> None:
    fusion_plan = planned(
        "%g: f32[M, M] = gemm(%sq, %sq) %p: bool[M, M] = lt(%g, %g)"
        "%j: f32[M, M] = gemm(%sq, %sq) %r: f32[M, M] = where(%p, %j, %j)",
        "f32[M, M]",
    )
    assert [kernel.result.name for kernel in product_kernels(fusion_plan)] == ["g", "r"]


def test_an_anchor_is_computed_twice_when_one_result_cannot_serve() -> None:
    fusion_plan = planned(
        "%g: f32[M, M] = gemm(%sq, %sq) %e: f32[M, M] = exp(%g)"
        "%t: f32[M, M] = transpose(%e) {perm = [1, 0]} %r: f32[M, M] = add(%e, %t)",
        "f32[M, M]",
    )
    assert [kernel.anchors for kernel in product_kernels(fusion_plan)] == [("g",)] * 2
    assert reads(fusion_plan) == ["%e[n, m]"]
    assert "recompute" in rules(fusion_plan)


def test_every_edge_has_a_decision_and_every_rule_a_sentence() -> None:
    fusion_plan = planned(f"{CHAIN} %r: f32[M, K] = exp(%g2)", "f32[M, K]")
    decided = {(e.edge.source, e.edge.target, e.edge.operand) for e in fusion_plan.decisions}
    assert decided == set(fusion_plan.graph.edges(keys=True))
    assert rules(fusion_plan) <= set(RULES)
    text = explain(fusion_plan)
    for each in fusion_plan.decisions:
        assert each.reason in text


SCALED = """%c: f32[M, K] = cast(%x) {to = f32} %b: f32[M, K] = broadcast(%col) {dims = [0]}
  %e: f32[M, K] = mul(%c, %b) %h: f16[M, K] = cast(%e) {to = f16}"""


def test_what_follows_no_product_is_computed_as_it_is_loaded() -> None:
    fusion_plan = planned(f"{SCALED} %r: f32[M, N] = gemm(%h, %w)")
    (kernel,) = product_kernels(fusion_plan)
    assert isinstance(kernel.a, Computed)
    assert [read.indexed("mk") for read in kernel.a.reads] == ["%x[m, k]", "%col[m]"]
    assert [str(value) for value in kernel.inputs] == ["%x", "%col", "%w"]
    prologue = kernel.functions["prologue_a"]
    assert [str(each.op) for each in prologue.body] == ["mul"]
    assert {"prologue", "read", "index", "operand"} <= rules(fusion_plan)
    text = explain(fusion_plan)
    assert "a1 = %col[m]: f32[M]" in text
    assert "%h = %0 as f16, as it is loaded" in text


def test_a_transposed_kernel_exchanges_its_prologues() -> None:
    body = f"{SCALED} %g: f32[M, N] = gemm(%h, %w) %r: f32[N, M] = transpose(%g) {{perm = [1, 0]}}"
    (kernel,) = product_kernels(planned(body, "f32[N, M]"))
    assert isinstance(kernel, FusedGemm)
    assert kernel.transposed
    assert isinstance(kernel.b, Computed)
    assert [read.axes for read in kernel.b.reads] == [(1, 0), (None, 0)]
    assert kernel.b.extents == (K, M)
    assert str(kernel.a) == "%w.T"


def test_a_prologue_in_front_of_two_products_is_computed_by_both() -> None:
    body = f"""{SCALED} %g: f32[M, N] = gemm(%h, %w) %q: f16[M, N] = cast(%g) {{to = f16}}
      %t: f16[N, M] = transpose(%q) {{perm = [1, 0]}} %r: f32[N, K] = gemm(%t, %h)"""
    fusion_plan = planned(body, "f32[N, K]")
    assert len(fusion_plan.kernels) == 2
    assert all("mul" in str(kernel.epilogue) for kernel in product_kernels(fusion_plan))
    assert "shared" in rules(fusion_plan)


def test_a_broadcast_is_an_operand_that_copies_nothing() -> None:
    body = "%b: f16[K, N] = broadcast(%bias) {dims = [1]} %r: f32[M, N] = gemm(%x, %b)"
    (kernel,) = product_kernels(planned(body))
    assert isinstance(kernel.b, Computed)
    assert [read.axes for read in kernel.b.reads] == [(None, 0)]
    assert kernel.functions["prologue_b"].body == ()


def test_a_prologue_reads_what_another_product_wrote_once() -> None:
    params = "%x: f16[M, K], %w: f16[K, 1], %v: f16[M, K], %u: f16[K, N]"
    body = """%g: f32[M, 1] = gemm(%x, %w) %b: f32[M, K] = broadcast(%g) {dims = [0, 1]}
      %c: f32[M, K] = cast(%v) {to = f32} %e: f32[M, K] = mul(%b, %c)
      %h: f16[M, K] = cast(%e) {to = f16} %r: f32[M, N] = gemm(%h, %u)"""
    fusion_plan = planned(body, params=params)
    first, second = product_kernels(fusion_plan)
    assert isinstance(second.a, Computed)
    assert second.a.reads[0].value == first.result
    assert second.a.reads[0].axes == (0, None)
    assert "materialise" in rules(fusion_plan)


def test_the_graph_has_parallel_edges() -> None:
    fusion_plan = planned(f"{G} %r: f32[M, N] = mul(%g, %g)")
    node = next(n for n, d in fusion_plan.graph.nodes(data="node") if d.value.name == "r")
    assert fusion_plan.graph.number_of_edges(node - 1, node) == 2
    rules = {
        (each.edge.source, each.edge.target, each.edge.operand): each.rule
        for each in fusion_plan.decisions
    }
    assert rules[node - 1, node, 1] == "accumulator"


@pytest.mark.parametrize(
    ("code", "body", "result"),
    [
        ("X002", "%r: f16[K, N] = transpose(%v) {perm = [1, 0]}", "f16[K, N]"),
        ("X002", "%r: f32[M] = exp(%col)", "f32[M]"),
        (
            "X003",
            (
                "%c: f32[] = constant() {value = 2.0} %b: f32[M, K] = broadcast(%c) {dims = []}"
                "%h: f16[M, K] = cast(%b) {to = f16} %r: f32[M, N] = gemm(%h, %w)"
            ),
            "f32[M, N]",
        ),
        ("X006", f"{G} %r: bool[M, N] = lt(%g, %g)", "bool[M, N]"),
        (
            "X007",
            "%o: f16[1, N] = broadcast(%bias) {dims = [1]} %r: f32[M, N] = exp(%col)",
            "f32[M, N]",
        ),
    ],
)
def test_refusals(code: str, body: str, result: str) -> None:
    if code == "X007":
        params = "%x: f16[M, K], %w: f16[K, 1], %d: f32[M, N]"
        body = (
            "%g: f32[M, 1] = gemm(%x, %w) %b: f32[M, N] = broadcast(%g) {dims = [0, 1]}"
            "%r: f32[M, N] = add(%b, %d)"
        )
    else:
        params = PARAMS
    with expect_error(code, kind=CkUnsupportedError) as caught:
        planned(body, result, params)
    assert caught.value.at is not None
    assert "legal" in caught.value.hint


_SEVERAL = (
    "func @f(%x: f32[M, M]) -> f32[M, M], f32[M, M] {{"
    "%g: f32[M, M] = gemm(%x, %x) %h: f32[M, M] = exp(%g) return {} }}"
)


def test_several_results_have_a_kernel_each() -> None:
    kernels = plan(parse_function(_SEVERAL.format("%g, %h"))).kernels
    assert [value.name for kernel in kernels for value in kernel.results] == ["g", "h"]


def test_one_value_twice_is_refused() -> None:
    with expect_error("X001", kind=CkUnsupportedError):
        plan(parse_function(_SEVERAL.format("%h, %h")))


def _sum_of(count: int) -> Plan:
    params = ", ".join(
        ["%x: f16[M, K]", "%w: f16[K, N]"] + [f"%d{i}: f32[M, N]" for i in range(count)]
    )
    steps = [f"%s{i}: f32[M, N] = add({f'%s{i - 1}' if i else '%g'}, %d{i})" for i in range(count)]
    text = f"{G} {' '.join(steps)} %r: f32[M, N] = neg(%s{count - 1})"
    return planned(text, params=params)


def test_eight_reads_are_the_limit() -> None:
    assert len(product_kernels(_sum_of(8))[0].reads) == 8
    with expect_error("X004", kind=CkUnsupportedError) as caught:
        _sum_of(9)
    assert "reads 9 values; the limit of a kernel is 8" in caught.value.message
    assert "%d8[m, n]" in caught.value.hint


def test_long_chains_are_planned() -> None:
    steps = [f"%c{i + 1}: f32[M, N] = exp(%c{i})" for i in range(3000)]
    fusion_plan = planned(
        f"%c0: f32[M, N] = gemm(%x, %w) {' '.join(steps)} %r: f32[M, N] = neg(%c3000)"
    )
    assert len(product_kernels(fusion_plan)[0].epilogue.body) == 3001


INTEGERS = "%x: i8[M, K], %w: i8[K, N], %bias: i32[M, N]"


def integers(body: str, result: str) -> Plan:
    return plan(
        parse_function(
            f"func @f({INTEGERS}) -> {result} {{ %g: i32[M, N] = gemm(%x, %w) {body} return %r }}"
        )
    )


def test_an_integer_product_has_an_integer_accumulator() -> None:
    (kernel,) = product_kernels(integers("%r: i32[M, N] = add(%g, %bias)", "i32[M, N]"))
    assert [str(p.type.dtype) for p in kernel.epilogue.params] == ["i32", "i32"]
    assert kernel.epilogue.results[0].type.dtype.name == "i32"


def test_a_narrow_integer_is_made_in_the_region_and_floats_in_the_store() -> None:
    narrow = integers("%r: i8[M, N] = cast(%g) {to = i8}", "i8[M, N]")
    assert epilogue(narrow) == [
        "  %0: i8[] = cast(%acc) {to = i8}",
        "  %1: i32[] = cast(%0) {to = i32}",
        "  return %1",
    ]
    half = integers("%r: f16[M, N] = cast(%g) {to = f16}", "f16[M, N]")
    assert epilogue(half) == ["  %0: f32[] = cast(%acc) {to = f32}", "  return %0"]


def test_8_bit_floats_arrive_widened_and_are_stored() -> None:
    fusion_plan = plan(
        parse_function(
            "func @f(%x: fp8[M, K], %w: bf8[K, N], %d: fp8[M, N]) -> bf8[M, N] {"
            "%g: f32[M, N] = gemm(%x, %w) %e: f32[M, N] = cast(%d) {to = f32}"
            "%h: f32[M, N] = mul(%g, %e) %r: bf8[M, N] = cast(%h) {to = bf8} return %r }"
        )
    )
    assert epilogue(fusion_plan)[-1] == "  return %0"
    assert [str(p.type.dtype) for p in product_kernels(fusion_plan)[0].epilogue.params] == [
        "f32",
        "f32",
    ]


def test_scales_of_blocks_are_read_as_they_are_stored() -> None:
    params = "%x: fp8[M, K], %w: fp8[K, N], %s: f32[M, K/128], %t: f32[K/128, N]"
    body = """%e: f32[M, K/128] = exp(%s)
      %r: f32[M, N] = scaled_gemm(%x, %w, %e, %t) {block_a = [1, 128], block_b = [128, 1]}"""
    with expect_error("X005", kind=CkUnsupportedError) as caught:
        planned(body, params=params)
    assert "the first scale of scaled_gemm is computed by exp" in caught.value.message


# --- the order of launches

HEADS = "ck.f16[B, 2, S, 64]"
BODIES = {
    # The product that reads lse is before what is stored of o.
    "lse is needed before o": "((q @ k.mT - l[..., None]) @ k) * 0.5 + dy * o",
    "o depends on lse": "o * ck.exp(l * 0.1)[..., None] + dy",
    "lse of a norm": "ck.rms_norm(o) * ck.sigmoid(l)[..., None]",
}


def op_of(body: str) -> ck.Op:
    params = f"q: {HEADS}, k: {HEADS}, v: {HEADS}, dy: {HEADS}"
    return expression_op(params, HEADS, body, ["o, l = ck.attention(q, k, v, return_lse=True)"])


def expect_order(op: ck.Op) -> None:
    plan = plan_of(op.program.specialise())
    views = (Kind.JOIN, Kind.VIEW, Kind.SHAPE)
    bases = {
        each.result.name: [value.name for value in each.operands]
        for each in plan.function.body
        if OPS[each.op].kind in views
    }
    computed = {each.result.name for each in plan.function.body} - set(bases)
    written: set[str] = set()
    for kernel in plan.kernels:
        names = [value.name for value in kernel.inputs]
        while names:
            name = names.pop()
            names += bases.get(name, [])
            kind = next((e.op for e in plan.function.body if e.result.name == name), "constant")
            is_number = kind in ("constant", "extent", "arange")
            assert name in written or name not in computed or is_number, name
        written |= {value.name for value in kernel.results}


@pytest.mark.parametrize("name", BODIES)
def test_attention_beside_readers_of_its_log_sum(name: str) -> None:
    expect_order(op_of(BODIES[name]))


def test_a_constant_beside_another_result() -> None:
    text = """
    func @f(%x: f32[M]) -> f16[M], f16[M] {
      %0: f32[] = constant() {value = 0.0}
      %1: f32[M] = broadcast(%0) {dims = []}
      %2: f16[M] = cast(%1) {to = f16}
      %3: f32[M] = exp(%x)
      %4: f16[M] = cast(%3) {to = f16}
      return %4, %2
    }"""
    expect_order(ck.parse(text))


def test_the_gradient_of_an_attention() -> None:
    expect_order(ck.vjp(op_of("o + dy")))
