# SPDX-License-Identifier: MIT
"""The functions along axes that are written in the language: softmax, norms, variances."""

import math
from typing import Any

from cklang.frontend import functions as ck
from cklang.frontend.composite import composite, method
from cklang.types import bool_, f32, i32

__all__ = [
    "all",
    "any",
    "cross_entropy",
    "diff",
    "group_norm",
    "layer_norm",
    "log_softmax",
    "logsumexp",
    "nansum",
    "norm",
    "rms_norm",
    "softmax",
    "std",
    "var",
]


@method
def any(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:  # noqa: A001 - NumPy's names
    """Whether an element along axes is not zero; false for no elements.

    Example:
        >>> ck.any(np.array([[0.0, 2.0], [0.0, 0.0]]), axis=-1)
        array([ True, False])
    """
    return ck.max(ck.cast(ck.cast(x, bool_), i32), axis=axis, keepdims=keepdims) > 0


@method
def all(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:  # noqa: A001
    """Whether no element along axes is zero; true for no elements.

    Example:
        >>> ck.all(np.array([[0.0, 2.0], [1.0, 3.0]]), axis=-1)
        array([False,  True])
    """
    return ck.min(ck.cast(ck.cast(x, bool_), i32), axis=axis, keepdims=keepdims) > 0


@method
def var(x: Any, axis: Any = None, *, correction: Any = 0, keepdims: Any = False) -> Any:
    """The variance along axes: squared distances from the mean, over their number minus correction.

    In two passes over the elements: the mean, then the mean of the squared differences.

    Example:
        >>> ck.var(np.array([[1.0, 2.0, 6.0]]), axis=-1, correction=1)
        array([7.])
    """
    squares = ck.square(x - ck.mean(x, axis=axis, keepdims=True))
    if correction == 0:
        return ck.mean(squares, axis=axis, keepdims=keepdims)
    ones = ck.cast(ck.where(x == x, 1.0, 1.0), f32)
    count = ck.sum(ones, axis=axis, keepdims=keepdims)
    total = ck.sum(squares, axis=axis, keepdims=keepdims)
    return total / ck.maximum(count - correction, 0.0)


@method
def std(x: Any, axis: Any = None, *, correction: Any = 0, keepdims: Any = False) -> Any:
    """The standard deviation along axes: the square root of :func:`var`.

    Example:
        >>> ck.std(np.array([[1.0, 3.0], [2.0, 2.0]]), axis=-1)
        array([1., 0.])
    """
    return ck.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


@composite
def nansum(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """The sum along axes of all elements that are not nan.

    Example:
        >>> ck.nansum(np.array([[1.0, np.nan], [2.0, 3.0]]), axis=-1)
        array([1., 5.])
    """
    return ck.sum(ck.where(ck.isnan(x), 0.0, x), axis=axis, keepdims=keepdims)


@composite
def diff(x: Any, axis: Any = -1) -> Any:
    """Each element along an axis but the first, minus the one before it.

    Example:
        >>> ck.diff(np.array([[1.0, 4.0, 9.0], [0.0, 0.0, 5.0]]))
        array([[3., 5.],
               [0., 5.]])
    """
    along = ck.swapaxes(x, axis, -1)
    return ck.swapaxes(along[..., 1:] - along[..., :-1], axis, -1)


@composite
def norm(x: Any, axis: Any = -1, *, keepdims: Any = False) -> Any:
    """The 2-norm along axes: the square root of the sum of squares, in f32.

    Example:
        >>> ck.norm(np.array([[3.0, 4.0], [0.0, 2.0]]))
        array([5., 2.])
    """
    return ck.sqrt(ck.sum(ck.square(x), axis=axis, keepdims=keepdims))


@composite
def logsumexp(x: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    """The logarithm of the sum of exponentials along axes, without overflow; -inf of all -inf.

    Example:
        >>> ck.logsumexp(np.array([[1000.0, 1000.0], [-np.inf, -np.inf]]), axis=-1).round(3)
        array([1000.693,    -inf])
    """
    largest = ck.max(x, axis=axis, keepdims=True)
    shift = ck.where(ck.abs(largest) < math.inf, largest, 0.0)
    total = ck.sum(ck.exp(x - shift), axis=axis, keepdims=keepdims)
    result = ck.max(x, axis=axis, keepdims=keepdims)
    return ck.log(total) + ck.where(ck.abs(result) < math.inf, result, 0.0)


@composite
def softmax(x: Any, axis: Any = -1) -> Any:
    """Exp(x) over its sum along axes, computed from x minus its maximum.

    Example:
        >>> ck.softmax(np.log([[1.0, 3.0], [2.0, 2.0]]))
        array([[0.25, 0.75],
               [0.5 , 0.5 ]])
    """
    powers = ck.exp(x - ck.max(x, axis=axis, keepdims=True))
    return powers / ck.sum(powers, axis=axis, keepdims=True)


@composite
def log_softmax(x: Any, axis: Any = -1) -> Any:
    """The logarithm of softmax, as x minus the logarithm of the sum of exponentials.

    Example:
        >>> ck.log_softmax(np.array([[0.0, 0.0], [0.0, 100.0]])).round(3)
        array([[  -0.693,   -0.693],
               [-100.   ,    0.   ]])
    """
    shifted = x - ck.max(x, axis=axis, keepdims=True)
    return shifted - ck.log(ck.sum(ck.exp(shifted), axis=axis, keepdims=True))


@composite
def cross_entropy(logits: Any, targets: Any, axis: Any = -1) -> Any:
    """The log-sum-exp of logits along an axis minus the logit of each target, an index.

    It is torch's loss of each row, before the mean over rows. A target outside of the axis gives
    the log-sum-exp alone.

    Example:
        >>> ck.cross_entropy(np.log([[1.0, 3.0], [2.0, 2.0]]), np.array([1, 0])).round(4)
        array([0.2877, 0.6931])
    """
    total = logsumexp(ck.swapaxes(logits, axis, axis), axis=axis)
    after = -axis - 1 if axis < 0 else len(logits.shape) - 1 - axis
    place, target = ck.arange(logits.shape[axis]), targets[..., None]
    for step in range(after):
        place, target = place[..., None], ck.swapaxes(target, -1 - step, -2 - step)
    return total - ck.sum(ck.where(place == target, logits, 0.0), axis=axis)


@composite
def rms_norm(x: Any, weight: Any = None, eps: Any = 1e-6, axis: Any = -1) -> Any:
    """X over its root mean square along axes, times weight, which broadcasts.

    The root is that of the mean of squares plus ``eps``.

    Example:
        >>> ck.rms_norm(np.array([[1.0, 7.0]]), weight=np.array([10.0, 5.0])).round(3)
        array([[2., 7.]])
    """
    y = x * ck.rsqrt(ck.mean(ck.square(x), axis=axis, keepdims=True) + eps)
    return y if weight is None else y * weight


@composite
def layer_norm(
    x: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5, axis: Any = -1
) -> Any:
    """X minus its mean over the root of its variance along axes, times weight, plus bias.

    The variance is that of :func:`var`, plus ``eps``; weight and bias broadcast.

    Example:
        >>> ck.layer_norm(np.array([[1.0, 3.0]]), weight=np.array([1.0, 2.0]), eps=0.0)
        array([[-1.,  2.]])
    """
    centered = x - ck.mean(x, axis=axis, keepdims=True)
    variance = ck.mean(ck.square(centered), axis=axis, keepdims=True)
    y = centered * ck.rsqrt(variance + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


@composite
def group_norm(x: Any, groups: Any, weight: Any = None, bias: Any = None, eps: Any = 1e-5) -> Any:
    """The norm of groups of channels: x minus mean over the root of variance, of each group.

    Of [N, S, C] or [N, H, W, C]: channels are the last axis; a group's mean and variance are over
    its channels and all axes but the first. ``weight`` and ``bias`` have a number for each channel.

    Example:
        >>> x = np.array([[[1.0, 3.0, 5.0, 5.0]]])
        >>> ck.group_norm(x, 2, bias=np.array([0.0, 0.0, 1.0, 2.0])).round(3)
        array([[[-1.,  1.,  1.,  2.]]])
    """
    shape = x.shape
    size = shape[-1] // groups
    if len(shape) == 4:
        x = x.reshape(shape[0], shape[1], shape[2], groups, size)
        y = layer_norm(x, eps=eps, axis=(1, 2, 4))
    else:
        x = x.reshape(shape[0], shape[1], groups, size)
        y = layer_norm(x, eps=eps, axis=(1, 3))
    # Before the shape is that of x again, so that all is one kernel.
    y = y if weight is None else y * weight.reshape(groups, size)
    y = y if bias is None else y + bias.reshape(groups, size)
    return y.reshape(shape)
