# SPDX-License-Identifier: MIT
"""The partition of programs with products, convolutions and attentions into kernels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cklang.errors import CkError
from cklang.fusion.explain import explain
from cklang.fusion.plan import Plan
from cklang.runtime.workspace import Temporary, planned_workspace
from tests.support.plans import SHAPE
from tests.support.plans import plan_of_statements as planned


def kernels(plan: Plan) -> list[tuple[str, str]]:
    """Return family and name of each kernel."""
    return [(each.family, each.name) for each in plan.kernels]


def rules(plan: Plan) -> set[str]:
    return {each.rule for each in plan.decisions}


PROJECTED = "q = (x @ w).to(ck.f16)"


@pytest.mark.parametrize(
    ("body", "families"),
    [
        (f"{PROJECTED}; return ck.attention(q, x, y)", ["gemm", "attention"]),
        ("return (ck.attention(x, x, y).to(ck.f16) @ w) + y", ["attention", "gemm"]),
        ("return ck.attention(ck.attention(x, x, y).to(ck.f16), x, y)", ["attention"] * 2),
        (
            "o = ck.conv(x, window, padding=1).to(ck.f16); return ck.attention(o, o, y)",
            ["conv", "attention"],
        ),
        (
            f"{PROJECTED}; return ck.conv(ck.attention(q, q, x).to(ck.f16), window, padding=1)",
            ["gemm", "attention", "conv"],
        ),
        # What follows an attention is computed in its kernel, also beside a product.
        (
            "o = ((ck.attention(x, x, y) + bias) * row[:, :, :, None]).to(ck.f16); return o @ w",
            ["attention", "gemm"],
        ),
    ],
)
def test_each_anchor_is_a_kernel_of_its_family(body: str, families: list[str]) -> None:
    plan = planned(body)
    names = [f"f_{number}" for number in range(len(families))]
    assert kernels(plan) == list(zip(families, names, strict=True))
    assert f"{len(families)} kernels" in explain(plan)


def test_what_follows_fuses_into_the_kernel_that_computes_it() -> None:
    plan = planned(f"{PROJECTED}; return ck.relu(ck.attention(q, x, y) + bias)")
    first, second = plan.kernels
    assert second.inputs[-1].name == "bias"
    assert first.results[0] in second.inputs
    assert "output" in explain(plan)


def test_results_of_several_kernels() -> None:
    body = f"{PROJECTED}; o, lse = ck.attention(q, x, y, return_lse=True); return o, lse, q"
    plan = planned(body, f"tuple[{SHAPE}, ck.f32[B, H, S], {SHAPE}]")
    assert [each.family for each in plan.kernels] == ["gemm", "attention"]
    stored = [value for kernel in plan.kernels for value in kernel.results]
    assert set(plan.function.results) <= set(stored)


def test_one_value_twice_is_refused() -> None:
    with pytest.raises(CkError, match="CK-X001"):
        planned(f"{PROJECTED}; return q, q", f"tuple[{SHAPE}, {SHAPE}]")


def test_what_is_computed_of_a_query_has_a_kernel_before() -> None:
    plan = planned("return ck.attention((x * 2.0).to(ck.f16), x, y)")
    assert kernels(plan) == [("rowwise", "f_0"), ("attention", "f_1")]


def test_the_log_sum_beside_a_product() -> None:
    body = "o, lse = ck.attention(x, x, y, return_lse=True); return (o.to(ck.f16) @ w) + bias, lse"
    plan = planned(body, f"tuple[{SHAPE}, ck.f32[B, H, S]]")
    assert kernels(plan) == [("attention", "f_0"), ("gemm", "f_1")]


@st.composite
def _temporaries(draw: st.DrawFn) -> list[Temporary]:
    def one() -> Temporary:
        first = draw(st.integers(0, 8))
        size = draw(st.integers(0, 4096))
        return Temporary(bytes=size, first=first, last=draw(st.integers(first, 9)))

    return [one() for _ in range(draw(st.integers(0, 9)))]


@given(_temporaries())
def test_what_lives_together_lies_apart(temporaries: list[Temporary]) -> None:
    workspace = planned_workspace(temporaries)
    places = list(zip(temporaries, workspace.offsets, strict=True))
    for number, (mine, start) in enumerate(places):
        assert start % 256 == 0
        assert start + mine.bytes <= workspace.bytes
        for other, there in places[:number]:
            if mine.meets(other):
                assert start + mine.bytes <= there or there + other.bytes <= start
    # Never more than each in memory of its own, nor less than what lives at one launch.
    assert workspace.bytes <= sum(max(-(-each.bytes // 256), 1) * 256 for each in temporaries)
    for launch in range(10):
        living = [each.bytes for each in temporaries if each.first <= launch <= each.last]
        assert workspace.bytes >= sum(living)
