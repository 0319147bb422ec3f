# SPDX-License-Identifier: MIT
"""The rules of any family, found by a signature, and the algorithms that they let by."""

from collections.abc import Iterator
from typing import Any

from cklang.arch import ArchSpec, arch
from cklang.families import family_of
from cklang.families.protocol import DEFAULT_PRESET
from cklang.families.rule import Rejection
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


def violations(
    algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any = None
) -> Iterator[Rejection]:
    """Yield a rejection for each rule that objects to ``algorithm``, in the order of the rules.

    Rules about problems are asked if there is a ``problem``.
    """
    return family_of(signature).rules.rejections(algorithm, signature, spec, problem)
