# SPDX-License-Identifier: MIT
"""Kernels of one signature on one GPU, arranged so that a problem asks each rule few times.

A problem rule gives equal answers for algorithms with equal values in the fields it reads. The
pool asks it once for each distinct value and spreads the answers, so 500 kernels cost a few dozen
questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.keys import Algorithm, KernelKey
from cklang.runtime.convolution import AnyProblem
from cklang.runtime.record import Resources
from cklang.runtime.rules import Rejection, objections, rules_of
from cklang.runtime.rules.engine import ProblemRule
from cklang.tuning import traits
from cklang.tuning.model import Ranker

__all__ = ["Legal", "Pool"]

Legal = npt.NDArray[np.bool_]


class Pool:
    """Candidates in order of preference.

    Args:
        keys: The kernels, best first; all of one signature and for ``spec``.
        spec: The GPU.
        origin: Where they come from, for people.
        checked: Whether no algorithm rule objects to any of them, as is known already.
        built: What those take of the GPU that are known to be built; the cost model estimates it
            for the others.
    """

    def __init__(
        self,
        keys: Sequence[KernelKey],
        spec: ArchSpec,
        origin: str,
        *,
        checked: bool = False,
        built: Mapping[KernelKey, Resources] = MappingProxyType({}),
    ) -> None:
        self.keys = tuple(keys)
        self.spec = spec
        self.origin = origin
        self.built = built
        sound = [checked or self._is_sound(key) for key in self.keys]
        self._sound: Legal = np.array(sound, np.bool_)
        rules = rules_of(self.keys[0].signature) if self.keys else ()
        self._questions = [question(rule, self.keys) for rule in rules]

    def __len__(self) -> int:
        return len(self.keys)

    def _is_sound(self, key: KernelKey) -> bool:
        return next(objections(key.algorithm, key.signature, self.spec), None) is None

    def legal(self, problem: AnyProblem) -> Legal:
        """Return for each kernel whether no rule objects to it for ``problem``."""
        legal = self._sound
        for rule, distinct, index in self._questions:
            answers = [rule.check(problem, algorithm, self.spec) is None for algorithm in distinct]
            if not all(answers):
                legal = legal & np.array(answers, np.bool_)[index]
        return legal

    def position(self, key: KernelKey) -> int | None:
        """Return the place of a kernel, or None."""
        return self._positions.get(key)

    @cached_property
    def _positions(self) -> dict[KernelKey, int]:
        return {key: position for position, key in enumerate(self.keys)}

    def rejections(self, problem: AnyProblem, until: int | None = None) -> Iterator[Rejection]:
        """Yield the first objection to each kernel before position ``until`` that has one."""
        for key in self.keys[:until]:
            found = next(objections(key.algorithm, key.signature, self.spec, problem), None)
            if found is not None:
                yield found

    @cached_property
    def ranker(self) -> Ranker:
        """The cost model of these kernels.

        Raises:
            CkUnsupportedError: N001, N002, it has no constants for this GPU or its dtypes.
        """
        held = {
            key: traits.Resources(vgprs=used.vgprs, lds_bytes=used.lds_bytes)
            for key, used in self.built.items()
        }
        return Ranker(keys=self.keys, spec=self.spec, resources=held)


Question = tuple[ProblemRule, tuple[Algorithm, ...], npt.NDArray[np.intp]]


def question(rule: ProblemRule, keys: Sequence[KernelKey]) -> Question:
    """Return ``rule``, one algorithm for each distinct footprint, and each kernel's footprint."""
    seen: dict[object, int] = {}
    distinct: list[Algorithm] = []
    index = np.empty(len(keys), np.intp)
    for position, key in enumerate(keys):
        footprint = rule.footprint(key.algorithm)
        if footprint not in seen:
            seen[footprint] = len(distinct)
            distinct.append(key.algorithm)
        index[position] = seen[footprint]
    return rule, tuple(distinct), index
