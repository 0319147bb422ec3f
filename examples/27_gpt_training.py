# SPDX-License-Identifier: MIT
"""Training of a small GPT: two blocks, tied embeddings, their gradients, and Adam as an op.

The loss is one op, and ``ck.grad`` makes the op of its gradients by all weights. Those of both
blocks lie in one tensor, where the kernels of the products write their gradients. The text is
periodic, so that the loss falls within a few steps.

python examples/27_gpt_training.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck

B, S, E, H, D, F, V, L, P = ck.dims("B S E H D F V L P")
LAYERS, STEPS = 2, 8


@ck.op
def loss(
    text: ck.i32[B, S],
    after: ck.i32[B, S],
    table: ck.f16[V, E],
    qkv: ck.f16[LAYERS, 3, H, D, E],
    project: ck.f16[LAYERS, E, H, D],
    up: ck.f16[LAYERS, F, E],
    down: ck.f16[LAYERS, E, F],
) -> ck.f32[()]:
    """Return the mean cross entropy of the tokens after each token."""
    x = table[text].to(ck.f16)
    for layer in range(LAYERS):
        h = ck.rms_norm(x).to(ck.f16)
        q = ck.einsum("bse,hde->bhsd", h, qkv[layer, 0]).to(ck.f16)
        k = ck.einsum("bse,hde->bhsd", h, qkv[layer, 1]).to(ck.f16)
        v = ck.einsum("bse,hde->bhsd", h, qkv[layer, 2]).to(ck.f16)
        o = ck.attention(q, k, v, mask=ck.causal()).to(ck.f16)
        x = (ck.einsum("bhsd,ehd->bse", o, project[layer]) + x).to(ck.f16)
        hidden = ck.gelu(ck.rms_norm(x).to(ck.f16) @ up[layer].T).to(ck.f16)
        x = (hidden @ down[layer].T + x).to(ck.f16)
    return ck.mean(ck.cross_entropy(ck.rms_norm(x).to(ck.f16) @ table.T, after))


@ck.op
def adam(
    weight: ck.f32[P], gradient: ck.f16[P], mean: ck.f32[P], square: ck.f32[P], step: ck.f32
) -> tuple[ck.f32[P], ck.f32[P], ck.f32[P]]:
    """Return a weight, and both moments of its gradient, after a step."""
    mean = 0.9 * mean + 0.1 * gradient
    square = 0.99 * square + 0.01 * gradient * gradient
    change = mean / (1 - 0.9**step) / (ck.sqrt(square / (1 - 0.99**step)) + 1e-5)
    return weight - 0.01 * change, mean, square


def main() -> None:
    """Train on a text of period 7, and print the loss of each step."""
    rng = np.random.default_rng(0)
    text = (np.arange(4 * 33).reshape(4, 33) * 3 % 7).astype(np.int32)
    shapes = [(32, 64), (LAYERS, 3, 4, 16, 64), (LAYERS, 64, 4, 16)]
    shapes += [(LAYERS, 256, 64), (LAYERS, 64, 256)]
    states = [[rng.standard_normal(n) / 8, np.zeros(n), np.zeros(n)] for n in map(np.prod, shapes)]
    states = [[each.astype(np.float32) for each in state] for state in states]
    names = ("table", "qkv", "project", "up", "down")
    gradients, losses = ck.grad(loss, wrt=names), []
    for step in range(1, STEPS + 1):
        weights = [
            state[0].astype(np.float16).reshape(shape)
            for state, shape in zip(states, shapes, strict=True)
        ]
        losses.append(float(loss(text[:, :-1], text[:, 1:], *weights)))
        by_weights = gradients(text[:, :-1], text[:, 1:], *weights)
        for state, gradient in zip(states, by_weights, strict=True):
            state[:] = adam(state[0], gradient.reshape(-1), *state[1:], float(step))
        print(f"step {step}: loss {losses[-1]:.3f}")
    assert losses[-1] < losses[0] / 2
    print("PASS")


if __name__ == "__main__":
    main()
