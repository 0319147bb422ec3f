# SPDX-License-Identifier: MIT
"""Make the kernel of a function that is an attention.

The kernel reads parameters, or transposes of them, and writes o, or what is computed of it element
by element (:mod:`cklang.families.attention.fuse_output`); lse comes from the same kernel. What is
computed before is not fused: an op of its own does that.
"""

from __future__ import annotations

from collections.abc import Sequence

from cklang.errors import error
from cklang.families.attention.fuse_output import Output, output_of
from cklang.families.attention.masks import split_mask
from cklang.families.attention.plan import FusedAttention
from cklang.families.attention.variants import cap_of, is_identity, variant_of
from cklang.fusion.graph import build_graph
from cklang.fusion.plan import Plan, View
from cklang.fusion.sites import ints
from cklang.ir.attention import LENGTHS, MIN_QUERIES, PAGE_STARTS, PAGES, SEEDS, STARTS
from cklang.ir.nodes import Function, Operation, Value
from cklang.ir.ops import OPS, Kind
from cklang.source import Span
from cklang.types import DType, TensorType, bf16, f16, f32

__all__ = ["is_attention", "plan_attention"]

_NAMES = {
    "none": "the score is used as it is",
    "soft cap": "the score function is a soft cap; it is computed as an expression, whose tanh is "
    "closer than CK Tile's own: that would show beside lse, f32 or so large a cap",
    "ALiBi": "the score function is ALiBi; it is computed as an expression: CK Tile's own knows "
    "one sign and reads f32 slopes alone",
    "bias": "the score function adds a bias; it is computed as an expression, which reads it at "
    "any strides",
    "expression": "the score function is an expression",
}
_OWN_CAP = "the score function is a soft cap; CK Tile's own computes it"
_LARGEST_CAPS = {f16: 64.0, bf16: 512.0}
"""The tanh of CK Tile's soft cap is right to 2^-21, wherever it is; times so large a cap that is a
sixteenth of what the rounding of weights to the type of v adds."""


def is_attention(function: Function) -> bool:
    """Tell whether an attention is in the function."""
    return any(OPS[operation.op].kind is Kind.ATTENTION for operation in function.body)


def plan_attention(function: Function) -> Plan:
    """Return the kernel of a verified function with an attention in it.

    Raises:
        CkUnsupportedError: X015, there are several attentions or another product beside one; X016,
            an operand that no kernel makes; X017, something is computed after it; X018, a dtype
            that functions cannot read.
    """
    anchor, lse = _anchors(function)
    o = _stored(function, anchor, lse)
    operands = _operands(function, anchor)
    roles = anchor.attr("roles")
    if not isinstance(roles, tuple):
        raise error("Z002", what="attention without roles passes its rules")
    by_role: dict[str, list[Value]] = {str(role): [] for role in roles}
    for value, role in zip(anchor.operands, roles, strict=True):
        by_role[str(role)].append(value)
    q, k, v = (operands[value.name] for value in anchor.operands[:3])
    own = tuple(by_role.get("read", ()))
    starts = tuple(by_role[name][0] for name in STARTS if name in by_role)
    _check_reads(anchor, own, operands)
    output = output_of(function, anchor, o, own) if o in function.results else Output.none(own)
    score, mask, scale, dropout = (_attr(anchor, n) for n in ("score", "mask", "scale", "dropout"))
    if not isinstance(score, Function) or not isinstance(mask, Function):
        raise error("Z002", what="attention without regions passes its rules")
    window, rest = split_mask(mask)
    cap = _own_cap(score, q.value.type.dtype, scale) if lse is None else 0.0
    plain = is_identity(score) and (scale == "auto" or _is_above_0(scale))
    seeds = [by_role[name][0] for name in SEEDS if name in by_role]
    least = next(iter(by_role.get(MIN_QUERIES[0], ())), None)
    kernel = FusedAttention(
        name=function.name,
        q=q,
        k=k,
        v=v,
        seed=seeds[0] if seeds else None,
        offset=seeds[1] if seeds else None,
        constants=_constants(function, seeds if least is None else [*seeds, least]),
        starts=starts,
        lengths=next(iter(by_role.get(LENGTHS[0], ())), None),
        pages=next(iter(by_role.get(PAGES[0], ())), None),
        page_starts=next(iter(by_role.get(PAGE_STARTS[0], ())), None),
        min_queries=least,
        reads=output.reads,
        score=None if plain else score,
        mask=rest,
        output=output.function,
        window=window,
        scale=scale if isinstance(scale, str) else float(str(scale)),
        dropout=float(str(dropout)),
        o=o,
        lse=None if lse is None else lse.result,
        variant=variant_of(score),
        soft_cap=cap,
        spans=_spans([anchor, *score.body, *mask.body, *output.body]),
    )
    return Plan(
        function=function,
        kernels=(kernel,),
        decisions=(),
        notes=_notes(kernel),
        graph=build_graph(function),
    )


