# SPDX-License-Identifier: MIT
"""The algorithms that attention has on a GPU: the tilings of its spec, and what varies in them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, TypeVar

from cklang.arch import ArchSpec, AttentionTile
from cklang.families.attention.key import (
    AttentionAlgorithm,
    AttentionPipeline,
    AttentionSignature,
    MaskKind,
    ScoreKind,
)
from cklang.families.attention.rules import RULES, rows_of
from cklang.families.attention_backward.key import AttentionGradAlgorithm
from cklang.families.grid import Grid, Pattern
from cklang.types import DType
from cklang.widths import ACCESS_BYTES

_SMALL = 64

V = TypeVar("V", bound="AttentionAlgorithm | AttentionGradAlgorithm")


def attention_algorithms(
    spec: ArchSpec, signature: AttentionSignature, hdim_q: int = 1, hdim_v: int = 1
) -> tuple[AttentionAlgorithm, ...]:
    """Return every algorithm that takes these head sizes, the smallest tiling first.

    All pad lengths and head sizes, so that they run for any. Of one tiling the pipelines stand in
    the order of the spec. An 8-bit type is looked up as ``fp8`` whatever its encoding is; that the
    GPU has it is a rule of its own.
    """
    rows = [r for r in _tilings(spec, signature.dtype) if hdim_q <= r.hdim_q and hdim_v <= r.hdim_v]
    vector = widest(signature.dtype)
    functions = ScoreKind.FUNCTION is signature.score or MaskKind.FUNCTION is signature.mask
    return tuple(
        _algorithm(row, AttentionPipeline(pipeline), vector, functions=functions)
        for row in rows
        for pipeline in row.pipelines
    )


def _algorithm(
    row: AttentionTile, pipeline: AttentionPipeline, vector: int, *, functions: bool
) -> AttentionAlgorithm:
    # A user's function needs registers of its own: two large tiles on a compute unit would spill.
    alone = functions and row.hdim_q > _SMALL
    return AttentionAlgorithm(
        tile=row.tile,
        warps=(row.warps, 1, 1),
        warp_tile=row.warp_tile,
        pipeline=pipeline,
        vector=vector,
        block_per_cu=1 if alone else row.block_per_cu,
    )


def widest(dtype: DType) -> int:
    """Return how many elements an access moves at most; of 8-bit types half of 16 bytes."""
    return min(ACCESS_BYTES // dtype.bytes, 8)


def vector_widths(dtype: DType) -> tuple[int, ...]:
    """Return how many elements an access may move along a head, the most first.

    The least is one, so that every head size is a multiple of a width.
    """
    most = widest(dtype)
    return tuple(most >> power for power in range(most.bit_length()))


def narrowed(algorithms: Iterable[V], dtype: DType) -> Iterator[V]:
    """Yield algorithms with narrower accesses than the widest, the widest of these first."""
    same = tuple(algorithms)
    for width in vector_widths(dtype)[1:]:
        for algorithm in same:
            yield replace(algorithm, vector=width)


def _tilings(spec: ArchSpec, dtype: DType) -> list[AttentionTile]:
    return sorted(rows_of(spec, dtype), key=lambda row: row.hdim_q + row.hdim_v)


# --- every legal one

_PADS = ("pad_q", "pad_k", "pad_d", "pad_dv")
OCCUPANCIES = (1, 2)
"""Blocks of a compute unit that ``*`` tries."""

_TILING = ("tile", "warps", "warp_tile")


def _values(name: str, signature: AttentionSignature, spec: ArchSpec) -> Sequence[Any]:
    """Return what a field may be at all on this GPU, in canonical order."""
    if name in _TILING:
        place = _TILING.index(name)
        return tuple(dict.fromkeys(triple[place] for triple in _triples(signature, spec)))
    if name in _PADS:
        return (True, False)
    return {
        "pipeline": tuple(AttentionPipeline),
        "vector": vector_widths(signature.dtype),
        "block_per_cu": OCCUPANCIES,
    }[name]


def _triples(signature: AttentionSignature, spec: ArchSpec) -> list[tuple[Any, ...]]:
    rows = _tilings(spec, signature.dtype)
    return [(row.tile, (row.warps, 1, 1), row.warp_tile) for row in rows]


def _chosen(
    names: Sequence[str], known: Sequence[tuple[Any, ...]], among: Pattern
) -> Iterator[dict[str, Any]]:
    """Yield the known tilings that a pattern names, then those of its own values."""
    named = [among.choices.get(name) for name in names]
    for tiling in known:
        if all(n is None or v in n for n, v in zip(named, tiling, strict=True)):
            yield dict(zip(names, tiling, strict=True))
    new = [
        tuple(v for v in n or () if v not in {tiling[place] for tiling in known})
        for place, n in enumerate(named)
    ]
    if not any(new):
        return
    # A value that no table has goes with what is named, else with what the tables have.
    everything = [
        n or tuple(dict.fromkeys(tiling[place] for tiling in known))
        for place, n in enumerate(named)
    ]
    for values in product(*everything):
        if any(value in n for value, n in zip(values, new, strict=True)):
            yield dict(zip(names, values, strict=True))


def choices_of_tilings(
    tiling: tuple[str, ...],
    triples: Callable[[Any, ArchSpec], list[tuple[Any, ...]]],
    values: Callable[[str, Any, ArchSpec], Sequence[Any]],
    step: str,
    signature: Any,
    spec: ArchSpec,
    among: Pattern,
) -> Iterator[dict[str, Any]]:
    """Yield the values of a step of the walk, of a family with such tilings and other fields."""
    if step == "tiling":
        yield from _chosen(tiling, triples(signature, spec), among)
        return
    everything = values(step, signature, spec)
    if step == "vector" and step not in among.choices:
        # Narrower accesses are for head sizes that the widest do not divide, and slower.
        everything = everything[:1]
    for value in among.values(step, everything):
        yield {step: value}


GRID: Grid[AttentionAlgorithm] = Grid(
    of=AttentionAlgorithm,
    order=("tiling", "pipeline", *_PADS, "vector", "block_per_cu"),
    joint={"tiling": _TILING},
    choices=partial(choices_of_tilings, _TILING, _triples, _values),
    values=_values,
    rules=RULES,
)
"""The algorithms of attention, the smallest tiling first."""
