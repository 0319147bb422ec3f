# SPDX-License-Identifier: MIT
"""The backend of ``torch.compile``: how graphs are divided, options, reports, prepared weights."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

import cklang.torch
from cklang.errors import CkError
from cklang.torch.backend.capture import decompositions
from cklang.torch.backend.compiler import options_of
from cklang.torch.backend.emitter import Emitter
from cklang.torch.backend.emitter import Tensor as Value
from cklang.torch.backend.extents import aligned
from cklang.torch.backend.weights import prepared
from cklang.types import Dim, f16
from tests.support.errors import expect_error
from tests.support.torch_models import MODELS

pytestmark = pytest.mark.usefixtures("torch", "fresh")

OPTIONS: dict[str, Any] = {"reference": True}
ROOT = Path(__file__).parents[2]


def compiled(function: Any, **options: Any) -> Any:
    return torch.compile(function, backend="cklang", options=OPTIONS, **options)


def test_torch_knows_the_backend() -> None:
    assert "cklang" in torch._dynamo.list_backends(None)
    entry_points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    module, name = entry_points["torch_dynamo_backends"]["cklang"].split(":")
    assert getattr(__import__(module, fromlist=[name]), name) is cklang.torch.cklang_backend


@pytest.mark.parametrize(
    ("options", "code"), [({"gpu": "gfx942"}, "A090"), ({"device": 3}, "A091")]
)
def test_options_are_checked(options: dict[str, Any], code: str) -> None:
    with expect_error(code):
        options_of(options)


def test_programs_lie_around_eager_nodes() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        h = functional.relu(x @ w)
        return (h.cummax(-1)[0] + h) @ w

    x, w = torch.randn(8, 16).half(), torch.randn(16, 16).half()
    with torch.no_grad():
        y = compiled(model, fullgraph=True)(x, w)
    torch.testing.assert_close(y, model(x, w), rtol=2e-2, atol=2e-2)
    (graph,) = cklang.torch.report().graphs
    assert [len(program.plan.kernels) for program in graph.programs] == [1, 1]
    assert [node.op for node in graph.eager] == ["aten.cummax.default"]


def test_branches_that_do_not_wait_for_eager_nodes_are_one_program() -> None:
    def model(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return x.cummax(-1)[0] @ w, (x @ w) * 2

    with torch.no_grad():
        compiled(model)(torch.randn(8, 16).half(), torch.randn(16, 16).half())
    (graph,) = cklang.torch.report().graphs
    assert [node.op for node in graph.eager] == ["aten.cummax.default"]
    assert len(graph.programs) == 1


def test_the_activation_is_in_the_epilogue_though_torch_reshapes_in_between() -> None:
    def model(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
        return functional.gelu(functional.linear(x, w, bias)) + x

    args = torch.randn(2, 3, 16).half(), torch.randn(16, 16).half(), torch.randn(16).half()
    with torch.no_grad():
        compiled(model)(*args)
    (graph,) = cklang.torch.report().graphs
    (program,) = graph.programs
    assert [kernel.family for kernel in program.plan.kernels] == ["gemm"]
    assert "reshape" not in str(program.function)


@pytest.mark.parametrize("grad", [False, True])
def test_inputs_and_copies_of_them_are_results_too(grad: bool) -> None:
    def model(x: Tensor) -> tuple[Tensor, ...]:
        return x, x.clone(), x.view(-1), x * 2, (x * 2).t()

    x = torch.randn(3, 4)
    with torch.set_grad_enabled(grad):
        results = compiled(model)(x)
    for got, want in zip(results, model(x), strict=True):
        torch.testing.assert_close(got, want)
    assert results[0] is x
    assert results[2]._base is x


@pytest.mark.parametrize("grad", [False, True])
def test_a_graph_that_computes_alone_is_called_without_the_wrapper_of_gradients(grad: bool) -> None:
    def model(x: Tensor) -> Tensor:
        return functional.relu(x) * 2

    x = torch.randn(3, 4)
    files: set[str] = set()

    def note(frame: Any, event: str, _: object) -> None:
        files.add(frame.f_code.co_name if event == "call" else "")

    with torch.set_grad_enabled(grad):
        run = compiled(model, fullgraph=True)
        run(x)
        sys.setprofile(note)
        try:
            got = run(x)
        finally:
            sys.setprofile(None)
    torch.testing.assert_close(got, model(x))
    assert ("runtime_wrapper" in files) == grad


def test_mutated_inputs() -> None:
    def step(cache: Tensor, x: Tensor) -> Tensor:
        cache.add_(x * 2)
        return cache.sum(-1)

    cache, x = torch.randn(3, 4), torch.randn(3, 4)
    twin = cache.clone()
    with torch.no_grad():
        torch.testing.assert_close(compiled(step)(cache, x), step(twin, x))
    torch.testing.assert_close(cache, twin)


def test_all_sizes_may_vary() -> None:
    def model(x: Tensor, w: Tensor) -> Tensor:
        h = functional.linear(x, w).view(x.shape[0], x.shape[1], 2, -1).transpose(1, 2)
        return torch.softmax(h @ h.transpose(-1, -2), -1)[:, :, 1:]

    run = compiled(model, dynamic=True, fullgraph=True)
    w = torch.randn(16, 16)
    with torch.no_grad():
        for batch, rows in ((2, 5), (3, 9), (4, 7)):
            x = torch.randn(batch, rows, 16)
            torch.testing.assert_close(run(x, w), model(x, w), rtol=1e-4, atol=1e-5)
    (graph,) = cklang.torch.report().graphs
    assert not graph.eager
    assert graph.share == 1.0


def test_weights_of_convolutions_are_copied_once() -> None:
    weight = torch.randn(4, 3, 2, 2)
    first = prepared(weight)
    assert first.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(first, weight)
    assert prepared(weight) is first
    weight.add_(1)
    second = prepared(weight)
    assert second is not first
    assert torch.equal(second, weight)
    weight.data = torch.zeros(4, 3, 2, 2)
    assert not prepared(weight).any()
    with torch.inference_mode():
        uncounted = torch.randn(4, 3, 2, 2)
    assert prepared(uncounted) is uncounted


def test_parameters_are_prepared_and_other_weights_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[torch.Size] = []

    def counted(weight: Tensor) -> Tensor:
        copies.append(weight.shape)
        return weight

    monkeypatch.setattr("cklang.torch.backend.run.prepared", counted)
    module, args = MODELS["resnet"].call(torch.float16)
    module.eval()
    with torch.no_grad():
        compiled(module)(*args)
        assert sorted(copies) == [(32, 16, 1, 1), (32, 16, 3, 3), (32, 32, 3, 3)]
        compiled(functional.conv2d)(torch.randn(2, 4, 5, 5), torch.randn(4, 4, 3, 3))
    assert len(copies) == 3


class Mixed(torch.nn.Module):
    """A model of f32 that computes in bf16."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)
        self.image = torch.nn.Conv2d(2, 16, 1)

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rows = self.image(x).mean((2, 3))
            return self.down(torch.relu(self.up(rows)))


