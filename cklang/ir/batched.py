# SPDX-License-Identifier: MIT
"""A function over a batch: some parameters have one more axis in front, and so have the results.

Each op has a rule that says what it becomes where some of its operands have the axis. Products
broadcast over axes in front anyway; attributes that name axes count one further. What has no rule,
such as attention and convolutions, has no batch.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeAlias

from cklang.errors import CkError
from cklang.ir.builder import Builder, without_unused
from cklang.ir.nodes import Attr, Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.ir.rules import Shape
from cklang.ir.views import written
from cklang.types import Dim, TensorType, plain_dims

_STEM = "VMAP"


def with_batch(
    function: Function, names: Collection[str]
) -> tuple[Function, tuple[bool, ...]] | None:
    r"""Return a function over a batch of some of its parameters; None if an op has no rule.

    The parameters ``names`` have an axis more, in front.

    Returns:
        The function, and for each of its results whether it has the axis.

    Example:
        >>> from cklang.ir.batched import with_batch
        >>> text = "func @f(%x: f32[M, N]) -> f32[M] {\n"
        >>> f = ck.parse(text + "  %0: f32[M] = reduce_sum(%x) {axes = [1]}\n  return %0\n}")
        >>> function, _ = with_batch(f.program.specialise(), ["x"])
        >>> print(function)
        func @f_vmap(%x: f32[VMAP, M, N]) -> f32[VMAP, M] {
          %0: f32[VMAP, M] = reduce_sum(%x) {axes = [2]}
          return %0
        }
    """
    batch = _Batch(function, names)
    try:
        results = [batch.values[value.name] for value in batch.run()]
    except (_NoRuleError, CkError):
        # A rule of the op table, such as the most axes that a reduction takes.
        return None
    has_axis = tuple(result.name in batch.batched for result in results)
    return without_unused(batch.builder.finish(*results)), has_axis


class _NoRuleError(Exception):
    """An op has no batch."""


class _Batch:
    """Builds the function."""

    def __init__(self, function: Function, names: Collection[str]) -> None:
        self.function = function
        self.builder = Builder(f"{function.name}_vmap", function.span)
        self.extent = _new_dim(function)
        self.values: dict[str, Value] = {}
        """The values of the function as those of the new one, by name."""
        self.batched: set[str] = set()
        """The new function's values that have the axis."""
        for param in function.params:
            shape = param.type.shape
            own = (self.extent, *shape) if param.name in names else shape
            value = self.builder.param(param.name, TensorType(dtype=param.type.dtype, shape=own))
            self.values[param.name] = value
            if param.name in names:
                self.batched.add(value.name)

    def run(self) -> Sequence[Value]:
        """Append all operations; return the results of the function."""
        for operation in self.function.body:
            operands = [self.values[operand.name] for operand in operation.operands]
            is_batched = any(operand.name in self.batched for operand in operands)
            if is_batched and operation.op != "extent":
                value = self._with_axis(operation, operands)
                self.batched.add(value.name)
            else:
                value = self._as_it_is(operation, operands)
            self.values[operation.result.name] = value
        return self.function.results

    def _as_it_is(self, operation: Operation, operands: Sequence[Value]) -> Value:
        attrs = dict(operation.attrs)
        if operation.op == "extent" and operands[0].name in self.batched:
            attrs["axis"] = _further(attrs["axis"])
        shape = operation.result.type.shape if OPS[operation.op].shape.declared else None
        return self.append(operation.op, operands, attrs, shape)

    def _with_axis(self, operation: Operation, operands: Sequence[Value]) -> Value:
        kind = OPS[operation.op].kind
        rule = _BY_OP.get(operation.op) or _BY_KIND.get(kind)
        if rule is None:
            raise _NoRuleError
        return rule(self, operation, operands)

    def append(
        self,
        op: str,
        operands: Sequence[Value],
        attrs: Mapping[str, Attr],
        shape: Shape | None = None,
    ) -> Value:
        """Append an operation."""
        return self.builder.apply(op, operands, attrs, shape=shape)

    def repeated(self, value: Value) -> Value:
        """Return a value with the axis."""
        if value.name in self.batched:
            return value
        shape = (self.extent, *value.type.shape)
        dims = tuple(range(1, len(shape)))
        return self.append("broadcast", [value], {"dims": dims}, shape)


