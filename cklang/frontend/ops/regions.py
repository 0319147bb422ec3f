# SPDX-License-Identifier: MIT
"""Functions of one score: ``score`` and ``mask`` of attention become regions of the IR.

A region sees the score and indices as rank-0 values. A tensor of the program around it is read
at indices, ``slopes[h]``, and becomes a parameter of the region; a run-time scalar is read by its
name. Both regions of an attention have the same tensors as parameters, in the order of their first
use.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from cklang.frontend import emit
from cklang.frontend.helper import Fn
from cklang.frontend.ops.masks import JOINS, Blocks, Joined, Window
from cklang.frontend.other_names import SCORE_PARAMETERS
from cklang.frontend.scope import Captured, Closure, Scope, Unit
from cklang.frontend.text import Located
from cklang.frontend.values import Item, Tensor, describe, is_number
from cklang.ir.attention import region_params
from cklang.ir.nodes import Function, Value
from cklang.source import Span
from cklang.types import Dim, Kind, bool_, f32, i32

Reads = dict[Value, Value]
"""The tensors that regions read, each with the region's parameter that holds it."""

_RESULT_ADVICE = {
    "score": "give a float, as in lambda s, h: s * slopes[h]; cast integers: (i - j).to(ck.f32)",
    "mask": "give a comparison, as in lambda i, j: j <= i",
}


class RegionUnit(Unit):
    """The function of one region being built."""

    def __init__(self, name: str, span: Span, outer: Unit, reads: Reads) -> None:
        super().__init__(name, span, outer.derived)
        self.outer = outer
        self.reads = reads
        self.indices = {
            param.name: Tensor.plain(self.builder.param(param.name, param.type), ())
            for param in region_params(name, [])
        }
        self._own: dict[Value, Value] = {}

    def param(self, value: Value) -> Value:
        """Return the parameter that holds the tensor ``value`` of the program."""
        if value not in self.reads:
            self.reads[value] = Value(name=f"d{len(self.reads)}", type=value.type)
        if value not in self._own:
            self._own[value] = self.builder.param(self.reads[value].name, value.type)
        return self._own[value]

    def extent(self, dim: Dim, span: Span) -> Value | None:
        """Return the extent of ``dim``, which the program around has, as a number."""
        number = self.outer.extent(dim, span)
        return None if number is None else self.append("element", self.param(number), span=span)


def read(scope: Scope, node: Located, captured: Captured, indices: tuple[Item, ...]) -> Tensor:
    """Read one element of a tensor of the program in a region.

    Raises:
        CkTypeError: F094 for indices that are not one integer an axis.
    """
    unit = scope.unit
    rank = len(captured.tensor.shape)
    names = f"[{', '.join(('b', 'h', 'i', 'j')[:rank] if rank <= 4 else ['…'])}]"
    got = describe(captured)
    if not isinstance(unit, RegionUnit) or len(indices) != rank:
        problem = f"{len(indices)} indices"
        advice = f"write one index for each of its {rank} axes, such as {names}"
        raise scope.error("F094", node, got=got, problem=problem, advice=advice)
    parts: Sequence[Located] = [node] * rank
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    at = [_index(scope, *pair, got) for pair in zip(parts, indices, strict=True)]
    tensor = unit.param(emit.materialise(captured.scope, node, captured.tensor))
    value = unit.append("element", tensor, *at, span=scope.span(node))
    return Tensor.plain(value, ())


def _index(scope: Scope, node: Located, item: Item, got: str) -> Value:
    if is_number(item):
        return scope.unit.append(
            "constant",
            span=scope.span(node),
            attrs={"value": emit.constant_number(scope, node, item, i32)},
        )
    if isinstance(item, Tensor) and item.dtype == i32 and not item.shape:
        return item.value
    advice = (
        "an index is an integer made of b, h, i, j, q_len, k_len and integers that are read; "
        "i // 4 is one, i / 4 is not"
    )
    place = emit.first_float(scope, item) if isinstance(item, Tensor) else None
    raise scope.error("F094", place or node, got=got, problem=describe(item), advice=advice)


def make_score(
    scope: Scope, node: Located, item: Item, scale: Tensor | None, reads: Reads
) -> Function:
    """Return the region of a score function, None being the score itself.

    ``scale`` is a run-time factor that comes before. New tensors that the region reads are added to
    ``reads``.

    Raises:
        CkTypeError: F092 for unknown parameters, F093 for a result that is no number.
    """
    unit = _unit(scope, node, "score", reads)
    start = unit.indices["s"]
    if scale is not None:
        inside = scope.inside(unit, {})
        factor = read(inside, node, Captured(tensor=scale, scope=scope), ())
        start = emit.pointwise(inside, node, "mul", start, factor)
    result: Item = start
    if item is not None:
        result = _call(scope, node, unit, item, {**unit.indices, "s": start})
    inside = scope.inside(unit, {})
    if is_number(result) and not isinstance(result, bool):
        result = emit.cast(inside, node, result, f32)
    if not isinstance(result, Tensor) or result.shape or result.dtype.kind is not Kind.FLOAT:
        raise _result_error(scope, node, item, "score", result, "a float")
    return unit.finish(emit.cast(inside, node, result, f32).value)


