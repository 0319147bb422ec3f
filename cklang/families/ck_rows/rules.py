# SPDX-License-Identifier: MIT
"""Which rows CK Tile's own kernels compute, and by which algorithms."""

from __future__ import annotations

from cklang.arch import ArchSpec
from cklang.families.bounds import multiple, narrow_access
from cklang.families.ck_rows.key import CkTileRows, CkTileRowsSignature, UpstreamKernel
from cklang.families.ck_rows.problem import CkTileRowsProblem
from cklang.families.lines import MAX_AXES
from cklang.families.rule import RuleSet, Violation
from cklang.types import DType, bf16, f16, f32
from cklang.widths import ACCESS_BYTES

__all__ = ["RULES", "TILE"]

TILE = 64
"""Rows and columns of a tile of a transpose."""

_WAVE = 64
_NORMS = (UpstreamKernel.RMSNORM2D, UpstreamKernel.LAYERNORM2D)
_TYPES: dict[UpstreamKernel, tuple[tuple[DType, ...], tuple[DType, ...]]] = {
    **dict.fromkeys(_NORMS, ((f16, bf16), (f16, bf16, f32))),
    **dict.fromkeys(
        (UpstreamKernel.REDUCE_SUM, UpstreamKernel.REDUCE_MAX), ((f16, bf16, f32), (f32,))
    ),
    UpstreamKernel.ELEMENTWISE_ADD: ((f16,), (f16,)),
    UpstreamKernel.BATCHED_TRANSPOSE: ((f16, bf16), (f16, bf16)),
    UpstreamKernel.PERMUTE: ((f16, bf16, f32), (f16, bf16, f32)),
}
"""What each kernel reads and writes here."""

RULES = RuleSet(placeholder=CkTileRows())
"""The rules of CK Tile's kernels of rows."""


@RULES.algorithm("ck-rows-wave", "CK Tile's kernels of rows are used with waves of 64", reads=())
def _wave(_a: CkTileRows, _s: CkTileRowsSignature, spec: ArchSpec) -> Violation | None:
    if spec.wave_size == _WAVE:
        return None
    return Violation(what="the lanes of a wave", value=str(spec.wave_size), bound=str(_WAVE))


@RULES.algorithm("ck-rows-types", "CK Tile's kernels read and write these types", reads=())
def _types(_a: CkTileRows, s: CkTileRowsSignature, _spec: ArchSpec) -> Violation | None:
    for what, dtype, legal in zip(
        ("the operands' type", "the result's type"),
        (s.dtype, s.result),
        _TYPES[s.kernel],
        strict=True,
    ):
        if dtype not in legal:
            bound = f"one of {', '.join(map(str, legal))}"
            return Violation(what=what, value=str(dtype), bound=bound)
    if s.kernel.copies and s.result != s.dtype:
        return Violation(what="the result's type", value=str(s.result), bound=str(s.dtype))
    return None


@RULES.algorithm(
    "ck-rows-threads", "a workgroup is some whole waves, a power of two", reads=("threads",)
)
def _threads(a: CkTileRows, _s: CkTileRowsSignature, spec: ArchSpec) -> Violation | None:
    most = spec.max_threads_per_block
    if _WAVE <= a.threads <= most and a.threads & (a.threads - 1) == 0:
        return None
    bound = f"a power of two from {_WAVE} to {most}"
    return Violation(what="the threads of a workgroup", value=str(a.threads), bound=bound)


@RULES.algorithm(
    "ck-rows-vector", "an access moves at most 16 bytes, in powers of two", reads=("vector",)
)
def _vector(a: CkTileRows, s: CkTileRowsSignature, _spec: ArchSpec) -> Violation | None:
    if s.kernel is UpstreamKernel.ELEMENTWISE_ADD:
        # CK Tile counts 16 bytes of what it computes in.
        return narrow_access("the vector", a.vector, f32)
    if not s.kernel.copies:
        return narrow_access("the vector", a.vector, s.dtype)
    if s.kernel is UpstreamKernel.PERMUTE:
        bound = Violation(what="the vector", value=str(a.vector), bound="1")
        return None if a.vector == 1 else bound
    full = ACCESS_BYTES // s.dtype.bytes
    if a.vector in (1, full):
        return None
    return Violation(what="the vector", value=str(a.vector), bound=f"1 or {full}")


