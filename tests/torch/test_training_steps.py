# SPDX-License-Identifier: MIT
"""Training where a step is between a product and an attention, whose gradients come from a kernel.

That kernel has no epilogue: the derivative of the step is the next kernel's work.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import cklang.torch
from cklang.families import plan_of
from cklang.ir.nodes import Function
from cklang.torch.backend import run
from tests.support.plan_evaluation import evaluate_plan

pytestmark = pytest.mark.usefixtures("torch")

STEPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "scaled": lambda q, _gain: q * 0.3,
    "silu": lambda q, _gain: functional.silu(q),
    "learned gain": lambda q, gain: q * gain,
}
"""What is done to q."""


def attend(step: str) -> Callable[..., Tensor]:
    """Return an attention whose q is a step after a product."""

    def function(x: Tensor, w: Tensor, gain: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q = STEPS[step](x @ w.T, gain)
        return functional.scaled_dot_product_attention(q, k, v)

    return function


def leaves(size: int = 64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator).to(torch.float16).requires_grad_()

    image = (1, 2, 16, size)
    return [normal(*image), normal(size, size), normal(size), normal(*image), normal(*image)]


def expect_gradients(step: str, options: dict[str, Any]) -> None:
    """Compare the gradients of a compiled attention with torch's in float64."""
    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    function = attend(step)
    tensors = leaves()
    weight = torch.randn(tensors[0].shape, generator=torch.Generator().manual_seed(2))
    compiled = torch.compile(function, backend="cklang", options=options, fullgraph=True)
    (compiled(*tensors).float() * weight).sum().backward()
    exact = [each.detach().double().requires_grad_() for each in tensors]
    (function(*exact) * weight.double()).sum().backward()
    for place, (own, wanted) in enumerate(zip(tensors, exact, strict=True)):
        if wanted.grad is None:
            continue
        assert own.grad is not None
        distance = (own.grad.double() - wanted.grad).abs().max() / wanted.grad.abs().max()
        assert distance < 0.01, (place, distance)
    _, backward = cklang.torch.report().graphs
    assert not backward.eager
    families = [each.family for program in backward.programs for each in program.plan.kernels]
    assert families.count("attention_backward") == 1


@pytest.mark.parametrize("step", STEPS)
def test_gradients_by_the_kernels_of_plans(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_kernels(function: Function, arrays: Sequence[Any]) -> Any:
        return evaluate_plan(plan_of(function), arrays)

    monkeypatch.setattr(run, "evaluate", by_kernels)
    expect_gradients(step, {"reference": True})


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize("step", STEPS)
def test_gradients_on_the_emulated_gpu(step: str) -> None:
    expect_gradients(step, {"device": "emu:gfx942"})
