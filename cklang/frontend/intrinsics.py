# SPDX-License-Identifier: MIT
"""The functions of the language, each registered beside the code that puts it into a program.

``@function`` takes the code and adds all else that is known of the function: a line of
documentation, an example, and what it computes of NumPy arrays. :mod:`cklang.frontend.functions`
has all of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property
from textwrap import dedent, indent
from typing import Any

import numpy as np

from cklang.errors import CkError, error

INTRINSICS: dict[str, Intrinsic] = {}
"""The functions that become ops of the IR, by name."""

COMPOSITES: dict[str, Any] = {}
"""The functions that are written in the language (:mod:`.composites`), by name."""

METHODS: dict[str, Any] = {}
"""Those of both that are methods of tensors too."""


class _Documentation:
    """What ``help`` shows: of a function its meaning and an example, of the class its docstring."""

    def __init__(self, of_class: str | None) -> None:
        self.of_class = of_class

    def __get__(self, function: Intrinsic | None, of: type[Intrinsic]) -> str | None:
        if function is None:
            return self.of_class
        example = indent(dedent(function.example).strip(), "    ")
        return f"ck.{function.name}: {function.doc}.\n\nExample:\n{example}\n"


class Intrinsic:
    """A function of the language: a call in a program becomes ops, any other computes on arrays.

    Args:
        name: Its name in ``ck``.
        doc: What it computes, in a line.
        emit: Puts a call into a program: takes the scope, the node and the arguments by name. Its
            other parameters are those of the function.
        eager: What it computes of NumPy arrays, which takes the same arguments by name.
        example: Lines for :mod:`doctest`, which know ``ck`` and ``np``.
        signature: Its parameters, where those of ``emit`` do not name them.
        method: Whether tensors have it as a method.
        variadic: Whether the method takes the items of its tuple one by one too.
        has_windows: Whether the extents of its result follow from windows; annotations may name
            them.
        takes_lambdas: Whether arguments may be lambdas.
        explains_numpy: Whether NumPy's own refusals of arrays become F067.
    """

    __doc__ = _Documentation(__doc__)

    def __init__(
        self,
        name: str,
        doc: str,
        emit: Callable[..., object],
        eager: Callable[..., Any],
        *,
        example: str,
        signature: str = "",
        method: bool = False,
        variadic: bool = False,
        has_windows: bool = False,
        takes_lambdas: bool = False,
        explains_numpy: bool = False,
    ) -> None:
        self.name, self.doc, self.example = name, doc, example
        self.variadic, self.has_windows, self.takes_lambdas = variadic, has_windows, takes_lambdas
        self._emit, self._eager, self._explains_numpy = emit, eager, explains_numpy
        self._parameters = signature
        self.__name__ = self.__qualname__ = name
        self.__module__ = emit.__module__
        self.__wrapped__ = emit  # where doctest and inspect find the file
        INTRINSICS[name] = self
        if method:
            METHODS[name] = self

    @cached_property
    def signature(self) -> inspect.Signature:
        """Its parameters."""
        if self._parameters:
            return inspect.signature(eval(f"lambda {self._parameters}: 0"))  # noqa: S307 - ours
        parameters = list(inspect.signature(self._emit).parameters.values())[2:]
        bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
        return inspect.Signature(bare)

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature

    def emit(self, scope: Any, node: Any, arguments: Mapping[str, object]) -> object:
        """Put a call in a program into the IR and return its result."""
        try:
            return self._emit(scope, node, **arguments)
        except ValueError as refusal:
            if isinstance(refusal, CkError) or len(refusal.args) != 2:
                raise
            values = dict(zip(("problem", "advice"), refusal.args, strict=True))
            raise scope.error("F067", node, op=self.name, **values) from None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute on NumPy arrays or numbers; a program being compiled never makes this call.

        16-bit floats are widened to float32 first, as in a kernel; float64 stays float64. A cast
        returns the NumPy dtype of its dtype.
        """
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        try:
            with np.errstate(all="ignore"):
                return self._eager(**bound.arguments)
        except ValueError as refusal:
            has_advice = len(refusal.args) == 2
            if isinstance(refusal, CkError) or not (has_advice or self._explains_numpy):
                raise
            problem, advice = refusal.args if has_advice else (refusal, "see its example")
            raise error("F067", op=self.name, problem=problem, advice=advice) from None

    def __reduce__(self) -> str:
        """Pickle it by its name in its module."""
        return self.name

    def __repr__(self) -> str:
        return f"ck.{self.name}{self.signature}"


def function(
    doc: str,
    *,
    eager: Callable[..., Any],
    example: str,
    explains_numpy: bool = True,
    **more: Any,
) -> Callable[[Callable[..., object]], Intrinsic]:
    """Make a function of the language of the code that puts a call of it into a program.

    Takes what :class:`Intrinsic` takes.
    """

    def registered(emit: Callable[..., object]) -> Intrinsic:
        return Intrinsic(
            emit.__name__,
            doc,
            emit,
            eager,
            example=example,
            explains_numpy=explains_numpy,
            **more,
        )

    return registered