_Rule: TypeAlias = Callable[[_Batch, Operation, Sequence[Value]], Value]


def _new_dim(function: Function) -> Dim:
    values = (*function.params, *(operation.result for operation in function.body))
    taken = {
        dim.name for value in values for extent in value.type.shape for dim in plain_dims(extent)
    }
    name = _STEM
    while name in taken:
        name += "_"
    return Dim(name)


def _further(attr: Attr) -> Any:
    """Return one axis, or several, one further."""
    if isinstance(attr, tuple):
        return tuple(int(str(axis)) + 1 for axis in attr)
    return int(str(attr)) + 1


def _repeated(batch: _Batch, operation: Operation, operands: Sequence[Value]) -> Value:
    """All operands have the axis; an attribute ``axis`` counts one further."""
    attrs = dict(operation.attrs)
    if "axis" in attrs:
        attrs["axis"] = _further(attrs["axis"])
    shape = _declared(batch, operation)
    return batch.append(
        operation.op, [batch.repeated(operand) for operand in operands], attrs, shape
    )


def _declared(batch: _Batch, operation: Operation) -> Shape | None:
    if not OPS[operation.op].shape.declared:
        return None
    return (batch.extent, *operation.result.type.shape)


def _product(batch: _Batch, operation: Operation, operands: Sequence[Value]) -> Value:
    """Axes in front broadcast; an operand with fewer of them gets ones behind the batch."""
    ranks = [operand.type.rank for operand in operation.operands]
    padded = []
    for value, rank in zip(operands, ranks, strict=True):
        missing = max(ranks) - rank
        if value.name in batch.batched and missing:
            first, *rest = value.type.shape
            value = batch.append("reshape", [value], {}, (first, *(1,) * missing, *rest))
        padded.append(value)
    return batch.append(operation.op, padded, dict(operation.attrs))


def _reduced(batch: _Batch, operation: Operation, operands: Sequence[Value]) -> Value:
    attrs = dict(operation.attrs) | {"axes": _further(operation.attr("axes"))}
    return batch.append(operation.op, operands, attrs)


def _broadcast(batch: _Batch, operation: Operation, operands: Sequence[Value]) -> Value:
    attrs = {"dims": (0, *_further(operation.attr("dims")))}
    return batch.append("broadcast", operands, attrs, _declared(batch, operation))


def _transposed(batch: _Batch, operation: Operation, operands: Sequence[Value]) -> Value:
    return batch.append("transpose", operands, {"perm": (0, *_further(operation.attr("perm")))})


def _sliced(batch: _Batch, operation: Operation, operands: Sequence[Value]) -> Value:
    own: Any = dict(operation.attrs)
    attrs: dict[str, Attr] = {
        "axes": (0, *_further(own["axes"])),
        "start": (0, *own["start"]),
        "stop": (written(batch.extent), *own["stop"]),
        "step": (1, *own["step"]),
    }
    return batch.append("slice", operands, attrs, _declared(batch, operation))


def _taken(batch: _Batch, operation: Operation, operands: Sequence[Value]) -> Value:
    """A batch of tables at the same indices, or of indices into the first axis of one table."""
    table, indices = (operand.name in batch.batched for operand in operands)
    axis = int(str(operation.attr("axis")))
    if table and not indices:
        return batch.append("take", operands, {"axis": axis + 1})
    if indices and not table and axis == 0:
        return batch.append("take", operands, {"axis": 0})
    raise _NoRuleError


_BY_KIND: Mapping[Kind, _Rule] = {
    Kind.POINTWISE: _repeated,
    Kind.CAST: _repeated,
    Kind.JOIN: _repeated,
}
_BY_OP: Mapping[str, _Rule] = {
    "gemm": _product,
    **dict.fromkeys((op for op in OPS if op.startswith("reduce_")), _reduced),
    **dict.fromkeys(("cumsum", "cumprod", "sort", "argsort", "reshape", "apart"), _repeated),
    "take_along": _repeated,
    "broadcast": _broadcast,
    "transpose": _transposed,
    "slice": _sliced,
    "take": _taken,
}
"""What each op becomes where some operands have the axis."""
