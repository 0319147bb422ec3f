# SPDX-License-Identifier: MIT
"""Attention as serving needs it: packed prompts, a cache in pages that grows, 8-bit floats.

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
    o, lse = ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=starts_q,
        cu_seqlens_k=starts_k,
        mask=lambda i, j, q_len, k_len: j <= i + (k_len - q_len),
        score=lambda s, b, h, i, j: s + slopes[b, h] * (j - i).to(ck.f32),
        return_lse=True,
    )
    return o, lse


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


@ck.op
def prefill(
    q: ck.f16[S, H, D],
    k: ck.f16[N, G, 16, D],
    v: ck.f16[N, G, 16, E],
    starts: ck.i32[P],
    lengths: ck.i32[B],
    pages: ck.i32[T],
    begins: ck.i32[P],
) -> ck.f16[S, H, E]:
    """Attend from packed new queries to a cache whose pages stand in one list."""
    return ck.attention(
        q,
        k,
        v,
        cu_seqlens_q=starts,
        seqlens_k=lengths,
        block_table=pages,
        page_starts=begins,
        mask=ck.causal("bottom_right"),
    )


@ck.op
def quantised(
    q: ck.fp8_fnuz[B, H, S, D],
    k: ck.fp8_fnuz[B, G, T, D],
    v: ck.fp8_fnuz[B, G, T, E],
    scale: ck.const[float],
) -> ck.bf16[B, H, S, E]:
    """Attend on 8-bit floats of gfx942; gfx950 and gfx1201 take ck.fp8."""
    return ck.attention(q, k, v, scale=scale, mask=ck.causal("bottom_right"))


def main() -> None:
    """Run them and check every result against the reference."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int, dtype: Any = np.float16) -> Any:
        return rng.uniform(-1, 1, shape).astype(dtype)

    starts = np.array([0, 30, 95, 100], np.int32)
    slopes = numbers(4, 4, dtype=np.float32) * 0.01
    packed = (numbers(100, 4, 64), numbers(100, 2, 64), numbers(100, 2, 64), starts, starts, slopes)

    # Pages hold rows before heads; the kernel reads any strides.
    table = rng.permutation(27).reshape(3, 9).astype(np.int32)
    pages_k, pages_v = (numbers(27, 16, 2, 64).swapaxes(1, 2) for _ in range(2))
    # Two new keys of each sequence, turned by their positions, go behind those of the cache.
    angles = np.outer(np.arange(144), 10000.0 ** -np.linspace(0, 1, 32, endpoint=False))
    cos, sin = np.cos(angles).astype(np.float16), np.sin(angles).astype(np.float16)
    new_k, new_v, new_q = numbers(3, 2, 2, 64), numbers(3, 2, 2, 64), numbers(3, 4, 2, 64)
    lengths = np.array([98, 5, 142], np.int32)
    q = ck.append_kv(
        pages_k,
        pages_v,
        new_k,
        new_v,
        seqlens_k=lengths,
        block_table=table,
        q=new_q,
        rotary="half",
        cos=cos,
        sin=sin,
    )
    cached = (q, pages_k, pages_v, lengths + 2, table)

    # The same cache with its pages in one list, and packed queries.
    filled = (
        numbers(60, 4, 64),
        pages_k,
        pages_v,
        np.array([0, 50, 53, 60], np.int32),
        lengths + 2,
        table.reshape(-1),
        np.array([0, 9, 18, 27], np.int32),
    )

    def eight(*shape: int) -> Any:
        """Return numbers to 8 bits, and what they were divided by."""
        values = numbers(*shape).astype(np.float32)
        factor = float(np.abs(values).max() / 240)
        return (values / factor).astype(ck.fp8_fnuz.numpy), factor

    (q8, of_q), (k8, of_k), (v8, of_v) = (
        eight(1, heads, rows, 128) for heads, rows in ((2, 70), (1, 150), (1, 150))
    )

    for op, args in (
        (prompts, packed),
        (decode.using(splits=3), cached),
        (prefill, filled),
    ):
        for comparison in reports(op, args, op(*args)):
            print(f"{op.program.name}: {comparison}")
            assert comparison.passed
    scale = of_q * of_k * 128**-0.5
    o = quantised(q8, k8, v8, scale=scale)  # times of_v, which a function of o could do too
    for comparison in reports(quantised, (q8, k8, v8), o, scale=scale):
        print(f"quantised, values in units of {of_v:.4f}: {comparison}")
        assert comparison.passed
    print(decode.using(splits=3).explain(*cached))


if __name__ == "__main__":
    main()
