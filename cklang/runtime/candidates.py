# SPDX-License-Identifier: MIT
"""The algorithms that are tried when nobody named any: a preset's tilings with every vector width.

The last of each tiling moves single elements and so fits any extent, stride and alignment.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from cklang.arch import ArchSpec, arch
from cklang.keys import Algorithm, ConvSpecial, Signature
from cklang.runtime.presets import tilings
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


def _specials(signature: Signature) -> list[dict[str, object]]:
    """Return what kernels of a convolution may be made for, those that leave out most first."""
    if not signature.spatial:
        return [{}]
    return [{"special": special} for special in reversed(ConvSpecial)]


@cache
def _candidates(signature: Signature, spec: ArchSpec, preset: str) -> tuple[Algorithm, ...]:
    found = (
        algorithm
        for tiling in tilings(preset, signature, spec.name)
        for special in _specials(signature)
        for algorithm in enumerate_legal(signature, spec, pattern(**{**special, **tiling}))
    )
    return tuple(dict.fromkeys(found))