def make_mask(scope: Scope, node: Located, item: Item, reads: Reads) -> Function:
    """Return the region of a mask: windows and functions of the indices, or None for all keys.

    Raises:
        CkTypeError: F092 and F093, as for a score.
    """
    unit = _unit(scope, node, "mask", reads)
    result = _masked(scope, node, unit, item)
    if isinstance(result, bool):
        result = emit.cast(scope.inside(unit, {}), node, result, bool_)
    return unit.finish(result.value)


def _masked(scope: Scope, node: Located, unit: RegionUnit, item: Item) -> Tensor | bool:
    """Return where a mask shows keys."""
    inside = scope.inside(unit, {})
    if item is None:
        return True
    if isinstance(item, Joined):
        sides = (_masked(scope, node, unit, side) for side in (item.left, item.right))
        return emit.pointwise(inside, node, JOINS[item.sign], *sides)
    if isinstance(item, Blocks):
        return _in_blocks(scope, node, unit, item)
    if isinstance(item, Window):
        result = _window(inside, node, item, unit.indices)
    else:
        result = _call(scope, node, unit, item, unit.indices)
    if isinstance(result, bool):
        return result
    if not isinstance(result, Tensor) or result.shape or result.dtype != bool_:
        raise _result_error(scope, node, item, "mask", result, "a boolean")
    return result


def _in_blocks(scope: Scope, node: Located, unit: RegionUnit, item: Blocks) -> Tensor:
    """Return where a mask of blocks shows keys."""
    inside, at = scope.inside(unit, {}), unit.indices

    def joined(op: str, *items: Item) -> Tensor:
        return emit.pointwise(inside, node, op, *items)

    rows, keys = item.size
    places = (joined("floor_divide", at["i"], rows), joined("floor_divide", at["j"], keys))
    tensor = Captured(tensor=item.blocks, scope=scope)
    shown = read(inside, node, tensor, (at["b"], at["h"], *places))
    if item.mask is None:
        return joined("gt", shown, 0)
    part = joined("logical_and", joined("eq", shown, 1), _masked(scope, node, unit, item.mask))
    return joined("logical_or", joined("eq", shown, 2), part)


def with_reads(region: Function, reads: Reads) -> Function:
    """Return a region with all tensors that the regions of its attention read as parameters."""
    params = region_params(region.name, [value.type for value in reads])
    return replace(region, params=params)


def _unit(scope: Scope, node: Located, name: str, reads: Reads) -> RegionUnit:
    return RegionUnit(name, scope.span(node), scope.unit, reads)


def _call(
    scope: Scope, node: Located, unit: RegionUnit, item: Item, legal: Mapping[str, Tensor]
) -> Item:
    """Return what a lambda or helper gives; its parameters are found by their names."""
    name = unit.builder.name
    if isinstance(item, Fn):
        names = [parameter.name for parameter in item.definition.parameters]
        bound = _named(scope, node, name, names, legal)
        if isinstance(node, ast.Call):
            return scope.inline(scope.inside(unit, {}), node, item.definition, bound)
    if not isinstance(item, Closure):
        want = "a lambda or a helper made with @ck.fn"
        want += ", ck.causal() or ck.sliding_window(…)" if name == "mask" else ""
        raise scope.error(
            "F096", node, what=f"{name} of ck.attention", got=describe(item), legal=want
        )
    names = [arg.arg for arg in (*item.node.args.posonlyargs, *item.node.args.args)]
    bound = _named(item.scope, item.node, name, names, legal)
    return scope.evaluate(item.inside(unit, bound), item.node.body)


def _named(
    scope: Scope, node: Located, region: str, names: list[str], legal: Mapping[str, Tensor]
) -> dict[str, Item]:
    meanings = [SCORE_PARAMETERS.get(name, name) for name in names]
    for name, meaning in zip(names, meanings, strict=True):
        if meaning not in legal:
            got = f"parameter {name}"
            raise scope.error("F092", node, region=region, got=got, known=", ".join(legal))
    return {name: legal[meaning] for name, meaning in zip(names, meanings, strict=True)}


def _window(scope: Scope, node: Located, window: Window, at: Mapping[str, Tensor]) -> Item:
    """Return the expression of a window: comparisons of j with i, each moved by constants."""
    row = at["i"]
    if window.corner == "bottom_right":
        moved = emit.pointwise(scope, node, "sub", at["k_len"], at["q_len"])
        row = emit.pointwise(scope, node, "add", row, moved)
    parts: list[Item] = []
    if window.right is not None:
        last = emit.pointwise(scope, node, "add", row, window.right) if window.right else row
        parts.append(emit.pointwise(scope, node, "le", at["j"], last))
    if window.left is not None:
        first = emit.pointwise(scope, node, "sub", row, window.left) if window.left else row
        near = emit.pointwise(scope, node, "ge", at["j"], first)
        if window.sink:
            start = emit.pointwise(scope, node, "lt", at["j"], window.sink)
            near = emit.pointwise(scope, node, "logical_or", near, start)
        parts.append(near)
    if len(parts) == 2:
        return emit.pointwise(scope, node, "logical_and", *parts)
    return parts[0] if parts else True


def _result_error(
    scope: Scope, node: Located, item: Item, region: str, result: Item, want: str
) -> Exception:
    if isinstance(item, Closure):
        scope, node = item.scope, item.node.body
    advice = _RESULT_ADVICE[region]
    return scope.error("F093", node, region=region, got=describe(result), want=want, advice=advice)
