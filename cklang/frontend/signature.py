# SPDX-License-Identifier: MIT
"""The parameters of a program: read from the annotations of its Python function, and checked."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import FunctionType
from typing import Any, get_args, get_origin

import numpy as np

from cklang.errors import CkError, error
from cklang.frontend.names import nearest
from cklang.frontend.text import FunctionText
from cklang.in_place import InOutType
from cklang.ir.casts import CASTS
from cklang.optional_type import OptionalType
from cklang.source import Span
from cklang.types import (
    ConstType,
    Dim,
    DType,
    DTypeVar,
    TensorType,
    TensorVarType,
    e8m0,
    fp4,
    i4,
    plain_dims,
)

Annotation = TensorType | TensorVarType | ConstType
"""What a parameter of a program may be annotated with, in one form."""

# What a kernel can widen when it loads it, and round to when it stores it.
_LOADED = (*dict.fromkeys(source for source, _ in CASTS), e8m0, i4, fp4)
_STORED = tuple(dict.fromkeys(to for _, to in CASTS))

_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of an op or a helper.

    ``type`` is None for a parameter of a helper without annotation. ``default`` is
    ``inspect.Parameter.empty`` if there is none.
    """

    name: str
    type: Annotation | None
    default: object = _EMPTY
    keyword_only: bool = False
    optional: bool = False
    """Whether a call may pass None for it, a tensor or a run-time scalar."""
    in_place: bool = False
    """Whether a result is written into its array."""
    span: Span

    @property
    def is_const(self) -> bool:
        """Whether its value is compiled into the kernel."""
        return isinstance(self.type, ConstType)

    @property
    def dim(self) -> Dim | None:
        """The extent that annotations may name it as; None if it is no ``ck.const[int]``."""
        is_extent = isinstance(self.type, ConstType) and self.type.python is int
        return Dim(self.name) if is_extent else None

    @property
    def has_default(self) -> bool:
        """Whether a call may leave it out."""
        return self.default is not _EMPTY

    def const_value(self, value: object, at: Span | None = None) -> bool | int | float | str:
        """Return ``value`` as the constant that this ``ck.const`` parameter takes.

        An integer is a legal float constant; nothing else is converted.
        """
        if not isinstance(self.type, ConstType):
            raise error("Z002", what=f"{self.name} is not a constant parameter")
        if isinstance(value, np.generic):
            value = value.item()
        python_type = self.type.python
        if python_type is float and type(value) is int:
            return float(value)
        if type(value) is python_type and isinstance(value, bool | int | float | str):
            return value
        raise error(
            "F024",
            at=at,
            name=self.name,
            want=python_type.__name__,
            got=type(value).__name__,
            value=repr(value),
        )


def read_parameters(
    function: FunctionType, text: FunctionText, *, op: bool
) -> tuple[Parameter, ...]:
    """Return the parameters of ``function``; those of an ``op`` must be annotated."""
    arguments = text.node.args
    for extra, stars in ((arguments.vararg, "*"), (arguments.kwarg, "**")):
        if extra is not None:
            raise error("F020", at=text.span(extra), name=stars + extra.arg)
    nodes = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    names = _Names.of(function)
    return tuple(_parameter(function, text, node, names, op=op) for node in nodes)


def _parameter(
    function: FunctionType, text: FunctionText, node: ast.arg, names: _Names, *, op: bool
) -> Parameter:
    span = text.span(node)
    if node.annotation is None:
        if op:
            raise error("F021", at=span, name=node.arg)
        type_, optional, in_place = None, False, False
    else:
        where, words = text.span(node.annotation), text.words(node.annotation)
        value = _looked_up(function, node.arg, words, where, names)
        optional = isinstance(value, OptionalType)
        in_place = isinstance(value, InOutType) and op
        if isinstance(value, OptionalType) or (isinstance(value, InOutType) and op):
            value = value.of
        # Type checkers in strict mode want an annotation of a helper that takes anything.
        is_open = value is Any and not op
        type_ = None if is_open else _known(value, node.arg, words, where)
    parameter = inspect.signature(function).parameters[node.arg]
    legal_default = parameter.default is _EMPTY or (optional and parameter.default is None)
    if not legal_default and isinstance(type_, TensorType | TensorVarType):
        raise error("F023", at=span, name=node.arg, type=type_, default=repr(parameter.default))
    result = Parameter(
        name=node.arg,
        type=type_,
        default=parameter.default,
        keyword_only=parameter.kind is inspect.Parameter.KEYWORD_ONLY,
        optional=optional,
        in_place=in_place,
        span=span,
    )
    if result.is_const and result.has_default:
        result.const_value(result.default, at=span)
    return result


