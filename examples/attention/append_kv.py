# SPDX-License-Identifier: MIT
"""New keys and values go into a KV cache, turned by rotary embedding on the way.

python examples/attention/append_kv.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck


def turned(x: np.ndarray, positions: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> np.ndarray:
    """Return x with its two halves turned by the angles of each row's position."""
    c, s = (table[positions][:, None].astype(np.float64) for table in (cos, sin))
    a, b = np.split(x.astype(np.float64), 2, axis=-1)
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


def main() -> None:
    """Append two rows to each of three sequences, and find them where they belong."""
    rng = np.random.default_rng(0)

    def half(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float16)

    lengths = np.array([9, 0, 30], np.int32)
    angles = np.outer(np.arange(64), 10000.0 ** -np.linspace(0, 1, 32, endpoint=False))
    cos, sin = np.cos(angles).astype(np.float16), np.sin(angles).astype(np.float16)
    cache_k, cache_v = half(3, 2, 64, 64), half(3, 2, 64, 64)
    before = cache_k.copy()
    new_k, new_v, q = half(3, 2, 2, 64), half(3, 2, 2, 64), half(3, 4, 2, 64)
    q_turned = ck.append_kv(
        cache_k, cache_v, new_k, new_v, seqlens_k=lengths, q=q, rotary="half", cos=cos, sin=sin
    )
    print("sequence  rows     largest difference of k, of v, of q")
    for b, length in enumerate(lengths):
        at = slice(length, length + 2)
        positions = np.arange(length, length + 2)
        far = [
            np.abs(got - want).max()
            for got, want in (
                (
                    cache_k[b, :, at],
                    turned(new_k[b].swapaxes(0, 1), positions, cos, sin).swapaxes(0, 1),
                ),
                (cache_v[b, :, at], new_v[b]),
                (q_turned[b], turned(q[b].swapaxes(0, 1), positions, cos, sin).swapaxes(0, 1)),
            )
        ]
        print(f"{b:8}  {length:2} - {length + 1:2}  " + "  ".join(f"{each:.2g}" for each in far))
        assert max(far) < 2e-3
        assert (cache_k[b, :, :length] == before[b, :, :length]).all(), "older rows stay"


if __name__ == "__main__":
    main()
