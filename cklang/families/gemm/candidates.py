# SPDX-License-Identifier: MIT
"""The algorithms that products and convolutions are tried with: a preset's tilings.

They come with every vector width; the last of each tiling moves single elements and so fits any
extent, stride and alignment. Convolutions whose workgroups share sums or whose tiles share groups
are tried with the tilings of a preset's first set only: they multiply the candidates by four.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from cklang.arch import ArchSpec
from cklang.families.gemm.key import Algorithm, ConvSpecial, Reduction, Signature
from cklang.families.gemm.problem import Problem
from cklang.families.gemm.space import GRID
from cklang.families.grid import pattern_of, walk
from cklang.families.presets import parts, tilings, variants
from cklang.keys import opened

_STEPS = 4
"""Tiles along K that are worth a workgroup of their own, at least."""

_ROUNDS = 2
"""Workgroups for each compute unit, at most."""


def candidates(signature: Signature, spec: ArchSpec, preset: str) -> tuple[Algorithm, ...]:
    """Return the legal algorithms of a preset for ``signature``, best first; empty if none is.

    Raises:
        CkValueError: K001, there is no preset of that name.
    """
    return _candidates(opened(signature), spec, preset)


def _fields(signature: Signature, first: bool) -> list[Mapping[str, object]]:
    """Return what each tiling is tried with, as fields of patterns.

    Convolutions: what a kernel may be made for, those first that leave out most, and then, for the
    first set of a preset, how workgroups share sums and how many groups share a tile.
    """
    if not signature.spatial:
        return [{}]
    special = [{"special": special} for special in reversed(ConvSpecial)]
    return [*special, *(variants(signature.kind) if first else ())]


@cache
def _candidates(signature: Signature, spec: ArchSpec, preset: str) -> tuple[Algorithm, ...]:
    algorithms = (
        algorithm
        for place, part in enumerate(parts(preset))
        for fields in _fields(signature, place == 0)
        for tiling in tilings(part, signature, spec.name)
        for algorithm in walk(GRID, signature, spec, pattern_of(Algorithm, {**fields, **tiling}))
    )
    return tuple(dict.fromkeys(algorithms))


def shares(problem: Problem, legal: Sequence[Algorithm], spec: ArchSpec) -> Iterator[Algorithm]:
    """Yield algorithms whose workgroups share the sums of a tile, for a problem of few tiles.

    The widest accesses of each tiling, with as many workgroups as fill the GPU once or twice.
    Their sums are added up in one order.

    Args:
        problem: What is to be computed.
        legal: The algorithms of one workgroup a tile that can compute it, best first.
        spec: The GPU.
    """
    if problem.grouped or problem.ends is not None:
        return
    first: dict[object, Algorithm] = {}
    for a in legal:
        if a.split_k == 1 and not a.stream_k:
            first.setdefault((a.tile, a.warps, a.warp_tile, a.pipeline), a)
    for a in first.values():
        tile_m, tile_n, tile_k = a.tile
        tiles = math.ceil(problem.m / tile_m) * math.ceil(problem.n / tile_n)
        workgroups = max(tiles * math.prod(problem.batch), 1)
        most = min(
            _ROUNDS * spec.compute_units // workgroups, math.ceil(problem.k / tile_k) // _STEPS
        )
        largest = 1 << max(most, 1).bit_length() - 1
        for count in (largest // 2, largest):
            if count > 1:
                yield replace(a, split_k=count, reduction=Reduction.TREE)
