# SPDX-License-Identifier: MIT
"""Whole models through ``torch.compile(model, backend="cklang")``.

Programs are computed by their NumPy reference here, so nothing is compiled: what is tested is that
the programs mean what the models do, and how much of the models they are. In training each program
is called as one that launches kernels is, and the reference stands in for these alone.
"""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import cklang as ck
import cklang.torch
from tests.support.by_reference import replace_kernels
from tests.support.torch_models import MODELS, Model, cast

pytestmark = pytest.mark.usefixtures("torch", "fresh")

OPTIONS: dict[str, Any] = {"reference": True}
MOST_EAGER = 0.05
"""The share of floating-point operations that may run in eager torch."""


def distances(model: nn.Module, args: tuple[Tensor, ...], got: Tensor) -> tuple[float, float]:
    """Return how far ``got`` and eager torch are from the model in float64."""
    eager = model(*args)
    wide = copy.deepcopy(model).double()(*(cast(each, torch.float64) for each in args))
    return float((got.double() - wide).abs().max()), float((eager.double() - wide).abs().max())


def expect_close(model: nn.Module, args: tuple[Tensor, ...], got: Tensor) -> None:
    """Expect a result not to be much farther from float64 than eager torch is in its own dtype."""
    ours, eager = distances(model, args, got)
    rounding = torch.finfo(got.dtype).eps * float(got.abs().max())
    assert ours <= 2 * eager + rounding, (ours, eager)


def compiled(model: nn.Module, **options: Any) -> Any:
    return torch.compile(model, backend="cklang", options=OPTIONS, fullgraph=True, **options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_model_is_computed_by_kernels(model: Model, dtype: torch.dtype) -> None:
    module, args = model.call(dtype)
    module.eval()
    with torch.no_grad():
        got = compiled(module)(*args)
        assert got.dtype == dtype
        expect_close(module, args, got)
    report = cklang.torch.report()
    print(report)
    assert report.share >= 1 - MOST_EAGER
    assert report.kernels <= model.kernels


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_another_batch_compiles_nothing(model: Model) -> None:
    module, _ = model.call(torch.float16)
    module.eval()
    run = compiled(module)
    with torch.no_grad():
        for batch in (2, 5, 3):
            _, args = model.call(torch.float16, batch)
            for tensor, is_batched in zip(args, model.is_batched, strict=True):
                if is_batched:
                    torch._dynamo.mark_dynamic(tensor, 0)
            expect_close(module, args, run(*args))
    (graph,) = cklang.torch.report().graphs
    assert graph.share >= 1 - MOST_EAGER


@pytest.mark.parametrize("name", ["gpt2", "bert", "resnet", "mixtral"])
def test_whole_gradients_of_programs_are_planned(name: str) -> None:
    module, args = MODELS[name].call(torch.float16)
    with torch.no_grad():
        compiled(module.eval())(*args)
    (graph,) = cklang.torch.report().graphs
    for program in graph.programs:
        gradient = ck.vjp(program.op)
        plan = gradient._plan_for(gradient.program.specialise())
        written = {value.name for kernel in plan.kernels for value in kernel.results}
        assert len(written) == sum(len(kernel.results) for kernel in plan.kernels)


@pytest.mark.parametrize("name", ["mlp", "deep", "llama", "unet"])
def test_training_follows_eager_torch(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_kernels(monkeypatch)
    module, args = MODELS[name].call(torch.float32)
    twin = copy.deepcopy(module)
    losses: list[list[float]] = []
    run_by_calls = torch.compile(module, backend="cklang", options={"device": "emu:gfx942"})
    for model, run in ((module, run_by_calls), (twin, twin)):
        optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
        losses.append([])
        for _ in range(3):
            optimiser.zero_grad()
            loss = run(*args).square().mean()
            loss.backward()
            optimiser.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0][2] < losses[0][0]
    forward, backward = cklang.torch.report().graphs
    assert forward.share >= 1 - MOST_EAGER
    assert backward.share >= 1 - MOST_EAGER
    for (label, own), other in zip(module.named_parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(own, other, rtol=1e-4, atol=1e-5, msg=label)
