# SPDX-License-Identifier: MIT
"""``ck.moe_gate``: the routers of DeepSeek-V3, Mixtral and GPT-OSS against NumPy and torch."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import CkError
from cklang.families import plan_of
from cklang.families.moe_gate.fuse import FusedMoeGate
from cklang.fusion.explain import explain
from cklang.reference.bounds import evaluate_with_bound
from cklang.runtime.op import Op
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.written_ops import expression_op

T, K = ck.dims("T K")

Array = np.ndarray[Any, Any]


@ck.op
def mixtral(x: ck.f16[T, 8]) -> tuple[ck.f32[T, 2], ck.i32[T, 2]]:
    return ck.moe_gate(x, k=2)


@ck.op
def gpt_oss(
    x: ck.bf16[T, K], w: ck.bf16[128, K], b: ck.f32[128]
) -> tuple[ck.f32[T, 4], ck.i32[T, 4]]:
    return ck.moe_gate((x @ w.T + b).to(ck.f32), k=4)


@ck.op
def deepseek_v2(x: ck.f32[T, 160]) -> tuple[ck.f32[T, 6], ck.i32[T, 6]]:
    return ck.moe_gate(x, k=6, groups=8, group_k=3, renormalise=False, scale=16.0)


@ck.op
def deepseek_v3(x: ck.f32[T, 256], b: ck.f32[256]) -> tuple[ck.f32[T, 8], ck.i32[T, 8]]:
    return ck.moe_gate(x, b, k=8, scoring="sigmoid", groups=8, group_k=4, scale=2.5)


@ck.op
def experts_alone(x: ck.f16[T, 40]) -> ck.i32[T, 3]:
    return ck.moe_gate(x, k=3)[1]


OPS = (mixtral, deepseek_v2, deepseek_v3, experts_alone)


def routed(
    logits: Array,
    bias: Array | None,
    k: int,
    *,
    sigmoid: bool = False,
    groups: int = 1,
    group_k: int = 1,
    renormalise: bool = True,
    scale: float = 1.0,
) -> tuple[Array, Array]:
    """Return weights and experts of one row after another, as the models' papers describe them."""
    weights, experts = [], []
    for row in logits.astype(np.float64):
        scores = 1 / (1 + np.exp(-row)) if sigmoid else np.exp(row - row.max())
        scores = scores if sigmoid else scores / scores.sum()
        keys = row if bias is None else scores + bias
        parts = np.split(keys, groups)
        worth = [np.sort(part)[::-1][: 1 if bias is None else 2].sum() for part in parts]
        allowed = sorted(range(groups), key=lambda group: (-worth[group], group))[:group_k]
        candidates = [e for e in range(len(row)) if e // (len(row) // groups) in allowed]
        best = sorted(candidates, key=lambda expert: (-keys[expert], expert))[:k]
        own = scores[best]
        weights.append((own / own.sum() if renormalise else own) * scale)
        experts.append(best)
    return np.array(weights, np.float32), np.array(experts, np.int32)


OPTIONS: dict[Op, dict[str, Any]] = {
    mixtral: {"k": 2},
    deepseek_v2: {"k": 6, "groups": 8, "group_k": 3, "renormalise": False, "scale": 16.0},
    deepseek_v3: {"k": 8, "sigmoid": True, "groups": 8, "group_k": 4, "scale": 2.5},
    experts_alone: {"k": 3},
}


def drawn(op: Op, rows: int, seed: int = 0) -> list[Array]:
    """Return logits some of which are equal, and a bias."""
    rng = np.random.default_rng(seed)
    x, *biases = op.program.specialise().params
    logits = rng.integers(-40, 40, (rows, int(str(x.type.shape[-1])))) / 16
    return [
        logits.astype(x.type.dtype.numpy),
        *(rng.integers(-8, 8, b.type.extents({})).astype(np.float32) / 64 for b in biases),
    ]


def expect_routes(op: Op, args: list[Array], results: Any) -> None:
    """Compare with the routes of the models, whose ties are decided to the lowest index."""
    weights, experts = routed(args[0], args[1] if len(args) > 1 else None, **OPTIONS[op])
    own = results if isinstance(results, tuple) else (None, results)
    np.testing.assert_array_equal(own[1], experts)
    if own[0] is not None:
        np.testing.assert_allclose(own[0], weights, rtol=1e-5)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.program.name)
def test_the_reference_routes_as_the_models_do(op: Op) -> None:
    args = drawn(op, 29)
    results, errors = evaluate_with_bound(op.program.specialise(), args)
    expect_routes(op, args, tuple(results) if len(results) > 1 else results[0])
    if op is not deepseek_v3:
        assert all(np.isfinite(error).all() for error in errors)


