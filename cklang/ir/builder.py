# SPDX-License-Identifier: MIT
"""Make a function op by op; types follow from the op table, names are given in order."""

from collections.abc import Mapping, Sequence

from cklang.ir.infer import infer
from cklang.ir.nodes import Attr, Function, Operation, Value, make_attrs
from cklang.ir.ops import OPS
from cklang.ir.rules import Shape
from cklang.source import Span
from cklang.types import DType, TensorType


class Builder:
    """Collects the operations of one function.

    Results are named ``%0``, ``%1``… past any parameter of such a name::

        b = Builder("linear")
        x = b.param("x", ck.f16["M", "K"])
        w = b.param("w", ck.f16["K", "N"])
        y = b.append("gemm", x, w)
        function = b.finish(b.cast(y, ck.f16))
    """

    def __init__(self, name: str, span: Span | None = None) -> None:
        self.name = name
        self.span = span
        self._params: list[Value] = []
        self._body: list[Operation] = []
        self._names: set[str] = set()
        self._next = 0

    @property
    def body(self) -> tuple[Operation, ...]:
        """The operations that were appended, in order."""
        return tuple(self._body)

    @property
    def last(self) -> Operation:
        """The operation that was appended last."""
        return self._body[-1]

    @property
    def values(self) -> tuple[Value, ...]:
        """The values so far, in order: the parameters, then the results of operations."""
        return (*self._params, *(operation.result for operation in self._body))

    def is_param(self, value: Value) -> bool:
        """Tell whether a value is a parameter."""
        return value in self._params

    def param(self, name: str, tensor: TensorType) -> Value:
        """Add a parameter."""
        value = Value(name=name, type=tensor)
        self._params.append(value)
        self._names.add(name)
        return value

    def append(
        self,
        op: str,
        *operands: Value,
        shape: Shape | None = None,
        span: Span | None = None,
        **attrs: Attr,
    ) -> Value:
        """Append ``op`` and return its result.

        Args:
            op: Name of a row of the op table.
            operands: Values of this function.
            shape: The result's shape, for ``broadcast`` only.
            span: The user's place: errors point to it, and it stays on the operation.
            attrs: All attributes of the row.

        Raises:
            CkValueError, CkTypeError: A rule of the row is broken (I013 to I019).
        """
        return self.apply(op, operands, attrs, shape=shape, span=span)

    def apply(
        self,
        op: str,
        operands: Sequence[Value],
        attrs: Mapping[str, Attr],
        *,
        shape: Shape | None = None,
        span: Span | None = None,
        origins: tuple[str, ...] = (),
    ) -> Value:
        """Append ``op`` with its attributes in a mapping; otherwise as :meth:`append`."""
        types = [operand.type for operand in operands]
        result = Value(name=self._name(), type=infer(op, types, attrs, shape=shape, at=span))
        self._body.append(
            Operation(
                op=op,
                operands=tuple(operands),
                attrs=make_attrs(**attrs),
                result=result,
                span=span,
                origins=origins,
            )
        )
        return result

    def cast(self, value: Value, to: DType, *, span: Span | None = None) -> Value:
        """Convert ``value`` to dtype ``to``; itself when it has that dtype already."""
        return value if value.type.dtype == to else self.append("cast", value, to=to, span=span)

    def broadcast(
        self, value: Value, shape: Shape, *, dims: tuple[int, ...] | None = None
    ) -> Value:
        """Repeat ``value`` to ``shape``; itself when it has that shape already.

        ``dims[i]`` is the result axis of operand axis i; without it axes align at the end, as
        NumPy's do.
        """
        if value.type.shape == shape:
            return value
        if dims is None:
            first = len(shape) - value.type.rank
            dims = tuple(range(first, len(shape)))
        return self.append("broadcast", value, shape=shape, dims=dims)

    def constant(self, number: float | int | bool, *, span: Span | None = None) -> Value:
        """Append a rank-0 constant: f32 for a float, i32 for an integer, bool for a bool."""
        return self.append("constant", value=number, span=span)

    def finish(self, *results: Value) -> Function:
        """Return the function with these results."""
        return Function(
            name=self.name,
            params=tuple(self._params),
            body=tuple(self._body),
            results=results,
            span=self.span,
        )

    def _name(self) -> str:
        while str(self._next) in self._names:
            self._next += 1
        name = str(self._next)
        self._names.add(name)
        return name


def without_unused(function: Function) -> Function:
    """Return ``function`` without the operations that its results do not need, numbered anew."""
    needed = {result.name for result in function.results}
    for operation in reversed(function.body):
        if operation.result.name in needed:
            needed.update(operand.name for operand in operation.operands)
    builder = Builder(function.name, function.span)
    values = {param.name: builder.param(param.name, param.type) for param in function.params}
    for operation in function.body:
        if operation.result.name in needed:
            values[operation.result.name] = builder.apply(
                operation.op,
                [values[operand.name] for operand in operation.operands],
                dict(operation.attrs),
                shape=operation.result.type.shape if OPS[operation.op].shape.declared else None,
                span=operation.span,
            )
    return builder.finish(*(values[result.name] for result in function.results))
