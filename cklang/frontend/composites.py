# SPDX-License-Identifier: MIT
"""The functions of the language that are written in the language itself.

A program that calls one gets its operations, at the place of the call. Outside a program they
compute on NumPy arrays as the other functions do.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from cklang.frontend import functions as ck
from cklang.frontend.helper import Definition, Fn
from cklang.frontend.intrinsics import COMPOSITES, METHODS
from cklang.types import bool_, f32, i32

__all__ = [
    "all",
    "any",
    "celu",
    "cross_entropy",
    "deg2rad",
    "diff",
    "fmax",
    "fmin",
    "frac",
    "group_norm",
    "hardshrink",
    "hardtanh",
    "heaviside",
    "layer_norm",
    "lerp",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logit",
    "logsigmoid",
    "logsumexp",
    "nan_to_num",
    "nansum",
    "norm",
    "prelu",
    "rad2deg",
    "relu6",
    "rms_norm",
    "selu",
    "sinc",
    "softmax",
    "softshrink",
    "std",
    "tanhshrink",
    "threshold",
    "var",
    "xlogy",
]

_F32_MAX = float.fromhex("0x1.fffffep127")


class Composite(Fn):
    """A helper that belongs to the language."""

    is_composite = True

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        functools.update_wrapper(self, function)

    @functools.cached_property
    def definition(self) -> Definition:  # type: ignore[override]
        """Its text, read when somebody asks: every process imports it, and few ask."""
        return Definition.read(self._function, op=False, is_composite=True)

    @property
    def name(self) -> str:
        """Its name in the language."""
        return self._function.__name__

    @property
    def doc(self) -> str:
        """What it computes, in one line."""
        line = str(self.__doc__).partition("\n")[0].removesuffix(".")
        return line[0].lower() + line[1:]

    @property
    def signature(self) -> inspect.Signature:
        """Its parameters without annotations."""
        return self.definition.python

    def described(self) -> str:
        """Return how messages call it."""
        return f"the function ck.{self.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute on NumPy arrays; infinities and nan are values, not accidents."""
        with np.errstate(all="ignore"):
            return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"ck.{self.name}{self.signature}"


def composite(function: Callable[..., Any]) -> Composite:
    """Make a function of the language of one that is written in it."""
    COMPOSITES[function.__name__] = made = Composite(function)
    return made


