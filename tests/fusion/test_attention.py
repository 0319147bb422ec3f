# SPDX-License-Identifier: MIT
"""What fusion makes of an attention: windows, expressions, names, refusals, and the C of it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.families.attention.functions import attention_fill
from cklang.families.attention.masks import WindowMask, split_mask
from cklang.families.attention.plan import FusedAttention, region_hash
from cklang.families.attention.variants import variant_of
from cklang.fusion.explain import explain
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.fusion.plan import Plan
from cklang.ir.attention import INDICES, region_params
from cklang.ir.nodes import Function
from cklang.reference.evaluate import evaluate
from tests.support.plan_evaluation import evaluate_plan
from tests.support.plans import attention_kernel
from tests.support.typed import instance
from tests.support.written_ops import written_op

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


def planned(**options: Any) -> Plan:
    """Return the plan of an attention; options are texts of its arguments."""
    source = ", ".join(f"{name}={text}" for name, text in options.items())
    text = (
        "@ck.op\n"
        "def f(q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E],\n"
        "      slopes: ck.f32[H], bias: ck.f16[B, H, S, T], doc: ck.i32[B, S], sm: ck.f32\n"
        ") -> ck.f16[B, H, S, E]:\n"
        f"    return ck.attention(q, k, v, {source})\n"
    )
    return plan_of(written_op(text, "B H G S T D E").program.specialise())


@pytest.mark.parametrize(
    ("mask", "want", "rest"),
    [
        ("None", WindowMask(), False),
        ("ck.causal()", WindowMask(right=0), False),
        ("ck.causal('bottom_right')", WindowMask(right=0, from_bottom_right=True), False),
        ("ck.sliding_window(7, 3)", WindowMask(left=7, right=3), False),
        ("ck.sliding_window(7, None)", WindowMask(left=7), False),
        ("ck.sliding_window(None, None, sink=3)", WindowMask(), False),
        (
            "ck.sliding_window(7, 0, 'bottom_right', 4)",
            WindowMask(left=7, right=0, from_bottom_right=True, sink=4),
            False,
        ),
        ("lambda i, j: j <= i", WindowMask(right=0), False),
        ("lambda i, j: i >= j", WindowMask(right=0), False),
        ("lambda i, j: (i - j >= 0) & (i - j < 8)", WindowMask(left=7, right=0), False),
        ("lambda i, j: j - i < 4", WindowMask(right=3), False),
        ("lambda i, j: (j < 2) | (i - 5 <= j)", WindowMask(left=5, sink=2), False),
        (
            "lambda i, j, q_len, k_len: j <= i + k_len - q_len",
            WindowMask(right=0, from_bottom_right=True),
            False,
        ),
        ("lambda b, i, j: (j <= i) & (doc[b, i] == doc[b, j])", WindowMask(right=0), True),
        ("lambda i, j: j < i", WindowMask(), True),  # a window beside the diagonal
        ("lambda i, j: (j <= i) | (j < 3)", WindowMask(), True),
        ("lambda i, j: (j <= i) & (j <= i + 4)", WindowMask(right=0), True),
        (
            "lambda i, j, q_len, k_len: (j <= i) & (j >= i + k_len - q_len)",
            WindowMask(right=0),
            True,
        ),
        ("lambda i, j: j <= 2 * i", WindowMask(), True),
        ("lambda j, k_len: j < k_len", WindowMask(), True),
    ],
)
def test_windows_are_told_from_other_masks(mask: str, want: WindowMask, rest: bool) -> None:
    kernel = attention_kernel(planned(mask=mask))
    assert kernel.window == want
    assert (kernel.mask is not None) == rest


def _visible(window: WindowMask, i: Any, j: Any, q_len: int, k_len: int) -> Any:
    at = i + (k_len - q_len if window.from_bottom_right else 0)
    visible = np.ones(np.broadcast_shapes(i.shape, j.shape), bool)
    if window.right is not None:
        visible &= j <= at + window.right
    if window.left is not None:
        visible &= (j >= at - window.left) | (j < window.sink)
    return visible


@st.composite
def masks(draw: st.DrawFn) -> str:
    """Draw a mask of comparisons of i, j, lengths and small numbers."""

    def side() -> str:
        terms = draw(
            st.lists(st.sampled_from(["i", "j", "q_len", "k_len"]), min_size=1, max_size=3)
        )
        signs = [draw(st.sampled_from(["+", "-"])) for _ in terms]
        words = [f"{sign} {term}" for sign, term in zip(signs, terms, strict=True)]
        return " ".join(["0", *words, f"+ {draw(st.integers(-9, 9))}"]).replace("0 + ", "", 1)

    def comparison() -> str:
        near = draw(st.booleans())
        sign = draw(st.sampled_from(["<", "<=", ">", ">="]))
        if near:
            return f"(j {sign} i + {draw(st.integers(-3, 9))})"
        return f"({side()} {sign} j)"

    parts = [comparison() for _ in range(draw(st.integers(1, 3)))]
    joints = [draw(st.sampled_from([" & ", " & ", " | "])) for _ in parts[1:]]
    text = parts[0]
    for joint, part in zip(joints, parts[1:], strict=True):
        text = f"({text}{joint}{part})"
    return f"lambda i, j, q_len, k_len: {text}"


@given(masks(), st.integers(1, 9), st.integers(1, 9))
def test_window_and_rest_are_the_mask(mask: str, q_len: int, k_len: int) -> None:
    plan = planned(mask=mask)
    kernel = attention_kernel(plan)
    i, j = np.ogrid[:q_len, :k_len]
    want = eval(mask)(i, j, q_len, k_len)
    got = _visible(kernel.window, i, j, q_len, k_len)
    if kernel.mask is not None:
        got = got & _run(kernel.mask, i, j, q_len, k_len)
    np.testing.assert_array_equal(got, np.broadcast_to(want, got.shape))


def _run(region: Function, i: Any, j: Any, q_len: int, k_len: int) -> Any:
    body = {value.name: value for value in region.params}
    constants = {"b": 0, "h": 0, "q_len": q_len, "k_len": k_len}
    result = np.empty(np.broadcast_shapes(i.shape, j.shape), bool)
    for place in np.ndindex(result.shape):
        numbers = {**constants, "i": place[0], "j": place[1]}
        result[place] = evaluate(region, [np.int32(numbers[name]) for name in body])[0]
    return result


@pytest.mark.parametrize(
    ("score", "name"),
    [
        ("None", "none"),
        ("lambda s: s", "none"),
        ("lambda s: 30.0 * ck.tanh(s / 30.0)", "soft cap"),
        ("lambda s: ck.tanh(s / 30.0) * 30.0", "soft cap"),
        ("lambda s: 20.0 * ck.tanh(s / 30.0)", "expression"),
        ("lambda s, h, i, j: s + slopes[h] * (j - i).to(ck.f32)", "ALiBi"),
        ("lambda s, h, i, j: s - slopes[h] * ck.abs((i - j).to(ck.f32))", "ALiBi"),
        ("lambda s, h, i, j: s - slopes[h] * (j - i).to(ck.f32)", "expression"),
        ("lambda s, b, h, i, j: s + bias[b, h, i, j]", "bias"),
        ("lambda s, b, h, i, j: s + bias[b, h, j, i]", "expression"),
    ],
)
def test_known_scores_are_named(score: str, name: str) -> None:
    plan = planned(score=score)
    kernel = attention_kernel(plan)
    assert kernel.variant == name
    assert (kernel.score is None) == (name == "none")
    assert f"variant {name}:" in explain(plan)


@pytest.mark.parametrize(
    ("score", "more", "own"),
    [
        ("50.0 * ck.tanh(s / 50.0)", {}, 50.0),
        ("65.0 * ck.tanh(s / 65.0)", {}, 0.0),
        ("-50.0 * ck.tanh(s / -50.0)", {}, 0.0),
        ("50.0 * ck.tanh(s / 50.0)", {"scale": "-0.5"}, 0.0),
        ("50.0 * ck.tanh(s / 50.0)", {"scale": "0.5"}, 50.0),
    ],
)
def test_a_soft_cap_is_ck_tiles_own_where_its_tanh_is_close_enough(
    score: str, more: dict[str, str], own: float
) -> None:
    plan = planned(score=f"lambda s: {score}", **more)
    kernel = attention_kernel(plan)
    assert kernel.soft_cap == own
    assert ("score" not in kernel.functions) == bool(own)
    assert kernel.as_written.functions.get("score") == kernel.score
    said = "CK Tile's own computes it" if own else "it is computed as an expression"
    assert f"the score function is a soft cap; {said}" in explain(plan)


def test_a_scale_that_is_not_above_0_needs_a_function() -> None:
    assert attention_kernel(planned(scale="0.5")).score is None
    assert attention_kernel(planned(scale="-0.5")).score is not None
    assert attention_kernel(planned(scale="sm")).score is not None


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("X018", "return ck.attention(q, k, v, score=lambda s, h: s + t[h])"),
        ("X018", "return ck.attention(q, k, v) * t[:, None, None]"),
    ],
)
def test_refusals(code: str, body: str) -> None:
    text = (
        "@ck.op\n"
        "def f(q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D],\n"
        f"      t: ck.fp8[H]) -> {_result(body)}:\n"
        f"    {body}\n"
    )
    op = written_op(text, "B H S D")
    with pytest.raises(CkError, match=f"CK-{code}"):
        plan_of(op.program.specialise())


def _result(body: str) -> str:
    """Return the annotation of what ``body`` returns."""
    o = "ck.f16[B, H, S, D]"
    if "return o, " in body:
        return f"tuple[{o}, {o}]"
    if "return l" in body:
        return f"tuple[ck.f32[B, H, S], {o}]"
    return {"mT": "ck.f16[B, H, D, S]", "i32)": "ck.i32[B, H, S, D]"}.get(
        body.rpartition(".")[2], o
    )


def test_what_is_computed_of_o_is_a_region() -> None:
    text = (
        "@ck.op\n"
        "def f(q: ck.f16[B, H, S, D], k: ck.f16[B, H, S, D], v: ck.f16[B, H, S, D],\n"
        "      slopes: ck.f32[H], gate: ck.f16[B, 1, S, D], w: ck.f32) -> ck.bf16[B, H, S, D]:\n"
        "    o = ck.attention(q, k, v, score=lambda s, h: s * slopes[h])\n"
        "    return ck.silu(gate) * o * w + slopes[:, None, None]\n"
    )
    plan = plan_of(written_op(text, "B H S D").program.specialise())
    kernel = attention_kernel(plan)
    # slopes is read by both functions and is one tensor of the kernel.
    assert [value.name for value in kernel.reads] == ["slopes", "gate", "w"]
    assert str(kernel.o.type) == "bf16[B, H, S, D]"
    fill = attention_fill(kernel.functions)
    assert "CK_FUNCTION float ck_output(float o, CK_ATTENTION_PARAMS)" in fill
    assert "const int v0 = 0;" in fill
    gate = " + ".join(
        f"ck_at({index}, t[1].extent[{axis}], t[1].stride[{axis}])"
        for axis, index in enumerate(("b", "v0", "i", "j"))
    )
    assert gate in fill
    assert "ck_at(h, t[0].extent[0], t[0].stride[0])" in fill
    assert "output" in explain(plan)


def test_the_fill_reads_tensors_within_their_axes() -> None:
    plan = planned(
        score="lambda s, b, h, i, j: s + bias[b, h, i - 1, j] + slopes[h] * sm",
        mask="lambda b, i, j: doc[b, i] == doc[b, j]",
    )
    kernel = attention_kernel(plan)
    text = attention_fill(kernel.functions)
    assert "CK_FUNCTION float ck_score(float s, CK_ATTENTION_PARAMS)" in text
    assert "CK_FUNCTION int ck_mask(CK_ATTENTION_PARAMS)" in text
    assert "((const CK_GLOBAL _Float16 *)t[0].data)[ck_at(b, t[0].extent[0]," in text
    assert "t[0].stride[0]) + ck_at(h, t[0].extent[1], t[0].stride[1])" in text
    assert "((const CK_GLOBAL float *)t[2].data)[0]" in text
    assert attention_fill(NO_FUNCTIONS) == ""
    assert "ck_score" not in attention_fill(Functions(mask=kernel.mask))


def test_lengths_have_their_names_in_c() -> None:
    kernel = attention_kernel(planned(mask="lambda j, k_len, q_len: j * 2 < k_len + q_len"))
    assert "(unsigned)T + (unsigned)S" in attention_fill(Functions(mask=kernel.mask))


def test_regions_have_identities() -> None:
    one, other = (
        attention_kernel(planned(score=f"lambda s: s * {n}")).score for n in ("2.0", "3.0")
    )
    assert region_hash(one) != region_hash(other)
    assert region_hash(None) == ""
    assert variant_of(one) == "expression" if one is not None else False
    names = [value.name for value in region_params("mask", [])]
    assert names == list(INDICES)


def test_a_constant_mask_is_a_function() -> None:
    window, rest = split_mask(_mask_of("lambda j: False"))
    assert window.is_open
    assert rest is not None


def _mask_of(text: str) -> Function:
    function = planned(mask=text).function
    region = next(each for each in function.body if each.op == "attention").attr("mask")
    assert isinstance(region, Function)
    return region


@ck.op
def transposed_bias(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D], bias: ck.f16[T, S]
) -> ck.f16[B, H, S, D]:
    turned = bias.T
    return ck.attention(q, k, v, score=lambda s, i, j: s + turned[i, j])


@ck.op
def repeated_products(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, H, T, D],
    v: ck.f16[B, H, T, D],
    x: ck.f16[B, T, S, D],
    w: ck.f16[H, D],
) -> ck.f16[B, H, S, D]:
    bias = ck.einsum("btsd,hd->bhst", x, w)
    return ck.attention(
        q, k, v, score=lambda s, b, h, i, j: s + bias[b, h, i, j], mask=lambda i, j: j <= i
    )


@pytest.mark.parametrize(
    ("op", "more", "read"),
    [
        (transposed_bias, [(5, 4)], "element(%d0, %j, %i)"),
        (repeated_products, [(1, 5, 4, 8), (2, 8)], "element(%d0, %b, %i, %j, %h)"),
    ],
    ids=["parameter", "product"],
)
def test_a_score_reads_a_transposed_tensor_as_it_is_stored(
    op: ck.Op, more: list[tuple[int, ...]], read: str
) -> None:
    shapes = [(1, 2, 4, 8), (1, 2, 5, 8), (1, 2, 5, 8), *more]
    random = np.random.default_rng(7)
    args = [random.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    fusion_plan = op.fusion(*args)
    assert read in str(instance(FusedAttention, fusion_plan.kernels[-1]).score)
    for got, wanted in zip(
        evaluate_plan(fusion_plan, args), evaluate(op.ir(*args), args), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)
