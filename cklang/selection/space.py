# SPDX-License-Identifier: MIT
"""The space of algorithms of any family: patterns, and the legal ones in canonical order."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from cklang.arch import ArchSpec, arch
from cklang.errors import error
from cklang.families import FAMILIES, family_of
from cklang.families.grid import Pattern as Pattern
from cklang.families.grid import pattern_of, walk
from cklang.families.rule import ProblemRule
from cklang.keys import KernelSignature


def pattern(**choices: Any) -> Pattern:
    """Describe a set of algorithms: a value, a list of values or ``"*"`` for each field.

    A field left out has its default; ``tile``, ``warps``, ``warp_tile`` and the vector widths,
    which have none, are then free.

    Example:
        >>> ck.dispatch.pattern(tile=[(128, 128, 32), (64, 64, 32)], pipeline="*").choices
        {'tile': ((128, 128, 32), (64, 64, 32)), 'pipeline': None}

    Raises:
        CkValueError: K001, K002, K024, a field or a value that no algorithm has.
    """
    return pattern_of(_algorithm_of("gemm"), choices)


def attention_pattern(*, gradient: bool = False, **choices: Any) -> Pattern:
    """Describe a set of attention algorithms, as :func:`pattern` does.

    Args:
        gradient: Of those that give gradients.
        **choices: For each field of :class:`cklang.dispatch.AttentionAlgorithm` (or, for gradients,
            of ``AttentionGradAlgorithm``) a value, a list of values or ``"*"``.

    Example:
        >>> ck.dispatch.attention_pattern(pipeline="*", pad_k=[True, False]).choices
        {'pipeline': None, 'pad_k': (True, False)}

    Raises:
        CkValueError: K001, K002, K024, a field or a value that no algorithm has.
    """
    family = "attention_backward" if gradient else "attention"
    return pattern_of(_algorithm_of(family), choices)


def _algorithm_of(family: str) -> type[Any]:
    """Return the class of a family's algorithms."""
    algorithm: type[Any] | None = FAMILIES[family].algorithm
    if algorithm is None:
        raise error("Z002", what=f"the family {family} has one kernel for each signature")
    return algorithm


def legal_values(name: str, signature: KernelSignature, spec: ArchSpec) -> Sequence[Any]:
    """Return what field ``name`` may be at all on this GPU, in canonical order."""
    return family_of(signature).grid.values(name, signature, spec)


def enumerate_legal(
    signature: KernelSignature, gpu: ArchSpec | str, among: Pattern | None = None
) -> Iterator[Any]:
    """Yield every algorithm of ``among`` to which no algorithm rule objects, in canonical order.

    The order is that of the fields (pipeline, scheduler, epilogue, flags and splits, warp tile,
    warps, tile, blocks per compute unit, pads, vectors; for attention tiling, pipeline, pads,
    vector, blocks per compute unit), and within a field the pattern's own or the space's; widest
    vectors come first. It does not depend on anything else.

    Raises:
        CkValueError: K023, the pattern is for algorithms of another family.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    grid = family_of(signature).grid
    return walk(grid, signature, spec, grid.everything if among is None else among)


def satisfiable(
    rule: ProblemRule, algorithm: Any, problem: Any, signature: KernelSignature, spec: ArchSpec
) -> bool:
    """Whether some values of the fields that ``rule`` reads satisfy it."""
    domains = [legal_values(name, signature, spec) for name in rule.reads]
    return any(
        rule.check(problem, replace(algorithm, **dict(zip(rule.reads, values, strict=True))), spec)
        is None
        for values in product(*domains)
    )
