# SPDX-License-Identifier: MIT
"""The mini-IR: what a program is after the frontend and before the kernels.

The whole language, as it is written (``grammar.lark`` says the same to the parser)::

    module     = function*
    function   = "func" "@"name "(" (value ":" type),* ")" "->" results "{" operation* return "}"
    results    = type,+ | "()"
    operation  = value ":" type "=" opname "(" value,* ")" ("{" (name "=" attribute),* "}")?
    return     = "return" value,*
    value      = "%"name                        defined once, before its uses
    type       = dtype "[" (dim | integer | blocks | formula),* "]"  f16[M, 128]; rank 0 is f32[]
    blocks     = dim "/" integer                          K/128: as many as cover K
    formula    = sums, products and "//" of the above     K - 1, B*S, K//2
    attribute  = integer | float | string | "true" | "false" | dtype | list | function
    list       = "[" attribute,* "]"
    comment    = "#" to the end of the line

    float      = as Python writes it; inf, -inf, nan and -0.0 are floats, 1 is an integer
    function   as an attribute is a region: it sees its own parameters and nothing else

An example::

    func @linear(%x: f16[M, K], %w: f16[N, K], %bias: f16[N]) -> f16[M, N] {
      %0: f16[K, N] = transpose(%w) {perm = [1, 0]}
      %1: f32[M, N] = gemm(%x, %0)
      %2: f32[N] = cast(%bias) {to = f32}
      %3: f32[M, N] = broadcast(%2) {dims = [1]}
      %4: f32[M, N] = add(%1, %3)
      %5: f16[M, N] = cast(%4) {to = f16}
      return %5
    }

Nodes are immutable values: equal text is equal nodes. Floats compare by their bits, so that a nan
equals itself and 0.0 differs from -0.0; ``1``, ``1.0`` and ``true`` differ. Spans are no part of
equality. A node prints in one spelling only, which :mod:`cklang.ir.parser` reads back. What each op
means is one row of :mod:`cklang.ir.ops`.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, Union

from cklang.errors import error
from cklang.source import Span
from cklang.types import DType, TensorType

Attr: TypeAlias = Union[int, float, str, bool, DType, tuple["Attr", ...], "Function"]
"""What an attribute may hold."""

Attrs: TypeAlias = tuple[tuple[str, Attr], ...]
"""The attributes of an operation, sorted by name."""

_VALUE_NAME = re.compile(r"\w+")
_INDENT = "  "


def _check_name(what: str, name: str, legal: bool, want: str) -> None:
    if not legal:
        raise error("I001", what=what, got=name, want=want)


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A named value of a function: a parameter or the result of an operation.

    ``name`` is written without its ``%``; names are unique within a function.
    """

    name: str
    type: TensorType

    def __post_init__(self) -> None:
        legal = _VALUE_NAME.fullmatch(self.name) is not None
        _check_name("a value", self.name, legal, "letters, digits and underscores")

    def __str__(self) -> str:
        return f"%{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Operation:
    """One application of an op: ``result = op(operands) {attrs}``.

    In a function that fusion writes for a kernel, ``origins`` are the names of the program's values
    that the operation computes there.
    """

    op: str
    operands: tuple[Value, ...]
    attrs: Attrs = ()
    result: Value
    span: Span | None = None
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [name for name, _ in self.attrs]
        _check_name("an op", self.op, self.op.isidentifier(), "an identifier")
        for name in names:
            _check_name("an attribute", name, name.isidentifier(), "an identifier")
        if names != sorted(set(names)):
            raise error("I002", op=self.op, names=", ".join(names))

    @property
    def identity(self) -> tuple[object, ...]:
        """What equality compares: everything but span and origins, floats by their bits."""
        return (self.op, self.operands, attr_key(self.attrs), self.result)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Operation):
            return NotImplemented
        return self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def of(self, operands: tuple[Value, ...]) -> "Operation":
        """Return the operation with other operands; itself if they are its own."""
        return self if operands == self.operands else replace(self, operands=operands)

    def attr(self, name: str) -> Attr:
        """Return attribute ``name``."""
        for key, value in self.attrs:
            if key == name:
                return value
        raise error("Z002", what=f"{self.op} of {self.result} has no attribute {name}")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Function:
    """A function, or a region when it is an attribute: parameters, operations in order, results."""

    name: str
    params: tuple[Value, ...]
    body: tuple[Operation, ...]
    results: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        _check_name("a function", self.name, self.name.isidentifier(), "an identifier")

    def __str__(self) -> str:
        return print_function(self)

    def __repr__(self) -> str:
        # Runnable Python, and short enough to read in a failing test.
        return f"parse_function({str(self)!r})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text in IPython and hypothesis, which would else list the fields."""
        printer.text(repr(self))

    def values(self) -> Iterator[Value]:
        """Yield parameters, then results of operations, in order of definition."""
        yield from self.params
        for operation in self.body:
            yield operation.result

    def definitions(self) -> dict[str, Operation]:
        """Return the operation that defines each value, by value name; parameters have none."""
        return {operation.result.name: operation for operation in self.body}


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """Functions in order; what a text of the mini-IR holds."""

    functions: tuple[Function, ...] = ()

    def __str__(self) -> str:
        return print_module(self)


