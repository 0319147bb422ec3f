# SPDX-License-Identifier: MIT
"""Gradients of attention with any function of the product, beside torch's in float64.

A backward kernel calls the derivative of the score, and for each tensor that the score reads, a
kernel of its own the derivative by that. The meaning of the gradients is compared with torch; on
the emulated GPU, also with its bounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import cklang as ck
from cklang.arch import arch
from cklang.families.attention.key import AttentionSignature
from cklang.families.attention_backward.key import (
    AttentionGradAlgorithm,
    AttentionGradKey,
    GradPipeline,
)
from cklang.families.attention_backward.space import attention_grad_algorithms
from cklang.ir.nodes import Function
from cklang.ir.philox import keep_mask
from cklang.ir.score_derivative import is_one
from cklang.reference.evaluate import evaluate
from cklang.runtime.op import Op
from cklang.types import DType, bf16, f16
from tests.support.attention_ops import within
from tests.support.checks import check, launches
from tests.support.coverage import Covered
from tests.support.written_ops import expression_op

pytestmark = pytest.mark.usefixtures("torch")

CAUSAL = ", mask=ck.causal()"


@dataclass(frozen=True)
class Score:
    """A score function in cklang, and in torch for tensors of all scores."""

    text: str
    reads: str
    by_torch: Callable[..., Any]
    kernels: int
    """Backward kernels of the gradients by all parameters."""

    @cache  # noqa: B019 - a handful of constants
    def op(self, dtype: str = "f32", size: int = 8, options: str = CAUSAL) -> Op:
        """Return an attention with this score."""
        q, k = (f"ck.{dtype}[B, {heads}, {size}]" for heads in ("4, S", "2, T"))
        params = f"q: {q}, k: {k}, v: {k}{self.reads}"
        score = f"score=lambda s, b, h, i, j: {self.text}"
        return expression_op(params, q, f"ck.attention(q, k, v, {score}{options})")


def _column(x: Any) -> Any:
    return x[:, None, None]


SCORES = {
    "soft cap": Score("cap[h] * ck.tanh(s / cap[h])", ", cap: ck.f32[4]",
                      lambda s, i, j, cap: _column(cap) * torch.tanh(s / _column(cap)), 2),
    "a scale of each head and distance": Score("s * (slope[h] * (j - i) + 1.0)",
        ", slope: ck.f32[4]", lambda s, i, j, slope: s * (_column(slope) * (j - i) + 1.0), 2),
    "gated by a sigmoid": Score("s * ck.sigmoid(s + gate[b, h, i])", ", gate: ck.f32[B, 4, S]",
                                lambda s, i, j, gate: s * torch.sigmoid(s + gate[..., None]), 2),
    "squared": Score("s * s - s", "", lambda s, i, j: s * s - s, 1),
    "a learned mask that multiplies": Score(
        "s * weight[i, j] + bias[h, j]",
        ", weight: ck.f32[S, T], bias: ck.f32[4, T]",
        lambda s, i, j, weight, bias: s * weight + bias[:, None],
        3,
    ),
    "hidden by the score": Score("ck.where(j + 1 < i, -1e30, ck.relu(s) + s)", "",
                                 lambda s, i, j: (torch.relu(s) + s).masked_fill(j + 1 < i, -1e30),
                                 1),
    "a number": Score("s * factor", ", factor: ck.f32", lambda s, i, j, factor: s * factor, 2),
}  # fmt: skip
"""By what they do: the ways in which a score may depend on the product and on what it reads."""


def drawn(op: Op, sizes: dict[str, int], seed: int = 0) -> list[Any]:
    """Return arguments of the gradient of an op; what scores read is about 1."""
    rng = np.random.default_rng(seed)
    function = op.program.specialise()
    types = [param.type for param in function.params] + [value.type for value in function.results]
    arrays = [rng.standard_normal(t.extents(sizes)) for t in types]
    arrays[3:-1] = [np.asarray(1.5 + np.tanh(x) / 2) for x in arrays[3:-1]]
    return [x.astype(t.dtype.numpy) for x, t in zip(arrays, types, strict=True)]


def by_torch(
    score: Score, arrays: Sequence[Any], keep: Any = 1.0, is_causal: bool = True
) -> list[Any]:
    """Return the gradients by torch in float64."""
    *params, dy = (torch.tensor(each.astype("d")) for each in arrays)
    params = [each.requires_grad_() for each in params]
    q, k, v, *reads = params
    keys, values = (each.repeat_interleave(2, 1) for each in (k, v))
    i, j = torch.arange(q.shape[2])[:, None], torch.arange(k.shape[2])
    scored = score.by_torch(q @ keys.mT / q.shape[-1] ** 0.5, i, j, *reads)
    p = scored.masked_fill((j > i) & is_causal, -torch.inf).softmax(-1)
    return [x.numpy() for x in torch.autograd.grad((p * keep) @ values, params, dy)]


@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize("name", SCORES)
def test_gradients_follow_torch(name: str, dropout: float) -> None:
    options = f"{CAUSAL}, dropout={dropout}, seed=7, offset=2" if dropout else CAUSAL
    op = SCORES[name].op(options=options)
    arrays = drawn(op, {"B": 2, "S": 5, "T": 7})
    keep = torch.tensor(keep_mask((2, 4, 5, 7), dropout, 7, 2) / (1 - dropout)) if dropout else 1
    gradient = ck.vjp(op, wrt=[param.name for param in op.program.specialise().params])
    results = evaluate(gradient.ir(*arrays), arrays)
    for mine, theirs in zip(results, by_torch(SCORES[name], arrays, keep), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", SCORES)
def test_one_kernel_gives_dq_dk_and_dv_and_one_each_read(name: str) -> None:
    op = SCORES[name].op()
    arrays = drawn(op, {"B": 2, "S": 5, "T": 7})
    gradient = ck.vjp(op, wrt=[param.name for param in op.program.specialise().params])
    plan = gradient.fusion(*arrays)
    kernels = [each for each in plan.kernels if each.family == "attention_backward"]
    assert len(kernels) == SCORES[name].kernels
    assert all("derivative" in each.functions for each in kernels)
    assert any("it calls the derivative of the score function" in note for note in plan.notes)


def derivative_of(text: str, reads: str = "") -> Function:
    """Return the derivative of a score by the product."""
    op = Score(text, reads, lambda s: s, 0).op()
    function = ck.vjp(op, wrt="q").program.specialise()
    (operation,) = (each for each in function.body if each.op == "attention_dq")
    derivative = operation.attr("derivative")
    assert isinstance(derivative, Function)
    return derivative


@pytest.mark.parametrize("text", ["s", "s + 2.0 * h", "1.0 + (s - j)", "(s + i) + h * j"])
def test_what_adds_to_the_product_has_the_derivative_1(text: str) -> None:
    assert is_one(derivative_of(text))


@pytest.mark.parametrize("text", ["2.0 - s", "s + s", "s * 1.5", "ck.maximum(s, 0.0)"])
def test_what_does_more_has_another(text: str) -> None:
    assert not is_one(derivative_of(text))


def test_a_table_that_is_read_twice_is_left_to_products() -> None:
    score = Score("s * (t[i, j] + t[j, i])", ", t: ck.f32[S, T]", lambda s: s, 0)
    op = score.op()
    arrays = drawn(op, {"B": 1, "S": 3, "T": 3})
    plan = ck.vjp(op).fusion(*arrays)
    assert not [each for each in plan.kernels if each.family == "attention_backward"]
    assert "only of one element at its indices" in plan.notes[0]
    # Without the gradient by the table, the kernel takes it.
    plan = ck.vjp(op, wrt=("q", "k", "v")).fusion(*arrays)
    assert [each.family for each in plan.kernels].count("attention_backward") == 1


def test_a_bias_of_another_dtype_is_read_by_the_function() -> None:
    score = Score("s + bias[h, i, j]", ", bias: ck.f32[4, S, T]", lambda s: s, 0)
    op = score.op("f16", 64)
    plan = ck.vjp(op).fusion(*drawn(op, {"B": 1, "S": 3, "T": 5}))
    (kernel,) = (each for each in plan.kernels if each.family == "attention_backward")
    assert sorted(kernel.functions) == ["derivative", "score"]


# The score of each on the emulated GPU: one stencil without what scores read, one with it.
RUN: list[tuple[str, tuple[int, int, int]]] = [
    ("soft cap", (1, 70, 150)),
    ("squared", (2, 33, 20)),
    ("gated by a sigmoid", (1, 40, 140)),
    ("a learned mask that multiplies", (1, 45, 30)),
]


DROPOUT = ", dropout=0.25, seed=7, offset=2"
COARSE = {"f16": 0.004, "bf16": 0.03, "f32": 1e-4}


def compare(
    name: str,
    sizes: tuple[int, int, int],
    dtype: str,
    gpu: str,
    options: str = CAUSAL,
    algorithm: AttentionGradAlgorithm | None = None,
    head: int = 64,
) -> AttentionGradKey:
    """Check gradients on an emulated GPU, against their bounds and torch; return the kernel."""
    op = SCORES[name].op(dtype, head, options)
    arrays = drawn(op, dict(zip("BST", sizes, strict=True)))
    gradient = ck.vjp(op) if algorithm is None else ck.vjp(op).using(algorithm)
    results = check(gradient, arrays, gpu)
    shape = (sizes[0], 4, *sizes[1:])
    keep = torch.tensor(keep_mask(shape, 0.25, 7, 2) / 0.75) if "dropout" in options else 1.0
    want = by_torch(SCORES[name], arrays, keep, "causal" in options)
    for mine, theirs in zip(results, want, strict=True):
        size = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=COARSE[dtype] * size)
    keys = [each.key for each in launches(gradient)]
    key: AttentionGradKey = next(key for key in keys if key.family == "attention_backward")
    return key


def compare_in(
    pipeline: GradPipeline,
    gpu: str,
    runs: Sequence[tuple[int, int, int]],
    options: str = "",
    dtype: DType = f16,
    head: int = 64,
) -> None:
    """Check gradients of a squared product in a pipeline on an emulated GPU."""
    signature = AttentionSignature(dtype=dtype, dtype_o=dtype, dtype_bias=dtype)
    legal = attention_grad_algorithms(arch(gpu), signature, head, head)
    algorithm = next(each for each in legal if each.pipeline is pipeline)
    for sizes in runs:
        key = compare("squared", sizes, dtype.name, gpu, options, algorithm, head)
        assert key.algorithm.pipeline is pipeline


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("name", "sizes"), RUN)
def test_gradients_are_within_their_bounds(
    name: str, sizes: tuple[int, int, int], covered: Covered
) -> None:
    compare(name, sizes, "f16", "gfx942")
    covered("attention backward: any function of the product", "f16", "gfx942")


def compare_attention_grad(
    name: str, sizes: tuple[int, int, int], gpu: str, deterministic: bool
) -> None:
    """Check ``ck.attention_grad`` on an emulated GPU, against its bounds and torch."""
    op = SCORES[name].op("f16", 64)
    *args, grad = arrays = drawn(op, dict(zip("BST", sizes, strict=True)))
    results = ck.attention_grad(
        op, *args, grad=grad, deterministic=deterministic, device=f"emu:{gpu}"
    )
    within(op, args, grad, results)
    for mine, theirs in zip(results[:3], by_torch(SCORES[name], arrays), strict=False):
        size = max(1.0, float(np.abs(theirs).max()))
        np.testing.assert_allclose(mine.astype("d"), theirs, atol=COARSE["f16"] * size)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(("name", "sizes"), RUN)
def test_attention_grad_takes_any_score(name: str, sizes: tuple[int, int, int]) -> None:
    compare_attention_grad(name, sizes, "gfx942", deterministic=False)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_attention_grad_adds_in_one_order(gpu: str, covered: Covered) -> None:
    compare_attention_grad("gated by a sigmoid", (1, 70, 150), gpu, deterministic=True)
    covered("attention backward: any function of the product, deterministic", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("gpu", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
def test_gradients_on_all_gpus(gpu: str, dtype: str, covered: Covered) -> None:
    for name, sizes in RUN:
        compare(name, sizes, dtype, gpu)
    covered("attention backward: any function of the product", dtype, gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
def test_gradients_of_f32(covered: Covered) -> None:
    compare("squared", (1, 33, 70), "f32", "gfx942")
    covered("attention backward: any function of the product", "f32", "gfx942")


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
def test_gradients_with_dropout(covered: Covered) -> None:
    compare("soft cap", (1, 40, 70), "f16", "gfx942", CAUSAL + DROPOUT)
    covered("attention backward: any function of the product, dropout", "f16", "gfx942")


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gpu", "pipeline", "sizes"),
    [
        ("gfx942", GradPipeline.KR_KTR_VR, (1, 40, 150)),
        ("gfx950", GradPipeline.TRLOAD_QR_QTR_DOR, (1, 20, 70)),
    ],
)
def test_gradients_in_other_pipelines(
    gpu: str, pipeline: GradPipeline, sizes: tuple[int, int, int], covered: Covered
) -> None:
    compare_in(pipeline, gpu, [sizes])
    covered(f"attention backward: any function of the product, {pipeline.value}", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("gpu", "head"), [("gfx90a", 128), ("gfx950", 128), ("gfx1100", 64), ("gfx1201", 64)]
)
def test_another_pipeline_with_dropout(gpu: str, head: int, covered: Covered) -> None:
    pipeline = GradPipeline.KR_KTR_VR
    compare_in(pipeline, gpu, [(1, 40, 150), (2, 33, 20)], DROPOUT, head=head)
    for row in ("", ", dropout", f", {pipeline.value}"):
        covered(f"attention backward: any function of the product{row}", "f16", gpu)
    covered(f"attention backward, head sizes {head} and {head}", "f16", gpu)


@pytest.mark.full
@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("gpu", ["gfx942", "gfx950", "gfx1201"])
def test_short_heads_of_bf16(gpu: str, covered: Covered) -> None:
    runs = ((1, 40, 150), (2, 33, 20))
    compare_in(GradPipeline.KR_KTR_VR_IGLP, gpu, runs, CAUSAL, bf16, head=32)
    covered("attention backward: any function of the product", "bf16", gpu)
    covered("attention backward, head sizes 32 and 32", "bf16", gpu)
