# SPDX-License-Identifier: MIT
"""What the names of a program mean: locals, or constants and functions of the Python around it.

Names from outside are looked up once, when the function is decorated. A program never changes its
meaning because a global was changed later: a call then raises an error (`captured.py`).
"""

import ast
import builtins
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import BuiltinFunctionType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np

from cklang.errors import CkError, error
from cklang.frontend.captured import (
    ABSENT,
    Capture,
    of_attribute,
    of_cell,
    of_global,
    of_path,
)
from cklang.frontend.intrinsics import COMPOSITES, INTRINSICS, Intrinsic
from cklang.frontend.ops.masks import Joined, Window
from cklang.frontend.other_names import DTYPES, advice_for, nearest
from cklang.frontend.text import FunctionText
from cklang.frontend.values import Helper, OpProgram, program_of
from cklang.types import Dim, DType, DTypeVar

__all__ = ["BUILTINS", "NamesOf", "Outside", "is_python", "nearest", "resolve_names"]

NamesOf = Mapping[ast.expr, object]
"""For each name, or path of attributes and keys, from outside the program: its value."""

BUILTINS = (abs, bool, enumerate, float, int, len, max, min, range, reversed, round, zip)
"""The Python builtins that a program may call on compile-time constants."""

_ADVICE = {
    "print": "a kernel prints nothing: look at the result, or print(op.ir(...)) to see the program",
    "sum": "write ck.sum(x, axis=-1), or x.sum(-1); add constants with a for loop",
    "any": "write ck.any(x, axis=-1) along axes, a | b for two tensors, `a or b` for constants",
    "all": "write ck.all(x, axis=-1) along axes, a & b for two tensors, `a and b` for constants",
    "pow": "write x ** y or ck.pow(x, y)",
    "isinstance": "types are known: write an annotation instead",
}
_OBJECT = (
    "pass tensors as parameters, constants as numbers, tuples or attributes of an object, as in "
    "config.scale"
)
_PATHS = (ast.Name, ast.Attribute, ast.Subscript)
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a function takes from around it: the value of each name, and how to read it again."""

    names: NamesOf
    captures: tuple[Capture, ...]


def resolve_names(function: FunctionType, text: FunctionText) -> Outside:
    """Return what each outside name in the body of ``function`` stands for."""
    scope = _Names(function, text)
    for statement in text.node.body:
        scope.visit(statement)
    captures = tuple(scope.captures.values())
    return Outside(names=MappingProxyType(scope.values), captures=captures)


def _own_names(node: ast.Lambda | ast.ListComp) -> set[str]:
    """Return the names that a lambda or a comprehension binds for itself."""
    if isinstance(node, ast.Lambda):
        return {arg.arg for arg in (*node.args.posonlyargs, *node.args.args)}
    targets = (part for loop in node.generators for part in ast.walk(loop.target))
    return {part.id for part in targets if isinstance(part, ast.Name)}


class _Names:
    """The scope around one function, and the outside names that were resolved in it so far."""

    def __init__(self, function: FunctionType, text: FunctionText) -> None:
        code = function.__code__
        self.text = text
        self.name = function.__name__
        self.locals = frozenset(code.co_varnames + code.co_cellvars)
        self.space = function.__globals__
        self.names: dict[str, object] = {**vars(builtins), **self.space}
        self.cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        for name, cell in self.cells.items():
            try:
                self.names[name] = cell.cell_contents
            except ValueError:  # the enclosing function assigns it later
                self.names.pop(name, None)
        self.values: dict[ast.expr, object] = {}
        self.captures: dict[str, Capture] = {}

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _PATHS) and isinstance(node.ctx, ast.Load):
            value = self.chain(node)
            if value is not _MISSING:
                self.values[node] = self.legal(node, value)
                self.capture(node, value)
                return
        if isinstance(node, ast.Lambda | ast.ListComp):
            around = self.locals
            self.locals = around | _own_names(node)
            for child in ast.iter_child_nodes(node):
                self.visit(child)
            self.locals = around
            return
        for child in ast.iter_child_nodes(node):
            self.visit(child)

    def chain(self, node: ast.expr) -> object:
        """Return what an outside name, or a path of attributes and keys from it, is, or _MISSING.

        Paths lead through modules, and through objects that are no constants by themselves.
        """
        if isinstance(node, ast.Name):
            return _MISSING if node.id in self.locals else self.outside(node)
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return _MISSING
        base = self.chain(node.value)
        if isinstance(node, ast.Subscript):
            return self.entry(node, base)
        if not isinstance(base, ModuleType) and not _has_attributes(base):
            return _MISSING
        value = getattr(base, node.attr, _MISSING)
        if value is _MISSING:
            raise self.without_attribute(node, base)
        return value

    def entry(self, node: ast.Subscript, base: object) -> object:
        """Return what a dict or list has at a constant key, or _MISSING."""
        if not isinstance(base, Mapping | list) or not isinstance(node.slice, ast.Constant):
            return _MISSING
        key = node.slice.value
        try:
            return base[key]  # type: ignore[index]
        except (LookupError, TypeError):
            known = map(repr, base) if isinstance(base, Mapping) else ()
            advice = nearest(repr(key), known) if known else f"it has {len(base)} entries"
            raise self.missing(node, base, "entry", repr(key), advice) from None

    def without_attribute(self, node: ast.Attribute, base: object) -> CkError:
        words = self.text.words(node.value)
        is_own = isinstance(base, ModuleType) and base.__name__ == "cklang"
        advise = advice_for if is_own else nearest
        advice = advise(node.attr, dir(base), words + ".")
        if isinstance(base, ModuleType):
            at = self.text.span(node)
            return error("F011", at=at, module=base.__name__, name=node.attr, advice=advice)
        if isinstance(base, Mapping) and node.attr in base:
            advice = f"write {words}[{node.attr!r}]"
        return self.missing(node, base, "attribute", node.attr, advice)

    def missing(
        self, node: ast.Attribute | ast.Subscript, base: object, kind: str, name: str, advice: str
    ) -> CkError:
        return error(
            "F019",
            at=self.text.span(node),
            words=self.text.words(node.value),
            got=type(base).__name__,
            kind=kind,
            name=name,
            advice=advice,
        )

    def capture(self, node: ast.expr, value: object) -> None:
        """Note how to read an outside name or path again, and the modules that it leads through."""
        words, span = self.text.words(node), self.text.span(node)
        if isinstance(node, ast.Name):
            if node.id in self.cells:
                self.captures[words] = of_cell(words, self.cells[node.id], value, span)
            else:
                self.captures[words] = of_global(words, self.space, value, span)
            return
        if not isinstance(node, ast.Attribute | ast.Subscript):
            return
        base = self.chain(node.value)
        if not isinstance(base, ModuleType):
            self.captures[words] = of_path(words, self.reader(node), value, span)
        elif isinstance(node, ast.Attribute):
            capture = of_attribute(words, base, node.attr, value, span)
            if capture is not None:
                self.captures[words] = capture
                self.capture(node.value, base)

    def reader(self, node: ast.expr) -> Callable[[], object]:
        """Return what reads a path from its name on."""
        if isinstance(node, ast.Attribute):
            return partial(_attribute_of, self.reader(node.value), node.attr)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            return partial(_entry_of, self.reader(node.value), node.slice.value)
        words, span = self.text.words(node), self.text.span(node)
        if words in self.cells:
            return of_cell(words, self.cells[words], ABSENT, span).read
        return of_global(words, self.space, ABSENT, span).read

    def outside(self, node: ast.Name) -> object:
        if node.id == self.name:
            raise error("F012", at=self.text.span(node), name=node.id)
        value = self.names.get(node.id, _MISSING)
        if value is _MISSING:
            raise self.unknown(node)
        return value

    def unknown(self, node: ast.Name) -> CkError:
        if node.id in {*INTRINSICS, *COMPOSITES}:
            advice = f"write ck.{node.id}"
        else:
            user = [name for name in self.names if not hasattr(builtins, name)]
            advice = nearest(node.id, [*self.locals, *user])
        return error("F010", at=self.text.span(node), name=node.id, advice=advice)

    def legal(self, node: ast.expr, value: object) -> object:
        if isinstance(value, ModuleType):
            return value
        value = program_of(value) or _plain(value)
        if _is_constant(value) or isinstance(value, Intrinsic | Helper | OpProgram):
            return value
        if isinstance(value, type | BuiltinFunctionType) and is_python(value):
            return value
        raise self.illegal(node, value)

    def illegal(self, node: ast.expr, value: object) -> CkError:
        at = self.text.span(node)
        words = self.text.words(node)
        name = words.rpartition(".")[2]
        if getattr(builtins, name, _MISSING) is value:
            advice = _ADVICE.get(name, "leave it out, or do it outside the function")
            return error("F016", at=at, name=name, advice=advice)
        if library := _library(value):
            advice = _instead(name, value)
            return error("F015", at=at, library=library, words=words, advice=advice)
        if isinstance(value, FunctionType):
            return error("F014", at=at, words=words)
        advice = {
            list: "write a tuple",
            dict: "read an entry by a constant key, as in sizes['rows']",
            np.ndarray: "make it a parameter of the function",
        }.get(type(value), _OBJECT)
        return error("F013", at=at, words=words, got=type(value).__name__, advice=advice)


def _plain(value: object) -> object:
    """Return numbers of NumPy and of number-like classes as Python's own."""
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, np.generic):
        return value.item()
    for python in (int, float, str):
        if isinstance(value, python) and not isinstance(value, bool):
            return python(value)
    return value