@RULES.algorithm(
    "ck-rows-repeats",
    "norms keep some vectors of a row, or read it twice; other kernels do neither",
    reads=("threads", "repeats", "two_pass"),
)
def _repeats(a: CkTileRows, s: CkTileRowsSignature, _spec: ArchSpec) -> Violation | None:
    if s.kernel in _NORMS:
        return None
    if a.two_pass:
        return Violation(what="two_pass", value="True", bound="False")
    if s.kernel.copies and a.repeats != 1:
        return Violation(what="repeats", value=str(a.repeats), bound="1")
    return None


@RULES.problem("ck-rows-length", "a workgroup keeps its row", reads=("threads", "vector"))
def _length(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel not in _NORMS or a.two_pass or p.length <= a.longest:
        return None
    bound = f"at most {a.longest}, or an algorithm with two_pass=True"
    return Violation(what="the length of a row", value=str(p.length), bound=bound)


@RULES.problem(
    "ck-rows-contiguous",
    "rows have one stride and their elements none between them",
    reads=("vector",),
)
def _contiguous(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel.copies:
        return None
    x, *vectors = p.operands
    if len(p.rows) != 1 or len(p.elements) != 1:
        got = f"{len(p.rows)} of rows and {len(p.elements)} of elements"
        return Violation(what="the number of axes", value=got, bound="1 of each")
    is_reduced = p.signature.kernel in (UpstreamKernel.REDUCE_SUM, UpstreamKernel.REDUCE_MAX)
    tensors = (x, *vectors) if is_reduced else (x, *vectors, p.result)
    for each in tensors:
        if each.elements != (1,):
            what = f"the stride of elements of {each.value}"
            return Violation(what=what, value=str(each.elements[0]), bound="1")
    if p.signature.kernel is UpstreamKernel.ELEMENTWISE_ADD:
        got = str(p.rows[0])
        return None if got == "1" else Violation(what="the number of rows", value=got, bound="1")
    for each in vectors:
        if any(each.rows):
            what = f"the stride of rows of {each.value}"
            return Violation(what=what, value=str(each.rows[0]), bound="0")
    if is_reduced and p.result.rows != (1,) and p.rows != (1,):
        return Violation(what="the stride of results", value=str(p.result.rows[0]), bound="1")
    return None


@RULES.problem("ck-rows-access", "rows begin and end with a whole access", reads=("vector",))
def _access(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel.copies:
        return None
    steps = [abs(each.rows[0]) for each in (p.operands[0], p.result) if each.elements == (1,)]
    refused = multiple("the length of a row", p.length, a.vector)
    for step in steps:
        refused = refused or multiple("the stride of rows", step, a.vector)
    return refused


@RULES.problem(
    "ck-rows-tiles", "a transpose in vectors has whole tiles of 64 by 64", reads=("vector",)
)
def _tiles(p: CkTileRowsProblem, a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if p.signature.kernel is not UpstreamKernel.BATCHED_TRANSPOSE or a.vector == 1:
        return None
    return multiple("the rows of the operand", p.length, TILE) or multiple(
        "its columns", p.rows[-1], TILE
    )


@RULES.problem(
    "ck-rows-copy", "a copy has memory without gaps, and up to four axes beside the last", reads=()
)
def _copy(p: CkTileRowsProblem, _a: CkTileRows, _spec: ArchSpec) -> Violation | None:
    if not p.signature.kernel.copies:
        return None
    step, packed = 1, list[int]()
    for extent in reversed((*p.rows, *p.elements)):
        packed.insert(0, step)
        step *= extent
    strides = (*p.result.rows, *p.result.elements)
    wanted = tuple(
        0 if n == 1 else step for n, step in zip((*p.rows, *p.elements), packed, strict=True)
    )
    got = tuple(
        0 if n == 1 else step for n, step in zip((*p.rows, *p.elements), strides, strict=True)
    )
    if got != wanted:
        return Violation(what="the strides of the result", value=str(got), bound=str(wanted))
    if len(p.rows) > MAX_AXES:
        bound = f"at most {MAX_AXES}"
        return Violation(what="the axes that count rows", value=str(len(p.rows)), bound=bound)
    x = (*p.operands[0].rows, *p.operands[0].elements)
    if min(x) < 0:
        return Violation(what="a stride of the operand", value=str(min(x)), bound="0 or more")
    return None
