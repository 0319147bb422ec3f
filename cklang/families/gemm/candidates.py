# SPDX-License-Identifier: MIT
"""The algorithms that products and convolutions are tried with: a preset's tilings.

They come with every vector width; the last of each tiling moves single elements and so fits any
extent, stride and alignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from cklang.arch import ArchSpec
from cklang.families.gemm.key import Algorithm, ConvSpecial, Signature
from cklang.families.gemm.space import GRID
from cklang.families.grid import pattern_of, walk
from cklang.families.presets import tilings, variants
from cklang.keys import opened

__all__ = ["candidates"]


def candidates(signature: Signature, spec: ArchSpec, preset: str) -> tuple[Algorithm, ...]:
    """Return the legal algorithms of a preset for ``signature``, best first; empty if none is.

    Raises:
        CkValueError: K001, there is no preset of that name.
    """
    return _candidates(opened(signature), spec, preset)


def _fields(signature: Signature) -> list[Mapping[str, object]]:
    """Return what each tiling is tried with, as fields of patterns.

    Convolutions: what a kernel may be made for, those first that leave out most, and then how
    workgroups share sums and how many groups share a tile.
    """
    if not signature.spatial:
        return [{}]
    special = [{"special": special} for special in reversed(ConvSpecial)]
    return [*special, *variants(signature.kind)]


@cache
def _candidates(signature: Signature, spec: ArchSpec, preset: str) -> tuple[Algorithm, ...]:
    algorithms = (
        algorithm
        for fields in _fields(signature)
        for tiling in tilings(preset, signature, spec.name)
        for algorithm in walk(GRID, signature, spec, pattern_of(Algorithm, {**fields, **tiling}))
    )
    return tuple(dict.fromkeys(algorithms))
