# SPDX-License-Identifier: MIT
"""The pointwise functions that are written in the language, and those along axes."""

import math
from typing import Any

from cklang.frontend import axis_composites, block_composites, expert_composites
from cklang.frontend import functions as ck
from cklang.frontend.axis_composites import *  # noqa: F403 - the names of its __all__
from cklang.frontend.block_composites import *  # noqa: F403 - the names of its __all__
from cklang.frontend.composite import composite
from cklang.frontend.expert_composites import *  # noqa: F403 - the names of its __all__

__all__ = [
    *axis_composites.__all__,
    *block_composites.__all__,
    *expert_composites.__all__,
    "celu",
    "deg2rad",
    "entr",
    "fmax",
    "fmin",
    "frac",
    "hardshrink",
    "hardtanh",
    "heaviside",
    "lerp",
    "logaddexp",
    "logaddexp2",
    "logit",
    "logsigmoid",
    "nan_to_num",
    "ndtr",
    "prelu",
    "rad2deg",
    "relu6",
    "selu",
    "sinc",
    "softshrink",
    "tanhshrink",
    "threshold",
    "xlog1py",
    "xlogy",
]

_F32_MAX = float.fromhex("0x1.fffffep127")


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
def xlog1py(x: Any, y: Any) -> Any:
    """X log(1 + y), and 0 where x is 0 and y no nan.

    Example:
        >>> ck.xlog1py(np.array([0.0, 2.0]), np.array([-1.0, 0.0]))
        array([0., 0.])
    """
    is_zero = ck.logical_and(x == 0.0, y == y)
    return x * ck.log1p(ck.where(is_zero, 0.0, y))


@composite
def entr(x: Any) -> Any:
    """The entropy -x log(x); 0 of 0, -inf where x < 0.

    Example:
        >>> ck.entr(np.array([-1.0, 0.0, 0.5])).round(3)
        array([ -inf, 0.   , 0.347])
    """
    entropy = -x * ck.log(ck.where(x > 0.0, x, 1.0))
    return ck.where(x > 0.0, entropy, ck.where(x < 0.0, -math.inf, x))


@composite
def ndtr(x: Any) -> Any:
    """The distribution function of the standard normal distribution.

    Example:
        >>> ck.ndtr(np.array([-1.0, 0.0, 1.0])).round(3)
        array([0.159, 0.5  , 0.841])
    """
    return 0.5 * ck.erfc(-x * math.sqrt(0.5))


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
