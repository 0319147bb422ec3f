# SPDX-License-Identifier: MIT
"""Inductor's indices as strides: which elements of a buffer a loop over axes reads or writes."""

from collections.abc import Sequence
from dataclasses import dataclass

import sympy  # type: ignore[import-untyped]
from torch._inductor.virtualized import V

from cklang.torch.backend.extents import Unsupported


@dataclass(frozen=True, slots=True)
class View:
    """Elements of a buffer."""

    buffer: str
    size: tuple[sympy.Expr, ...]
    stride: tuple[sympy.Expr, ...]
    offset: sympy.Expr


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a loop: the symbols of its indices, and their extents."""

    symbols: tuple[sympy.Symbol, ...]
    sizes: tuple[sympy.Expr, ...]

    def strides(self, index: sympy.Expr) -> tuple[tuple[sympy.Expr, ...], sympy.Expr]:
        """Return how far apart neighbours of each axis are, and where the first element is."""
        ranges = dict(zip(self.symbols, self.sizes, strict=True))
        plain = sympy.expand(V.graph.sizevars.simplify_with_ranges(sympy.expand(index), ranges))
        offset = plain.subs(dict.fromkeys(self.symbols, 0))
        strides = tuple(plain.coeff(symbol) for symbol in self.symbols)
        linear = sum((s * symbol for s, symbol in zip(strides, self.symbols, strict=True)), offset)
        used = {symbol for expression in (*strides, offset) for symbol in expression.free_symbols}
        if sympy.expand(plain - linear) != 0 or used & set(self.symbols):
            raise Unsupported(f"its index {index} is not a sum of strides")
        return strides, offset


def hint(size: sympy.Expr) -> int:
    """Return the number that a size has in the call that is compiled."""
    return int(V.graph.sizevars.optimization_hint(size))


def slowest_first(strides: Sequence[sympy.Expr]) -> tuple[int, ...]:
    """Return axes by falling stride."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -hint(strides[axis])))


def is_dense(sizes: Sequence[sympy.Expr], strides: Sequence[sympy.Expr]) -> bool:
    """Tell whether axes, the slowest first, count all elements of a block of memory."""
    expected: sympy.Expr = sympy.Integer(1)
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if not V.graph.sizevars.statically_known_equals(stride, expected):
            return False
        expected = expected * size
    return True
