# SPDX-License-Identifier: MIT
"""Ops and helpers as pickles: by reference where their name can be imported, else as their text.

A text is pickled as its syntax tree with the values that its outside names had at decoration.
Nothing has to be read from files to restore it, and the copy watches no globals.
"""

from __future__ import annotations

import ast
import copy
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from functools import reduce
from types import FunctionType, MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from cklang.frontend.helper import Definition

__all__ = ["Reference", "reduced_definition", "reference_to"]


class Reference(NamedTuple):
    """Where an object is found by import."""

    module: str
    qualname: str

    def resolve(self) -> Any:
        """Return the object.

        Raises:
            ImportError: There is no such module.
            AttributeError: The module has no such name.
        """
        return reduce(getattr, self.qualname.split("."), importlib.import_module(self.module))


def reference_to(function: FunctionType, is_it: Callable[[Any], bool]) -> Reference | None:
    """Return where another process finds what decorates ``function``; None if it does not.

    Names of ``__main__`` and of functions are found nowhere else. Nothing is imported here.

    Args:
        function: The decorated function.
        is_it: Tells whether an object is the one to find: a name may stand for another.
    """
    module = sys.modules.get(function.__module__)
    if module is None or module.__name__ in ("__main__", "__mp_main__"):
        return None
    named: Any = module
    for name in function.__qualname__.split("."):
        named = getattr(named, name, None)
    if not is_it(named):
        return None
    return Reference(function.__module__, function.__qualname__)


class _Module(NamedTuple):
    """A module among the names of a definition; modules themselves are not pickled."""

    name: str


def reduced_definition(definition: Definition) -> tuple[Any, ...]:
    """Return what ``__reduce__`` of a definition does."""
    function = definition.function
    state = {
        "text": definition.text,
        "parameters": definition.parameters,
        "results": definition.results,
        "names": tuple((node, _packed(value)) for node, value in definition.names.items()),
        "python": definition.python,
    }
    space = {name: _packed(value) for name, value in _space(definition).items()}
    return _definition, (function.__module__, function.__qualname__, space, state)


def _space(definition: Definition) -> dict[str, object]:
    """Return the plain names that the body reads from outside: values, helpers and modules."""
    function = definition.function
    around = inspect.getclosurevars(function)
    known = {**around.builtins, **around.globals, **around.nonlocals}
    parts = (part for node in definition.names for part in ast.walk(node))
    used = {part.id for part in parts if isinstance(part, ast.Name)}
    values = {
        node.id: value for node, value in definition.names.items() if isinstance(node, ast.Name)
    }
    return {name: values.get(name, known.get(name)) for name in sorted(used)}


def _packed(value: object) -> object:
    return _Module(value.__name__) if isinstance(value, ModuleType) else value


def _unpacked(value: object) -> object:
    return importlib.import_module(value.name) if isinstance(value, _Module) else value


def _definition(
    module: str, qualname: str, space: Mapping[str, object], state: Mapping[str, Any]
) -> Definition:
    from cklang.frontend.helper import Definition

    values = {name: _unpacked(value) for name, value in space.items()}
    names = {node: _unpacked(value) for node, value in state["names"]}
    function = _function(state["text"].node, state["text"].source.name, values)
    function.__module__, function.__qualname__ = module, qualname
    parameters = {each.name: each for each in state["parameters"] if each.has_default}
    for name, parameter in parameters.items():
        _set_default(function, name, parameter.default)
    return Definition(
        function=function,
        captures=(),
        **{**state, "names": MappingProxyType(names)},
    )


def _function(node: ast.FunctionDef, file: str, space: dict[str, Any]) -> FunctionType:
    """Return the plain Python function of a definition, without annotations and defaults."""
    bare = copy.deepcopy(node)
    bare.decorator_list, bare.returns = [], None
    arguments = bare.args
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        each.annotation = None
    arguments.defaults, arguments.kw_defaults = [], [None] * len(arguments.kwonlyargs)
    code = compile(ast.Module(body=[bare], type_ignores=[]), file, "exec")
    exec(code, space)  # noqa: S102 - the user's own function
    function: FunctionType = space[node.name]
    return function


def _set_default(function: FunctionType, name: str, default: object) -> None:
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    if name in positional:
        function.__defaults__ = (*(function.__defaults__ or ()), default)
    else:
        function.__kwdefaults__ = {**(function.__kwdefaults__ or {}), name: default}
