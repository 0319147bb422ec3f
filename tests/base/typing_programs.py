# SPDX-License-Identifier: MIT
"""User code of many kinds, which mypy --strict and pyright accept as it is."""

from typing import TYPE_CHECKING, Any

import numpy as np

import cklang as ck
from cklang import bf16

if TYPE_CHECKING:
    import torch

M, N, K = ck.dims("M N K")
B, H, S, T_, D = ck.dims("B H S T_ D")

if TYPE_CHECKING:
    # A checker takes a dtype variable for one of its dtypes.
    from cklang import f16 as T  # noqa: N812
else:
    T = ck.dtype_var("T", ck.f16, ck.bf16)


@ck.fn
def bent(x: Any, slope: Any = 0.1) -> Any:
    return ck.leaky_relu(x, slope)


@ck.op
def linear(
    x: ck.f16[M, K],
    w: ck.f16[N, K],
    bias: ck.f32[N],
    scale: ck.f32,
    cap: ck.const[float] = 2.0,
    *,
    name: ck.const[str] = "relu",
) -> ck.f16[M, N]:
    y = -(x @ w.T + bias) * scale / cap
    if name == "relu":
        y = bent(y)
    return ck.where((y > 0) & ~(y < 1), y, 0.5 * y).to(ck.f16)


@ck.op
def several(
    x: T[M, K], w: ck.i8[N, K], s: ck.f32[N, K / 128], row: bf16[8, K]
) -> tuple[T[M, N], ck.f32[M, 8]]:
    y = x @ (w.to(ck.f32) * 2.0).to(ck.f16).T
    return y, x.to(ck.bf16) @ row.T


@ck.op
def put(cache: ck.inout[ck.f16[M, K]], slots: ck.i32[N], rows: ck.f16[N, K]) -> ck.f16[M, K]:
    return ck.scatter(cache, slots, rows)


@ck.op
def attend(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T_, D], v: ck.f16[B, H, T_, D], slopes: ck.f32[H]
) -> tuple[ck.f16[B, H, S, D], ck.f32[B, H, S]]:
    o, lse = ck.attention(
        q, k, v, mask=ck.causal(), score=lambda s, h, i, j: s + slopes[h] * (j - i), return_lse=True
    )
    return o, lse


class Layer:
    @staticmethod
    @ck.op
    def product(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        return x @ w.T

    def __init__(self, weight: np.ndarray[Any, Any]) -> None:
        self.weight = weight

    def __call__(self, x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        y: np.ndarray[Any, Any] = self.product(x, self.weight)
        return y


def calls(x: np.ndarray[Any, Any], t: "torch.Tensor") -> None:
    out = np.empty((4, 4), np.float16)
    linear(x, x, x, 2.0, cap=3.0, out=out, device="emu:gfx942")
    linear(t, t, t, np.float64(2.0), name="none")
    y, row = several(x, x, x, x)
    print(y.shape, row, Layer(x)(x), Layer.product(x, x), linear.explain(x, x, x, 1.0))
    o, lse = attend(t, t, t, t)
    dq, dk, dv, dbias = ck.attention_grad(attend, t, t, t, t, grad=o)
    pinned = linear.using(strategy="heuristic", splits=2)
    problem = ck.dispatch.problem(512, 512, 1024, a=ck.f16)
    print(pinned, ck.dispatch.select(problem, arch="gfx942"), ck.f16.name, lse, dq, dk, dv, dbias)
