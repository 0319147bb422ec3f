# SPDX-License-Identifier: MIT
"""Gradients on the emulated GPU, beside the reference with its bounds."""

from typing import Any

import numpy as np
import pytest

import cklang as ck
from cklang.runtime.op import Op
from tests.support.arrays import drawn
from tests.support.checks import check, launches
from tests.support.modules import EXAMPLES, module_of

pytestmark = pytest.mark.usefixtures("compiler")

M, N, K, B, H, G, S = ck.dims("M N K B H G S")


@ck.op
def linear_gelu(x: ck.f16[M, K], w: ck.f16[N, K], bias: ck.f16[N]) -> ck.f16[M, N]:
    return ck.gelu(x @ w.T + bias)


@ck.op
def softmax(x: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.softmax(x)


@ck.op
def norm(x: ck.f32[M, N], gain: ck.f32[N], bias: ck.f32[N]) -> ck.f32[M, N]:
    return ck.layer_norm(x, gain, bias)


@ck.op
def halves(x: ck.f32[M, 8], y: ck.f32[M, 8]) -> ck.f32[M, 8]:
    return ck.concat([x[:, 4:] * y[:, :4], y[:, 4:]], axis=1) + x


@ck.op
def distance(x: ck.f32[M, N], y: ck.f32[M, N]) -> ck.f32[()]:
    return ck.mean(ck.square(x - y))


@ck.op
def added(x: ck.f32[M, N], y: ck.f32[M, N]) -> ck.f32[M, N]:
    return x + y


@ck.op
def unmoved(x: ck.f32[M, N], y: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.round(x) + y


@ck.op
def gate(x: ck.f16[M, K], w: ck.f16[N, K]) -> tuple[ck.f32[M, 2], ck.i32[M, 2]]:
    v, i = ck.topk(ck.softmax(x @ w.T), 2)
    return v / v.sum(-1, keepdims=True), i


@ck.op
def products(x: ck.f32[M, N]) -> ck.f32[M, N]:
    return ck.cumprod(ck.sort(x, axis=1), 1)


@ck.op
def attend(
    q: ck.f16[B, H, S, 64], k: ck.f16[B, G, S, 64], v: ck.f16[B, G, S, 64]
) -> ck.f16[B, H, S, 64]:
    return ck.attention(q, k, v, mask=ck.causal())


ROWS: list[tuple[Op, int]] = [
    (ck.vjp(added), 1),
    (ck.vjp(softmax), 1),
    (ck.vjp(norm), 2),
    (ck.vjp(halves), 4),
    (ck.grad(distance), 1),
    (ck.vjp(unmoved), 2),
]
"""Gradients that kernels of rows compute, and how many kernels those are."""


def test_gradients_of_what_is_sorted_are_within_their_bounds() -> None:
    check(ck.vjp(gate), drawn(ck.vjp(gate), {"M": 5, "N": 16, "K": 64}))
    check(ck.vjp(products), drawn(ck.vjp(products), {"M": 4, "N": 9}))


@pytest.mark.parametrize(("op", "kernels"), ROWS, ids=lambda each: getattr(each, "program", each))
def test_gradients_of_rows_are_within_their_bounds(op: Op, kernels: int) -> None:
    check(op, drawn(op, {"M": 5, "N": 70}))
    assert len(launches(op)) == kernels


def test_the_derivative_of_an_activation_is_in_the_epilogue_of_its_product() -> None:
    op = ck.vjp(linear_gelu)
    check(op, drawn(op, {"M": 64, "N": 32, "K": 64}))
    assert [launch.key.family for launch in launches(op)] == ["gemm", "gemm", "gemm", "rowwise"]


def by_torch(x: Any, labels: Any, weights: list[Any], rate: float, steps: int) -> list[float]:
    """Return the losses of the same training in torch on the CPU, in float64."""
    import torch

    data, targets = torch.tensor(x.astype("d")), torch.tensor(labels.astype("q"))
    tensors = [torch.tensor(each.astype("d"), requires_grad=True) for each in weights]
    optimiser = torch.optim.SGD(tensors, lr=rate)
    losses = []
    for _ in range(steps):
        up, bias, down = tensors
        hidden = torch.nn.functional.gelu(data @ up.mT + bias)
        loss = torch.nn.functional.cross_entropy(hidden @ down.mT, targets)
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return losses


@pytest.mark.usefixtures("torch")
def test_training_follows_torch() -> None:
    module = module_of(EXAMPLES / "20_training.py")
    rng = np.random.default_rng(1)
    x, labels = module.spirals(128)
    weights = [(rng.standard_normal(s) / 4).astype("f") for s in ((64, 16), (64,), (16, 64))]
    want = by_torch(x, labels, weights, module.RATE, 5)
    gradients, losses = ck.grad(module.loss, wrt=("up", "bias", "down")), []
    for _ in range(5):
        half = [each.astype("e") for each in weights]
        losses.append(float(module.loss(x, *half, labels)))
        for weight, gradient in zip(weights, gradients(x, *half, labels), strict=True):
            weight -= module.RATE * gradient.astype("f")
    # Weights and gradients are rounded to f16 in each step.
    np.testing.assert_allclose(losses, want, rtol=5e-3)


@pytest.mark.full
@pytest.mark.parametrize("groups", [2, 4])
def test_gradients_of_attention_are_those_of_its_own_kernel(groups: int) -> None:
    op = ck.vjp(attend)
    args = drawn(op, {"B": 2, "H": 4, "G": groups, "S": 70})
    got = check(op, args)
    want = ck.attention_grad(attend, *args[:3], grad=args[3])
    for mine, theirs in zip(got, want[:3], strict=True):
        np.testing.assert_allclose(mine.astype("d"), theirs.astype("d"), atol=0.02)
