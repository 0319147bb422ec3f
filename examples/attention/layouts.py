# SPDX-License-Identifier: MIT
"""Axes in any order: heads before rows or after, views of packed qkv, v by columns.

python examples/attention/layouts.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E = ck.dims("B H G S T D E")


@ck.op
def attend(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, T, E]
) -> ck.f16[B, H, S, E]:
    """Return softmax(q k^T / sqrt(D)) v for each head."""
    return ck.attention(q, k, v)


@ck.op
def columns(
    q: ck.f16[B, H, S, D], k: ck.f16[B, G, T, D], v: ck.f16[B, G, E, T]
) -> ck.f16[B, H, S, E]:
    """Take a v whose rows are contiguous along the keys; the kernel reads it as it lies."""
    return ck.attention(q, k, v.mT)


def heads(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers from -1 to 1."""
    return rng.uniform(-1, 1, shape).astype(np.float16)


def main() -> None:
    """Give the same numbers in several layouts; the result is the same, bit for bit."""
    rng = np.random.default_rng(0)
    b, h, rows, d = 2, 2, 72, 64
    q, k, v = (heads(rng, b, h, rows, d) for _ in range(3))
    # One array as a linear layer gives it: [batch, rows, q or k or v, heads, head size].
    qkv = np.stack([x.transpose(0, 2, 1, 3) for x in (q, k, v)], axis=2)
    views = [qkv[:, :, part].transpose(0, 2, 1, 3) for part in range(3)]
    rows_first = [
        np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (q, k, v)
    ]
    turned = np.ascontiguousarray(v.swapaxes(-1, -2))
    layouts = {
        "batch, heads, rows": (attend, (q, k, v)),
        "batch, rows, heads": (attend, tuple(rows_first)),
        "views of packed qkv": (attend, tuple(views)),
        "v by columns": (columns, (q, k, turned)),
    }
    print("layout               strides of v, elements  launches  the same bits")
    first = attend(q, k, v)
    for name, (op, args) in layouts.items():
        o = op(*args)
        report(op, args, o).check()
        assert op.last is not None
        strides = tuple(stride // 2 for stride in args[2].strides)
        same = bool((o == first).all())
        print(f"{name:19}  {strides!s:22}  {len(op.last.launches):8}  {same}")
        assert same
        assert len(op.last.launches) == 1, "no layout is copied"
    out = np.empty((b, rows, h, d), np.float16)
    assert np.shares_memory(attend(q, k, v, out=out.transpose(0, 2, 1, 3)), out)


if __name__ == "__main__":
    main()
