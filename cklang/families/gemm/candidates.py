# SPDX-License-Identifier: MIT
"""The algorithms that products and convolutions are tried with: a preset's tilings.

They come with every vector width; the last of each tiling moves single elements and so fits any
extent, stride and alignment. Convolutions whose workgroups share sums or whose tiles share groups
are tried with the tilings of a preset's first set only: they multiply the candidates by four.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from cklang.arch import ArchSpec
from cklang.families.gemm.key import Algorithm, ConvSpecial, Signature
from cklang.families.gemm.space import GRID
from cklang.families.grid import pattern_of, walk
from cklang.families.presets import parts, tilings, variants
from cklang.keys import opened


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
