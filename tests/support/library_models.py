# SPDX-License-Identifier: MIT
"""Models of transformers, torchvision and diffusers in reduced sizes, with random weights.

They are built from configurations: nothing is downloaded.
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

Example = tuple[nn.Module, tuple[Tensor, ...]]
"""A model in f32, and arguments."""


@dataclass(frozen=True, slots=True)
class LibraryModel:
    """A model, and the package that has it."""

    package: str
    make: Callable[[], Example]


_SIZES = {"hidden_size": 64, "num_attention_heads": 4, "vocab_size": 128}
_LAYERS = {"num_hidden_layers": 2, "intermediate_size": 96}


class _Wrapped(nn.Module):
    """A model that returns one tensor, of a model that returns a record."""

    def __init__(self, model: nn.Module, field: str, **options: Any) -> None:
        super().__init__()
        self.model, self.field, self.options = model, field, options

    def forward(self, x: Tensor) -> Any:
        return getattr(self.model(x, **self.options), self.field)


def _words(*shape: int) -> Tensor:
    return torch.randint(0, 128, shape)


def _of_transformers(
    name: str, head: str, field: str, arguments: Callable[[], Tensor], **sizes: Any
) -> LibraryModel:
    def make() -> Example:
        library: Any = importlib.import_module("transformers")
        config = getattr(library, f"{name}Config")(**sizes)
        options = {"use_cache": False} if field == "logits" and "Image" not in head else {}
        return _Wrapped(getattr(library, f"{name}{head}")(config), field, **options), (arguments(),)

    return LibraryModel("transformers", make)


def _resnet() -> Example:
    library: Any = importlib.import_module("torchvision.models")
    return library.resnet18(num_classes=16), (torch.randn(2, 3, 64, 64),)


class _Unet(nn.Module):
    def __init__(self, block: nn.Module) -> None:
        super().__init__()
        self.block = block

    def forward(self, x: Tensor, time: Tensor, text: Tensor) -> Any:
        return self.block(x, time, encoder_hidden_states=text)[0]


def _unet() -> Example:
    library: Any = importlib.import_module("diffusers.models.unets.unet_2d_blocks")
    block = library.CrossAttnDownBlock2D(
        in_channels=32,
        out_channels=64,
        temb_channels=48,
        num_layers=1,
        resnet_groups=8,
        num_attention_heads=4,
        cross_attention_dim=40,
    )
    return _Unet(block), (torch.randn(2, 32, 16, 16), torch.randn(2, 48), torch.randn(2, 7, 40))


LIBRARY_MODELS: Mapping[str, LibraryModel] = MappingProxyType(
    {
        "Llama": _of_transformers("Llama", "ForCausalLM", "logits", lambda: _words(2, 9),
                                  num_key_value_heads=2, **_SIZES, **_LAYERS),
        "GPT-2": _of_transformers("GPT2", "LMHeadModel", "logits", lambda: _words(2, 9), n_embd=64,
                                  n_head=4, n_layer=2, vocab_size=128),
        "BERT": _of_transformers("Bert", "Model", "last_hidden_state", lambda: _words(2, 9),
                                 **_SIZES, **_LAYERS),
        "Mixtral": _of_transformers("Mixtral", "ForCausalLM", "logits", lambda: _words(2, 9),
                                    num_key_value_heads=2, num_local_experts=4,
                                    experts_implementation="batched_mm", **_SIZES, **_LAYERS),
        "ViT": _of_transformers("ViT", "ForImageClassification", "logits",
                                lambda: torch.randn(2, 3, 32, 32), hidden_size=64,
                                num_attention_heads=4, image_size=32, patch_size=8, **_LAYERS),
        "ResNet-18": LibraryModel("torchvision", _resnet),
        "Stable-Diffusion UNet block": LibraryModel("diffusers", _unet),
    }
)  # fmt: skip
"""By name."""