def read_results(
    function: FunctionType, text: FunctionText, *, op: bool
) -> tuple[TensorType | TensorVarType, ...] | None:
    """Return the types of the return annotation, one or those of a tuple; None if there is none.

    A helper may be annotated with ``typing.Any`` instead.
    """
    node = text.node.returns
    if node is None:
        return None
    span = text.span(node)
    words = text.words(node)
    value = _looked_up(function, "return", words, span, _Names.of(function))
    if value is Any and not op:
        return None
    parts = get_args(value) if get_origin(value) is tuple else value
    parts = parts if isinstance(parts, tuple) and parts else (value,)
    return tuple(_result(part, words, span) for part in parts)


def _result(value: object, words: str, span: Span) -> TensorType | TensorVarType:
    type_ = _known(value, "the result", words, span)
    if isinstance(type_, ConstType):
        raise _bad_annotation("the result", words, span)
    return type_


def concrete(type_: TensorType | TensorVarType, dtypes: Mapping[str, DType]) -> TensorType:
    """Return an annotation with its dtype variable, if it has one, replaced by its dtype."""
    if isinstance(type_, TensorVarType):
        return TensorType(dtype=dtypes[type_.var.name], shape=type_.shape)
    return type_


def constant_extents(
    parameters: Iterable[Parameter], results: Iterable[TensorType | TensorVarType]
) -> list[Parameter]:
    """Return the ``ck.const[int]`` parameters that annotations name as extents."""
    parameters = tuple(parameters)
    types = [*results, *(parameter.type for parameter in parameters)]
    shapes = (tensor.shape for tensor in types if isinstance(tensor, TensorType | TensorVarType))
    named = {dim for shape in shapes for extent in shape for dim in plain_dims(extent)}
    return [parameter for parameter in parameters if parameter.dim in named]


def check_types(
    parameters: Iterable[Parameter],
    results: Iterable[TensorType | TensorVarType],
    text: FunctionText,
    *,
    derives: bool = False,
) -> Mapping[str, DTypeVar]:
    """Check that the results' dims and dtypes come from parameters; return the dtype variables.

    A parameter that may be None decides neither, and computed extents follow from its own dims or
    from those of parameters that every call has. Where the program ``derives`` extents, the
    result's dims may be names of these. A ``ck.const[int]`` parameter is an extent, too.
    """
    parameters = tuple(parameters)
    required = [parameter for parameter in parameters if not parameter.optional]
    dims = {extent for parameter in required for extent in _dims_of(parameter)}
    dims |= {parameter.dim for parameter in required if parameter.dim is not None}
    variables: dict[str, DTypeVar] = {}
    for parameter in parameters:
        type_ = parameter.type
        if isinstance(type_, TensorType | TensorVarType):
            _check_dtypes(type_, parameter.name, _LOADED, parameter.span)
        if isinstance(type_, TensorVarType):
            known = variables.setdefault(type_.var.name, type_.var)
            if known != type_.var:
                raise error("F028", at=parameter.span, name=known.name)
    for parameter in parameters:
        _check_computed(parameter, dims)
    decided = {
        parameter.type.var.name
        for parameter in required
        if isinstance(parameter.type, TensorVarType)
    }
    place = text.node.returns
    at = text.span(place) if place is not None else text.header()
    for result in results:
        try:
            _check_result(result, None if derives else dims, decided, at)
        except CkError as mistake:
            maybe = ", ".join(parameter.name for parameter in parameters if parameter.optional)
            if maybe:
                mistake.notes = (*mistake.notes, f"what may be None decides no result: {maybe}")
            raise
    return variables


def _check_computed(parameter: Parameter, dims: set[Dim]) -> None:
    """Check that the extents of a parameter follow from ``dims`` and its own."""
    own = _dims_of(parameter)
    known = dims.union(own)
    for extent in own:
        for dim in sorted(plain_dims(extent) - known, key=str):
            shown = _listed(known)
            raise error("F034", at=parameter.span, extent=extent, dim=dim, known=shown)


