# SPDX-License-Identifier: MIT
"""The space of algorithms: values of fields, patterns, and the legal ones in canonical order.

Enumeration is lazy and prunes: a rule is asked as soon as the fields it reads are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from itertools import product
from typing import Any, get_type_hints

from cklang.arch import ArchSpec, arch
from cklang.codec import decode, unknown
from cklang.errors import error
from cklang.keys import Algorithm, EpilogueKind, Pipeline, Scheduler, Signature
from cklang.lowering.gemm import unsupported
from cklang.runtime.convolution import AnyProblem
from cklang.runtime.presets import Space, space
from cklang.runtime.rules.engine import ALGORITHM_RULES, AlgorithmRule, ProblemRule
from cklang.runtime.vectors import Vectors, vector_choices

__all__ = ["ANY", "Pattern", "enumerate_legal", "legal_values", "pattern", "satisfiable"]

ANY = "*"
"""In a pattern: every value that is legal."""

_VECTORS = ("vector_a", "vector_b", "vector_e", "vector_d")
_FIRST = ("pipeline", "scheduler", "epilogue")
_LAST = ("warp_tile", "warps", "tile", "block_per_cu", "pad_m", "pad_n", "pad_k")
"""Chosen last but for the vectors, because they have most values; the rest stands between."""

_HINTS = get_type_hints(Algorithm)
_ORDER = (
    *_FIRST,
    *(f.name for f in fields(Algorithm) if f.name not in (*_FIRST, *_LAST, *_VECTORS)),
    *_LAST,
    "vectors",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A set of algorithms; made by :func:`pattern`."""

    choices: Mapping[str, tuple[Any, ...] | None]
    """For each field that was named its values; None stands for all that are legal."""

    def accepts(self, algorithm: Algorithm) -> bool:
        """Whether ``algorithm`` has a named value in each field; fields left out are not asked."""
        return all(
            values is None or getattr(algorithm, name) in values
            for name, values in self.choices.items()
        )

    def values(self, name: str, everything: Sequence[Any]) -> Sequence[Any]:
        """Return the values of a field in order; ``everything`` is what ``*`` stands for."""
        if name in self.choices:
            named = self.choices[name]
            return everything if named is None else named
        default = _DEFAULTS.get(name, MISSING)
        return everything if default is MISSING else (default,)


_DEFAULTS = {f.name: f.default for f in fields(Algorithm) if f.name not in _VECTORS}


def pattern(**choices: Any) -> Pattern:
    """Describe a set of algorithms: a value, a list of values or ``"*"`` for each field.

    A field left out has its default; ``tile``, ``warps``, ``warp_tile`` and the vector widths,
    which have none, are then free.

    Example:
        >>> pattern(tile=[(128, 128, 32), (64, 64, 32)], warps=(2, 2, 1), pipeline="*")

    Raises:
        CkValueError: K001, K002, a field or a value that no algorithm has.
    """
    return Pattern(choices={name: _values(name, value) for name, value in choices.items()})


def _values(name: str, given: Any) -> tuple[Any, ...] | None:
    if name not in _HINTS:
        raise unknown("algorithm field", name, list(_HINTS))
    if isinstance(given, str) and given == ANY:
        return None
    several = given if isinstance(given, list | set | frozenset) else [given]
    if not several:
        raise error("K002", what=name, want="a value, a list of values or '*'", got=given)
    return tuple(decode(_HINTS[name], value, name) for value in several)


EVERYTHING = Pattern(choices=dict.fromkeys(f.name for f in fields(Algorithm)))


def legal_values(name: str, signature: Signature, spec: ArchSpec) -> Sequence[Any]:
    """Return what field ``name`` may be at all on this GPU, in canonical order."""
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
    signature: Signature, gpu: ArchSpec | str, among: Pattern = EVERYTHING
) -> Iterator[Algorithm]:
    """Yield every algorithm of ``among`` to which no algorithm rule objects, in canonical order.

    The order is that of the fields (pipeline, scheduler, epilogue, flags and splits, warp tile,
    warps, tile, blocks per compute unit, pads, vectors), and within a field the pattern's own or
    the space's; widest vectors come first. It does not depend on anything else.

    Args:
        signature: What is computed; its epilogue does not matter.
        gpu: The GPU or its name.
        among: Which algorithms; every one if left out.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    yield from _extend({}, 0, signature, spec, among)


@cache
def _rules_at() -> tuple[tuple[AlgorithmRule, ...], ...]:
    """For each position in the order: the rules whose fields are all chosen there."""
    place = {name: index for index, name in enumerate(_ORDER)}
    place |= dict.fromkeys(_VECTORS, place["vectors"])
    last = [max((place[name] for name in rule.reads), default=0) for rule in ALGORITHM_RULES]
    return tuple(
        tuple(r for r, at in zip(ALGORITHM_RULES, last, strict=True) if at == index)
        for index in range(len(_ORDER))
    )


_BLANK: dict[str, Any] = {
    "tile": (1, 1, 1),
    "warps": (1, 1, 1),
    "warp_tile": (1, 1, 1),
    "vector_a": 1,
    "vector_b": 1,
    "vector_e": 1,
}
"""Stands for fields that are not chosen yet; no rule that is asked then looks at them."""


def _extend(
    chosen: dict[str, Any], at: int, signature: Signature, spec: ArchSpec, among: Pattern
) -> Iterator[Algorithm]:
    if at == len(_ORDER):
        yield Algorithm(**chosen)
        return
    rules = _rules_at()[at]
    for more in _choices(_ORDER[at], signature, spec, among):
        extended = {**chosen, **more}
        algorithm = Algorithm(**{**_BLANK, **extended})
        if _unspelled(_ORDER[at], signature, algorithm):
            continue
        if any(rule.check(algorithm, signature, spec) for rule in rules):
            continue
        yield from _extend(extended, at + 1, signature, spec, among)


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
        for value in among.values(name, legal_values(name, signature, spec)):
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


def satisfiable(
    rule: ProblemRule,
    algorithm: Algorithm,
    problem: AnyProblem,
    signature: Signature,
    spec: ArchSpec,
) -> bool:
    """Whether some values of the fields that ``rule`` reads satisfy it."""
    domains = [legal_values(name, signature, spec) for name in rule.reads]
    return any(
        rule.check(problem, replace(algorithm, **dict(zip(rule.reads, values, strict=True))), spec)
        is None
        for values in product(*domains)
    )
