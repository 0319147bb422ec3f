# SPDX-License-Identifier: MIT
"""Training with torch's optimiser: ops on the emulated GPU follow torch's losses for 20 steps."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from tests.support.modules import EXAMPLES, module_of

STEPS = 20


@dataclass(frozen=True)
class Block:
    """The op of an example that is trained."""

    op: str
    sizes: tuple[int, ...]
    """Of its arrays."""
    data: int
    """How many of its arrays are no weights."""
    rate: float
    consts: dict[str, int] = field(default_factory=dict)


BLOCKS = {
    "13_gpt2_block": Block("gpt2_block", (2, 9, 2, 64), 1, 0.01),
    "17_resnet_block": Block("resnet_block", (2, 6, 6, 32, 32, 16), 2, 0.7, {"groups": 8}),
}

pytestmark = pytest.mark.usefixtures("torch", "compiler")


def losses(
    block: Any, arrays: list[np.ndarray], dtypes: list[torch.dtype], trained: Block
) -> list[float]:
    """Return the losses of steps of SGD; weights are f32 or wider, and read in ``dtypes``."""
    wide = torch.promote_types(dtypes[0], torch.float32)
    tensors = [torch.tensor(each).to(wide) for each in arrays]
    weights = [each.requires_grad_() for each in tensors[trained.data :]]
    target = torch.sin(torch.arange(tensors[0].shape[1], dtype=wide))
    target = target.reshape(1, -1, *[1] * (tensors[0].ndim - 2))
    optimiser = torch.optim.SGD(weights, lr=trained.rate)
    record = []
    for _ in range(STEPS):
        arguments = [each.to(dtype) for each, dtype in zip(tensors, dtypes, strict=True)]
        loss = (block(*arguments).to(wide) - target).square().mean()
        record.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return record


@pytest.mark.full
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_follows_torch(name: str) -> None:
    trained, module = BLOCKS[name], module_of(EXAMPLES / f"{name}.py")
    arrays = module.arrays(*trained.sizes)
    own = [torch.from_numpy(each).dtype for each in arrays]
    wide = [torch.float64] * len(arrays)
    op, formula = (getattr(module, each) for each in (trained.op, "in_torch"))
    got = losses(partial(op, **trained.consts), arrays, own, trained)
    want = losses(partial(formula, **trained.consts), arrays, wide, trained)
    # Activations, weights and gradients are rounded to f16 in each step.
    np.testing.assert_allclose(got, want, rtol=0.01)
    assert got[-1] < got[0] * 0.8
