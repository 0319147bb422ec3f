# SPDX-License-Identifier: MIT
"""The algorithms of products and convolutions: which values fields have, and in which order.

A width of vector accesses in bytes is chosen for each axis that is contiguous in some operand, so
operands that share an axis move equally many bytes: what spoils wide accesses of one (an odd
extent) spoils those of the other. Not so the weights of a convolution: they end with the channels
of one group, where those of an image may go on, so they may move single elements beside wide
accesses.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import product
from typing import Any, NamedTuple, get_type_hints

from cklang.arch import ArchSpec
from cklang.families.gemm.key import (
    Algorithm,
    EpilogueKind,
    Layout,
    Pipeline,
    ProductKind,
    Scheduler,
    Signature,
)
from cklang.families.gemm.lower import unsupported
from cklang.families.gemm.rules import RULES
from cklang.families.grid import Grid, Pattern
from cklang.families.presets import Space, space
from cklang.types import DType
from cklang.widths import ACCESS_BYTES

_EIGHTS = 8
"""Elements of a packed dtype in a dword, which is what an access moves at least."""


class Vectors(NamedTuple):
    """Elements of each operand that one access moves."""

    a: int
    b: int
    e: int
    d: tuple[int, ...]


@cache
def vector_choices(signature: Signature, widths: Sequence[int]) -> tuple[Vectors, ...]:
    """Return every distinct choice, those that move most bytes first.

    ``widths`` are bytes that an access may move; 1 stands for one element.
    """
    axes = sorted({*_axes(signature), "n"})
    choices = [dict(zip(axes, taken, strict=True)) for taken in product(widths, repeat=len(axes))]
    if signature.spatial:
        shared = "k" if "k" in axes else "n"
        choices = [
            {**choice, "weight": width}
            for choice in choices
            for width in dict.fromkeys((choice[shared], min(widths)))
        ]
    distinct = {_vectors(signature, choice): choice for choice in reversed(choices)}
    return tuple(sorted(distinct, key=lambda v: _preference(distinct[v])))


def _preference(choice: dict[str, int]) -> tuple[int, int]:
    return -sum(choice.values()), -choice.get("k", 0)


def _axes(signature: Signature) -> tuple[str, str]:
    """The contiguous axes of A and of B."""
    a = "k" if signature.layout_a is Layout.ROW else "m"
    if signature.dtype_a.packed:
        a = "packed"
    b = "n" if signature.layout_b is Layout.ROW else "k"
    if signature.dtype_b.packed:
        b = "packed"  # its rows are filled up to whole accesses, whatever K is
    return a, b


def _vectors(signature: Signature, widths: dict[str, int]) -> Vectors:
    axis_a, axis_b = _axes(signature)
    prepared = signature.layout_b is Layout.PREPARED
    axis_e = "n"
    if signature.kind is ProductKind.CONV_GRAD_WEIGHT:
        axis_e = "weight"
    elif signature.spatial:
        axis_b = "weight"
    e = _elements(signature.dtype_e, widths[axis_e])
    ds = tuple(
        # A thread owns vector_e neighbours of E, so wider loads of D would not be used.
        min(e, _elements(d.dtype, widths[axis_e])) if d.kind.contiguous else 1
        for d in signature.d
    )
    return Vectors(
        a=_elements(signature.dtype_a, widths[axis_a]),
        # What is prepared has no ends that accesses could cross.
        b=_elements(signature.dtype_b, ACCESS_BYTES if prepared else widths[axis_b]),
        e=e,
        d=ds,
    )


def _elements(dtype: DType, width: int) -> int:
    least = _EIGHTS if dtype.packed else 1
    return max(least, width * 8 // dtype.bits)


_VECTORS = ("vector_a", "vector_b", "vector_e", "vector_d")
_FIRST = ("pipeline", "scheduler", "epilogue")
_LAST = ("warp_tile", "warps", "tile", "block_per_cu", "pad_m", "pad_n", "pad_k")
"""Chosen last but for the vectors, because they have most values; the rest stands between."""

_HINTS = get_type_hints(Algorithm)
_DEFAULTS = {f.name: f.default for f in fields(Algorithm)}
_ORDER = (
    *_FIRST,
    *(f.name for f in fields(Algorithm) if f.name not in (*_FIRST, *_LAST, *_VECTORS)),
    *_LAST,
    "vectors",
)


def _legal_values(name: str, signature: Signature, spec: ArchSpec) -> Sequence[Any]:
    domains = _domains(spec, space(), signature.multiplied, signature.sparse)
    if name in _VECTORS:
        index = _VECTORS.index(name)
        return tuple(sorted({v[index] for v in vector_choices(signature, space().widths)}))
    return domains[name]


@cache
def _domains(
    spec: ArchSpec, s: Space, dtypes: tuple[str, str, str], sparse: bool
) -> dict[str, Sequence[Any]]:
    known: dict[str, Sequence[Any]] = {
        "pipeline": tuple(Pipeline),
        "scheduler": tuple(Scheduler),
        "epilogue": tuple(EpilogueKind),
        "warp_tile": spec.tiles(*dtypes, sparse=sparse),
        "warps": spec.warp_configs,
        "tile": tuple(product(s.tile_m, s.tile_n, s.tile_k)),
        "block_per_cu": s.block_per_cu,
        "split_k": s.split_k,
        "num_wave_groups": s.num_wave_groups,
    }
    for name, hint in _HINTS.items():
        if name not in known and name not in _VECTORS:
            known[name] = _of_type(name, hint)
    return known


def _of_type(name: str, hint: Any) -> Sequence[Any]:
    if hint is bool:
        default = bool(_DEFAULTS[name])
        return (default, not default)
    if hasattr(hint, "__members__"):
        return tuple(hint)
    return (_DEFAULTS[name],)


_WIDE = frozenset((*_LAST, "vectors"))


def _unspelled(names: Collection[str], signature: Signature, algorithm: Algorithm) -> bool:
    """Whether lowering lacks the value of one of ``names``, or the signature in the pipeline.

    What lowering says of a field depends on those before it alone; asking here keeps whole
    branches of flags from being walked to where the rule ``generated`` is asked.
    """
    if _WIDE.issuperset(names):
        return False
    lacking = {field for field, _, _ in unsupported(signature, algorithm)}
    return not lacking.isdisjoint(names) or not lacking <= _HINTS.keys()


def _choices(
    name: str, signature: Signature, spec: ArchSpec, among: Pattern
) -> Iterator[dict[str, Any]]:
    if name != "vectors":
        for value in among.values(name, _legal_values(name, signature, spec)):
            yield {name: value}
        return
    for vectors in vector_choices(signature, space().widths):
        if _named(vectors, among):
            yield dict(zip(_VECTORS, vectors, strict=True))


def _named(vectors: Vectors, among: Pattern) -> bool:
    for name, vector in zip(_VECTORS, vectors, strict=True):
        named = among.choices.get(name)
        if named is not None and vector not in named:
            return False
    return True


GRID: Grid[Algorithm] = Grid(
    of=Algorithm,
    order=_ORDER,
    joint={"vectors": _VECTORS},
    choices=_choices,
    values=_legal_values,
    rules=RULES,
    prune=_unspelled,
)
"""The algorithms of products and convolutions."""
