# SPDX-License-Identifier: MIT
"""The algorithms of products and convolutions: which values fields have, and in which order."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from itertools import product
from typing import Any, get_type_hints

from cklang.arch import ArchSpec
from cklang.families.gemm.key import Algorithm, EpilogueKind, Pipeline, Scheduler, Signature
from cklang.families.gemm.lower import unsupported
from cklang.families.gemm.rules import RULES
from cklang.families.gemm.vectors import Vectors, vector_choices
from cklang.families.grid import Grid, Pattern
from cklang.families.presets import Space, space

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


_WIDE = (*_LAST, "vectors")


def _unspelled(name: str, signature: Signature, algorithm: Algorithm) -> bool:
    """Whether lowering lacks the value of ``name``, or the signature in the chosen pipeline.

    What lowering says of a field depends on those before it alone; asking here keeps whole
    branches of flags from being walked to where the rule ``generated`` is asked.
    """
    if name in _WIDE:
        return False
    lacking = {field for field, _, _ in unsupported(signature, algorithm)}
    return name in lacking or not lacking <= set(_HINTS)


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
