# SPDX-License-Identifier: MIT
"""A layer of experts: each token goes to the two of the router's choice, in any numbers.

The host reads the router's weights and sorts the tokens by expert. A grouped launch multiplies each
expert's rows by its weights, another one multiplies back, and a kernel of rows adds the two results
of each token, weighed, at the indices where they lie.

python examples/24_mixture_of_experts.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck

S, E, F, R, X = ck.dims("S E F R X")


@ck.op
def route(x: ck.f16[S, E], w: ck.f16[X, E]) -> ck.f32[S, X]:
    """Return the weight of each expert for each token."""
    return ck.softmax(x @ w.T, axis=-1)


@ck.op
def gather(x: ck.f16[S, E], tokens: ck.i32[R]) -> ck.f16[R, E]:
    """Return the rows of tokens."""
    return ck.take(x, tokens, axis=0)


@ck.op
def up(x: ck.f16[R, E], w: ck.f16[F, E]) -> ck.f16[R, F]:
    """Return the hidden values of one expert's tokens."""
    return ck.gelu(x @ w.T)


@ck.op
def down(h: ck.f16[R, F], w: ck.f16[E, F]) -> ck.f16[R, E]:
    """Return what one expert adds to its tokens."""
    return h @ w.T


@ck.op
def combine(
    x: ck.f16[S, E], y: ck.f16[R, E], rows: ck.i32[S, 2], weights: ck.f32[S, 2]
) -> ck.f16[S, E]:
    """Return x plus both rows of each token, weighed."""
    first = ck.take(y, rows[:, 0], axis=0) * weights[:, :1]
    return x + first + ck.take(y, rows[:, 1], axis=0) * weights[:, 1:]


def mixture(x: np.ndarray, router: np.ndarray, ups: np.ndarray, downs: np.ndarray) -> Any:
    """Return the layer's result."""
    weights = route(x, router)
    chosen = np.argsort(-weights, axis=1, kind="stable")[:, :2]  # top 2 of each token
    order = np.argsort(chosen.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(chosen.ravel(), minlength=len(ups)))
    parts = np.split(gather(x, (order // 2).astype(np.int32)), ends[:-1])
    hidden = up.grouped(list(zip(parts, ups, strict=True)))
    y = np.concatenate(down.grouped(list(zip(hidden, downs, strict=True))))
    rows = np.argsort(order).astype(np.int32).reshape(-1, 2)
    best = np.take_along_axis(weights, chosen, axis=1)
    return combine(x, y, rows, best / best.sum(axis=1, keepdims=True))


def by_torch(*args: np.ndarray) -> Any:
    """Return the same layer by torch on the CPU, in f64, token by token."""
    import torch
    from torch.nn.functional import gelu

    x, router, ups, downs = (torch.tensor(each.astype(np.float64)) for each in args)
    best, chosen = torch.softmax(x @ router.T, -1).topk(2)
    best = best / best.sum(-1, keepdim=True)
    rows = [sum(b * (downs[c] @ gelu(ups[c] @ t)) for b, c in zip(*pair, strict=True)) + t
            for t, *pair in zip(x, best, chosen, strict=True)]  # fmt: skip
    return torch.stack(rows).numpy()


def main() -> None:
    """Run a small layer, compare it with torch, and price the launches of a larger one."""
    rng = np.random.default_rng(0)
    shapes = (60, 64), (8, 64), (8, 96, 64), (8, 64, 96)
    args = [(rng.standard_normal(shape) / 4).astype(np.float16) for shape in shapes]
    y = mixture(*args)
    for op, count in ((route, 2), (gather, 1), (up, 1), (down, 1), (combine, 1)):
        assert op.last is not None
        print(f"{op.program.name}: {', '.join(each.key.family for each in op.last.launches)}")
        assert len(op.last.launches) == count  # whatever the numbers of tokens are
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(y - by_torch(*args)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.02
    print("Mixtral 8x7B, an expert's share of 4096 tokens and both ends of the layer:")
    half, f32, i32 = np.float16, np.float32, np.int32
    rows, x = np.empty((8192, 4096), half), np.empty((4096, 4096), half)
    print(route.summary(x, np.empty((8, 4096), half), device="emu:gfx942"))
    print(up.summary(rows[:1024], np.empty((14336, 4096), half), device="emu:gfx942"))
    pairs = np.empty((4096, 2), i32), np.empty((4096, 2), f32)
    print(combine.summary(x, rows, *pairs, device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
