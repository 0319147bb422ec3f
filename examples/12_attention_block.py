# SPDX-License-Identifier: MIT
"""An attention block as one op: Q, K and V products, attention, output product, residual.

It is the block in the middle of an image autoencoder, which has one head. Five kernels of two
families are one plan, and one workspace holds what stands between them. Where torch is installed
its attention on the CPU is a second opinion.

python examples/12_attention_block.py
"""

from __future__ import annotations

import importlib.util

import numpy as np

import cklang as ck
from cklang.testing import report

B, S, E, D = ck.dims("B S E D")


@ck.op
def attention_block(
    x: ck.f16[B, 1, S, E],
    wq: ck.f16[D, E],
    wk: ck.f16[D, E],
    wv: ck.f16[D, E],
    wo: ck.f16[E, D],
    bias: ck.f16[E],
) -> ck.f16[B, 1, S, E]:
    """Return x plus what attention to x, projected to E channels, adds."""
    q, k, v = (x @ wq.T).to(ck.f16), (x @ wk.T).to(ck.f16), (x @ wv.T).to(ck.f16)
    o = ck.attention(q, k, v).to(ck.f16)
    return x + (o @ wo.T + bias)


def arrays(b: int, s: int, e: int, d: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """Make the operands: ``b`` images of ``s`` pixels with ``e`` channels, a head of ``d``."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((b, 1, s, e))
    weights = [rng.standard_normal((d, e)) / 8 for _ in range(3)]
    operands = (x, *weights, rng.standard_normal((e, d)) / 8, rng.standard_normal(e))
    return tuple(each.astype(np.float16) for each in operands)


def by_torch(args: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return the same block by torch on the CPU, in f64, rounded where the op rounds."""
    import torch
    from torch.nn.functional import linear, scaled_dot_product_attention

    x, wq, wk, wv, wo, bias = (torch.tensor(each.astype(np.float64)) for each in args)
    q, k, v = (linear(x, w).half().double() for w in (wq, wk, wv))
    o = scaled_dot_product_attention(q, k, v).half().double()
    return (x + linear(o, wo, bias)).numpy()


def main() -> None:
    """Run the block and check it against the reference and, if it is there, torch."""
    args = arrays(2, 70, 64, 64)
    y = attention_block(*args)
    print(attention_block.explain(*args).partition("\ndecisions")[0])
    assert attention_block.last is not None
    families = [launch.key.family for launch in attention_block.last.launches]
    print(f"launched: {', '.join(families)}")
    assert families == ["gemm", "gemm", "gemm", "attention", "gemm"]
    result = report(attention_block, args, y)
    print(result)
    result.check()
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(y.astype(np.float64) - by_torch(args)).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.01
    print("PASS")


if __name__ == "__main__":
    main()
