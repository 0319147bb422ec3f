# SPDX-License-Identifier: MIT
"""The rules of any family, found by a signature."""

from collections.abc import Iterator
from typing import Any

from cklang.arch import ArchSpec
from cklang.families import family_of
from cklang.families.rule import Rejection
from cklang.keys import KernelSignature


def violations(
    algorithm: Any, signature: KernelSignature, spec: ArchSpec, problem: Any = None
) -> Iterator[Rejection]:
    """Yield a rejection for each rule that objects to ``algorithm``, in the order of the rules.

    Rules about problems are asked if there is a ``problem``.
    """
    return family_of(signature).rules.rejections(algorithm, signature, spec, problem)
