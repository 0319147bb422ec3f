# SPDX-License-Identifier: MIT
"""Write a function of a kernel as a canonical region: equal functions are equal text.

Operations stand in the order in which a walk from the result, first operand first, finishes them;
so dead code is gone and the user's order of statements does not matter. Equal operations are one.
Operands of commutative ops stay as written: exchanging them is the user's business.
"""

from dataclasses import replace
from typing import Protocol

from cklang.errors import error
from cklang.fusion.plan import Read
from cklang.fusion.sites import Axes
from cklang.ir.infer import infer
from cklang.ir.nodes import Attrs, Function, Operation, Value, attr_key, make_attrs
from cklang.source import Span
from cklang.types import DType, Kind, TensorType, f32, i32


class RegionWriter(Protocol):
    """A region under construction, as the evaluation of a slice writes it."""

    reads: list[Read]
    """What it reads, in the order of its parameters."""

    @property
    def accumulator(self) -> Value:
        """What the anchor gives."""

    def read(self, value: Value, axes: Axes) -> Value:
        """Return what holds ``value`` read at ``axes``; narrow floats come widened."""

    def apply(self, operation: Operation, operands: tuple[Value, ...]) -> Value:
        """Return the result of an operation of the program on rank-0 values."""

    def cast(self, value: Value, to: DType, span: Span | None, origin: str = "") -> Value:
        """Return ``value`` as ``to``; itself when it has that dtype.

        Args:
            value: A value of the region.
            to: Its new dtype.
            span: The user's place.
            origin: The value of the program that this is; empty for a cast that is the region's.
        """

    def finish(self, *results: Value) -> Function:
        """Return the region as a function that gives ``results``."""


class Region:
    """A region under construction; its parameters are named ``letter`` and a number."""

    def __init__(self, letter: str = "d", accumulator: DType | None = None) -> None:
        self.letter = letter
        accumulator_type = TensorType(dtype=accumulator or f32)
        self.accumulator = Value(name="acc", type=accumulator_type)
        self._sums: tuple[Value, ...] = () if accumulator is None else (self.accumulator,)
        self.reads: list[Read] = []
        self._params: dict[tuple[str, Axes], Value] = {}
        self._body: list[Operation] = []
        self._known: dict[object, Value] = {}
        self._origins: dict[str, list[str]] = {}

    def add_second(self) -> Value:
        """Return the accumulator of the second product of a pair, a parameter from now on."""
        second = replace(self.accumulator, name="acc1")
        self._sums = (self.accumulator, second)
        return second

    def read(self, value: Value, axes: Axes) -> Value:
        """Return the parameter that holds ``value`` read at ``axes``; floats come widened."""
        if (value.name, axes) not in self._params:
            dtype = value.type.dtype
            widened = f32 if dtype.kind is Kind.FLOAT and dtype.bits < 32 else dtype
            name = f"{self.letter}{len(self.reads)}"
            self._params[value.name, axes] = Value(name=name, type=TensorType(dtype=widened))
            self.reads.append(Read(value=value, axes=axes))
        return self._params[value.name, axes]

    def apply(self, operation: Operation, operands: tuple[Value, ...]) -> Value:
        """Return the result of an operation of the program on rank-0 values."""
        origin = operation.result.name
        return self._append(operation.op, operands, operation.attrs, operation.span, origin)

    def _append(
        self, op: str, operands: tuple[Value, ...], attrs: Attrs, span: Span | None, origin: str
    ) -> Value:
        """Return the result of an operation, appended unless it is known."""
        # Keys hold names only: within the region a name has one type.
        key = (op, tuple(operand.name for operand in operands), attr_key(attrs))
        if key not in self._known:
            types = [operand.type for operand in operands]
            result = Value(name=str(len(self._body)), type=infer(op, types, dict(attrs), at=span))
            self._body.append(
                Operation(op=op, operands=operands, attrs=attrs, result=result, span=span)
            )
            self._known[key] = result
        known = self._known[key]
        if origin:
            self._origins.setdefault(known.name, []).append(origin)
        return known

    def cast(self, value: Value, to: DType, span: Span | None, origin: str = "") -> Value:
        """Return ``value`` as ``to``; itself when it has that dtype."""
        if value.type.dtype == to:
            return value
        return self._append("cast", (value,), make_attrs(to=to), span, origin)

    def finish(self, *results: Value) -> Function:
        """Return the region as a function that gives ``results``, each f32 or i32.

        Parameters, and ``reads`` with them, are put in the order of their first use in the text.
        """
        for result in results:
            if result.type not in (TensorType(dtype=f32), TensorType(dtype=i32)):
                raise error("Z002", what=f"a function gives {result.type}, not f32[] or i32[]")
        uses = [operand for operation in self._body for operand in operation.operands]
        params = set(self._params.values())
        order = [value for value in dict.fromkeys([*uses, *results]) if value in params]
        names = {
            old.name: Value(name=f"{self.letter}{index}", type=old.type)
            for index, old in enumerate(order)
        }
        reads = dict(zip(self._params.values(), self.reads, strict=True))
        self.reads = [reads[value] for value in order]
        return Function(
            name="epilogue",
            params=(*self._sums, *names.values()),
            body=tuple(
                replace(
                    step,
                    operands=tuple(names.get(x.name, x) for x in step.operands),
                    origins=tuple(self._origins.get(step.result.name, ())),
                )
                for step in self._body
            ),
            results=tuple(names.get(result.name, result) for result in results),
        )
