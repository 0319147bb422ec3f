# SPDX-License-Identifier: MIT
"""int64 and bool in programs: positions, masks, reads and writes at indices, and training."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import cklang.torch

pytestmark = pytest.mark.usefixtures("torch", "fresh")

Function = Callable[..., Any]


def compiled(function: Function, device: str | None = None) -> Function:
    options: dict[str, Any] = {"reference": True} if device is None else {"device": device}
    return torch.compile(function, backend="cklang", options=options, fullgraph=True)


def expect_no_eager() -> None:
    report = cklang.torch.report(clear=True)
    assert not [node.op for graph in report.graphs for node in graph.eager], str(report)


def integers(*shape: int, most: int = 2**62) -> Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-most, most, shape, generator=generator)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


WIDE, NEAR = integers(4, 9), integers(5, 9, most=50)[1:]
X, IDS = normal(6, 8), torch.tensor([[1, 0, 5], [2, 2, 3]])

FUNCTIONS: Mapping[str, tuple[Function, tuple[Tensor, ...]]] = {
    "arithmetic": (
        lambda x, y: (x + y, x - 3 * y, x * y + 2**40, -x, x.abs(), x.sign()),
        (WIDE, NEAR),
    ),
    "division": (
        lambda x: (x // 7, x % 7, torch.div(x, -7, rounding_mode="trunc"), x.fmod(5), x / 4),
        (NEAR,),
    ),
    "bits": (lambda x, y: (x & y, x | 255, x ^ y, ~x, x << 3, x >> 40), (WIDE, NEAR)),
    "comparisons": (lambda x, y: (x < y, x == 3, (x >= y) & (x != 0), y > 0.5), (WIDE, NEAR)),
    "choices": (
        lambda x, y: (torch.where(x > y, x, 0), torch.maximum(x, y), x.clamp(-5, 2**41)),
        (WIDE, NEAR),
    ),
    "conversions": (
        lambda x, y: (x.float(), x.int(), x.to(torch.int8), y.bool(), (y > 0).long() + x),
        (WIDE, NEAR),
    ),
    "of floats": (lambda x: ((x * 9).long() * 2, (x > 0).sum(), (x > 0).any()), (X,)),
    "positions": (
        lambda x: (torch.arange(8) * 3 + 1 < 9, torch.arange(2, 18, 2) % 5 + x.long()),
        (X,),
    ),
    "gather": (lambda x, i: (x.gather(0, i), x.gather(1, i), x[i[0], i[1]], x[:, i]), (X, IDS)),
    "negative indices": (lambda x, i: (x[i - 6], x[:, i - 5]), (X, IDS)),
    "scatter": (
        lambda x, i: (x.scatter(1, i[:, :1], -1.0), x.scatter_add(0, i, x[:2, :3] * 2)),
        (X[:2], torch.tensor([[1, 0, 1], [0, 0, 1]])),
    ),
    "scatter one of a row": (lambda x, i: x.scatter(1, i, -1.0), (X, IDS.reshape(6, 1))),
    "index_put": (
        lambda x, i: (
            x.index_put((i,), torch.ones(8)),
            x.index_put((i[0], i[1]), x[:3, 0], accumulate=True),
            x.index_put((x > 0,), torch.tensor(2.0)),
        ),
        (X, IDS),
    ),
}


def losses(x: Tensor, labels: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    return (
        functional.cross_entropy(x, labels, weight=weight, label_smoothing=0.1),
        functional.cross_entropy(x, labels, reduction="sum", ignore_index=3),
        functional.nll_loss(x.log_softmax(-1), labels, reduction="none"),
    )


def test_losses_of_labels_and_their_gradients() -> None:
    x, labels, weight = normal(5, 7).requires_grad_(), torch.tensor([1, 3, 6, 0, 3]), X[0, :7].abs()
    results = []
    for run in (losses, compiled(losses)):
        values = run(x, labels, weight)
        total = torch.stack([value.sum() for value in values]).sum()
        results.append([*values, *torch.autograd.grad(total, x)])
    for theirs, ours in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs)
    expect_no_eager()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_are_torchs(name: str) -> None:
    function, args = FUNCTIONS[name]
    want, got = function(*args), compiled(function)(*args)
    expect_no_eager()
    pairs = zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs)


class Block(nn.Module):
    """A small language model: an embedding, a layer if it is deep, and the loss."""

    def __init__(self, words: int = 32, size: int = 32, *, is_deep: bool = True) -> None:
        super().__init__()
        self.is_deep = is_deep
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(16, size)
        self.norm, self.last = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 64), nn.Linear(64, size)
        self.head = nn.Linear(size, words, bias=False)

    def forward(self, ids: Tensor, labels: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        x = self._layer(x) if self.is_deep else x
        return functional.cross_entropy(self.head(self.last(x)).flatten(0, 1), labels.flatten())

    def _layer(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        parts = self.qkv(self.norm(x)).view(batch, length, 3, 2, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, -1))
        return x + self.down(functional.gelu(self.up(x)))


def step(model: nn.Module, run: Function, *args: Tensor) -> list[Tensor]:
    """Return the loss and the gradients of a step."""
    loss = run(*args)
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    return [loss, *(gradient for gradient in gradients if gradient is not None)]


def expect_step(device: str | None = None, *, is_deep: bool) -> None:
    torch.manual_seed(0)
    model = Block(is_deep=is_deep)
    ids = torch.randint(0, 32, (2, 8))
    labels = torch.where(torch.rand(2, 8) < 0.3, -100, ids.roll(-1, 1))
    got = step(model, compiled(model, device), ids, labels)
    expect_no_eager()
    wide = Block(is_deep=is_deep).double()
    wide.load_state_dict({name: value.double() for name, value in model.state_dict().items()})
    for ours, exact in zip(got, step(wide, wide, ids, labels), strict=True):
        torch.testing.assert_close(ours.double(), exact, rtol=2e-4, atol=2e-5)


def test_a_language_model_trains_without_eager_torch() -> None:
    expect_step(is_deep=True)


@pytest.mark.usefixtures("compiler")
def test_a_language_model_trains_on_an_emulated_gpu() -> None:
    expect_step("emu:gfx942", is_deep=False)
