# SPDX-License-Identifier: MIT
"""Extents that no argument has, solved in the order of the program; views are checked.

Result extents of a convolution follow from its operands', so a dim may first appear there. Where a
dim has a value already, from an argument or an earlier op, it is checked.
"""

from collections.abc import Mapping
from contextlib import suppress

from cklang.errors import CkError, error
from cklang.ir import joins, reductions, views
from cklang.ir.attention import group_size
from cklang.ir.convolution import geometry_of
from cklang.ir.grouped import SCALED_PRODUCTS
from cklang.ir.joins import JOINS
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.reductions import NEED_ELEMENTS
from cklang.ir.views import VIEWS
from cklang.ir.windows import DIRECTIONS, Relation, Role
from cklang.types import Dim, Formula, Quotient, TensorType, by_name, extent_value


def derive(function: Function, dims: Mapping[Dim, int]) -> dict[Dim, int]:
    """Return ``dims`` with the extents that the ops of ``function`` decide."""
    known = dict(dims)
    for value in function.params:
        _solve_formulas(value, known)
    for operation in function.body:
        geometry = geometry_of(operation)
        if geometry is not None:
            for relation in geometry.relations:
                _solve(operation, relation, known)
        _solve_formulas(operation.result, known)
        if operation.op in VIEWS:
            views.check(operation, by_name(known))
        if operation.op in JOINS:
            joins.check(operation, by_name(known))
        if operation.op in ("attention", "attention_lse"):
            q, k = (operand.type.extents(by_name(known)) for operand in operation.operands[:2])
            group_size(q[1], k[1], operation.span)
        if operation.op in SCALED_PRODUCTS:
            _check_blocks(operation, by_name(known))
        if operation.op in NEED_ELEMENTS:
            reductions.check(operation, by_name(known))
    return known


def _solve_formulas(value: Value, known: dict[Dim, int]) -> None:
    """Add the extents that are computed of dims; those of unknown ones stay out."""
    for extent in value.type.shape:
        if isinstance(extent, Formula | Quotient) and extent not in known:
            with suppress(KeyError):
                known[extent] = extent_value(extent, by_name(known))


def _solve(operation: Operation, relation: Relation, known: dict[Dim, int]) -> None:
    direction = DIRECTIONS[operation.op]
    types = dict(
        zip(direction.operands, (operand.type for operand in operation.operands), strict=True)
    )
    types[direction.result] = operation.result.type
    extents = {
        role: _value(types[role].shape[axis], known)
        for role, axis in relation.axes.items()
        if role is not direction.result
    }
    allowed = relation.allowed(direction.result, extents)
    if not allowed:
        raise _error("I033", operation, relation, types, extents)
    axis = relation.axes.get(direction.result)
    if axis is None:
        return
    extent = operation.result.type.shape[axis]
    if isinstance(extent, Dim) and extent not in known:
        if len(allowed) > 1:
            choices = _words(list(allowed))
            raise _error("I034", operation, relation, types, extents, dim=extent, choices=choices)
        known[extent] = allowed[0]
    value = _value(extent, known)
    if value not in allowed:
        choices = _words(list(allowed))
        raise _error(
            "I035", operation, relation, types, extents, dim=extent, got=value, choices=choices
        )


def _check_blocks(operation: Operation, dims: Mapping[str, int]) -> None:
    """Check how many scales there are where that is computed; the verifier has checked the rest."""
    scales = iter(operation.operands[2:])
    for side, matrix in zip("ab", operation.operands, strict=False):
        block = operation.attr(f"block_{side}")
        shape = next(scales).type.shape if block else ()
        for axis, size in zip((-2, -1), block if isinstance(block, tuple) else (), strict=False):
            if isinstance(shape[axis], Formula | Quotient) and isinstance(size, int):
                got, extent = (
                    extent_value(extents[axis], dims) for extents in (shape, matrix.type.shape)
                )
                want = -(-extent // size)
                if got != want:
                    raise error(
                        "I049",
                        at=operation.span,
                        got=got,
                        want=want,
                        side=side,
                        axis=axis,
                        size=size,
                        extent=extent,
                    )


def _value(extent: Dim | int, known: Mapping[Dim, int]) -> int:
    return known[extent] if isinstance(extent, Dim) else extent


def _words(values: list[int]) -> str:
    return " or ".join(map(str, values)) if len(values) < 4 else f"{values[0]} to {values[-1]}"


def _error(
    code: str,
    operation: Operation,
    relation: Relation,
    types: Mapping[Role, TensorType],
    extents: Mapping[Role, int],
    **values: object,
) -> CkError:
    notes = [f"{role.value}: {type_}" for role, type_ in types.items()]
    return error(
        code,
        at=operation.span,
        notes=notes,
        op=operation.op,
        axis=relation.name,
        given=" and ".join(f"{role.value} {value}" for role, value in extents.items()),
        rule=relation.formula,
        **values,
    )