def method(function: Callable[..., Any]) -> Composite:
    """Make a function of the language that is a method of tensors too."""
    METHODS[function.__name__] = made = composite(function)
    return made


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
    """The log-sum-exp of logits along an axis minus the logit of each target, an index of i32.

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


@composite
def logaddexp(x: Any, y: Any) -> Any:
    """The logarithm of exp(x) + exp(y), without overflow.

    Example:
        >>> ck.logaddexp(np.array([1000.0, -np.inf]), np.array([1000.0, -np.inf])).round(3)
        array([1000.693,    -inf])
    """
    # Equal infinities have no difference.
    apart = ck.abs(ck.where(x == y, 0.0, x - y))
    return ck.maximum(x, y) + ck.log1p(ck.exp(-apart))


@composite
def logaddexp2(x: Any, y: Any) -> Any:
    """The logarithm to base 2 of 2**x + 2**y, without overflow.

    Example:
        >>> ck.logaddexp2(np.array([3.0, 1000.0]), np.array([3.0, 1000.0])).round(3)
        array([   4., 1001.])
    """
    apart = ck.abs(ck.where(x == y, 0.0, x - y))
    return ck.maximum(x, y) + ck.log1p(ck.exp2(-apart)) * (1 / math.log(2))


@composite
def logsigmoid(x: Any) -> Any:
    """The logarithm of sigmoid, -softplus(-x).

    Example:
        >>> ck.logsigmoid(np.array([-100.0, 0.0, 1.0])).round(3)
        array([-100.   ,   -0.693,   -0.313])
    """
    return -ck.softplus(-x)


@composite
def logit(x: Any, eps: Any = None) -> Any:
    """The logarithm of x / (1 - x), of x limited to eps and 1 - eps if eps is given.

    Example:
        >>> ck.logit(np.array([0.0, 0.5, 0.75]), eps=0.25).round(3)
        array([-1.099,  0.   ,  1.099])
    """
    z = x if eps is None else ck.clamp(x, eps, 1 - eps)
    return ck.log(z / (1.0 - z))


@composite
def relu6(x: Any) -> Any:
    """X limited to 0 and 6.

    Example:
        >>> ck.relu6(np.array([-1.0, 2.0, 7.0]))
        array([0., 2., 6.])
    """
    return ck.clamp(x, 0.0, 6.0)


@composite
def hardtanh(x: Any, lo: Any = -1.0, hi: Any = 1.0) -> Any:
    """X limited to lo and hi.

    Example:
        >>> ck.hardtanh(np.array([-2.0, 0.5, 7.0]))
        array([-1. ,  0.5,  1. ])
    """
    return ck.clamp(x, lo, hi)


@composite
def selu(x: Any) -> Any:
    """Elu with the factors that keep mean and variance of activations at 0 and 1.

    Factors: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    Example:
        >>> ck.selu(np.array([-1.0, 0.0, 1.0])).round(3)
        array([-1.111,  0.   ,  1.051])
    """
    return 1.0507009873554805 * ck.elu(x, 1.6732632423543772)


@composite
def celu(x: Any, alpha: Any = 1.0) -> Any:
    """X where x > 0, else alpha (exp(x / alpha) - 1).

    Example:
        >>> ck.celu(np.array([-2.0, 0.0, 1.0]), alpha=2.0).round(3)
        array([-1.264,  0.   ,  1.   ])
    """
    return ck.where(x > 0.0, x, alpha * ck.expm1(ck.minimum(x, 0.0) / alpha))


@composite
def hardshrink(x: Any, lambd: Any = 0.5) -> Any:
    """X where its magnitude is above lambd, else 0; nan stays nan.

    Example:
        >>> ck.hardshrink(np.array([-1.0, 0.5, 0.75]))
        array([-1.  ,  0.  ,  0.75])
    """
    return ck.where(ck.abs(x) <= lambd, 0.0, x)


@composite
def softshrink(x: Any, lambd: Any = 0.5) -> Any:
    """X brought nearer to 0 by lambd, 0 where its magnitude is less.

    Example:
        >>> ck.softshrink(np.array([-1.0, 0.5, 0.75]))
        array([-0.5 ,  0.  ,  0.25])
    """
    return x - ck.clamp(x, -lambd, lambd)


@composite
def tanhshrink(x: Any) -> Any:
    """X - tanh(x).

    Example:
        >>> ck.tanhshrink(np.array([-1.0, 0.0, 1.0])).round(3)
        array([-0.238,  0.   ,  0.238])
    """
    return x - ck.tanh(x)


@composite
def threshold(x: Any, threshold: Any, value: Any) -> Any:
    """X where it is above a threshold, else a value; nan stays nan.

    Example:
        >>> ck.threshold(np.array([-1.0, 0.5, 2.0]), 0.5, 20.0)
        array([20., 20.,  2.])
    """
    return ck.where(x <= threshold, value, x)


@composite
def prelu(x: Any, weight: Any) -> Any:
    """X where x > 0, else weight x; the weight broadcasts, so that of channels is their axis's.

    Example:
        >>> ck.prelu(np.array([[-2.0, -2.0], [3.0, 3.0]]), np.array([0.5, 0.25]))
        array([[-1. , -0.5],
               [ 3. ,  3. ]])
    """
    return ck.where(x > 0.0, x, weight * x)


@composite
def lerp(x: Any, y: Any, weight: Any) -> Any:
    """X + weight (y - x).

    Example:
        >>> ck.lerp(np.array([1.0, 2.0]), np.array([3.0, 10.0]), 0.25)
        array([1.5, 4. ])
    """
    return x + weight * (y - x)


@composite
def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """X with numbers in the places of nan and of infinities, by default 0 and those of f32's ends.

    A result of f16 needs its own ends: ``posinf=65504.0``.

    Example:
        >>> ck.nan_to_num(np.array([np.nan, np.inf, 2.0]), posinf=9.0)
        array([0., 9., 2.])
    """
    most = _F32_MAX if posinf is None else posinf
    least = -_F32_MAX if neginf is None else neginf
    finite = ck.where(x == math.inf, most, ck.where(x == -math.inf, least, x))
    return ck.where(ck.isnan(x), nan, finite)


@composite
def xlogy(x: Any, y: Any) -> Any:
    """X log(y), and 0 where x is 0 and y no nan.

    Example:
        >>> ck.xlogy(np.array([0.0, 2.0]), np.array([0.0, 1.0]))
        array([0., 0.])
    """
    # The logarithm of 1 instead of 0, so that nothing is infinite where it is not used.
    is_zero = ck.logical_and(x == 0.0, y == y)
    return x * ck.log(ck.where(is_zero, 1.0, y))


@composite
def sinc(x: Any) -> Any:
    """Sin(pi x) / (pi x), and 1 of 0.

    Example:
        >>> ck.sinc(np.array([0.0, 0.5, 1.0])).round(3)
        array([1.   , 0.637, 0.   ])
    """
    angle = math.pi * ck.where(x == 0.0, 1.0, x)
    return ck.where(x == 0.0, 1.0, ck.sin(angle) / angle)


@composite
def heaviside(x: Any, values: Any) -> Any:
    """0 where x < 0, 1 where x > 0, values where x is 0; nan stays nan.

    Example:
        >>> ck.heaviside(np.array([-2.0, 0.0, 3.0]), 0.5)
        array([0. , 0.5, 1. ])
    """
    return ck.where(x == 0.0, values, ck.clamp(ck.sign(x), 0.0, 1.0))


@composite
def frac(x: Any) -> Any:
    """X - trunc(x).

    Example:
        >>> ck.frac(np.array([-1.5, 2.25]))
        array([-0.5 ,  0.25])
    """
    return x - ck.trunc(x)


@composite
def fmax(x: Any, y: Any) -> Any:
    """The greater, or the other one where one is nan.

    Example:
        >>> ck.fmax(np.array([1.0, np.nan]), np.array([3.0, 2.0]))
        array([3., 2.])
    """
    return ck.where(ck.isnan(x), y, ck.where(ck.isnan(y), x, ck.maximum(x, y)))


@composite
def fmin(x: Any, y: Any) -> Any:
    """The lesser, or the other one where one is nan.

    Example:
        >>> ck.fmin(np.array([1.0, np.nan]), np.array([3.0, 2.0]))
        array([1., 2.])
    """
    return ck.where(ck.isnan(x), y, ck.where(ck.isnan(y), x, ck.minimum(x, y)))


@composite
def deg2rad(x: Any) -> Any:
    """Degrees in radians.

    Example:
        >>> ck.deg2rad(np.array([0.0, 180.0])).round(3)
        array([0.   , 3.142])
    """
    return x * (math.pi / 180)


@composite
def rad2deg(x: Any) -> Any:
    """Radians in degrees.

    Example:
        >>> ck.rad2deg(np.array([0.0, np.pi]))
        array([  0., 180.])
    """
    return x * (180 / math.pi)
