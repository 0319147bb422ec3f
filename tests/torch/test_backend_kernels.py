# SPDX-License-Identifier: MIT
"""Models through the backend as kernels on the emulated GPU; other batches build nothing."""

import copy

import pytest
import torch

import cklang.torch
from tests.support.torch_models import MODELS, cast

pytestmark = pytest.mark.usefixtures("torch", "compiler")


@pytest.mark.parametrize("name", ["mlp", "gpt2", "images"])
def test_a_model_runs_on_the_emulated_gpu(name: str) -> None:
    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    model = MODELS[name]
    module, _ = model.call(torch.float16)
    module.eval()
    wide = copy.deepcopy(module).double()
    options: dict[str, str | int | bool] = {"device": "emu:gfx942"}
    run = torch.compile(module, backend="cklang", options=options, fullgraph=True)  # type: ignore[arg-type]
    for batch in (2, 3):
        _, args = model.call(torch.float16, batch)
        torch._dynamo.mark_dynamic(args[0], 0)
        with torch.no_grad():
            got, eager = run(*args), module(*args)
            exact = wide(*(cast(each, torch.float64) for each in args))
        assert got.shape == exact.shape
        ours, theirs = ((each - exact).abs().max().item() for each in (got, eager))
        rounding = torch.finfo(torch.float16).eps * exact.abs().max().item()
        assert ours <= 2 * theirs + rounding
    (graph,) = cklang.torch.report().graphs
    (program,) = graph.programs
    assert program.op.last is not None
    # Convolutions read images that torch has with the channels second: each is copied once.
    copies = sum(launch.key.family == "layout_copy" for launch in program.op.last.launches)
    assert len(program.op.last.launches) == graph.kernels + copies <= model.kernels + 1


@pytest.mark.parametrize("name", ["mlp", "gpt2", "deep"])
def test_training_on_the_emulated_gpu(name: str) -> None:
    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    module, args = MODELS[name].call(torch.float16)
    twin = copy.deepcopy(module).double()
    run = torch.compile(module, backend="cklang", options={"device": "emu:gfx942"})
    run(*args).float().square().mean().backward()
    twin(*(cast(each, torch.float64) for each in args)).square().mean().backward()
    for (label, own), other in zip(module.named_parameters(), twin.parameters(), strict=True):
        assert own.grad is not None
        assert other.grad is not None
        distance = (own.grad - other.grad).abs().max() / other.grad.abs().max()
        assert distance < 0.01, (label, distance)
    report = cklang.torch.report()
    assert report.share > 0.99
    programs = [each for graph in report.graphs for each in graph.programs]
    kernels = [each.family for program in programs for each in program.plan.kernels]
    assert kernels.count("attention") == kernels.count("attention_backward") == (name == "gpt2")


def _ordered(x: torch.Tensor, where: torch.Tensor) -> tuple[torch.Tensor, ...]:
    best, places = x.topk(3)
    norm = torch.nn.functional.instance_norm(x.reshape(3, 11, 70))
    added = x.index_add(0, where, x[:3] * 2)
    return best, places, x.flip(1).cumsum(1), *x.max(0), norm, added, x.triu(1) @ x.t()


def test_ordered_axes_and_norms_on_the_emulated_gpu() -> None:
    torch._dynamo.reset()
    cklang.torch.report(clear=True)
    generator = torch.Generator().manual_seed(0)
    x, where = torch.randn(33, 70, generator=generator), torch.tensor([2, 0, 2])
    run = torch.compile(_ordered, backend="cklang", options={"device": "emu:gfx942"})
    with torch.no_grad():
        for got, want in zip(run(x, where), _ordered(x, where), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)
    assert cklang.torch.report().share == 1.0
