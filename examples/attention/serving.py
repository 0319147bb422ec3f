# SPDX-License-Identifier: MIT
"""Prefill of packed prompts, then decoding from a KV cache in pages that grows step by step.

python examples/attention/serving.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

B, H, G, S, T, D, E, P, N = ck.dims("B H G S T D E P N")


@ck.op
def prefill(
    q: ck.f16[S, H, D],
    k: ck.f16[N, G, 16, D],
    v: ck.f16[N, G, 16, E],
    starts: ck.i32[P],
    lengths: ck.i32[B],
    table: ck.i32[B, T],
) -> ck.f16[S, H, E]:
    """Attend from packed new queries to the pages of their sequences."""
    mask = ck.causal("bottom_right")
    return ck.attention(
        q, k, v, cu_seqlens_q=starts, seqlens_k=lengths, block_table=table, mask=mask
    )


@ck.op
def decode(
    q: ck.f16[B, H, S, D],
    k: ck.f16[N, G, 16, D],
    v: ck.f16[N, G, 16, E],
    lengths: ck.i32[B],
    table: ck.i32[B, T],
) -> ck.f16[B, H, S, E]:
    """Attend from one new query of each sequence, whose keys several workgroups share."""
    mask = ck.causal("bottom_right")
    return ck.attention(q, k, v, seqlens_k=lengths, block_table=table, mask=mask)


def main() -> None:
    """Three sequences: prefill, then two steps that append a key and decode a token."""
    rng = np.random.default_rng(0)

    def half(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    lengths = np.array([50, 3, 7], np.int32)
    table = rng.permutation(12).reshape(3, 4).astype(np.int32)
    pages = [half(12, 16, 2, 64).swapaxes(1, 2) for _ in range(2)]
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    prompt = (half(60, 4, 64), *pages, starts, lengths, table)
    print("step     keys            launches  error / bound")
    result = report(prefill, prompt, prefill(*prompt))
    result.check()
    assert prefill.last is not None
    print(f"prefill  {lengths!s:14}  {len(prefill.last.launches):8}  {result.ratio:13.2f}")
    op = decode.using(splits=3)
    for step in range(2):
        new = half(3, 2, 1, 64)
        ck.append_kv(pages[0], pages[1], new, -new, seqlens_k=lengths, block_table=table)
        lengths = lengths + 1
        args = (half(3, 4, 1, 64), *pages, lengths, table)
        result = report(op, args, op(*args))
        result.check()
        assert op.last is not None
        print(f"decode {step}  {lengths!s:14}  {len(op.last.launches):8}  {result.ratio:13.2f}")


if __name__ == "__main__":
    main()
