# SPDX-License-Identifier: MIT
"""Attention as serving needs it: packed prompts, and decoding from a cache in pages.

python examples/08_attention_serving.py
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck
from cklang.testing import reports

B, H, G, S, T, D, E, P, N = ck.dims("B H G S T D E P N")


@ck.op
def prompts(
    q: ck.f16[S, H, D],
    k: ck.f16[T, G, D],
    v: ck.f16[T, G, E],
    starts_q: ck.i32[P],
    starts_k: ck.i32[P],
    slopes: ck.f32[P, H],
) -> tuple[ck.f16[S, H, E], ck.f32[H, S]]:
    """Attend within each of the sequences that lie one after the other; return o and lse."""
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=starts_q,
        cu_seqlens_k=starts_k,
        mask=lambda i, j, q_len, k_len: j <= i + (k_len - q_len),
        score=lambda s, b, h, i, j: s + slopes[b, h] * (j - i).to(ck.f32),
        return_lse=True,
    )


@ck.op
def decode(
    q: ck.f16[B, H, S, D],
    k: ck.f16[N, G, 16, D],
    v: ck.f16[N, G, 16, E],
    lengths: ck.i32[B],
    table: ck.i32[B, P],
) -> ck.f16[B, H, S, E]:
    """Attend to the keys of a cache, 16 in a page; the last query sees all of them."""
    return ck.attention(
        q, k, v, seqlens_k=lengths, block_table=table, mask=ck.causal("bottom_right")
    )


def main() -> None:
    """Run both and check every result against the reference."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int, dtype: Any = np.float16) -> Any:
        return rng.uniform(-1, 1, shape).astype(dtype)

    starts = np.array([0, 30, 95, 100], np.int32)
    slopes = numbers(4, 4, dtype=np.float32) * 0.01
    packed = (numbers(100, 4, 64), numbers(100, 2, 64), numbers(100, 2, 64), starts, starts, slopes)

    # Pages hold rows before heads; the kernel reads any strides.
    table = rng.permutation(27).reshape(3, 9).astype(np.int32)
    pages = [numbers(27, 16, 2, 64).swapaxes(1, 2) for _ in range(2)]
    held = np.array([100, 7, 144], np.int32)
    cached = (numbers(3, 4, 1, 64), *pages, held, table)

    for op, args in ((prompts, packed), (decode.using(splits=3), cached)):
        for found in reports(op, args, op(*args)):
            print(f"{op.program.name}: {found}")
            assert found.passed
    print(decode.using(splits=3).explain(*cached))


if __name__ == "__main__":
    main()