def test_arrays_outside_of_programs_are_routed_too() -> None:
    for op in (mixtral, deepseek_v2, deepseek_v3):
        args, options = drawn(op, 5), dict(OPTIONS[op])
        scoring = "sigmoid" if options.pop("sigmoid", False) else "softmax"
        expect_routes(op, args, ck.moe_gate(*args, scoring=scoring, **options))


@given(st.integers(0, 99), st.sampled_from([1, 2, 4]))
def test_equal_logits_lead_to_the_lowest_experts(seed: int, kept: int) -> None:
    x = np.random.default_rng(seed).integers(0, 3, (4, 16)).astype(np.float32)
    want = routed(x, None, 4, groups=4, group_k=kept)
    got = ck.moe_gate(x, k=4, groups=4, group_k=kept)
    np.testing.assert_array_equal(got[1], want[1])


def test_torchs_softmax_and_topk_are_mixtrals_router(torch: Any) -> None:
    x = np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32)
    values, indices = torch.topk(torch.softmax(torch.from_numpy(x), -1), 2)
    weights, experts = ck.moe_gate(x, k=2)
    np.testing.assert_array_equal(experts, indices.numpy())
    np.testing.assert_allclose(weights, (values / values.sum(-1, keepdim=True)).numpy(), 1e-6)


def test_an_unsure_choice_has_no_bound() -> None:
    @ck.op
    def route(x: ck.f32[T, 4], y: ck.f32[T, 4]) -> tuple[ck.f32[T, 1], ck.i32[T, 1]]:
        return ck.moe_gate(x + y, k=1)

    x = np.array([[1.0, 2.0, 2.0000002, 0.0], [1.0, 2.0, 3.0, 0.0]], np.float32)
    _, (weight, expert) = evaluate_with_bound(route.program.specialise(), [x, x / 3])
    assert np.isinf(weight).ravel().tolist() == np.isinf(expert).ravel().tolist() == [True, False]


def test_weights_and_experts_are_one_kernel() -> None:
    (kernel,) = plan_of(deepseek_v3.program.specialise()).kernels
    assert isinstance(kernel, FusedMoeGate)
    text = explain(plan_of(deepseek_v3.program.specialise()))
    assert "8 experts of the greatest sigmoid of %x and %b" in text
    assert "in 4 of 8 groups" in text
    families = [each.family for each in plan_of(gpt_oss.program.specialise()).kernels]
    assert families == ["gemm", "moe_gate"]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("ck.moe_gate(x, k=0)", "k is the constant 0"),
        ("ck.moe_gate(x, k=9)", "k is 9, but the axis has 8"),
        ("ck.moe_gate(x, k=2, scoring='tanh')", "scoring is the constant 'tanh'"),
        ("ck.moe_gate(x, k=2, groups=3, group_k=1)", "3 groups of 8 experts"),
        (
            "ck.moe_gate(x, k=3, groups=4, group_k=1)",
            "k is 3, but 2 experts are in the groups that are allowed",
        ),
        ("ck.moe_gate(x, k=2, groups=4, group_k=5)", "group_k is the constant 5"),
        ("ck.moe_gate(x, x, k=2)", "the bias is"),
        ("ck.moe_gate(x, k=2, renormalise=1)", "renormalise is the constant 1"),
    ],
)
def test_mistakes(call: str, problem: str) -> None:
    with pytest.raises(CkError) as mistake:
        expression_op("x: ck.f32[T, 8]", "ck.i32[T, 2]", f"{call}[1]").program.specialise()
    assert problem in str(mistake.value)


# --- on GPUs


CASES = [(op, gpu) for op in OPS for gpu in ("gfx942", "gfx1201")]
CASES += [(mixtral, gpu) for gpu in ("gfx90a", "gfx950", "gfx1100")]


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("op", "gpu"), CASES, ids=lambda own: getattr(own, "program", own))
def test_kernels_route_as_the_models_do(op: Op, gpu: str, covered: Covered) -> None:
    args = drawn(op, 37)
    # Equal scores with equal biases are unsure to the bound, and in order to the kernel.
    results = check(op, args, gpu, unchecked=1.0 if op is deepseek_v3 else 0.0)
    expect_routes(op, args, results)
    (launch,) = launches(op)
    assert launch.resources.spills == 0
    if op is mixtral:
        covered("experts of tokens", "f16", gpu)


@pytest.mark.usefixtures("compiler")
def test_logits_may_lie_in_any_way() -> None:
    (x,) = drawn(mixtral, 24)
    wide = np.zeros((24, 16), np.float16)
    wide[:, ::2] = x
    results = check(mixtral, [wide[:, ::2]])
    expect_routes(mixtral, [x], results)
    check(mixtral, [np.asfortranarray(x)])