def _dims_of(parameter: Parameter) -> tuple[Dim, ...]:
    if not isinstance(parameter.type, TensorType | TensorVarType):
        return ()
    return tuple(extent for extent in parameter.type.shape if isinstance(extent, Dim))


def _check_result(
    result: TensorType | TensorVarType, dims: set[Dim] | None, variables: Container[str], at: Span
) -> None:
    _check_dtypes(result, "the result", _STORED, at)
    for extent in result.shape:
        if dims is None or extent in dims:
            continue
        for dim in sorted(plain_dims(extent) - dims, key=str):
            raise error("F026", at=at, dim=dim, known=_listed(dims))
    if isinstance(result, TensorVarType) and result.var.name not in variables:
        raise error("F027", at=at, name=result.var.name)


def _check_dtypes(
    type_: TensorType | TensorVarType, what: str, legal: tuple[DType, ...], at: Span
) -> None:
    choices = type_.var.choices if isinstance(type_, TensorVarType) else (type_.dtype,)
    for dtype in choices:
        if dtype not in legal:
            known = ", ".join(str(choice) for choice in legal)
            raise error("F032", at=at, dtype=dtype, what=what, known=known)


def _listed(things: Iterable[object]) -> str:
    return ", ".join(sorted(str(thing) for thing in things)) or "none"


@dataclass(frozen=True, slots=True)
class _Names:
    """Where the names of an annotation that is a string are looked up."""

    globals: dict[str, Any]
    locals: dict[str, Any]

    @classmethod
    def of(cls, function: FunctionType) -> _Names:
        local: dict[str, Any] = {}
        # Names of the enclosing function that only annotations use are in no closure: take them
        # from the frame that is just now defining the function.
        frame = sys._getframe(1)
        while frame is not None:
            if any(constant is function.__code__ for constant in frame.f_code.co_consts):
                local.update(frame.f_locals)
                break
            frame = frame.f_back  # type: ignore[assignment]
        for name in _int_constants(function, local):
            local.setdefault(name, Dim(name))
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            try:
                local[name] = cell.cell_contents
            except ValueError:  # the enclosing function has not assigned it yet
                continue
        return cls(function.__globals__, local)


def _int_constants(function: FunctionType, local: Mapping[str, Any]) -> list[str]:
    """Return the ``ck.const[int]`` parameters whose names mean nothing else in annotations."""
    outside = {*function.__globals__, *function.__code__.co_freevars, *local}
    names = []
    for name, value in function.__annotations__.items():
        if isinstance(value, str) and name not in outside:
            with suppress(Exception):  # what is wrong with it is said where it is read
                value = eval(value, function.__globals__, dict(local))  # noqa: S307 - their code
        if isinstance(value, ConstType) and value.python is int and name not in outside:
            names.append(name)
    return names


def _looked_up(function: FunctionType, name: str, words: str, span: Span, names: _Names) -> object:
    value: object = function.__annotations__[name]
    try:
        while isinstance(value, str):
            value = eval(value, names.globals, names.locals)  # noqa: S307 - it is their own code
    except CkError as exception:
        exception.at = exception.at or span
        raise
    except Exception as exception:
        problem = f"{type(exception).__name__}: {exception}"
        advice = "names of an annotation must be defined before the function"
        if isinstance(exception, AttributeError):
            advice = nearest(exception.name or "", dir(exception.obj))
        raise error("F029", at=span, words=words, problem=problem, advice=advice) from exception
    return value


def _known(value: object, what: str, words: str, span: Span) -> Annotation:
    if isinstance(value, DType):
        return TensorType(dtype=value)
    if isinstance(value, DTypeVar):
        return TensorVarType(var=value, shape=())
    if isinstance(value, Annotation):
        return value
    raise _bad_annotation(what, words, span, value)


def _bad_annotation(what: str, words: str, span: Span, value: object = None) -> CkError:
    advice = "write ck.f16[M, K] (a tensor) or ck.f32 (a run-time scalar)"
    if value in (bool, int, float, str):
        name = getattr(value, "__name__", "")
        advice = f"write ck.const[{name}] for a compile-time constant, ck.f32 for a run-time scalar"
    elif what != "the result":
        advice += " or ck.const[float] (a compile-time constant)"
    return error("F022", at=span, what=what, words=words, advice=advice)
