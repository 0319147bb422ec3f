# SPDX-License-Identifier: MIT
"""The same GEMM on cklang's emulated MI300X and under ``TRITON_INTERPRET=1``, side by side.

Run it with ``pip install '.[emu,bench]'``. Each side runs in a process of its own, one after the
other, on the same data; both answers are compared with NumPy's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

M, N, K = 1024, 1024, 512
BLOCK_M, BLOCK_N, BLOCK_K = 128, 128, 32


@dataclass(frozen=True)
class Side:
    """What one side did."""

    name: str
    seconds: float
    gflops: float
    error: float


def side(name: str, seconds: float, error: float) -> Side:
    """Return the result of one side."""
    return Side(name, seconds, 2.0 * M * N * K / seconds / 1e9, error)


def cklang_side() -> Side:
    """Run the GEMM as a compiled CK Tile kernel on the emulated device."""
    import numpy as np
    from programs import best, half, linear

    rng = np.random.default_rng(0)
    x, w = half(rng, M, K), half(rng, N, K)
    got = linear(x, w)

    def once() -> float:
        start = time.perf_counter()
        linear(x, w)
        return time.perf_counter() - start

    want = x.astype(np.float32) @ w.astype(np.float32).T
    return side("cklang, emulated", best(3, once), float(np.abs(got - want).max()))


def triton_side() -> Side:
    """Run a Triton kernel of the same tile under Triton's interpreter."""
    import torch
    import triton
    import triton.language as tl

    @triton.jit  # type: ignore[untyped-decorator]
    def gemm(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
        rows = tl.program_id(0) * BM + tl.arange(0, BM)
        columns = tl.program_id(1) * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for start in range(0, k, BK):
            inner = start + tl.arange(0, BK)
            left = tl.load(a + rows[:, None] * k + inner[None, :])
            right = tl.load(b + columns[None, :] * k + inner[:, None])
            acc += tl.dot(left, right)
        tl.store(c + rows[:, None] * n + columns[None, :], acc.to(tl.float16))

    torch.manual_seed(0)
    x = torch.randn(M, K, dtype=torch.float16)
    w = torch.randn(N, K, dtype=torch.float16)
    out = torch.empty(M, N, dtype=torch.float16)
    grid = (M // BLOCK_M, N // BLOCK_N)

    def once() -> float:
        start = time.perf_counter()
        gemm[grid](x, w, out, M, N, K, BM=BLOCK_M, BN=BLOCK_N, BK=BLOCK_K)
        return time.perf_counter() - start

    once()
    seconds = min(once() for _ in range(2))
    error = (out.float() - x.float() @ w.float().T).abs().max()
    return side("Triton, interpreted", seconds, float(error))


_SIDES = {"cklang": cklang_side, "triton": triton_side}


def measure(name: str) -> Side:
    """Run one side in a process of its own."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--side", name],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        check=True,
    )
    return Side(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print both sides and their ratio."""
    if sys.argv[1:2] == ["--side"]:
        print(json.dumps(asdict(_SIDES[sys.argv[2]]())))
        return
    ours, theirs = measure("cklang"), measure("triton")
    print(f"GEMM {M}x{N}x{K} fp16")
    for each in (ours, theirs):
        print(
            f"  {each.name:22} {each.seconds * 1e3:9.1f} ms {each.gflops:8.2f} GFLOP/s"
            f"  largest error {each.error:.3g}"
        )
    print(f"  ratio {ours.gflops / theirs.gflops:.1f}")


if __name__ == "__main__":
    main()
