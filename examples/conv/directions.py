# SPDX-License-Identifier: MIT
"""A convolution and both of its gradients, each an op, checked against each other.

python examples/conv/directions.py
"""

from __future__ import annotations

import numpy as np

import cklang as ck
from cklang.testing import report

N, C, K, H, W, Ho, Wo = ck.dims("N C K H W Ho Wo")


@ck.op
def forward(x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, C]) -> ck.f16[N, Ho, Wo, K]:
    """Return conv(x, w)."""
    return ck.conv(x, w, padding=1)


@ck.op
def by_input(dy: ck.f16[N, Ho, Wo, K], w: ck.f16[K, 3, 3, C]) -> ck.f16[N, H, W, C]:
    """Return the gradient by x: a stride of 1 and the padding decide its extents."""
    return ck.conv_grad_input(dy, w, padding=1)


@ck.op
def by_weight(x: ck.f16[N, H, W, C], dy: ck.f16[N, Ho, Wo, K]) -> ck.f16[K, 3, 3, C]:
    """Return the gradient by w: the sum runs over images and pixels."""
    return ck.conv_grad_weight(x, dy, padding=1, size=(3, 3))


WIDE = ck.dispatch.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=8, vector_b=8, vector_e=8
)


def main() -> None:
    """The sum of dy * y is linear in x and in w, so each gradient gives it again."""
    rng = np.random.default_rng(0)
    x, w, dy = (
        rng.uniform(-1, 1, shape).astype(np.float16)
        for shape in ((2, 9, 9, 16), (24, 3, 3, 16), (2, 9, 9, 24))
    )
    sums = {}
    print("direction  result          problem                                 error / bound")
    for op, args, other in (
        (forward, (x, w), dy),
        (by_input, (dy, w), x),
        (by_weight, (x, dy), w),
    ):
        y = op.using(WIDE)(*args)
        result = report(op, args, y)
        result.check()
        (problem,) = op.problems(*args)
        name = op.program.name
        print(f"{name:9}  {y.shape!s:14}  {str(problem)[:38]:38}  {result.ratio:13.2f}")
        sums[name] = float((y.astype(np.float64) * other.astype(np.float64)).sum())
    print(", ".join(f"{name} {value:.4f}" for name, value in sums.items()))
    assert np.ptp(list(sums.values())) < 1e-2 * abs(sums["forward"])


if __name__ == "__main__":
    main()