def test_parameters_of_another_dtype_are_converted_once_and_after_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = Mixed()
    run = compiled(module)
    x = torch.randn(3, 2, 4, 4)
    with torch.no_grad():
        first = run(x)
        torch.testing.assert_close(first, module(x), rtol=0.02, atol=0.02)
    (graph,) = cklang.torch.report().graphs
    types = [str(each.type.dtype) for each in graph.programs[0].function.params]
    assert types.count("bf16") == 6, "weights and biases; only x is converted by the program"
    copies: list[torch.Tensor] = []
    to = torch.Tensor.to

    def counted(self: Tensor, *args: Any, **more: Any) -> Tensor:
        if isinstance(self, Tensor) and self.dtype == torch.float32 and args == (torch.bfloat16,):
            copies.append(self)
        return to(self, *args, **more)

    monkeypatch.setattr(torch.Tensor, "to", counted)
    with torch.no_grad():
        assert torch.equal(run(x), first)
    assert not copies
    optimiser = torch.optim.SGD(module.parameters(), lr=0.5)
    module(x).square().sum().backward()
    copies.clear()
    optimiser.step()
    with torch.no_grad():
        second = run(x)
        torch.testing.assert_close(second, module(x), rtol=0.02, atol=0.02)
        assert not torch.equal(first, second)
        assert torch.equal(run(x), second)
    assert (
        len([each for each in copies if each.shape in [p.shape for p in module.parameters()]]) == 6
    )


def test_what_planning_refuses_without_a_place_is_one_node(monkeypatch: pytest.MonkeyPatch) -> None:
    from cklang.torch.backend.program import Program

    check = Program.mistakes

    def refuse_tanh(program: Program, device: str | None) -> tuple[CkError, ...]:
        if "tanh(" in str(program.function):
            return (CkError("X000", "no kernel has tanh"),)
        return check(program, device)

    monkeypatch.setattr(Program, "mistakes", refuse_tanh)
    x = torch.randn(4, 8)
    with torch.no_grad():
        y = compiled(lambda x: ((x * 2).exp() + 1).tanh() @ x.t())(x)
    torch.testing.assert_close(y, ((x * 2).exp() + 1).tanh() @ x.t())
    (graph,) = cklang.torch.report().graphs
    assert [(node.op, node.reason) for node in graph.eager] == [
        ("aten.tanh.default", "X000: no kernel has tanh")
    ]


def test_what_has_an_emission_is_not_decomposed() -> None:
    aten = torch.ops.aten
    for op in (aten.silu.default, aten.native_layer_norm.default, aten.addmm.default):
        assert op not in decompositions()
    assert aten.gelu_backward.default in decompositions()


B, S = Dim("B"), Dim("S")


@pytest.mark.parametrize(
    ("ours", "theirs", "groups"),
    [
        ((2, 3, 4), (6, 4), [((0, 1), (0,)), ((2,), (1,))]),
        ((B, S, 8), (B * S, 2, 4), [((0, 1), (0,)), ((2,), (1, 2))]),
        ((B, 1, 8), (B, 8), [((0,), (0,)), ((1,), ()), ((2,), (1,))]),
        ((4, 6), (6, 4), [((0, 1), (0, 1))]),
        ((1,), (1, 1), [((0,), (0,)), ((), (1,))]),
        ((), (1,), [((), (0,))]),
    ],
)
def test_axes_of_two_shapes(ours: Any, theirs: Any, groups: Any) -> None:
    assert [(group.ours, group.theirs) for group in aligned(ours, theirs)] == groups


def test_orders_of_axes_one_after_the_other_are_one() -> None:
    emitter = Emitter("orders")
    x = emitter.param("x", f16, (2, 3, 4, 5))
    there = emitter.permuted(x, (0, 2, 3, 1))
    assert emitter.permuted(there, (0, 3, 1, 2)).value is x.value
    images = Value(x.value, (2, 5, 3, 4), (0, 3, 1, 2))  # channels last, seen as channels second
    assert images.inner == (2, 3, 4, 5)
    assert emitter.viewed(images, (2, 5, 12)) == Value(x.value, (2, 5, 12), (0, 2, 1))
    assert emitter.permuted(images, (0, 2, 3, 1)) == Value(x.value, (2, 3, 4, 5))
    settled = emitter.settled(images)
    assert settled.value.type.shape == (2, 5, 3, 4)
