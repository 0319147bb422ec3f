# SPDX-License-Identifier: MIT
"""What one row of the op table says about one use of the op: its result type, or all it breaks."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from cklang.errors import CkError, error
from cklang.ir.nodes import Attr, Function
from cklang.ir.ops import OPS, Op
from cklang.ir.rules import Shape, attr_fits
from cklang.source import Span
from cklang.types import DType, TensorType

_ATTR_NAMES: Mapping[type, str] = MappingProxyType(
    {bool: "a bool", int: "an integer", float: "a float", str: "a string", tuple: "a list"}
    | {DType: "a dtype", Function: "a function"}
)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known names most like ``name``, for a hint; "none" when none is."""
    import difflib

    return ", ".join(difflib.get_close_matches(name, list(known))) or "none"


def infer(
    op: str,
    operands: Sequence[TensorType],
    attrs: Mapping[str, Attr],
    *,
    shape: Shape | None = None,
    at: Span | None = None,
) -> TensorType:
    """Return the type that ``op`` gives.

    Args:
        op: Name of a row of the table.
        operands: Types of the operands.
        attrs: All attributes of the row.
        shape: The result's shape where the row's rule takes it as declared (``broadcast``).
        at: The place that an error points to.
    """
    errors = problems(op, operands, attrs, shape=shape, at=at)
    if errors:
        raise errors[0]
    result = result_type(OPS[op], operands, attrs, shape)
    if result is None:
        raise error("Z002", what=f"{op} passes its rules and has no type")
    return result


def problems(
    op: str,
    operands: Sequence[TensorType],
    attrs: Mapping[str, Attr],
    *,
    shape: Shape | None = None,
    at: Span | None = None,
) -> list[CkError]:
    """Return every rule of its row that this use of ``op`` breaks; see :func:`infer`."""
    row = OPS.get(op)
    if row is None:
        known = ", ".join(OPS)
        return [error("I013", at=at, got=op, nearest=nearest(op, OPS), known=known)]
    errors = _attr_problems(row, attrs, at)
    if not 0 <= len(operands) - row.operands <= row.optional:
        want = f"{row.operands} to {row.operands + row.optional}" if row.optional else row.operands
        errors.append(error("I014", at=at, op=op, want=want, got=len(operands), doc=row.doc))
    return (
        errors
        or list(row.check(operands, attrs, at))
        or _type_problems(row, operands, attrs, shape, at)
    )


def result_type(
    row: Op, operands: Sequence[TensorType], attrs: Mapping[str, Attr], shape: Shape | None
) -> TensorType | None:
    """Return the type by the row's rules, or None when a rule is broken."""
    dtype = row.dtype.apply(tuple(operand.dtype for operand in operands), attrs)
    extents = row.shape.apply(tuple(operand.shape for operand in operands), attrs, shape)
    return None if dtype is None or extents is None else TensorType(dtype=dtype, shape=extents)


def _attr_problems(row: Op, attrs: Mapping[str, Attr], at: Span | None) -> list[CkError]:
    rows = {attr.name: attr for attr in row.attrs}
    errors = []
    for name, attr in attrs.items():
        if name not in rows:
            known = ", ".join(rows) or "none"
            errors.append(error("I015", at=at, op=row.name, name=name, known=known))
        elif not attr_fits(rows[name].kind, attr):
            want = rows[name].kind.value
            got = _ATTR_NAMES[type(attr)]
            errors.append(error("I017", at=at, op=row.name, name=name, want=want, got=got))
    for name, declared in rows.items():
        if name not in attrs:
            want = declared.kind.value
            errors.append(error("I016", at=at, op=row.name, name=name, want=want))
    return errors


def _type_problems(
    row: Op,
    operands: Sequence[TensorType],
    attrs: Mapping[str, Attr],
    shape: Shape | None,
    at: Span | None,
) -> list[CkError]:
    dtype = row.dtype.apply(tuple(operand.dtype for operand in operands), attrs)
    extents = row.shape.apply(tuple(operand.shape for operand in operands), attrs, shape)
    errors: list[CkError] = []
    if None not in (dtype, extents):
        return errors
    got = ", ".join(map(str, operands)) or "no operands"
    if dtype is None:
        errors.append(error("I018", at=at, op=row.name, got=got, want=row.dtype.text))
    if extents is None:
        if row.shape.declared and shape is not None:
            got += f" to {TensorType(dtype=operands[0].dtype, shape=shape)}"
        errors.append(error("I019", at=at, op=row.name, got=got, want=row.shape.text))
    return errors
