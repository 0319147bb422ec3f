# SPDX-License-Identifier: MIT
"""Small models in plain torch, of the architectures that people compile, and their arguments."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


class Mlp(nn.Module):
    def __init__(self, size: int = 64, hidden: int = 128) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.up, self.down = nn.Linear(size, hidden), nn.Linear(hidden, size)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(functional.gelu(self.up(self.norm(x))))


class Deep(nn.Module):
    """More tensors than the 64 arguments that a schema of torch's can have."""

    def __init__(self, size: int = 32, layers: int = 33) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(size, size) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = x + functional.gelu(layer(x)) / len(self.layers)
        return x


class LlamaNorm(nn.Module):
    """RMSNorm as Hugging Face writes it: in f32, rounded before the gain."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)
        return self.weight * wide.to(x.dtype)


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class LlamaBlock(nn.Module):
    def __init__(self, size: int = 128, heads: int = 4, kv: int = 2, hidden: int = 192) -> None:
        super().__init__()
        self.heads, self.kv, self.head = heads, kv, size // heads
        self.norm1, self.norm2 = LlamaNorm(size), nn.RMSNorm(size, eps=1e-5)
        self.q, self.o = (nn.Linear(size, size, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(size, kv * self.head, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(size, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, rows, size = x.shape
        h = self.norm1(x)
        q = self.q(h).view(batch, rows, self.heads, self.head).transpose(1, 2)
        k, v = (
            each(h).view(batch, rows, self.kv, self.head).transpose(1, 2)
            for each in (self.k, self.v)
        )
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        o = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.o(o.transpose(1, 2).reshape(batch, rows, size))
        return x + self.mlp(self.norm2(x))

    def mlp(self, h: Tensor) -> Tensor:
        return self.down(functional.silu(self.gate(h)) * self.up(h))


class MixtralBlock(LlamaBlock):
    """Attention, then a mixture of experts: a router takes two of four for each row."""

    def __init__(self, size: int = 128, hidden: int = 96, experts: int = 4, top: int = 2) -> None:
        super().__init__(size)
        self.experts, self.top = experts, top
        self.router = nn.Linear(size, experts, bias=False)
        self.gates, self.ups = (
            nn.ModuleList(nn.Linear(size, hidden, bias=False) for _ in range(experts))
            for _ in range(2)
        )
        self.downs = nn.ModuleList(nn.Linear(hidden, size, bias=False) for _ in range(experts))

    def mlp(self, h: Tensor) -> Tensor:
        rows = h.reshape(-1, h.shape[-1])
        weights = torch.softmax(self.router(rows).float(), -1)
        weights, chosen = torch.topk(weights, self.top, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        share = (functional.one_hot(chosen, self.experts) * weights[..., None]).sum(1).to(h.dtype)
        result, places = torch.zeros_like(rows), torch.arange(rows.shape[0])
        for expert, (gate, up, down) in enumerate(
            zip(self.gates, self.ups, self.downs, strict=True)
        ):
            y = down(functional.silu(gate(rows)) * up(rows)) * share[:, expert, None]
            result = result.index_add(0, places, y)
        return result.reshape(h.shape)


class Gpt2(nn.Module):
    """GPT-2 with one block: embeddings by token and position, logits by the tied embedding."""

    def __init__(self, words: int = 100, size: int = 128, heads: int = 2, places: int = 32) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(words, size), nn.Embedding(places, size)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
        self.qkv, self.o = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, tokens: Tensor) -> Tensor:
        batch, rows = tokens.shape
        x = self.words(tokens) + self.places(torch.arange(rows))
        parts = self.qkv(self.norms[0](x)).split(x.shape[-1], dim=2)
        q, k, v = (part.view(batch, rows, self.heads, -1).transpose(1, 2) for part in parts)
        o = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(o.transpose(1, 2).contiguous().view(batch, rows, -1))
        x = x + self.down(functional.gelu(self.up(self.norms[1](x)), approximate="tanh"))
        return functional.linear(self.norms[2](x), self.words.weight)


class BertLayer(nn.Module):
    """A layer of BERT with a mask of keys, and its attention written out in matrices."""

    def __init__(self, size: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, rows, size = x.shape
        q, k, v = (
            each(x).view(batch, rows, self.heads, -1).transpose(1, 2)
            for each in (self.q, self.k, self.v)
        )
        scores = q @ k.transpose(-1, -2) / (size // self.heads) ** 0.5
        scores = scores.masked_fill(~mask[:, None, None, :], -10000.0)
        o = torch.softmax(scores, -1) @ v
        x = self.norm1(x + self.o(o.transpose(1, 2).reshape(batch, rows, size)))
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Vit(nn.Module):
    """A vision transformer with one layer: patches, a class token, logits of that token."""

    def __init__(self, size: int = 64, heads: int = 4, patch: int = 4, patches: int = 16) -> None:
        super().__init__()
        self.heads = heads
        self.patch = nn.Conv2d(3, size, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, size) / 10)
        self.places = nn.Parameter(torch.randn(1, patches + 1, size) / 10)
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(3))
        self.qkv, self.o = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.head = nn.Linear(size, 10)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patch(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        batch, rows, size = x.shape
        qkv = self.qkv(self.norms[0](x)).view(batch, rows, 3, self.heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        o = functional.scaled_dot_product_attention(q, k, v)
        x = x + self.o(o.transpose(1, 2).reshape(batch, rows, size))
        x = x + self.down(functional.gelu(self.up(self.norms[1](x))))
        return self.head(self.norms[2](x)[:, 0])


class ResnetBlock(nn.Module):
    """A basic block of ResNet-18 that halves the image."""

    def __init__(self, channels: int = 16, wider: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, wider, 3, 2, 1, bias=False)
        self.conv2 = nn.Conv2d(wider, wider, 3, 1, 1, bias=False)
        self.skip = nn.Conv2d(channels, wider, 1, 2, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(wider) for _ in range(3))
        for name, statistic in self.named_buffers():
            if name.endswith("running_mean"):
                nn.init.normal_(statistic, std=0.1)
            elif name.endswith("running_var"):
                nn.init.uniform_(statistic, 0.5, 2.0)

    def forward(self, x: Tensor) -> Tensor:
        h = functional.relu(self.norms[0](self.conv1(x)))
        return functional.relu(self.norms[1](self.conv2(h)) + self.norms[2](self.skip(x)))


class Images(nn.Module):
    """Two convolutions with an activation between them."""

    def __init__(self, channels: int = 16, wider: int = 32) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, wider, 3, 1, 1)
        self.conv2 = nn.Conv2d(wider, wider, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.conv2(functional.relu(self.conv1(x))))


class UnetBlock(nn.Module):
    """A residual block of Stable Diffusion's UNet."""

    def __init__(
        self, channels: int = 32, wider: int = 64, time: int = 48, groups: int = 8
    ) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, channels), nn.GroupNorm(groups, wider)
        self.conv1 = nn.Conv2d(channels, wider, 3, padding=1)
        self.conv2 = nn.Conv2d(wider, wider, 3, padding=1)
        self.time, self.skip = nn.Linear(time, wider), nn.Conv2d(channels, wider, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        h = self.conv1(functional.silu(self.norm1(x)))
        h = h + self.time(functional.silu(time))[:, :, None, None]
        return self.conv2(functional.silu(self.norm2(h))) + self.skip(x)


@dataclass(frozen=True)
class Model:
    """A model, and its arguments for a batch."""

    make: Callable[[], nn.Module]
    arguments: Callable[[int], tuple[Tensor, ...]]
    kernels: int
    """The most kernels that compute it, in inference."""
    is_batched: tuple[bool, ...]
    """Whether the first axis of each argument is the batch."""

    def call(self, dtype: torch.dtype, batch: int = 2) -> tuple[nn.Module, tuple[Tensor, ...]]:
        """Return the model and arguments, the same ones in each process."""
        torch.manual_seed(0)
        model = self.make().to(dtype)
        return model, tuple(cast(each, dtype) for each in self.arguments(batch))


def cast(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    """Return a tensor of floats in another dtype, any other as it is."""
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def _angles(rows: int, size: int) -> tuple[Tensor, Tensor]:
    angles: Any = torch.arange(rows)[:, None] / 10_000.0 ** (torch.arange(0, size, 2) / size)
    both = torch.cat((angles, angles), -1)
    return both.cos(), both.sin()


def _model(
    make: Callable[[], nn.Module], kernels: int, *arguments: Callable[[int], Tensor]
) -> Model:
    return Model(
        make=make,
        arguments=lambda batch: tuple(each(batch) for each in arguments),
        kernels=kernels,
        is_batched=tuple(each(2).shape[0] == 2 for each in arguments),
    )


def _normal(*shape: int) -> Callable[[int], Tensor]:
    return lambda batch: torch.randn(batch, *shape)


MODELS: Mapping[str, Model] = MappingProxyType(
    {
        "mlp": _model(Mlp, 3, _normal(8, 64)),
        "deep": _model(Deep, 33, _normal(8, 32)),
        "llama": _model(LlamaBlock, 11, _normal(8, 128), lambda _: _angles(8, 32)[0],
                        lambda _: _angles(8, 32)[1]),
        "mixtral": _model(MixtralBlock, 41, _normal(8, 128), lambda _: _angles(8, 32)[0],
                          lambda _: _angles(8, 32)[1]),
        "gpt2": _model(Gpt2, 10, lambda batch: torch.randint(0, 100, (batch, 9))),
        "bert": _model(BertLayer, 11, _normal(9, 64),
                       lambda batch: (torch.arange(9) < 7).repeat(batch, 1)),
        "vit": _model(Vit, 12, _normal(3, 16, 16)),
        "resnet": _model(ResnetBlock, 3, _normal(16, 8, 8)),
        "images": _model(Images, 2, _normal(16, 8, 8)),
        "unet": _model(UnetBlock, 6, _normal(32, 8, 8), _normal(48)),
    }
)  # fmt: skip
"""The models by name."""
