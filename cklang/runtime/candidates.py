# SPDX-License-Identifier: MIT
"""The algorithms that are tried when nobody named any: a preset's tilings with every vector width.

The last of each tiling moves single elements and so fits any extent, stride and alignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from cklang.arch import ArchSpec, arch
from cklang.keys import Algorithm, ConvSpecial, Signature
from cklang.runtime.presets import tilings, variants
from cklang.runtime.space import enumerate_legal, pattern

__all__ = ["DEFAULT_PRESET", "candidates"]

DEFAULT_PRESET = "essential"


def candidates(
    signature: Signature, gpu: ArchSpec | str, preset: str = DEFAULT_PRESET
) -> tuple[Algorithm, ...]:
    """Return the legal algorithms of ``preset`` for ``signature``, best first; empty if none is.

    Raises:
        CkValueError: K001, there is no such preset; K004, there is no such GPU.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    return _candidates(replace(signature, epilogue=""), spec, preset)


def _fields(signature: Signature) -> list[Mapping[str, object]]:
    """Return what each tiling is tried with, as fields of patterns.

    Convolutions: what a kernel may be made for, those first that leave out most, and then how
    workgroups share sums and how many groups share a tile.
    """
    if not signature.spatial:
        return [{}]
    special = [{"special": special} for special in reversed(ConvSpecial)]
    return [*special, *variants(signature.family)]


@cache
def _candidates(signature: Signature, spec: ArchSpec, preset: str) -> tuple[Algorithm, ...]:
    found = (
        algorithm
        for fields in _fields(signature)
        for tiling in tilings(preset, signature, spec.name)
        for algorithm in enumerate_legal(signature, spec, pattern(**{**fields, **tiling}))
    )
    return tuple(dict.fromkeys(found))
