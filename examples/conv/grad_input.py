# SPDX-License-Identifier: MIT
"""The gradient of a convolution by its input, with strides, and fused with that of an activation.

python examples/conv/grad_input.py
"""

from __future__ import annotations

import numpy as np
import torch

import cklang as ck
from cklang.testing import report

N, C, K, H, W, Ho, Wo = ck.dims("N C K H W Ho Wo")


@ck.op
def through_relu(
    dy: ck.f16[N, Ho, Wo, K], w: ck.f16[K, 3, 3, C], x: ck.f16[N, H, W, C], stride: ck.const[int]
) -> ck.f16[N, H, W, C]:
    """Return the gradient by x of conv(relu(x), w): x has its extents."""
    return ck.where(x > 0.0, ck.conv_grad_input(dy, w, stride=stride, padding=1), 0.0)


ALGORITHM = ck.dispatch.Algorithm(
    tile=(64, 64, 32),
    warps=(2, 2, 1),
    warp_tile=(16, 16, 16),
    vector_a=1,
    vector_b=1,
    vector_e=1,
    vector_d=(1,),
)
OP = through_relu.using(ALGORITHM)


def by_torch(x: np.ndarray, w: np.ndarray, dy: np.ndarray, stride: int) -> np.ndarray:
    """Return what torch's autograd gives in float64, channels last."""

    def tensor(array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(array.astype(np.float64)).permute(0, 3, 1, 2)

    leaf = tensor(x).requires_grad_()
    y = torch.nn.functional.conv2d(torch.relu(leaf), tensor(w), stride=stride, padding=1)
    (dx,) = torch.autograd.grad(y, leaf, tensor(dy))
    gradient: np.ndarray = dx.permute(0, 2, 3, 1).numpy()
    return gradient


def main() -> None:
    """Compare with the reference and with torch."""
    rng = np.random.default_rng(0)
    print("stride  launches  workgroups  error / bound  distance from torch")
    for stride, out in ((2, 6), (3, 4), (4, 3)):
        x, w, dy = (
            rng.uniform(-1, 1, shape).astype(np.float16)
            for shape in ((1, 12, 12, 16), (32, 3, 3, 16), (1, out, out, 32))
        )
        y = OP(dy, w, x, stride)
        result = report(OP, (dy, w, x), y, stride=stride)
        result.check()
        assert OP.last is not None
        (launch,) = OP.last.launches  # all phases of the stride are in one
        far = np.abs(y - by_torch(x, w, dy, stride)).max()
        blocks = int(np.prod(launch.grid))
        print(f"{stride:6}  {1:8}  {blocks:10}  {result.ratio:13.2f}  {far:.3g}")
        assert far < 2e-2


if __name__ == "__main__":
    main()
