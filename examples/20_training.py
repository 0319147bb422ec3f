# SPDX-License-Identifier: MIT
"""Training: a two-layer perceptron, its loss and their gradients, in twenty steps of SGD.

The loss is an op, and ``ck.grad`` makes the op of its gradients by the weights. NumPy keeps the
weights in f32. The data are points of two interleaved spirals.

python examples/20_training.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck

B, H = ck.dims("B H")
STEPS, RATE = 20, 0.5


@ck.op
def loss(
    x: ck.f16[B, 16], up: ck.f16[H, 16], bias: ck.f16[H], down: ck.f16[16, H], labels: ck.i32[B]
) -> ck.f32[()]:
    """Return the mean cross entropy of 16 classes."""
    hidden = ck.gelu(x @ up.T + bias).to(ck.f16)
    return ck.mean(ck.cross_entropy(hidden @ down.T, labels))


def spirals(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return points of two spirals as 16 features each, and which spiral each is of."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    turn = rng.uniform(0.5, 2.5, count)
    angle = 2 * turn + np.pi * labels
    x, y = turn * np.cos(angle) / 2.5, turn * np.sin(angle) / 2.5
    features = [f(k * each) for k in range(1, 5) for each in (x, y) for f in (np.sin, np.cos)]
    return np.stack(features, axis=1).astype(np.float16), labels.astype(np.int32)


def main() -> None:
    """Train, and print the loss of each fifth step."""
    rng = np.random.default_rng(1)
    x, labels = spirals(128)
    shapes = ((64, 16), (64,), (16, 64))
    weights = [(rng.standard_normal(shape) / 4).astype(np.float32) for shape in shapes]
    gradients = ck.grad(loss, wrt=("up", "bias", "down"))
    losses = []
    for step in range(STEPS):
        half = [each.astype(np.float16) for each in weights]
        losses.append(float(loss(x, *half, labels)))
        for weight, gradient in zip(weights, gradients(x, *half, labels), strict=True):
            weight -= RATE * gradient.astype(np.float32)
        if step % 5 == 0 or step == STEPS - 1:
            print(f"step {step:2}: loss {losses[-1]:.3f}")
    assert losses[-1] < losses[0] / 4
    print("PASS")


if __name__ == "__main__":
    main()
