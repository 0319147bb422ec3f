# SPDX-License-Identifier: MIT
"""Sweeps over sequence length, batch, heads and grouped heads: one kernel serves them all.

python examples/attention/sweeps.py
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


def heads(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers from -1 to 1."""
    return rng.uniform(-1, 1, shape).astype(np.float16)


BASE = {"batch": 1, "heads": 2, "kv_heads": 2, "queries": 64, "keys": 64}
SWEEPS = {
    "length": [{"queries": n, "keys": n} for n in (1, 64, 100, 192)],
    "prefill": [{"queries": 48, "keys": 48 + n} for n in (0, 64, 128)],
    "decode": [{"queries": 1, "keys": n} for n in (64, 256, 512)],
    "batch": [{"batch": n} for n in (1, 2, 5)],
    "heads": [{"heads": n, "kv_heads": n} for n in (1, 3, 4)],
    "groups": [{"heads": 4, "kv_heads": n} for n in (4, 2, 1)],
}


def main() -> None:
    """Print a row for each point."""
    rng, folders = np.random.default_rng(0), set()
    op = attend.using(
        ck.dispatch.AttentionAlgorithm(
            tile=(128, 64, 32, 64, 32, 64), warps=(4, 1, 1), warp_tile=(32, 32, 16), vector=8
        ),
        splits=1,
    )
    print("sweep    batch  heads  queries  keys  Mflop  workgroups  error / bound")
    for name, points in SWEEPS.items():
        for changes in points:
            n = BASE | changes
            q = heads(rng, n["batch"], n["heads"], n["queries"], 64)
            k, v = (heads(rng, n["batch"], n["kv_heads"], n["keys"], 64) for _ in range(2))
            o = op(q, k, v)
            result = report(op, (q, k, v), o)
            result.check()
            assert op.last is not None
            (launch,) = op.last.launches
            folders.add(launch.artifact.folder)
            flops = 4 * q.size * n["keys"] / 1e6
            who = f"{n['heads']}/{n['kv_heads']}"
            sizes = f"{n['batch']:5}  {who:5}  {n['queries']:7}  {n['keys']:4}"
            blocks = int(np.prod(launch.grid))
            print(f"{name:7}  {sizes}  {flops:5.1f}  {blocks:10}  {result.ratio:13.2f}")
    assert len(folders) == 1


if __name__ == "__main__":
    main()
