# SPDX-License-Identifier: MIT
"""Gradient rules of pointwise ops, with torch's conventions at ties and kinks.

A formula takes the gradient g by the result, the result r, the operands, and the attributes by
name. It returns the gradient by the operand, or a tuple with that by each of several. What does
not move, such as ``floor``, has the gradient None: zero.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from cklang.autodiff.step import Gradients, Rule, Step
from cklang.autodiff.terms import Term, where

Formula: TypeAlias = Callable[..., Term | tuple[Term | None, ...] | None]

_LN2, _LN10 = math.log(2), math.log(10)
_FROM_ERF = 2 / math.sqrt(math.pi)
_NORMAL = 1 / math.sqrt(2 * math.pi)
_GELU_ROOT = math.sqrt(2 / math.pi)
_GELU_CUBE = 0.044715


def _minimum(g: Term, _r: Term, x: Term, y: Term) -> tuple[Term, Term]:
    """Each gets half at a tie, and both the gradient where one is nan."""
    shared = where(x.equals(y), g * 0.5, g)
    return where(x > y, 0.0, shared), where(y > x, 0.0, shared)


def _maximum(g: Term, _r: Term, x: Term, y: Term) -> tuple[Term, Term]:
    shared = where(x.equals(y), g * 0.5, g)
    return where(x < y, 0.0, shared), where(y < x, 0.0, shared)


def _pow(g: Term, r: Term, x: Term, y: Term) -> tuple[Term, Term]:
    base = where(y.equals(0.0), 0.0, g * y * x.call("pow", y - 1.0))
    still = x.equals(0.0).both(y >= 0.0)
    # The logarithm of 1 instead of 0, so that nothing is infinite where it is not used.
    log = where(still, 1.0, x).call("log")
    return base, where(still, 0.0, g * r * log)


def _atan2(g: Term, _r: Term, y: Term, x: Term) -> tuple[Term, Term]:
    share = g / (x.call("square") + y.call("square"))
    return share * x, -(share * y)


def _copysign(g: Term, _r: Term, x: Term, y: Term) -> tuple[Term, None]:
    """Nothing passes where x is 0, as torch has it."""
    return g * x.call("sign") * where(y.call("signbit"), -1.0, 1.0), None


def _clamp(g: Term, _r: Term, x: Term, *, lo: float, hi: float) -> Term:
    return where((x >= lo).both(x <= hi), g, 0.0)


def _elu(g: Term, _r: Term, x: Term, *, alpha: float) -> Term:
    # The exponent is limited: an infinite derivative that is not chosen would spoil the second.
    return where(x > 0.0, g, g * alpha * x.call("minimum", 0.0).call("exp"))


def _silu(g: Term, _r: Term, x: Term) -> Term:
    s = x.call("sigmoid")
    return g * s * (x * (1.0 - s) + 1.0)


def _gelu(g: Term, _r: Term, x: Term) -> Term:
    cumulative = ((x * math.sqrt(0.5)).call("erf") + 1.0) * 0.5
    density = (x.call("square") * -0.5).call("exp") * _NORMAL
    return g * (cumulative + x * density)


def _gelu_tanh(g: Term, _r: Term, x: Term) -> Term:
    square = x.call("square")
    t = (x * (square * _GELU_CUBE + 1.0) * _GELU_ROOT).call("tanh")
    slope = (square * (3 * _GELU_CUBE) + 1.0) * _GELU_ROOT
    return g * ((t + 1.0) * 0.5 + x * (1.0 - t.call("square")) * slope * 0.5)


def _mish(g: Term, _r: Term, x: Term) -> Term:
    t = x.call("softplus").call("tanh")
    return g * (t + x * x.call("sigmoid") * (1.0 - t.call("square")))


def _hardswish(g: Term, _r: Term, x: Term) -> Term:
    inside = where(x <= -3.0, 0.0, g * (x * (1 / 3) + 0.5))
    return where(x >= 3.0, g, inside)


_FORMULAS: Mapping[str, Formula] = {
    "add": lambda g, r, x, y: (g, g),
    "sub": lambda g, r, x, y: (g, -g),
    "mul": lambda g, r, x, y: (g * y, g * x),
    "div": lambda g, r, x, y: (g / y, -(g * r / y)),
    "floor_divide": lambda g, r, x, y: (None, None),
    "mod": lambda g, r, x, y: (g, -(g * x.call("floor_divide", y))),
    "neg": lambda g, r, x: -g,
    "abs": lambda g, r, x: g * x.call("sign"),
    "reciprocal": lambda g, r, x: -(g * r.call("square")),
    "square": lambda g, r, x: g * 2.0 * x,
    "minimum": _minimum,
    "maximum": _maximum,
    "clamp": _clamp,
    "floor": lambda g, r, x: None,
    "ceil": lambda g, r, x: None,
    "round": lambda g, r, x: None,
    "trunc": lambda g, r, x: None,
    "sign": lambda g, r, x: None,
    "pow": _pow,
    "exp": lambda g, r, x: g * r,
    "exp2": lambda g, r, x: g * r * _LN2,
    "expm1": lambda g, r, x: g * (r + 1.0),
    "log": lambda g, r, x: g / x,
    "log2": lambda g, r, x: g / (x * _LN2),
    "log1p": lambda g, r, x: g / (x + 1.0),
    "log10": lambda g, r, x: g / (x * _LN10),
    "sqrt": lambda g, r, x: g / (r * 2.0),
    "rsqrt": lambda g, r, x: g * -0.5 * (r * r * r),
    "tanh": lambda g, r, x: g * (1.0 - r.call("square")),
    "erf": lambda g, r, x: g * (-x.call("square")).call("exp") * _FROM_ERF,
    "erfc": lambda g, r, x: g * (-x.call("square")).call("exp") * -_FROM_ERF,
    "sin": lambda g, r, x: g * x.call("cos"),
    "cos": lambda g, r, x: -(g * x.call("sin")),
    "tan": lambda g, r, x: g * (r.call("square") + 1.0),
    "asin": lambda g, r, x: g * (1.0 - x.call("square")).call("rsqrt"),
    "acos": lambda g, r, x: -(g * (1.0 - x.call("square")).call("rsqrt")),
    "atan": lambda g, r, x: g / (x.call("square") + 1.0),
    "atan2": _atan2,
    "sinh": lambda g, r, x: g * x.call("cosh"),
    "cosh": lambda g, r, x: g * x.call("sinh"),
    "asinh": lambda g, r, x: g * (x.call("square") + 1.0).call("rsqrt"),
    "acosh": lambda g, r, x: g * (x.call("square") - 1.0).call("rsqrt"),
    "atanh": lambda g, r, x: g / (1.0 - x.call("square")),
    "cbrt": lambda g, r, x: g / (r.call("square") * 3.0),
    "hypot": lambda g, r, x, y: (g * (x / r), g * (y / r)),
    "fmod": lambda g, r, x, y: (g, -(g * (x / y).call("trunc"))),
    "copysign": _copysign,
    # In these words a gradient passes where x is nan, as torch's does.
    "relu": lambda g, r, x: where(r <= 0.0, 0.0, g),
    "leaky_relu": lambda g, r, x, *, slope: where(x > 0.0, g, g * slope),
    "elu": _elu,
    "sigmoid": lambda g, r, x: g * r * (1.0 - r),
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "softplus": lambda g, r, x: g * x.call("sigmoid"),
    "mish": _mish,
    "hardsigmoid": lambda g, r, x: where((x > -3.0).both(x < 3.0), g * (1 / 6), 0.0),
    "hardswish": _hardswish,
    "softsign": lambda g, r, x: g / (x.call("abs") + 1.0).call("square"),
    "where": lambda g, r, c, x, y: (None, where(c, g, 0.0), where(c, 0.0, g)),
}


def _rule(formula: Formula) -> Rule:
    def rule(step: Step) -> Gradients:
        attrs: dict[str, Any] = dict(step.operation.attrs)
        gradients = formula(step.gradient, step.result, *step.operands, **attrs)
        return gradients if isinstance(gradients, tuple) else (gradients,)

    return rule


POINTWISE: Mapping[str, Rule] = {name: _rule(formula) for name, formula in _FORMULAS.items()}
"""The rules by op. Comparisons, bits and other ops without floats have none and need none."""
