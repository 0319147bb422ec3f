# SPDX-License-Identifier: MIT
"""Default kernels take no longer than they did, by the clock; KernelBench's ops are right."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from kernelbench import FIRST_LEVEL, GUARDED, ROWS

import cklang as ck

pytestmark = pytest.mark.usefixtures("compiler")


@pytest.mark.parametrize("name", GUARDED)
def test_the_default_is_as_quick_as_it_was(name: str) -> None:
    """Where it is much quicker, the row's limit should follow."""
    predicted = ROWS[name].timed().prediction.us
    assert 0.8 * ROWS[name].most < predicted <= 1.03 * ROWS[name].most


def test_the_first_level_has_a_hundred_problems() -> None:
    assert [int(name.split()[0]) for name in FIRST_LEVEL] == list(range(1, 101))


SQUARE, ROWS_OF_TWO, CUBE = [(8, 8), (8, 8)], [(3, 40)] * 2, [(2, 9, 24)]
SMALL: dict[str, Sequence[tuple[int, ...]]] = {
    "11 4D tensor by matrix": [(2, 3, 5, 16), (16, 8)],
    "14 upper triangular": SQUARE,
    "15 lower triangular": SQUARE,
    "24 log softmax": [(3, 40)],
    "27 SELU": [(3, 40)],
    "28 HardSigmoid": [(3, 40)],
    "38 L1 norm": [(3, 40)],
    "39 L2 norm": [(3, 40)],
    "41 max pooling 1D": [(2, 3, 17)],
    "43 max pooling 3D": [(1, 2, 9, 10, 11)],
    "44 average pooling 1D": [(2, 3, 17)],
    "50 product of elements": CUBE,
    "51 argmax": CUBE,
    "53 minimum": CUBE,
    "64 transposed 1D": [(2, 64, 9), (64, 3, 3)],
    "73 transposed 3D, groups, padding 3": [(1, 32, 4, 5, 6), (32, 16, 3, 3, 3)],
    "75 transposed 2D, groups, strides": [(1, 32, 4, 5), (32, 16, 3, 5)],
    "80 2D, dilation 2 x 1": [(2, 3, 9, 10), (8, 3, 3, 5)],
    "86 depthwise and pointwise": [(2, 3, 9, 10), (3, 1, 3, 3), (8, 3)],
    "90 cumulative products": [(3, 40)],
    "91 sums from the end": [(3, 40)],
    "92 sums before each": [(3, 40)],
    "93 sums of a mask": ROWS_OF_TWO,
    "94 mean square error": ROWS_OF_TWO,
    "95 cross entropy": [(9, 10), (9,)],
    "96 smooth L1": ROWS_OF_TWO,
    "97 cosine similarity": ROWS_OF_TWO,
    "98 KL divergence": ROWS_OF_TWO,
    "99 triplet margin": [(3, 40)] * 3,
    "100 hinge": [(5, 1)] * 2,
}
"""Extents of a call of each kind of op that no other test has."""


def meanings() -> dict[str, Callable[..., Any]]:
    """Return what the problems compute, by torch."""
    import torch
    from torch.nn import functional as f

    flip: Callable[..., Any] = lambda x: x.flip(1)  # noqa: E731
    return {
        "11": lambda x, w: x @ w,
        "14": lambda x, w: torch.triu(x) @ torch.triu(w),
        "15": lambda x, w: torch.tril(x) @ torch.tril(w),
        "24": lambda x: f.log_softmax(x, 1),
        "27": f.selu,
        "28": f.hardsigmoid,
        "38": lambda x: f.normalize(x, 1),
        "39": lambda x: f.normalize(x, 2),
        "41": lambda x: f.max_pool1d(x, 4, 2, 2, 3),
        "43": lambda x: f.max_pool3d(x, 3, 2, 1, 3),
        "44": lambda x: f.avg_pool1d(x, 4, 2, 1),
        "50": lambda x: x.prod(1),
        "51": lambda x: x.argmax(1),
        "53": lambda x: x.amin(1),
        "64": f.conv_transpose1d,
        "73": lambda x, w: f.conv_transpose3d(x, w, stride=2, padding=3, groups=4),
        "75": lambda x, w: f.conv_transpose2d(
            x, w, stride=(2, 3), padding=(1, 2), dilation=(2, 1), groups=4
        ),
        "80": lambda x, w: f.conv2d(x, w, padding=(1, 2), dilation=(2, 1)),
        "86": lambda x, w, v: f.conv2d(f.conv2d(x, w, groups=3), v[:, :, None, None]),
        "90": lambda x: x.cumprod(1),
        "91": lambda x: flip(flip(x).cumsum(1)),
        "92": lambda x: x.cumsum(1) - x,
        "93": lambda x, mask: (x * mask).cumsum(1),
        "94": f.mse_loss,
        "95": lambda x, target: f.cross_entropy(x, target.long()),
        "96": f.smooth_l1_loss,
        "97": lambda x, y: (1 - f.cosine_similarity(x, y)).mean(),
        "98": lambda x, y: f.kl_div(x.log(), y, reduction="batchmean"),
        "99": lambda x, y, z: f.triplet_margin_loss(x, y, z, margin=1.0),
        "100": lambda x, y: (1 - x * y).clamp(min=0).mean(),
    }


@pytest.mark.usefixtures("torch")
@pytest.mark.parametrize("name", SMALL)
def test_an_op_computes_what_torch_does(name: str) -> None:
    import torch

    random, number = np.random.default_rng(0), name.split()[0]
    row = FIRST_LEVEL[name]
    args: list[Any] = [random.uniform(0.1, 1.5, shape).astype("f") for shape in SMALL[name]]
    if number in {"14", "15"}:
        args = [(np.triu if number == "14" else np.tril)(arg) for arg in args]
    pairs = zip(args, row.dtypes, strict=True)
    args = [arg > 1 if dtype is ck.bool_ else arg.astype(dtype.numpy) for arg, dtype in pairs]
    got = row.op(*args, device="emu:gfx942")
    want = meanings()[number](*(torch.from_numpy(arg) for arg in args))
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-4)
