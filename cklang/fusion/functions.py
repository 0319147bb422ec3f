# SPDX-License-Identifier: MIT
"""The user's functions of a kernel, by the hole of its stencil that each fills.

A hole has the name of what the function computes: ``epilogue``, ``prologue_a``, ``score``... The
functions are regions of the IR with canonical text, so equal functions have equal digests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cklang.codec import canonical_digest
from cklang.forks import cached_property
from cklang.ir.nodes import Function, print_function


class Functions(Mapping[str, Function]):
    """Functions by hole, frozen; holes without a function are left out.

    Example:
        >>> Functions(score=None) == NO_FUNCTIONS
        True
    """

    def __init__(self, **functions: Function | None) -> None:
        self._functions = {hole: f for hole, f in functions.items() if f is not None}

    def __getitem__(self, hole: str) -> Function:
        return self._functions[hole]

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Functions({', '.join(self)})"

    def without(self, *holes: str) -> Functions:
        """Return the functions of the other holes."""
        return Functions(**{name: f for name, f in self.items() if name not in holes})

    def only(self, hole: str) -> Functions:
        """Return the function of one hole, if it has one."""
        return Functions(**{name: f for name, f in self.items() if name == hole})

    @cached_property
    def texts(self) -> dict[str, str]:
        """Each function as IR text, by hole."""
        return {hole: print_function(function) for hole, function in self.items()}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of all texts, by which keys name the functions; empty if there is none."""
        return canonical_digest(self.texts) if self else ""

    @staticmethod
    def parse(texts: Mapping[str, str]) -> Functions:
        """Return the functions that :attr:`texts` wrote.

        Raises:
            CkSyntaxError: I rows, a text is no IR.
        """
        from cklang.ir.parser import parse_function

        return Functions(**{hole: parse_function(text) for hole, text in texts.items()})


NO_FUNCTIONS = Functions()
"""What fills a stencil in which nothing is open."""
