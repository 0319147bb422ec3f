# SPDX-License-Identifier: MIT
"""Derive the polynomial coefficients of ``cklang/math.h``.

Each row of ``FITS`` is one polynomial: the function it stands for, its interval, its degree and
the weight of an error. The fit is an iteratively reweighted least-squares one (Lawson's method),
which tends to the minimax polynomial. Prints C, and the weighted error before and after rounding
the coefficients to f32. Run it by hand; the tests measure the functions themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def _erf(x: Array) -> Array:
    from math import erf

    return np.array([erf(value) for value in x])


def _erfc(x: Array) -> Array:
    from math import erfc

    return np.array([erfc(value) for value in x])


def _scaled_erfc(x: Array) -> Array:
    return _erfc(x) * np.exp(x * x) * (1 + 2 * x)


@dataclass(frozen=True)
class Fit:
    """``target(x)`` on [low, high] as a polynomial of ``degree``; errors count ``weight(x)``."""

    name: str
    target: Callable[[Array], Array]
    low: float
    high: float
    degree: int
    weight: Callable[[Array], Array]


def _sqrt_of(f: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda t: f(np.sqrt(t))


FITS = (
    # tanh(x) = x + x t P(t), t = x^2
    Fit("tanh", _sqrt_of(lambda x: (np.tanh(x) / x - 1) / x**2), 1e-4, 0.625**2, 4, lambda t: t),
    # erf(x) = x + x P(t), t = x^2
    Fit("erf", _sqrt_of(lambda x: _erf(x) / x - 1), 1e-6, 0.921875**2, 6, np.ones_like),
    # erf(x) = 1 - exp(P(x)); what matters is the absolute error of exp
    Fit("log erfc", lambda x: np.log(_erfc(x)), 0.921875, 4.0, 8, lambda x: _erfc(x) / _erf(x)),
    # log(1 + f) = f - f^2 / 2 + f^3 P(f)
    Fit("log1p", lambda f: (np.log1p(f) - f + f * f / 2) / f**3, float(np.sqrt(0.5)) - 1,
        float(np.sqrt(2.0)) - 1, 8, lambda f: np.abs(f**3 / np.log1p(f))),
    # exp(r) - 1 = r + r^2 P(r)
    Fit("expm1", lambda r: (np.expm1(r) - r) / r**2, -0.3467, 0.3467, 5,
        lambda r: np.abs(r * r / np.expm1(r))),
    # exp2(r) = 1 + r P(r)
    Fit("exp2", lambda r: np.expm1(r * np.log(2.0)) / r, -0.5005, 0.5005, 5, lambda r: np.abs(r)),
    # erfc(x) = exp(-x^2) P(t) / (1 + 2 x), t = (x - 2.5) / (x + 2.5); trig64.h has it in f64
    Fit("erfc", lambda t: _scaled_erfc(2.5 * (1 + t) / (1 - t)), -1.0, 0.61, 10,
        lambda t: 1 / _scaled_erfc(2.5 * (1 + t) / (1 - t))),
    # atanh(s) = s + s u P(u), u = s^2
    Fit("atanh", _sqrt_of(lambda s: (np.arctanh(s) / s - 1) / s**2), 1e-5, 0.1717**2, 3,
        lambda u: u),
)  # fmt: skip


def lawson(fit: Fit, points: int = 4001, rounds: int = 60) -> Array:
    """Return the coefficients, lowest power first."""
    angle = np.linspace(0, np.pi, points)
    x = 0.5 * (fit.low + fit.high) - 0.5 * (fit.high - fit.low) * np.cos(angle)
    x = x[np.abs(x) > 3e-3 * fit.high] if fit.low < 0 else x
    y, w = fit.target(x), fit.weight(x)
    scale = max(abs(fit.low), abs(fit.high))
    basis = np.vander(x / scale, fit.degree + 1, increasing=True)
    share = np.ones_like(x)
    for _ in range(rounds):
        root = w * np.sqrt(share)
        solution = np.linalg.lstsq(basis * root[:, None], y * root, rcond=None)[0]
        share *= np.abs(basis @ solution - y) * w
        share /= share.sum()
    return np.asarray(solution / scale ** np.arange(fit.degree + 1))


def main() -> None:
    """Print all coefficients as C."""
    for fit in FITS:
        exact = lawson(fit)
        rounded = exact.astype(np.float32).astype(np.float64)
        x = np.linspace(fit.low, fit.high, 20011)
        x = x[np.abs(x) > 3e-3 * fit.high] if fit.low < 0 else x
        errors = [
            float(
                np.max(
                    np.abs(np.polynomial.polynomial.polyval(x, c) - fit.target(x)) * fit.weight(x)
                )
            )
            for c in (exact, rounded)
        ]
        print(
            f"// {fit.name}: weighted error {errors[0]:.2e}, with f32 coefficients {errors[1]:.2e}"
        )
        print("{" + ", ".join(f"{np.float32(c)!s}f" for c in exact) + "}")


if __name__ == "__main__":
    main()
