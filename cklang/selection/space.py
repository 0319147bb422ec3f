# SPDX-License-Identifier: MIT
"""The space of algorithms: values of fields, patterns, and the legal ones in canonical order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from functools import cache
from itertools import product
from typing import Any, get_type_hints

from cklang.arch import ArchSpec, arch
from cklang.attention_keys import (
    AttentionAlgorithm,
    AttentionGradAlgorithm,
    AttentionSignature,
)
from cklang.families.attention.space import ATTENTION_GRAD_GRID, ATTENTION_GRID
from cklang.families.family import AnyAlgorithm, AnySignature, Asked
from cklang.families.gemm.lower import unsupported
from cklang.families.gemm.vectors import Vectors, vector_choices
from cklang.families.grid import ANY, Grid, Pattern, pattern_of, walk
from cklang.families.presets import Space, space
from cklang.families.rule import ALGORITHM_RULES, ProblemRule
from cklang.keys import Algorithm, EpilogueKind, Pipeline, Scheduler, Signature

__all__ = [
    "ANY",
    "Pattern",
    "attention_pattern",
    "enumerate_legal",
    "legal_values",
    "pattern",
    "satisfiable",
]

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


def pattern(**choices: Any) -> Pattern:
    """Describe a set of algorithms: a value, a list of values or ``"*"`` for each field.

    A field left out has its default; ``tile``, ``warps``, ``warp_tile`` and the vector widths,
    which have none, are then free.

    Example:
        >>> pattern(tile=[(128, 128, 32), (64, 64, 32)], warps=(2, 2, 1), pipeline="*")

    Raises:
        CkValueError: K001, K002, a field or a value that no algorithm has.
    """
    return pattern_of(Algorithm, choices)


def attention_pattern(*, gradient: bool = False, **choices: Any) -> Pattern:
    """Describe a set of attention algorithms, as :func:`pattern` does.

    Args:
        gradient: Of those that give gradients.
        **choices: For each field of :class:`cklang.AttentionAlgorithm` (or, for gradients, of
            ``AttentionGradAlgorithm``) a value, a list of values or ``"*"``.

    Example:
        >>> attention_pattern(pipeline="*", pad_k=[True, False])

    Raises:
        CkValueError: K001, K002, a field or a value that no algorithm has.
    """
    return pattern_of(AttentionGradAlgorithm if gradient else AttentionAlgorithm, choices)


def grid_of(signature: AnySignature) -> Grid[Any]:
    """Return how the algorithms of a signature are enumerated."""
    if isinstance(signature, AttentionSignature):
        return ATTENTION_GRID
    return GRID if isinstance(signature, Signature) else ATTENTION_GRAD_GRID


def legal_values(name: str, signature: AnySignature, spec: ArchSpec) -> Sequence[Any]:
    """Return what field ``name`` may be at all on this GPU, in canonical order."""
    return grid_of(signature).values(name, signature, spec)


def _legal_values(name: str, signature: Signature, spec: ArchSpec) -> Sequence[Any]:
    found = _domains(spec, space(), signature.multiplied, signature.sparse)
    if name in _VECTORS:
        index = _VECTORS.index(name)
        return tuple(sorted({v[index] for v in vector_choices(signature, space().widths)}))
    return found[name]


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


def enumerate_legal(
    signature: AnySignature, gpu: ArchSpec | str, among: Pattern | None = None
) -> Iterator[Any]:
    """Yield every algorithm of ``among`` to which no algorithm rule objects, in canonical order.

    The order is that of the fields (pipeline, scheduler, epilogue, flags and splits, warp tile,
    warps, tile, blocks per compute unit, pads, vectors; for attention tiling, pipeline, pads,
    vector, blocks per compute unit), and within a field the pattern's own or the space's; widest
    vectors come first. It does not depend on anything else.

    Args:
        signature: What is computed; its functions do not matter.
        gpu: The GPU or its name.
        among: Which algorithms; every one if left out.

    Raises:
        CkValueError: K002, the pattern is for algorithms of another family.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    grid = grid_of(signature)
    return walk(grid, signature, spec, grid.everything if among is None else among)


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
    rules=ALGORITHM_RULES,
    hopeless=_unspelled,
)
"""The algorithms of products and convolutions."""


def satisfiable(
    rule: ProblemRule,
    algorithm: AnyAlgorithm,
    problem: Asked,
    signature: AnySignature,
    spec: ArchSpec,
) -> bool:
    """Whether some values of the fields that ``rule`` reads satisfy it."""
    domains = [legal_values(name, signature, spec) for name in rule.reads]
    return any(
        rule.check(problem, replace(algorithm, **dict(zip(rule.reads, values, strict=True))), spec)
        is None
        for values in product(*domains)
    )
