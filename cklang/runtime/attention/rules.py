# SPDX-License-Identifier: MIT
"""The rules of attention: what a kernel asks of arrays, lengths and head sizes.

One row a rule, as in :mod:`cklang.runtime.rules`; a rule returns what it saw against its bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cklang.arch import ArchSpec
from cklang.attention_keys import AttentionAlgorithm
from cklang.runtime.attention.problem import AttentionCase
from cklang.runtime.rules.engine import Objection, multiple

__all__ = ["RULES", "AttentionRejection", "AttentionRule", "objections"]

_DWORD = 4
_MOST_BYTES = 2**31
_MOST_LENGTH = 2**30 - 1
_MOST_TILES = 2**31 - 1

Check = Callable[[AttentionCase, AttentionAlgorithm, ArchSpec], Objection | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRule:
    """One rule."""

    id: str
    sentence: str
    check: Check


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionRejection:
    """Why an algorithm was not taken for a problem."""

    algorithm: AttentionAlgorithm
    rule: AttentionRule
    objection: Objection

    def __str__(self) -> str:
        o = self.objection
        return f"{self.rule.id}: {o.what} is {o.value}, must be {o.bound} ({self.rule.sentence})"


RULES: list[AttentionRule] = []
"""In the order in which they are asked."""


def objections(
    case: AttentionCase, algorithm: AttentionAlgorithm, spec: ArchSpec
) -> Iterator[AttentionRejection]:
    """Yield what each rule has against ``algorithm`` for a problem on a GPU, in table order."""
    for rule in RULES:
        found = rule.check(case, algorithm, spec)
        if found is not None:
            yield AttentionRejection(algorithm=algorithm, rule=rule, objection=found)


def _rule(name: str, sentence: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        RULES.append(AttentionRule(id=f"attention-{name}", sentence=sentence, check=check))
        return check

    return register


def _at_most(what: str, value: int, bound: int) -> Objection | None:
    if value <= bound:
        return None
    return Objection(what=what, value=str(value), bound=f"at most {bound}")


@_rule("encoding", "a GPU has one encoding of 8-bit floats, or none")
def _encoding(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    for name, dtype in (("q, k and v", c.signature.dtype), ("o", c.signature.dtype_o)):
        if dtype.encoding not in ("", spec.fp8):
            what = f"the 8-bit float encoding of {name} on {spec.name}"
            return Objection(what=what, value=f"{dtype.encoding} ({dtype})", bound=spec.fp8)
    return None


@_rule("instruction", "the GPU has a fixed set of matrix instructions")
def _instruction(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    name = c.signature.dtype.family
    legal = spec.tiles(name, name, "f32")
    if a.warp_tile in legal:
        return None
    shown = ", ".join("x".join(map(str, tile)) for tile in legal) or "(none)"
    what = f"the warp tile for {name} on {spec.name}"
    return Objection(what=what, value="x".join(map(str, a.warp_tile)), bound=f"one of {shown}")


@_rule("head-size", "a tile holds a whole head")
def _head_size(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    found = _at_most("the head size of q and k", c.problem.hdim_q, a.tile[5])
    return found or _at_most("the head size of v", c.problem.hdim_v, a.tile[3])


@_rule("head-pad", "a kernel that does not pad heads has one head size")
def _head_pad(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    for what, size, tile, pads in (
        ("the head size of q and k", c.problem.hdim_q, a.tile[5], a.pad_d),
        ("the head size of v", c.problem.hdim_v, a.tile[3], a.pad_dv),
    ):
        if not pads and size != tile:
            return Objection(what=what, value=str(size), bound=str(tile))
    return None


@_rule("length-pad", "a kernel that does not pad lengths takes whole tiles")
def _length_pad(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    if not a.pad_k and c.problem.seqlen_k == 0:
        return Objection(what="the number of keys", value="0", bound=f"a multiple of {a.tile[1]}")
    for what, length, tile, pads in (
        ("the number of queries", c.problem.seqlen_q, a.tile[0], a.pad_q),
        ("the number of keys", c.problem.seqlen_k, a.tile[1], a.pad_k),
    ):
        found = None if pads else multiple(what, length, tile)
        if found is not None:
            return found
    return None


@_rule("head-vector", "one access moves a fixed number of elements along a head")
def _head_vector(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    found = multiple("the head size of q and k", c.problem.hdim_q, a.vector)
    return found or multiple("the head size of v", c.problem.hdim_v, a.vector)


@_rule("contiguous", "the elements of a head lie side by side")
def _contiguous(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    for name, step in c.steps.items():
        if step != 1:
            what = f"the stride of the last axis of {name}"
            return Objection(what=what, value=str(step), bound="1")
    return None


@_rule("lists", "lengths, starts and pages lie side by side")
def _lists(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    for name, step in c.lists.items():
        if step != 1:
            return Objection(what=f"the stride of {name}", value=str(step), bound="1")
    return None


@_rule("alignment", "accesses of a dword or more start at whole dwords")
def _alignment(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    for name in c.alignments:
        size = (c.signature.dtype_o if name == "o" else c.signature.dtype).bytes
        unit = min(a.vector * size, _DWORD)
        facts = {f"the address of {name}": c.alignments[name]}
        tensor = getattr(c.problem, name)
        for axis, count in (
            ("batch", 2 if c.problem.page_size else c.problem.batch),
            ("head", c.problem.heads if name in "qo" else c.problem.kv_heads),
            ("seq", c.problem.seqlen_q if name in "qo" else c.problem.seqlen_k),
        ):
            if count > 1:
                stride = getattr(tensor, f"stride_{axis}") * size
                facts[f"the stride of {name} along {axis}, in bytes,"] = stride
        objections = (multiple(what, value, unit) for what, value in facts.items())
        found = next((each for each in objections if each is not None), None)
        if found is not None:
            return found
    return None


@_rule("head-least", "a head has an element")
def _head_least(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    for what, size in (("q and k", c.problem.hdim_q), ("v", c.problem.hdim_v)):
        if size < 1:
            return Objection(what=f"the head size of {what}", value=str(size), bound="1 or more")
    return None


@_rule("span", "a head is addressed by 32 bits")
def _span(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    p, s = c.problem, c.signature
    keys = p.page_size or p.seqlen_k
    for name, tensor, rows, width, size in (
        ("q", p.q, p.seqlen_q, p.hdim_q, s.dtype.bytes),
        ("k", p.k, keys, p.hdim_q, s.dtype.bytes),
        ("v", p.v, keys, p.hdim_v, s.dtype.bytes),
        ("o", p.o, p.seqlen_q, p.hdim_v, s.dtype_o.bytes),
    ):
        if rows > 1 and tensor.stride_seq < 0:
            what = f"the row stride of {name}"
            return Objection(what=what, value=str(tensor.stride_seq), bound="0 or more")
        if rows:
            taken = ((rows - 1) * tensor.stride_seq + width) * size
            found = _at_most(f"the bytes that a head of {name} spans", taken, _MOST_BYTES)
            if found is not None:
                return found
    return None


@_rule("lengths", "rows are counted by 32 bits")
def _lengths(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    p = c.problem
    tiles = p.batch * p.heads * math.ceil(p.seqlen_q / a.tile[0])
    return (
        _at_most("the number of queries", p.seqlen_q, _MOST_LENGTH)
        or _at_most("the number of keys", p.seqlen_k, _MOST_LENGTH)
        or _at_most("the number of tiles", tiles, _MOST_TILES)
    )


@_rule("result-rows", "rows of the result do not overlap")
def _result_rows(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    p = c.problem
    if p.seqlen_q <= 1 or p.o.stride_seq >= p.hdim_v:
        return None
    bound = f"{p.hdim_v} or more"
    return Objection(what="the row stride of o", value=str(p.o.stride_seq), bound=bound)


@_rule("reads", "what score and mask read is addressed by 32 bits")
def _reads(c: AttentionCase, a: AttentionAlgorithm, spec: ArchSpec) -> Objection | None:
    for name, operand in zip(c.reads, c.problem.operands, strict=True):
        pairs = zip(operand.extents, operand.strides, strict=True)
        span = sum((extent - 1) * abs(stride) for extent, stride in pairs)
        found = _at_most(f"the elements that {name} spans", span, _MOST_TILES)
        if found is not None:
            return found
    return None
