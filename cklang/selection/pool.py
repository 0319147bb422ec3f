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
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.attention_keys import AnyKey, AttentionGradKey
from cklang.build.record import Resources
from cklang.errors import CkUnsupportedError
from cklang.families.attention.cost import attention_estimate, attention_table
from cklang.families.attention.ranking import attention_grad_times, attention_times, shape_of
from cklang.families.attention_backward.cost import attention_grad_estimate
from cklang.families.cost_constants import fitted
from cklang.families.family import AnyAlgorithm, Asked, ChosenKey, signature_of
from cklang.families.gemm.cost import traits
from cklang.families.gemm.cost.model import Ranker
from cklang.families.rule import ProblemRule
from cklang.keys import KernelKey
from cklang.selection.rules import Rejection, objections, rules_of

__all__ = ["AnyPool", "Legal", "Pool", "Times"]

Legal = npt.NDArray[np.bool_]
Times = npt.NDArray[np.float64]

K = TypeVar("K", bound=ChosenKey)


class Pool(Generic[K]):
    """Candidates in order of preference.

    Args:
        keys: The kernels, best first; all of one signature and for ``spec``.
        spec: The GPU.
        origin: Where they come from, for people.
        checked: Whether no algorithm rule objects to any of them, as is known already.
        built: What those of products take of the GPU that are known to be built; the cost model
            estimates it for the others.
    """

    def __init__(
        self,
        keys: Sequence[K],
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
        rules = rules_of(signature_of(self.keys[0])) if self.keys else ()
        self._questions = [question(rule, self.keys) for rule in rules]

    def __len__(self) -> int:
        return len(self.keys)

    def _is_sound(self, key: K) -> bool:
        return next(objections(key.algorithm, signature_of(key), self.spec), None) is None

    def legal(self, problem: Asked) -> Legal:
        """Return for each kernel whether no rule objects to it for ``problem``."""
        legal = self._sound
        for rule, distinct, index in self._questions:
            if rule.harmless(problem, self.spec):
                continue
            answers = [rule.check(problem, algorithm, self.spec) is None for algorithm in distinct]
            if not all(answers):
                legal = legal & np.array(answers, np.bool_)[index]
        return legal

    def position(self, key: AnyKey) -> int | None:
        """Return the place of a kernel, or None."""
        return self._positions.get(key)

    @cached_property
    def _positions(self) -> dict[AnyKey, int]:
        return {key: position for position, key in enumerate(self.keys)}

    def rejections(self, problem: Asked, until: int | None = None) -> Iterator[Rejection]:
        """Yield the first objection to each kernel before position ``until`` that has one."""
        for key in self.keys[:until]:
            found = next(objections(key.algorithm, signature_of(key), self.spec, problem), None)
            if found is not None:
                yield found

    def account(self, problem: Asked) -> Iterator[tuple[K, str]]:
        """Yield each kernel with its predicted time, or with the first rule that objects."""
        times = self._known_times(problem)
        for place, key in enumerate(self.keys):
            found = next(objections(key.algorithm, signature_of(key), self.spec, problem), None)
            legal = "legal" if times is None else f"{times[place]:.2f} µs predicted"
            yield key, legal if found is None else f"rejected, {found}"

    def _known_times(self, problem: Asked) -> Times | None:
        try:
            return self.times_of(problem) if self.legal(problem).any() else None
        except CkUnsupportedError:
            return None

    def times_of(self, problem: Asked) -> Times:
        """Return the time in µs that the cost model predicts for each kernel.

        Raises:
            CkUnsupportedError: N002, arch_specs has no matrix rate for its dtypes.
        """
        if isinstance(self.keys[0], KernelKey):
            return self.ranker.model.times_of(cast(Any, problem))
        if isinstance(self.keys[0], AttentionGradKey):
            return attention_grad_times(cast(Any, self.keys), cast(Any, problem), self.spec)
        return attention_times(cast(Any, self.keys), cast(Any, problem), self.spec)

    def table(self, keys: Sequence[K], problem: Asked) -> list[str]:
        """Return the terms that make up the times of one or two kernels, as lines of text.

        Raises:
            CkUnsupportedError: N002, as above.
        """
        if isinstance(self.keys[0], KernelKey):
            return self.ranker.table(cast(Any, keys), cast(Any, problem))
        if isinstance(self.keys[0], AttentionGradKey):
            shape = shape_of(cast(Any, problem).forward)
            made = [attention_grad_estimate(cast(Any, key), shape, self.spec) for key in keys]
        else:
            shape = shape_of(cast(Any, problem))
            made = [attention_estimate(cast(Any, key), shape, self.spec) for key in keys]
        return attention_table([key.label for key in keys], made)

    @cached_property
    def carried_from(self) -> str:
        """The GPU whose constants the predictions use if nobody measured this one, else empty."""
        return fitted(self.spec).carried_from

    @cached_property
    def ranker(self) -> Ranker:
        """The cost model of these kernels, of products or of convolutions.

        Raises:
            CkUnsupportedError: N002, arch_specs has no matrix rate for its dtypes.
        """
        held = {
            key: traits.Resources(vgprs=used.vgprs, lds_bytes=used.lds_bytes)
            for key, used in self.built.items()
        }
        keys = cast(tuple[KernelKey, ...], self.keys)
        return Ranker(keys=keys, spec=self.spec, resources=held)


AnyPool = Pool[Any]
"""A pool of any family."""

Question = tuple[ProblemRule, tuple[AnyAlgorithm, ...], npt.NDArray[np.intp]]


def question(rule: ProblemRule, keys: Sequence[ChosenKey]) -> Question:
    """Return ``rule``, one algorithm for each distinct footprint, and each kernel's footprint."""
    seen: dict[object, int] = {}
    distinct: list[AnyAlgorithm] = []
    index = np.empty(len(keys), np.intp)
    for position, key in enumerate(keys):
        footprint = rule.footprint(key.algorithm)
        if footprint not in seen:
            seen[footprint] = len(distinct)
            distinct.append(key.algorithm)
        index[position] = seen[footprint]
    return rule, tuple(distinct), index
