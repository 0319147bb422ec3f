# SPDX-License-Identifier: MIT
"""The algorithms that are tried when nobody named any: a preset's tilings.

Those of products come with every vector width; the last of each tiling moves single elements and so
fits any extent, stride and alignment. Those of attention pad everything that may end inside a tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import overload

from cklang.arch import ArchSpec, arch
from cklang.attention_keys import AttentionGradSignature, AttentionSignature
from cklang.families.attention.profiles import profile_algorithms
from cklang.families.family import AnyAlgorithm, AnySignature, opened
from cklang.families.presets import tilings, variants
from cklang.keys import Algorithm, ConvSpecial, Signature
from cklang.selection.space import enumerate_legal, pattern

__all__ = ["DEFAULT_PRESET", "candidates"]

DEFAULT_PRESET = "essential"


@overload
def candidates(
    signature: Signature, gpu: ArchSpec | str, preset: str = DEFAULT_PRESET
) -> tuple[Algorithm, ...]: ...


@overload
def candidates(
    signature: AnySignature, gpu: ArchSpec | str, preset: str = DEFAULT_PRESET
) -> tuple[AnyAlgorithm, ...]: ...


def candidates(
    signature: AnySignature, gpu: ArchSpec | str, preset: str = DEFAULT_PRESET
) -> tuple[AnyAlgorithm, ...]:
    """Return the legal algorithms of a preset for ``signature``, best first; empty if none is.

    The presets of attention are its profiles.

    Raises:
        CkValueError: K001, there is none of that name; K004, there is no such GPU.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    if isinstance(signature, Signature):
        return _candidates(replace(signature, epilogue=""), spec, preset)
    return _of_profile(opened(signature), spec, preset)


@cache
def _of_profile(
    signature: AttentionSignature | AttentionGradSignature, spec: ArchSpec, name: str
) -> tuple[AnyAlgorithm, ...]:
    return profile_algorithms(name, signature, spec)


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
