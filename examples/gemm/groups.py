# SPDX-License-Identifier: MIT
"""Products of different sizes in one launch, as a mixture of experts has them; in 8 bits too.

python examples/gemm/groups.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

M, N, K = ck.dims("M N K")


@ck.op
def expert(x: ck.f16[M, K], w: ck.f16[N, K], gate: ck.f32[M]) -> ck.f16[M, N]:
    """Return silu(x @ w.T), each row weighed by its gate."""
    return ck.silu(x @ w.T) * gate[:, None]


@ck.op
def scaled(
    x: ck.fp8_fnuz[M, K],
    w: ck.fp8_fnuz[N, K],
    sx: ck.f32[M, K / 128],
    sw: ck.f32[N / 128, K / 128],
    bias: ck.f32[N],
) -> ck.bf16[M, N]:
    """Return relu(x @ w.T + bias) of operands with scales for blocks: of A, of B, or of both."""
    return ck.relu(ck.gemm(x, w.T, scale_a=sx, scale_b=sw.T) + bias)


TOKENS = (5, 70, 0, 33)
"""How many rows each expert gets: one may get none."""


def main() -> None:
    """Run both groups and check every product of them."""
    rng = np.random.default_rng(0)

    def numbers(*shape: int, dtype: type = np.float32) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(dtype)

    half = np.float16
    plain = [(numbers(m, 64, dtype=half), numbers(96, 64, dtype=half), numbers(m)) for m in TOKENS]
    eight = [
        (
            (8 * numbers(m, 336)).astype(ck.fp8_fnuz.numpy),
            (8 * numbers(80, 336)).astype(ck.fp8_fnuz.numpy),
            np.abs(numbers(m, 3)) / 8,
            np.abs(numbers(1, 3)) / 8,
            numbers(80),
        )
        for m in TOKENS
    ]
    print("op      rows  verdict")
    for op, calls in ((expert, plain), (scaled, eight)):
        results = op.grouped(calls, device="emu:gfx942")
        for call, y in zip(calls, results, strict=True):
            result = report(op, call, y)
            result.check()
            print(f"{op.program.name:6}  {len(y):4}  {result}")
        assert op.last is not None
        assert len(op.last.launches) == 1


if __name__ == "__main__":
    main()
