# SPDX-License-Identifier: MIT
"""The results of an op: what its body returns, in the dtypes and shapes of its annotation."""

import ast

from cklang.errors import CkError
from cklang.frontend import emit
from cklang.frontend.scope import Scope
from cklang.frontend.signature import concrete
from cklang.frontend.values import Item, Tensor, describe
from cklang.types import Dim, Extent, Kind, TensorType, TensorVarType, plain_dims


def results_of(scope: Scope, node: ast.Return, item: Item) -> list[Tensor]:
    """Return what the op of ``scope`` returns at ``node``, cast to the annotated dtypes."""
    results = scope.definition.results or ()
    wanted = [concrete(result, scope.environment.dtypes) for result in results]
    items = item if isinstance(item, tuple) and len(wanted) > 1 else (item,)
    if len(items) != len(wanted):
        shown = ", ".join(str(annotated) for annotated in wanted)
        got = f"{len(items)} results" if len(items) > 1 else describe(item)
        raise scope.error("F083", node, name=scope.definition.name, got=got, want=shown)
    return [_result(scope, node, *pair) for pair in zip(items, wanted, strict=True)]


def _result(scope: Scope, node: ast.Return, item: Item, annotated: TensorType) -> Tensor:
    if not isinstance(item, Tensor):
        name = scope.definition.name
        raise scope.error("F083", node, name=name, got=describe(item), want=annotated)
    if not _fits(scope, item, annotated):
        raise _shape_error(scope, node, item, annotated)
    both_float = item.dtype.kind is Kind.FLOAT and annotated.dtype.kind is Kind.FLOAT
    if item.dtype != annotated.dtype and not both_float:
        raise scope.error("F085", node, got=item.dtype, want=annotated.dtype)
    return emit.cast(scope, node, item, annotated.dtype)


def _fits(scope: Scope, item: Tensor, annotated: TensorType) -> bool:
    """Tell whether a result has the annotated shape; dims of the result alone are names.

    An extent that is computed from dims of parameters is no name: it says what the result has.
    """
    if len(item.shape) != annotated.rank:
        return False
    known = _dims_of_parameters(scope)
    names: dict[Dim, Extent] = {}
    for extent, named in zip(item.shape, annotated.shape, strict=True):
        meaning = scope.environment.extent(named)
        same = meaning is not None and scope.unit.derived.same(extent, meaning)
        if not same and isinstance(named, Dim) and not known.issuperset(plain_dims(named)):
            same = names.setdefault(named, extent) == extent
        if not same:
            return False
    return True


def _dims_of_parameters(scope: Scope) -> frozenset[Dim]:
    types = [parameter.type for parameter in scope.definition.parameters]
    shapes = [tensor.shape for tensor in types if isinstance(tensor, TensorType | TensorVarType)]
    return frozenset(dim for shape in shapes for extent in shape for dim in plain_dims(extent))


def _shape_error(scope: Scope, node: ast.Return, item: Tensor, annotated: TensorType) -> CkError:
    notes = [
        f"axis {axis} is {extent}: {origin}"
        for axis, (extent, origin) in enumerate(zip(item.shape, item.origins, strict=True))
    ]
    extents = [scope.environment.extent(extent) for extent in annotated.shape]
    pairs = zip(annotated.shape, extents, strict=True)
    shape = tuple(own if extent is None else extent for own, extent in pairs)
    want = TensorType(dtype=annotated.dtype, shape=shape)
    return scope.error("F084", node, *notes, got=item.type, want=want)
