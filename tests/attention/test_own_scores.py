# SPDX-License-Identifier: MIT
"""Soft caps that CK Tile's own computes, within the bounds of the expressions they stand for."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cklang as ck
from cklang.errors import error
from cklang.families.attention.key import AttentionKey, ScoreKind
from cklang.ops.attention_backward import GradientKind
from cklang.runtime import planner
from cklang.runtime.op import Op
from cklang.selection.select import find
from cklang.tune.task import tasks_of
from tests.support.arrays import Array
from tests.support.checks import check, launches

B, H, G, S, T, D = ck.dims("B H G S T D")
ARCH = "gfx942"


@ck.op
def capped(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D], cap: ck.const[float] = 50.0
) -> ck.f16[B, H, S, D]:
    return ck.attention(q, k, v, score=lambda s: cap * ck.tanh(s / cap))


@ck.op
def masked(
    q: ck.bf16[B, H, S, D],
    k: ck.bf16[B, G, T, D],
    v: ck.bf16[B, G, T, D],
    lengths: ck.i32[B],
    cap: ck.const[float] = 512.0,
) -> ck.bf16[B, H, S, D]:
    return ck.attention(
        q,
        k,
        v,
        mask=lambda b, i, j: (j <= i) & (j < lengths[b]),
        score=lambda s: cap * ck.tanh(s / cap),
    )


@ck.op
def with_lse(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, D]
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    return ck.attention(q, k, v, score=lambda s: 50.0 * ck.tanh(s / 50.0), return_lse=True)


def random_array(rng: np.random.Generator, size: float, *shape: int) -> Array:
    return (rng.uniform(-1, 1, shape) * size).astype(np.float16)


def score_of(op: Op) -> ScoreKind:
    key: AttentionKey = launches(op)[0].key
    assert key.family == "attention"
    return key.signature.score


@pytest.mark.usefixtures("compiler")
@settings(max_examples=15)
@given(
    st.sampled_from((0.5, 5.0, 30.0, 50.0, 64.0)),
    st.sampled_from((1e-3, 0.1, 1.0, 8.0, 60.0)),
    st.sampled_from((1, 3)),
    st.integers(0, 99),
)
@example(64.0, 1e-3, 1, 0)  # scores of which the cheap tanh has few digits
@example(64.0, 60.0, 1, 0)  # and such that it is 1
def test_results_are_within_the_bounds(cap: float, size: float, splits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shapes = (2, 4, 70, 64), (2, 2, 300, 64)
    q, k = (random_array(rng, size, *shape) for shape in shapes)
    op = capped.using(splits=splits)
    check(op, [q, k, random_array(rng, 1.0, *shapes[1])], cap=cap)
    assert score_of(op) is ScoreKind.SOFT_CAP


@pytest.mark.usefixtures("stencils")
def test_with_a_mask_function() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (
        rng.uniform(-3, 3, (2, heads, rows, 64)).astype(ml_dtypes.bfloat16)
        for heads, rows in ((4, 70), (2, 150), (2, 150))
    )
    check(masked, [q, k, v, np.array([150, 20], np.int32)])
    assert score_of(masked) is ScoreKind.SOFT_CAP


@pytest.mark.usefixtures("compiler")
def test_fewer_instructions_than_the_expression() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (random_array(rng, 1.0, 1, 2, rows, 64) for rows in (128, 512, 512))
    check(capped, [q, k, v])
    assert capped.last is not None
    own = capped.last.instructions
    check(with_lse, [q, k, v])
    assert score_of(with_lse) is ScoreKind.FUNCTION
    assert with_lse.last is not None
    assert own is not None
    assert with_lse.last.instructions is not None
    assert with_lse.last.instructions > 1.3 * own


def test_it_is_told_and_its_gradient_takes_the_expression() -> None:
    x = np.ones((1, 2, 8, 64), np.float16)
    said = capped.explain(x, x, x, device=f"emu:{ARCH}")
    assert "the score function is a soft cap; CK Tile's own computes it" in said
    assert "soft_cap" in said
    (task,) = tasks_of(capped, {"B": 1, "H": 2, "G": 2, "S": 3, "T": 4, "D": 64}, GradientKind())
    assert sorted(task.functions) == ["derivative", "score"]
    assert task.problem.forward.signature.score is ScoreKind.FUNCTION


@pytest.mark.usefixtures("compiler")
def test_where_there_is_no_kernel_of_it_the_expression_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where there are no headers, and a bundle whose kernels take functions of scores."""

    def select(case: Any, spec: Any, *rest: Any) -> Any:
        if case.signature.score is ScoreKind.SOFT_CAP:
            raise error("K102", notes=[], signature=case.signature.words, arch=spec.name)
        return find(case, spec, *rest)

    monkeypatch.setattr(planner, "find", select)
    x, op = np.ones((1, 2, 9, 64), np.float16), capped.using()
    check(op, [x, x, x], cap=7.0)
    assert score_of(op) is ScoreKind.FUNCTION
