# SPDX-License-Identifier: MIT
"""The ops of KernelBench's first level in the language, by kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cklang as ck

B, C, D, G, E, H, L, W, M, N, K = ck.dims("B C D G E H L W M N K")
P, Q, R, S = ck.dims("P Q R S")
_SPACE, _WINDOW, _RESULT = (D, H, W), ck.dims("T R S"), ck.dims("O P Q")

# --- products


@ck.op
def product(x: ck.f32[M, K], w: ck.f32[K, N]) -> ck.f32[M, N]:
    """A product of matrices."""
    return x @ w


@ck.op
def batched(x: ck.f32[B, M, K], w: ck.f32[B, K, N]) -> ck.f32[B, M, N]:
    """A batch of products."""
    return x @ w


@ck.op
def over_last(x: ck.f32[B, M, K], w: ck.f32[K, N]) -> ck.f32[B, M, N]:
    """A product along the last axis of a tensor."""
    return x @ w


@ck.op
def over_last_of_four(x: ck.f32[B, C, M, K], w: ck.f32[K, N]) -> ck.f32[B, C, M, N]:
    """A product along the last axis of a tensor of four axes."""
    return x @ w


@ck.op
def left_transposed(x: ck.f32[K, M], w: ck.f32[K, N]) -> ck.f32[M, N]:
    """A product whose first matrix is transposed in memory."""
    return x.T @ w


@ck.op
def right_transposed(x: ck.f32[M, K], w: ck.f32[N, K]) -> ck.f32[M, N]:
    """A product whose second matrix is transposed in memory."""
    return x @ w.T


@ck.op
def both_transposed(x: ck.f32[K, M], w: ck.f32[N, K]) -> ck.f32[M, N]:
    """A product of matrices that are both transposed in memory."""
    return x.T @ w.T


@ck.op
def upper(x: ck.f32[N, N], w: ck.f32[N, N]) -> ck.f32[N, N]:
    """The product of two upper triangular matrices, by bands of rows without their zeros."""
    bands = [x[i * N // 4 : (i + 1) * N // 4, i * N // 4 :] @ w[i * N // 4 :] for i in range(4)]
    return ck.where(ck.arange(N)[:, None] <= ck.arange(N), ck.concat(bands, 0), 0.0)


@ck.op
def lower(x: ck.f32[N, N], w: ck.f32[N, N]) -> ck.f32[N, N]:
    """The product of two lower triangular matrices, by bands of rows without their zeros."""
    ends = [(i + 1) * N // 4 for i in range(4)]
    bands = [x[i * N // 4 : ends[i], : ends[i]] @ w[: ends[i]] for i in range(4)]
    return ck.where(ck.arange(N)[:, None] >= ck.arange(N), ck.concat(bands, 0), 0.0)


@ck.op
def by_diagonal(x: ck.f32[M], w: ck.f32[M, N]) -> ck.f32[M, N]:
    """A diagonal matrix times a matrix."""
    return x[:, None] * w


# --- functions of each element


def pointwise(function: Callable[[Any], Any]) -> ck.Op:
    """Return the op that computes a function of each element of a matrix."""

    @ck.op
    def of_elements(x: ck.f32[M, K]) -> ck.f32[M, K]:
        """A function of each element."""
        return function(x)

    return of_elements


@ck.fn
def scaled(x: Any) -> Any:
    """A matrix times a number."""
    return x * 3.14


# --- norms and softmax


@ck.op
def batch_norm(x: ck.f32[B, C, H, W], g: ck.f32[C], b: ck.f32[C]) -> ck.f32[B, C, H, W]:
    """BatchNorm as in training."""
    mean = ck.mean(x, axis=(0, 2, 3))
    variance = ck.mean(ck.square(x), axis=(0, 2, 3)) - ck.square(mean)
    centred = x - mean[:, None, None]
    return centred * (ck.rsqrt(variance + 1e-5) * g)[:, None, None] + b[:, None, None]


@ck.op
def instance_norm(x: ck.f32[B, C, H, W]) -> ck.f32[B, C, H, W]:
    """InstanceNorm of images."""
    centred = x - ck.mean(x, axis=(2, 3), keepdims=True)
    return centred * ck.rsqrt(ck.mean(ck.square(centred), axis=(2, 3), keepdims=True) + 1e-5)


@ck.op
def group_norm(x: ck.f32[B, G, E, K], g: ck.f32[G, E], b: ck.f32[G, E]) -> ck.f32[B, G, E, K]:
    """GroupNorm of an image whose pixels are one axis."""
    centred = x - ck.mean(x, axis=(2, 3), keepdims=True)
    scale = ck.rsqrt(ck.mean(ck.square(centred), axis=(2, 3), keepdims=True) + 1e-5)
    return centred * scale * g[:, :, None] + b[:, :, None]


@ck.op
def rms_norm(x: ck.f32[B, C, H, W]) -> ck.f32[B, C, H, W]:
    """RMSNorm along the channels of an image."""
    return x * ck.rsqrt(ck.mean(ck.square(x), axis=1, keepdims=True) + 1e-5)


@ck.op
def frobenius(x: ck.f32[M]) -> ck.f32[M]:
    """All elements over the root of the sum of their squares."""
    return x / ck.sqrt(ck.sum(ck.square(x), 0, keepdims=True))


@ck.op
def layer_norm(x: ck.f32[M, K], g: ck.f32[K], b: ck.f32[K]) -> ck.f32[M, K]:
    """LayerNorm of whole images."""
    return ck.layer_norm(x, g, b, eps=1e-5)


@ck.fn
def l1_norm(x: Any) -> Any:
    """Rows over the sums of their magnitudes."""
    return x / ck.sum(ck.abs(x), 1, keepdims=True)


@ck.fn
def l2_norm(x: Any) -> Any:
    """Rows over their lengths."""
    return x / ck.norm(x, axis=1, keepdims=True)


# --- reductions and scans


def reduced(function: Callable[[Any, int], Any], dtype: ck.DType = ck.f32) -> ck.Op:
    """Return the op that reduces the second of three axes."""

    @ck.op
    def over_middle(x: ck.f32[B, C, H]) -> dtype[B, H]:
        """A reduction along the second axis."""
        return function(x, 1)

    return over_middle


@ck.op
def row_sum(x: ck.f32[M, K]) -> ck.f32[M]:
    """The sums of rows."""
    return ck.sum(x, 1)


@ck.fn
def sums(x: Any) -> Any:
    """Cumulative sums."""
    return ck.cumsum(x, 1)


@ck.fn
def products(x: Any) -> Any:
    """Cumulative products."""
    return ck.cumprod(x, 1)


@ck.op
def backward_sums(x: ck.f32[M, K]) -> ck.f32[M, K]:
    """Cumulative sums from the end."""
    backward = x.shape[1] - 1 - ck.arange(K)
    return ck.cumsum(x[:, backward], 1)[:, backward]


@ck.op
def sums_before(x: ck.f32[M, K]) -> ck.f32[M, K]:
    """The sums of the elements before each."""
    before = ck.maximum(ck.arange(K) - 1, 0)
    return ck.cumsum(ck.where(ck.arange(K) > 0, x[:, before], 0.0), 1)


@ck.op
def masked_sums(x: ck.f32[M, K], mask: ck.bool_[M, K]) -> ck.f32[M, K]:
    """Cumulative sums of the elements of a mask."""
    return ck.cumsum(ck.where(mask, x, 0.0), 1)


# --- losses


def loss(function: Callable[[Any, Any], Any]) -> ck.Op:
    """Return the op of a number that compares two matrices."""

    @ck.op
    def compared(x: ck.f32[M, K], y: ck.f32[M, K]) -> ck.f32[()]:
        """A loss."""
        return function(x, y)

    return compared


@ck.fn
def mean_square(x: Any, y: Any) -> Any:
    """The mean of squares of differences."""
    return ck.mean(ck.square(x - y))


@ck.fn
def hinge(x: Any, y: Any) -> Any:
    """The mean of what products miss of one."""
    return ck.mean(ck.relu(1 - x * y))


@ck.fn
def smooth_l1(x: Any, y: Any) -> Any:
    """The mean of squares of small differences, and of large ones themselves."""
    size = ck.abs(x - y)
    return ck.mean(ck.where(size < 1, 0.5 * size * size, size - 0.5))


@ck.fn
def cosine(x: Any, y: Any) -> Any:
    """The mean of one less the cosine between rows."""
    lengths = ck.norm(x, axis=1) * ck.norm(y, axis=1)
    return ck.mean(1 - ck.sum(x * y, 1) / ck.maximum(lengths, 1e-8))


@ck.fn
def kl_divergence(x: Any, y: Any) -> Any:
    """The divergence of probabilities x from y, the mean of all rows."""
    return ck.mean(ck.sum(ck.xlogy(y, y) - y * ck.log(x), 1))


@ck.op
def cross_entropy(x: ck.f32[M, K], target: ck.i32[M]) -> ck.f32[()]:
    """The mean of the cross entropy of rows."""
    return ck.mean(ck.cross_entropy(x, target))


@ck.op
def triplet(x: ck.f32[M, K], y: ck.f32[M, K], z: ck.f32[M, K]) -> ck.f32[()]:
    """The mean of how much nearer than z, less a margin of one, y is not to x."""
    near, far = ck.norm(x - y + 1e-6, axis=1), ck.norm(x - z + 1e-6, axis=1)
    return ck.mean(ck.relu(near - far + 1))


# --- windows


_LAYOUTS = ("ncw", "nchw", "ncdhw")


def mean_pooling(rank: int, window: int, stride: int, padding: int) -> ck.Op:
    """Return the op of the means of windows of images with channels first."""
    space, result, layout = _SPACE[-rank:], _RESULT[-rank:], _LAYOUTS[rank - 1]

    @ck.op
    def means(x: ck.f32[(B, C, *space)]) -> ck.f32[(B, C, *result)]:
        """The mean of each window."""
        return ck.avg_pool(x, window, stride, padding, layout=layout)

    return means


def max_pooling(rank: int, window: int, stride: int, padding: int, dilation: int) -> ck.Op:
    """Return the op of the largest elements of windows of images with channels first."""
    space, result, layout = _SPACE[-rank:], _RESULT[-rank:], _LAYOUTS[rank - 1]

    @ck.op
    def largest(x: ck.f32[(B, C, *space)]) -> ck.f32[(B, C, *result)]:
        """The largest element of each window."""
        return ck.max_pool(x, window, stride, padding, layout=layout, dilation=dilation)

    return largest


def convolution(
    rank: int, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> ck.Op:
    """Return the op of a convolution of images with channels first."""
    space, window, result = _SPACE[-rank:], _WINDOW[-rank:], _RESULT[-rank:]
    layout = _LAYOUTS[rank - 1]

    @ck.op
    def convolved(x: ck.f32[(B, C, *space)], w: ck.f32[(K, N, *window)]) -> ck.f32[(B, K, *result)]:
        """A convolution."""
        return ck.conv(
            x, w, stride=stride, padding=padding, dilation=dilation, groups=groups, layout=layout
        )

    return convolved


def transposed(
    rank: int,
    channels: int,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    output_padding: Any = 0,
    groups: int = 1,
) -> ck.Op:
    """Return the op of a transposed convolution of images with channels first."""
    space, window, result = _SPACE[-rank:], _WINDOW[-rank:], _RESULT[-rank:]
    layout = _LAYOUTS[rank - 1]

    @ck.op
    def convolved(
        x: ck.f32[(B, channels, *space)], w: ck.f32[(channels, N, *window)]
    ) -> ck.f32[(B, K, *result)]:
        """A transposed convolution."""
        return ck.conv_transpose(
            x,
            w,
            stride=stride,
            padding=padding,
            dilation=dilation,
            output_padding=output_padding,
            groups=groups,
            layout=layout,
        )

    return convolved


@ck.op
def pointwise_convolution(x: ck.f32[B, C, H, W], w: ck.f32[K, C]) -> ck.f32[B, K, H, W]:
    """A convolution whose window is a pixel: a product of all channels of each."""
    return ck.einsum("kc,bchw->bkhw", w, x)


@ck.op
def separable(x: ck.f32[B, C, H, W], w: ck.f32[C, 1, R, S], v: ck.f32[K, C]) -> ck.f32[B, K, P, Q]:
    """A convolution of each of three channels by itself, and one of all channels of a pixel."""
    return ck.einsum("kc,bchw->bkhw", v, ck.conv(x, w, groups=3, layout="nchw"))


@ck.op
def next_block(
    x: ck.f16[B, H, W, 96], w: ck.f16[96, 7, 7, 1], b: ck.f16[96]
) -> ck.f16[B, H, W, 96]:
    """The depthwise convolution of ConvNeXt, channels last."""
    return ck.conv(x, w, padding=3, groups=96) + b
