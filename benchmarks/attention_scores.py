# SPDX-License-Identifier: MIT
"""What a score function costs: wave instructions of attention on the emulator, by function.

    python benchmarks/attention_scores.py

256 queries and 1024 keys of two heads of 64, f16, the same tiling each time. Counts, not times:
they are the same on every machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import cklang as ck

ARCH = "gfx942"
B, H, S, T, D = ck.dims("B H S T D")


@ck.op
def plain(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D]
) -> ck.f16[B, H, S, D]:
    """The score as it is."""
    return ck.attention(q, k, v)


@ck.op
def soft_cap(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D], cap: ck.const[float] = 50.0
) -> ck.f16[B, H, S, D]:
    """Up to a cap of 64 CK Tile's own, beyond an expression."""
    return ck.attention(q, k, v, score=lambda s: cap * ck.tanh(s / cap))


@ck.op
def alibi(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D], slopes: ck.f32[H]
) -> ck.f16[B, H, S, D]:
    """A slope for each head."""
    return ck.attention(q, k, v, score=lambda s, b, h, i, j: s + slopes[h] * (j - i).to(ck.f32))


@ck.op
def bias(
    q: ck.f16[B, H, S, D], k: ck.f16[B, H, T, D], v: ck.f16[B, H, T, D], added: ck.f16[B, H, S, T]
) -> ck.f16[B, H, S, D]:
    """A number for each score."""
    return ck.attention(q, k, v, score=lambda s, b, h, i, j: s + added[b, h, i, j])


def main() -> None:
    """Print the table."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int, dtype: Any = np.float16) -> Any:
        return rng.uniform(-1, 1, shape).astype(dtype)

    tensors = [numbers(1, 2, rows, 64) for rows in (256, 1024, 1024)]
    rows: list[tuple[str, Any, list[Any], dict[str, float]]] = [
        ("none", plain, [], {}),
        ("soft cap, CK Tile's own", soft_cap, [], {}),
        ("soft cap as an expression", soft_cap, [], {"cap": 65.0}),
        ("ALiBi as an expression", alibi, [numbers(2, dtype=np.float32)], {}),
        ("bias as an expression", bias, [numbers(1, 2, 256, 1024)], {}),
    ]
    print("| score | wave instructions | of those without |\n|---|---|---|")
    base = 0
    for name, op, more, consts in rows:
        op(*tensors, *more, device=f"emu:{ARCH}", **consts)
        count = op.last.instructions
        base = base or count
        print(f"| {name} | {count:,} | {count / base:.2f} |", flush=True)


if __name__ == "__main__":
    main()
