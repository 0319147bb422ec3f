# SPDX-License-Identifier: MIT
"""A layer of experts: each token goes to the two of the router's choice, in any numbers.

A grouped launch multiplies each expert's tokens by its weights, another one multiplies back, and a
kernel of rows adds the two results of each token: python examples/24_mixture_of_experts.py
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
def product(x: ck.f16[R, E], w: ck.f16[F, E], up: ck.const[bool]) -> ck.f16[R, F]:
    """Return the hidden values of one expert's tokens, or what it makes of those."""
    return ck.gelu(x @ w.T) if up else x @ w.T


@ck.op
def combine(
    x: ck.f16[S, E], y: ck.f16[R, E], rows: ck.i32[S, 2], weights: ck.f32[S, 2]
) -> ck.f16[S, E]:
    """Return x plus both rows of each token, weighed."""
    return x + ck.sum(ck.take(y, rows, axis=0) * weights[..., None], axis=1)


def mixture(x: np.ndarray, router: np.ndarray, ups: np.ndarray, downs: np.ndarray) -> Any:
    """Return the layer's result."""
    weights, experts = route(x, router)
    order = np.argsort(experts.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(experts.ravel(), minlength=len(ups)))[:-1]
    parts = np.split(x[order // 2], ends)
    hidden = product.grouped([(part, w, True) for part, w in zip(parts, ups, strict=True)])
    y = product.grouped([(part, w, False) for part, w in zip(hidden, downs, strict=True)])
    return combine(x, np.concatenate(y), np.argsort(order).astype(np.int32).reshape(-1, 2), weights)


if __name__ == "__main__":
    random, shapes = np.random.default_rng(0), ((60, 64), (8, 64), (8, 96, 64), (8, 64, 96))
    args = [(random.standard_normal(shape) / 4).astype(np.float16) for shape in shapes]
    result = mixture(*args)
    (launch,) = product.last.launches if product.last else ()  # one of all experts
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(result - importlib.import_module("torch_layers").mixture(*args)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.02
    share = (np.empty((rows, 4096), np.float16) for rows in (1024, 14336))
    print(product.summary(*share, True, device="emu:gfx942"), "\nPASS")
