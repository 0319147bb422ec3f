# SPDX-License-Identifier: MIT
"""Decorated functions: their text, checked and with its names resolved; and ``@ck.fn``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any, cast

from cklang.errors import CkError, CkInternalError, error
from cklang.frontend.captured import Capture
from cklang.frontend.fitting import check_calls
from cklang.frontend.intrinsics import Intrinsic
from cklang.frontend.names import NamesOf, Outside, resolve_names
from cklang.frontend.pickling import PackedFunction, Reference, reference_to
from cklang.frontend.signature import Parameter, read_parameters, read_results
from cklang.frontend.subset import check_subset
from cklang.frontend.text import FunctionText, read_function
from cklang.frontend.values import Helper, OpProgram
from cklang.source import Span
from cklang.types import TensorType, TensorVarType


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A Python function of the language: all that is known without the types of its arguments."""

    function: FunctionType
    text: FunctionText
    parameters: tuple[Parameter, ...]
    results: tuple[TensorType | TensorVarType, ...] | None
    names: NamesOf
    captures: tuple[Capture, ...]
    """The names from outside that it and the helpers in it read."""
    python: inspect.Signature
    is_composite: bool = False
    """Whether it is a function of the language, whose text is no place for users."""

    @classmethod
    def read(
        cls, function: Callable[..., Any], *, op: bool, is_composite: bool = False
    ) -> Definition:
        """Read and check ``function``."""
        text = read_function(function, "ck.op" if op else "ck.fn")
        plain = cast("FunctionType", function)
        parameters = read_parameters(plain, text, op=op)
        results = read_results(plain, text, op=op)
        try:
            check_subset(text)
            outside = resolve_names(plain, text)
            check_calls(text, outside.names)
        except RecursionError:
            raise error("F033", at=text.header(), name=plain.__name__) from None
        return cls(
            function=plain,
            text=text,
            parameters=parameters,
            results=results,
            names=outside.names,
            captures=_all_captures(outside),
            python=_bare(inspect.signature(plain)) if is_composite else inspect.signature(plain),
            is_composite=is_composite,
        )

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.__name__

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the syntax tree and the values of outside names; a copy watches no globals."""
        state = {
            "text": self.text,
            "parameters": self.parameters,
            "results": self.results,
            "python": self.python,
            "is_composite": self.is_composite,
        }
        return _restored_definition, (PackedFunction.of(self.function, self.names), state)


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """Return ``signature`` without annotations, which say nothing where anything is taken."""
    empty = inspect.Parameter.empty
    bare = [parameter.replace(annotation=empty) for parameter in signature.parameters.values()]
    return inspect.Signature(bare)


def _restored_definition(packed: PackedFunction, state: Mapping[str, Any]) -> Definition:
    defaults = {
        parameter.name: parameter.default
        for parameter in state["parameters"]
        if parameter.has_default
    }
    function = packed.function(state["text"], defaults)
    return Definition(function=function, names=packed.names(), captures=(), **state)


def _all_captures(outside: Outside) -> tuple[Capture, ...]:
    """Return the captures of a function and, once each, of the helpers and ops that it names."""
    inlined = [name for name in outside.names.values() if isinstance(name, Fn | OpProgram)]
    helpers = {id(function): function for function in inlined}
    inner = (capture for helper in helpers.values() for capture in helper.definition.captures)
    return tuple({id(capture): capture for capture in (*outside.captures, *inner)}.values())


def derives(definition: Definition) -> bool:
    """Tell whether a program has ops whose extents follow from others': convolutions, pooling."""
    for value in definition.names.values():
        if isinstance(value, Intrinsic) and value.has_windows:
            return True
        if isinstance(value, Fn | OpProgram) and derives(value.definition):
            return True
    return False


def brief(mistake: CkError) -> CkError:
    """Return an error of the user's program without the frames of the compiler that found it."""
    return mistake if isinstance(mistake, CkInternalError) else mistake.with_traceback(None)


class Fn(Helper):
    """A helper made by ``@ck.fn``: inlined where a program calls it.

    Called from plain Python it is the plain Python function.

    Example:
        >>> @ck.fn
        ... def swish(x, beta):
        ...     return x * ck.sigmoid(beta * x)
        >>> swish(np.array([-1.0, 1.0]), 2.0).round(3)
        array([-0.119,  0.881])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            self.definition = Definition.read(function, op=False, is_composite=self.is_composite)
        except CkError as mistake:
            raise brief(mistake) from None
        functools.update_wrapper(self, function)

    def __reduce__(self) -> tuple[Any, ...]:
        reference = reference_to(self.definition.function, lambda named: named is self)
        if reference is not None:
            return Reference.resolve, (reference,)
        return _of_definition, (self.definition,)

    def described(self) -> str:
        """Return how messages call it."""
        return f"the helper {self.definition.name}"

    @property
    def name(self) -> str:
        """Its name.

        Example:
            >>> swish.name
            'swish'
        """
        return self.definition.name

    @property
    def signature(self) -> inspect.Signature:
        """Its parameters.

        Example:
            >>> swish.signature
            <Signature (x, beta)>
        """
        return self.definition.python

    @property
    def place(self) -> Span:
        """Where it is defined."""
        return self.definition.text.header()

    def __copy__(self) -> Fn:
        return self

    def __deepcopy__(self, memo: object) -> Fn:
        """Return the helper itself, which never changes."""
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the Python function, on NumPy arrays for example."""
        return self.definition.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<ck.fn {self.definition.name}{self.definition.python}>"


def _of_definition(definition: Definition) -> Fn:
    helper = Fn.__new__(Fn)
    helper.definition = definition
    functools.update_wrapper(helper, definition.function)
    return helper


def fn(function: Callable[..., Any]) -> Fn:
    """Make a helper that ops and other helpers can call.

    Its parameters need no annotations, or ``typing.Any``; arguments must fit any other exactly.

    Example:
        >>> @ck.fn
        ... def swish(x, beta):
        ...     return x * ck.sigmoid(beta * x)
        >>> @ck.op
        ... def gated(x: ck.f16["M", "K"], w: ck.f16["N", "K"]) -> ck.f16["M", "N"]:
        ...     return swish(x @ w.T, 2.0)
        >>> gated(np.eye(2, dtype=np.float16), np.eye(2, dtype=np.float16))
        array([[0.881, 0.   ],
               [0.   , 0.881]], dtype=float16)

    Raises:
        CkSyntaxError, CkTypeError: The F errors: ``function`` is outside the language.
    """
    return Fn(function)