def _has_attributes(value: object) -> bool:
    """Tell whether a program reads constants of ``value``: of an object that is none itself."""
    if isinstance(value, tuple):
        return hasattr(value, "_fields")
    others = Intrinsic | Helper | FunctionType | BuiltinFunctionType | np.ndarray | ModuleType
    if value is _MISSING or isinstance(value, others) or program_of(value):
        return False
    return not (_is_constant(_plain(value)) or _library(value) or is_python(value))


def _attribute_of(read: Callable[[], object], name: str) -> object:
    return getattr(read(), name, ABSENT)


def _entry_of(read: Callable[[], Any], key: object) -> object:
    try:
        return read()[key]
    except (LookupError, TypeError):
        return ABSENT


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_constant(item) for item in value)
    if isinstance(value, Joined):
        return all(
            isinstance(side, Helper) or _is_constant(side) for side in (value.left, value.right)
        )
    plain = bool | int | float | str | Dim | DType | DTypeVar | Window
    return value is None or isinstance(value, plain)


def is_python(value: object) -> bool:
    """Whether ``value`` is a Python function that programs may call on constants."""
    is_math = isinstance(value, BuiltinFunctionType) and value.__module__ == math.__name__
    return is_math or any(value is builtin for builtin in BUILTINS)


_LIBRARIES = {"numpy": "NumPy", "torch": "torch"}
"""Packages whose functions programs do not call, by what messages call them."""


def _library(value: object) -> str | None:
    """Return the library of a function or dtype that programs do not call."""
    module = getattr(value, "__module__", None) or type(value).__module__
    package = str(module).partition(".")[0]
    if isinstance(value, np.ufunc):
        return _LIBRARIES["numpy"]
    is_dtype = type(value).__name__ == "dtype"
    return _LIBRARIES.get(package) if callable(value) or is_dtype else None


def _instead(name: str, value: object) -> str:
    """Say what to write instead of a name of another library."""
    if isinstance(value, type) and issubclass(value, np.generic):
        dtype = DTYPES.get(name, "ck.f32")
        return f"write 0.5 for the number {name}(0.5), and {dtype} for the dtype"
    return advice_for(name, (*INTRINSICS, *COMPOSITES))
