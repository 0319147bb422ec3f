# SPDX-License-Identifier: MIT
"""Sequences of different lengths without padding, and padded ones with their lengths.

python examples/attention/packed.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import reports

B, H, G, S, T, D, E, P = ck.dims("B H G S T D E P")


@ck.op
def packed(
    q: ck.f16[S, H, D],
    k: ck.f16[T, G, D],
    v: ck.f16[T, G, E],
    starts_q: ck.i32[P],
    starts_k: ck.i32[P],
    slopes: ck.f32[P, H],
) -> tuple[ck.f16[S, H, E], ck.f32[H, S]]:
    """Attend within each sequence of packed rows; return the log-sum-exp too."""
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
def padded(
    q: ck.f16[B, H, S, D],
    k: ck.f16[B, G, T, D],
    v: ck.f16[B, G, T, E],
    lengths: ck.i32[B],
) -> ck.f16[B, H, S, E]:
    """Attend to the first ``lengths[b]`` keys of each sequence."""
    return ck.attention(q, k, v, mask=lambda b, j: j < lengths[b])


def main() -> None:
    """Run both; the padding of the second must not change its result."""
    rng = np.random.default_rng(0)

    def half(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    print("form    result         error / bound")
    starts = np.array([0, 30, 95, 95, 100], np.int32)  # one sequence is empty
    slopes = rng.uniform(0, 0.1, (5, 4)).astype(np.float32)
    args = (half(100, 4, 64), half(100, 2, 64), half(100, 2, 64), starts, starts, slopes)
    for result in reports(packed, args, packed(*args)):
        result.check()
        print(f"packed  {result.got.shape!s:13}  {result.ratio:13.2f}")

    lengths = np.array([90, 17, 64], np.int32)
    q, k, v = half(3, 4, 70, 64), half(3, 2, 90, 64), half(3, 2, 90, 64)
    o = padded(q, k, v, lengths)
    result = reports(padded, (q, k, v, lengths), o)[0]
    result.check()
    print(f"padded  {o.shape!s:13}  {result.ratio:13.2f}")
    for b, length in enumerate(lengths):
        k[b, :, length:], v[b, :, length:] = 7, 7
    np.testing.assert_array_equal(padded(q, k, v, lengths), o)


if __name__ == "__main__":
    main()
