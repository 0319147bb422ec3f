# SPDX-License-Identifier: MIT
"""The algorithms that are tried when nobody named any: those of a preset."""

from typing import Any

from cklang.arch import ArchSpec, arch
from cklang.families import family_of
from cklang.families.protocol import DEFAULT_PRESET
from cklang.keys import KernelSignature


def candidates(
    signature: KernelSignature, gpu: ArchSpec | str, preset: str = DEFAULT_PRESET
) -> tuple[Any, ...]:
    """Return the legal algorithms of a preset for ``signature``, best first; empty if none is.

    The presets of attention are its profiles.

    Raises:
        CkValueError: K001, there is none of that name; K004, there is no such GPU.
    """
    spec = arch(gpu) if isinstance(gpu, str) else gpu
    return family_of(signature).candidates(signature, spec, preset)
