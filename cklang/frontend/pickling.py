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
from typing import Any, NamedTuple

from cklang.frontend.text import FunctionText


class Reference(NamedTuple):
    """Where an object is found by import."""

    module: str
    qualname: str

    def resolve(self) -> Any:
        """Return the object."""
        return reduce(getattr, self.qualname.split("."), importlib.import_module(self.module))


def reference_to(function: FunctionType, is_it: Callable[[Any], bool]) -> Reference | None:
    """Return where another process finds what decorates ``function``; None if it does not.

    Names of ``__main__`` and of functions are found nowhere else. Nothing is imported here.

    ``is_it`` tells whether an object is the one to find: a name may stand for another.
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


class PackedFunction(NamedTuple):
    """A Python function of the language as data: its name and what its outside names stand for.

    Its text is pickled beside it.
    """

    module: str
    qualname: str
    space: Mapping[str, object]
    """The plain names that the body reads from outside: values, helpers and modules."""
    nodes: tuple[tuple[ast.expr, object], ...]
    """The value of each outside name, or dotted name of a module's attribute."""

    @classmethod
    def of(cls, function: FunctionType, names: Mapping[ast.expr, object]) -> PackedFunction:
        """Pack ``function``, whose outside ``names`` are resolved."""
        return cls(
            module=function.__module__,
            qualname=function.__qualname__,
            space={name: _packed(value) for name, value in _space(function, names).items()},
            nodes=tuple((node, _packed(value)) for node, value in names.items()),
        )

    def names(self) -> Mapping[ast.expr, object]:
        """Return the outside names with their values."""
        return MappingProxyType({node: _unpacked(value) for node, value in self.nodes})

    def function(self, text: FunctionText, defaults: Mapping[str, object]) -> FunctionType:
        """Return the function that ``text`` defines, without annotations."""
        space = {name: _unpacked(value) for name, value in self.space.items()}
        function = _function(text.node, text.source.name, space)
        function.__module__, function.__qualname__ = self.module, self.qualname
        for name, default in defaults.items():
            _set_default(function, name, default)
        return function


def _space(function: FunctionType, names: Mapping[ast.expr, object]) -> dict[str, object]:
    around = inspect.getclosurevars(function)
    known = {**around.builtins, **around.globals, **around.nonlocals}
    used = {part.id for node in names for part in ast.walk(node) if isinstance(part, ast.Name)}
    values = {node.id: value for node, value in names.items() if isinstance(node, ast.Name)}
    return {name: values.get(name, known.get(name)) for name in sorted(used)}


def _packed(value: object) -> object:
    return _Module(value.__name__) if isinstance(value, ModuleType) else value


def _unpacked(value: object) -> object:
    return importlib.import_module(value.name) if isinstance(value, _Module) else value


def _function(node: ast.FunctionDef, file: str, space: dict[str, Any]) -> FunctionType:
    """Return the plain Python function of a definition, without annotations and defaults."""
    bare = copy.deepcopy(node)
    bare.decorator_list, bare.returns = [], None
    arguments = bare.args
    for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        arg.annotation = None
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
