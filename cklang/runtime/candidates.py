# SPDX-License-Identifier: MIT
"""The algorithms that are tried when nobody named any: a preset's tilings.

Those of products come with every vector width; the last of each tiling moves single elements and so
fits any extent, stride and alignment. Those of attention pad everything that may end inside a tile.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import overload

from cklang.arch import ArchSpec, arch
from cklang.attention_keys import (
    AttentionAlgorithm,
    AttentionGradAlgorithm,
    AttentionGradSignature,
    AttentionSignature,
)
from cklang.codec import unknown
from cklang.keys import Algorithm, ConvSpecial, Signature
from cklang.runtime.attention.space import attention_algorithms, attention_grad_algorithms
from cklang.runtime.family import AnyAlgorithm, AnySignature
from cklang.runtime.presets import tilings
from cklang.runtime.rules import objections
from cklang.runtime.space import enumerate_legal, pattern

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
    """Return the legal algorithms of ``preset`` for ``signature``, best first; empty if none is.

    Raises:
        CkValueError: K001, there is no such preset; K004, there is no such GPU.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    if isinstance(signature, Signature):
        return _candidates(replace(signature, epilogue=""), spec, preset)
    if preset != DEFAULT_PRESET:
        raise unknown("preset of attention", preset, [DEFAULT_PRESET])
    return tuple(
        algorithm
        for algorithm in _of_attention(signature, spec)
        if next(objections(algorithm, signature, spec), None) is None
    )


def _of_attention(
    signature: AttentionSignature | AttentionGradSignature, spec: ArchSpec
) -> tuple[AttentionAlgorithm | AttentionGradAlgorithm, ...]:
    if isinstance(signature, AttentionSignature):
        return attention_algorithms(spec, signature)
    return attention_grad_algorithms(spec, signature.forward)


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
