# SPDX-License-Identifier: MIT
"""Functions of the language that are written in the language itself.

A program that calls one gets its operations, at the place of the call. Outside a program they
compute on NumPy arrays as the other functions do.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from cklang.frontend.helper import Definition, Fn
from cklang.frontend.intrinsics import COMPOSITES, METHODS


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
    COMPOSITES[function.__name__] = language_function = Composite(function)
    return language_function


def method(function: Callable[..., Any]) -> Composite:
    """Make a function of the language that is a method of tensors too."""
    METHODS[function.__name__] = language_function = composite(function)
    return language_function
