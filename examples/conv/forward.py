# SPDX-License-Identifier: MIT
"""Convolutions forward: 1, 2 and 3 axes in space, stride, padding, dilation, groups, an epilogue.

python examples/conv/forward.py
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import cklang as ck
from cklang.testing import report

N, C, K, P, D, H, W, Ho, Wo = ck.dims("N C K P D H W Ho Wo")


@ck.op
def line(x: ck.f16[N, W, C], w: ck.f16[K, 3, C]) -> ck.f16[N, Wo, K]:
    """Return the convolution along one axis, with a stride of 2."""
    return ck.relu(ck.conv(x, w, stride=2, padding=1))


@ck.op
def image(
    x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, C], bias: ck.f16[K], res: ck.f16[N, Ho, Wo, K]
) -> ck.f16[N, Ho, Wo, K]:
    """Return clamp(conv(x, w) + bias, 0, 6) + res: channels are last, all in one kernel."""
    return ck.clamp(ck.conv(x, w, stride=2, padding=1) + bias, 0.0, 6.0) + res


@ck.op
def groups(x: ck.f16[N, H, W, C], w: ck.f16[K, 3, 3, P]) -> ck.f16[N, H, W, K]:
    """Return the convolution in two groups, its taps two pixels apart."""
    return ck.relu(ck.conv(x, w, padding=2, dilation=2, groups=2))


@ck.op
def volume(x: ck.f16[N, D, H, W, C], w: ck.f16[K, 3, 3, 3, C]) -> ck.f16[N, D, H, W, K]:
    """Return the convolution in three axes."""
    return ck.relu(ck.conv(x, w, padding=1))


WIDE = ck.dispatch.Algorithm(
    tile=(64, 64, 32), warps=(2, 2, 1), warp_tile=(16, 16, 32), vector_a=8, vector_b=8, vector_e=8
)
CALLS = (
    (line, ((2, 50, 16), (32, 3, 16))),
    (image, ((2, 14, 14, 16), (32, 3, 3, 16), (32,), (2, 7, 7, 32))),
    (groups, ((1, 9, 9, 32), (32, 3, 3, 16))),
    (volume, ((1, 5, 6, 7, 16), (16, 3, 3, 3, 16))),
)


def main() -> None:
    """Run each and check it against the reference."""
    rng = np.random.default_rng(0)
    print("op      result              instructions  error / bound")
    for plain, shapes in CALLS:
        width = (8,) * (len(shapes) - 2)
        op = plain.using(replace(WIDE, vector_d=width))
        args = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
        y = op(*args)
        result = report(op, args, y)
        result.check()
        assert op.last is not None
        count = op.last.instructions
        print(f"{op.program.name:6}  {y.shape!s:18}  {count!s:>12}  {result.ratio:13.2f}")


if __name__ == "__main__":
    main()
