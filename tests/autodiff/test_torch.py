# SPDX-License-Identifier: MIT
"""``ck.vjp`` as what torch's autograd calls: training with torch's optimiser."""

import numpy as np
import pytest
import torch

from tests.autodiff.test_kernels import by_torch
from tests.support.modules import EXAMPLES, module_of

pytestmark = pytest.mark.usefixtures("torch", "compiler")


def test_training_with_torch_follows_torch() -> None:
    module = module_of(EXAMPLES / "20_training.py")
    rng = np.random.default_rng(1)
    x, labels = module.spirals(128)
    start = [(rng.standard_normal(s) / 4).astype("f") for s in ((64, 16), (64,), (16, 64))]
    want = by_torch(x, labels, start, module.RATE, module.STEPS)
    weights = [torch.tensor(each, requires_grad=True) for each in start]
    optimiser = torch.optim.SGD(weights, lr=module.RATE)
    losses = []
    for _ in range(module.STEPS):
        half = [each.half() for each in weights]
        loss = module.loss(torch.tensor(x), *half, torch.tensor(labels))
        losses.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    np.testing.assert_allclose(losses, want, rtol=0.02)