def make_attrs(**attrs: Attr) -> Attrs:
    """Return attributes in the sorted form that an operation holds."""
    return tuple(sorted(attrs.items()))


def attr_key(attr: object) -> object:
    """Return a hashable stand-in that is equal exactly when the attributes are the same.

    Python says ``1 == 1.0 == True``, ``0.0 == -0.0`` and ``nan != nan``; all of these are wrong
    for constants of a program.
    """
    if isinstance(attr, float):
        return ("float", attr.hex())
    if isinstance(attr, tuple):
        return tuple(attr_key(item) for item in attr)
    return (type(attr).__name__, attr)


# --- text


def print_module(module: Module) -> str:
    """Return the text of a module."""
    texts = [print_function(function) for function in module.functions]
    return "\n\n".join(texts) + "\n" if texts else ""


def print_function(function: Function, *, locations: bool = False) -> str:
    """Return the text of a function, without a newline at its end.

    ``locations`` adds each operation's place as a comment.
    """
    return "\n".join(_function_lines(function, locations))


def print_operation(operation: Operation) -> str:
    """Return the text of one operation."""
    return "\n".join(_operation_lines(operation, False))


def print_attr(attr: Attr) -> str:
    """Return the text of an attribute."""
    match attr:
        case bool():
            return "true" if attr else "false"
        case int() | float():
            return repr(attr)
        case str():
            return json.dumps(attr)
        case DType():
            return attr.name
        case tuple():
            return f"[{', '.join(print_attr(item) for item in attr)}]"
        case Function():
            return print_function(attr)


def _typed(values: Sequence[Value]) -> str:
    return ", ".join(f"{value}: {value.type}" for value in values)


def _function_lines(function: Function, locations: bool) -> list[str]:
    types = ", ".join(str(value.type) for value in function.results) or "()"
    lines = [f"func @{function.name}({_typed(function.params)}) -> {types} {{"]
    for operation in function.body:
        lines += [_INDENT + line for line in _operation_lines(operation, locations)]
    names = ", ".join(str(value) for value in function.results)
    return [*lines, f"{_INDENT}return {names}".rstrip(), "}"]


def _operation_lines(operation: Operation, locations: bool) -> list[str]:
    operands = ", ".join(str(value) for value in operation.operands)
    attrs = ", ".join(f"{name} = {print_attr(attr)}" for name, attr in operation.attrs)
    text = f"{_typed([operation.result])} = {operation.op}({operands})"
    lines = (text + (f" {{{attrs}}}" if attrs else "")).split("\n")
    if locations and operation.span is not None:
        lines[-1] += f"  # {operation.span}"
    return lines
