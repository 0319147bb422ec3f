# SPDX-License-Identifier: MIT
"""The experts of a block like Mixtral's, in one op.

The router, the order of tokens by expert and the products of all experts run without the host, so
a captured call replays whatever the router decides: python examples/26_moe.py
"""

from typing import Any

import numpy as np

import cklang as ck

T, D, F, E = ck.dims("T D F E")
Array = np.ndarray[Any, Any]


@ck.op
def experts(
    x: ck.f16[T, D],
    norm: ck.f16[D],
    router: ck.f16[E, D],
    w_gate_up: ck.f16[E, 2 * F, D],
    w_down: ck.f16[E, D, F],
) -> ck.f32[T, D]:
    """Return what each token's two experts make of it, to be added to x."""
    y = ck.rms_norm(x, norm).to(ck.f16)
    weights, ids = ck.moe_gate(y @ router.T, k=2)
    return ck.moe(y, w_gate_up, w_down, ids, weights)


def in_float64(x: Array, norm: Array, router: Array, w_gate_up: Array, w_down: Array) -> Array:
    """Return the same token by token."""
    y = (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * norm).astype(np.float16)
    result = np.zeros_like(x)
    for token, row in enumerate(y.astype(np.float64)):
        logits = router @ row
        best = np.argsort(-logits, kind="stable")[:2]
        powers = np.exp(logits[best] - logits.max())
        for expert, weight in zip(best, powers / powers.sum(), strict=True):
            gate, up = np.split(w_gate_up[expert] @ row, 2)
            result[token] += weight * (w_down[expert] @ (gate / (1 + np.exp(-gate)) * up))
    return result


if __name__ == "__main__":
    random, shapes = np.random.default_rng(0), ((50, 64), (64,), (8, 64), (8, 192, 64), (8, 64, 96))
    args = [(random.standard_normal(shape) / 4).astype(np.float16) for shape in shapes]
    error = np.abs(experts(*args) - in_float64(*(array.astype(np.float64) for array in args))).max()
    assert error < 1e-3, error
    sizes = ((4096, 4096), (4096,), (8, 4096), (8, 28672, 4096), (8, 4096, 14336))
    print(experts.summary(*(np.empty(size, np.float16) for size in sizes), device="emu:gfx942"))
    print(f"largest error {error:.1e}\nPASS")
