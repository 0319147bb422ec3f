# SPDX-License-Identifier: MIT
"""A layer of experts: each token goes to the two of the router's choice, in any numbers.

A grouped launch reads each expert's tokens at their indices and multiplies them by its weights. A
product for each expert multiplies back, and adds what it makes of each token, weighed, to the
token's row as it stores it: python examples/24_mixture_of_experts.py
"""

import importlib.util
from typing import Any

import numpy as np

import cklang as ck

S, E, F, R, X = ck.dims("S E F R X")


@ck.op
def route(x: ck.f16[S, E], w: ck.f16[X, E]) -> tuple[ck.f32[S, 2], ck.i32[S, 2]]:
    """Return the weights of the two best experts of each token, and which they are."""
    best, experts = ck.topk(x @ w.T, 2)
    return ck.softmax(best), experts


@ck.op
def up(x: ck.f16[S, E], rows: ck.i32[R], w: ck.f16[F, E]) -> ck.f16[R, F]:
    """Return the hidden values of one expert's tokens, rows of x."""
    return ck.gelu(x[rows] @ w.T)


@ck.op
def down(
    y: ck.inout[ck.f32[S, E]], hidden: ck.f16[R, F], w: ck.f16[E, F], rows: ck.i32[R], by: ck.f32[R]
) -> ck.f32[S, E]:
    """Add what one expert makes of its tokens, weighed, to their rows of y."""
    return ck.scatter_add(y, rows, (hidden @ w.T) * by[:, None], ordered=False)


def mixture(x: np.ndarray, router: np.ndarray, ups: np.ndarray, downs: np.ndarray) -> Any:
    """Return the layer's result."""
    weights, experts = route(x, router)
    order = np.argsort(experts.ravel(), kind="stable").astype(np.int32)
    ends = np.cumsum(np.bincount(experts.ravel(), minlength=len(ups)))[:-1]
    parts, shares = np.split(order // 2, ends), np.split(weights.ravel()[order], ends)
    hidden = up.grouped([(x, rows, w) for rows, w in zip(parts, ups, strict=True)])
    y = x.astype(np.float32)
    for each in zip(hidden, downs, parts, shares, strict=True):
        down(y, *each)
    return y


if __name__ == "__main__":
    random, shapes = np.random.default_rng(0), ((60, 64), (8, 64), (8, 96, 64), (8, 64, 96))
    args = [(random.standard_normal(shape) / 4).astype(np.float16) for shape in shapes]
    result = mixture(*args)
    if importlib.util.find_spec("torch") is not None:
        assert np.abs(result - importlib.import_module("torch_layers").mixture(*args)).max() < 0.02
    x, w = (np.empty((rows, 4096), np.float16) for rows in (4096, 14336))
    print(up.summary(x, np.arange(1024, dtype=np.int32), w, device="emu:gfx942"), "\nPASS")