def _own_cap(score: Function, dtype: DType, scale: object) -> float:
    """Return the cap if CK Tile's own soft cap is close enough to the score, else 0."""
    cap = cap_of(score)
    if cap is None or not (scale == "auto" or _is_above_0(scale)):
        return 0.0
    return cap if 0 < cap <= _LARGEST_CAPS.get(dtype, 0.0) else 0.0


def _is_above_0(scale: object) -> bool:
    # CK Tile takes the largest product before it scales.
    return isinstance(scale, float) and scale > 0


def _attr(operation: Operation, name: str) -> object:
    return operation.attr(name)


def _anchors(function: Function) -> tuple[Operation, Operation | None]:
    """Return the attention and its lse, which must be of the same operands."""
    found = [each for each in function.body if OPS[each.op].kind is Kind.ATTENTION]
    first, *others = found
    products = [each for each in function.body if OPS[each.op].kind is Kind.ANCHOR]
    same = all((each.operands, each.attrs) == (first.operands, first.attrs) for each in others)
    if products or not same:
        at = products[0] if products else others[-1]
        raise error("X015", at=at.span, op=at.op)
    by_name = {each.op: each for each in found}
    return by_name.get("attention", first), by_name.get("attention_lse")


def _stored(function: Function, anchor: Operation, lse: Operation | None) -> Value:
    """Return the value that the kernel stores as o: the one result that is not lse.

    Raises:
        CkUnsupportedError: X017, there are several, or it does not depend on o.
    """
    others = [each for each in function.results if lse is None or each != lse.result]
    again = len(set(function.results)) < len(function.results)
    if len(others) > 1 or again or (others and anchor.op != "attention"):
        last = function.definitions().get(function.results[-1].name)
        name, at = ("a parameter", function.span) if last is None else (last.op, last.span)
        raise error("X017", at=at, op=name)
    if others:
        return others[0]
    if anchor.op == "attention":
        return anchor.result
    q, v = anchor.operands[0], anchor.operands[2]
    shape = (*q.type.shape[:-1], v.type.shape[-1])
    return Value(name="o", type=TensorType(dtype=f32, shape=shape))


def _operands(function: Function, anchor: Operation) -> dict[str, View]:
    """Return the view that each operand is of a parameter or constant."""
    definitions = function.definitions()
    found = {}
    for operand in anchor.operands:
        stored, axes = operand, tuple(range(operand.type.rank))
        made = definitions.get(stored.name)
        while made is not None and made.op == "transpose":
            perm = ints(made, "perm")
            stored, axes = made.operands[0], tuple(perm[axis] for axis in axes)
            made = definitions.get(stored.name)
        if made is not None and made.op != "constant":
            raise error("X016", at=made.span or anchor.span, op=made.op, operand=operand)
        found[operand.name] = View(value=stored, perm=axes)
    # Packed rows [N, H, D] are one batch of heads and rows.
    for operand in anchor.operands[:3]:
        held = found[operand.name]
        if len(held.perm) == 3:
            row, head, element = held.perm
            found[operand.name] = View(value=held.value, perm=(None, head, row, element))
    return found


def _check_reads(anchor: Operation, reads: Sequence[Value], views: dict[str, View]) -> None:
    for value in reads:
        stored = views[value.name]
        if stored.perm != tuple(range(value.type.rank)):
            raise error("X016", at=anchor.span, op="transpose", operand=value)
        if value.type.dtype.encoding:
            raise error("X018", at=anchor.span, operand=value, dtype=value.type.dtype)


def _constants(function: Function, seeds: Sequence[Value]) -> tuple[tuple[str, int], ...]:
    made = function.definitions()
    given = ((seed.name, made.get(seed.name)) for seed in dict.fromkeys(seeds))
    return tuple((name, int(str(op.attr("value")))) for name, op in given if op is not None)


def _spans(operations: Sequence[Operation]) -> tuple[Span, ...]:
    spans = (operation.span for operation in operations)
    return tuple(dict.fromkeys(span for span in spans if span is not None))


def _notes(kernel: FusedAttention) -> tuple[str, ...]:
    why = _OWN_CAP if kernel.soft_cap else _NAMES[kernel.variant]
    notes = [f"variant {kernel.variant}: {why}"]
    if kernel.window.is_open and kernel.mask is None:
        notes.append("mask none: every key is seen")
    elif not kernel.window.is_open:
        notes.append(f"mask {kernel.window}: tiles outside are skipped")
    if kernel.mask is not None:
        notes.append("mask expression: asked for each key of the tiles that are left")
    if kernel.output is not None:
        notes.append("output expression: computed of o in f32 as it is stored")
    if kernel.lse is not None:
        notes.append("lse: the same kernel writes it")
    return tuple(notes)
