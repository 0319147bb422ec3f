# SPDX-License-Identifier: MIT
"""BERT with one layer as one op: embedding by token, layer, logits, and the loss of each token.

The embedding is a read at the tokens' indices in the kernel of the first norm, and the loss is one
kernel of the logits' rows. Twelve kernels in all.

python examples/18_bert_layer.py
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import report

B, S, E, H, D, F, V = ck.dims("B S E H D F V")


@ck.op
def bert(
    tokens: ck.i32[B, S],
    labels: ck.i32[B, S],
    words: ck.f16[V, E],
    places: ck.f16[S, E],
    gains: ck.f32[3, E],
    shifts: ck.f32[3, E],
    wq: ck.f16[H, D, E],
    wk: ck.f16[H, D, E],
    wv: ck.f16[H, D, E],
    wo: ck.f16[E, H, D],
    up: ck.f16[F, E],
    up_bias: ck.f16[F],
    down: ck.f16[E, F],
    down_bias: ck.f16[E],
) -> ck.f32[B, S]:
    """Return the loss of each token."""
    x = ck.layer_norm(words[tokens] + places, gains[0], shifts[0]).to(ck.f16)
    q = ck.einsum("bse,hde->bhsd", x, wq).to(ck.f16)
    k = ck.einsum("bse,hde->bhsd", x, wk).to(ck.f16)
    v = ck.einsum("bse,hde->bhsd", x, wv).to(ck.f16)
    o = ck.attention(q, k, v).to(ck.f16)
    y = (ck.einsum("bhsd,ehd->bse", o, wo) + x).to(ck.f16)
    y = ck.layer_norm(y, gains[1], shifts[1]).to(ck.f16)
    hidden = ck.gelu(y @ up.T + up_bias).to(ck.f16)
    z = (hidden @ down.T + down_bias + y).to(ck.f16)
    z = ck.layer_norm(z, gains[2], shifts[2]).to(ck.f16)
    return ck.cross_entropy((z @ words.T).to(ck.f16), labels)


def arrays(b: int, s: int, h: int, d: int, v: int) -> list[np.ndarray]:
    """Make random operands for ``b`` texts of ``s`` tokens."""
    rng, e, f = np.random.default_rng(0), h * d, 4 * h * d
    shapes = [(v, e), (s, e), (3, e), (3, e), *[(h, d, e)] * 3, (e, h, d)]
    shapes += [(f, e), (f,), (e, f), (e,)]
    floats = [(rng.standard_normal(shape) / 10).astype(np.float16) for shape in shapes]
    floats[2:4] = (1 + floats[2]).astype(np.float32), floats[3].astype(np.float32)
    tokens = rng.integers(0, v, (2, b, s)).astype(np.int32)
    return [*tokens, *floats]


def by_torch(args: list[np.ndarray]) -> Any:
    """Return the same losses by torch on the CPU, in f64."""
    import torch
    from torch.nn.functional import cross_entropy, gelu, layer_norm, linear
    from torch.nn.functional import scaled_dot_product_attention as attention

    tokens, labels = (torch.tensor(each.astype(np.int64)) for each in args[:2])
    words, places, gains, shifts, wq, wk, wv, wo, up, up_bias, down, down_bias = (
        torch.tensor(each.astype(np.float64)) for each in args[2:]
    )
    (b, s), (h, d, e) = tokens.shape, wq.shape
    x = layer_norm(words[tokens] + places, (e,), gains[0], shifts[0])
    q, k, v = (linear(x, w.reshape(e, e)).view(b, s, h, d).transpose(1, 2) for w in (wq, wk, wv))
    o = attention(q, k, v).transpose(1, 2).reshape(b, s, e)
    y = layer_norm(x + linear(o, wo.reshape(e, e)), (e,), gains[1], shifts[1])
    z = y + linear(gelu(linear(y, up, up_bias)), down, down_bias)
    z = layer_norm(z, (e,), gains[2], shifts[2])
    return cross_entropy((z @ words.T).flatten(0, 1), labels.flatten(), reduction="none")


def main() -> None:
    """Run a small model, check it, and price one layer of BERT."""
    args = arrays(2, 30, 2, 64, 200)
    loss = bert(*args)
    distance = np.abs(loss - report(bert, args, loss).expected).max()
    print(f"largest difference to the reference: {distance:.3g}")
    assert distance < 0.01
    assert bert.last is not None
    print(f"{len(bert.last.launches)} kernels, mean loss {loss.mean():.3f}")
    assert len(bert.last.launches) == 12
    if importlib.util.find_spec("torch") is not None:
        distance = np.abs(loss.ravel() - by_torch(args).numpy()).max()
        print(f"largest difference to torch: {distance:.3g}")
        assert distance < 0.02
    print("BERT base, 8 texts of 128 tokens:")
    print(bert.summary(*arrays(8, 128, 12, 64, 30522), device="emu:gfx942"))
    print("PASS")


if __name__ == "__main__":
    main()
