# SPDX-License-Identifier: MIT
"""Kernels of one signature on one GPU, arranged so that a problem asks each rule few times.

A problem rule gives equal answers for algorithms with equal values in the fields it reads. The
pool asks it once for each distinct value and spreads the answers, so 500 kernels cost a few dozen
questions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from cklang.arch import ArchSpec
from cklang.device.resources import Resources
from cklang.errors import CkUnsupportedError
from cklang.families import AnyFamily, family_of, key_of
from cklang.families.cost_constants import fitted
from cklang.families.protocol import CostModel, Times
from cklang.families.rule import ProblemRule, Rejection
from cklang.forks import cached_property
from cklang.keys import AnyKey
from cklang.memo import BoundedMemo
from cklang.selection.regret import regret_bound

__all__ = ["AnyPool", "Legal", "Pool", "Times"]

Legal = npt.NDArray[np.bool_]

SHARES_HANDICAP = 1.05
"""What the time of a kernel whose workgroups share sums counts beside those of others: memory must
be cleared before it."""

_PROBLEMS = 64
"""For how many problems a pool remembers the times of its kernels."""

K = TypeVar("K", bound=AnyKey)


class Pool(Generic[K]):
    """Candidates in order of preference.

    Args:
        keys: The kernels, best first; all of one signature and for ``spec``.
        spec: The GPU.
        origin: Where they come from, for people.
        checked: Whether no algorithm rule objects to any of them, as is known already.
        built: What those of them take of the GPU that are known to be built; the cost model
            estimates it for the others.
        preferred: How many of the first ones a strategy takes before others that are not clearly
            better; none if left out.
        sharing: Whether kernels may be added whose workgroups share sums (:meth:`with_shares`).
        shared: How many of the last ones are such kernels.
    """

    def __init__(
        self,
        keys: Sequence[K],
        spec: ArchSpec,
        origin: str,
        *,
        checked: bool = False,
        built: Mapping[AnyKey, Resources] = MappingProxyType({}),
        preferred: int = 0,
        sharing: bool = False,
        shared: int = 0,
    ) -> None:
        self.preferred = preferred
        self.sharing = sharing
        plain = len(keys) - shared
        self.handicap: Times = np.array([1.0] * plain + [SHARES_HANDICAP] * shared)
        """What predicted times count, for choosing."""
        self.keys = tuple(keys)
        self.spec = spec
        self.origin = origin
        self.built = built
        sound = [checked or self._is_sound(key) for key in self.keys]
        self._sound: Legal = np.array(sound, np.bool_)
        rules = self.family.rules.problems if self.keys else ()
        self._rule_tables = [rule_table(rule, self.keys) for rule in rules]
        self._times: BoundedMemo[Any, Times] = BoundedMemo(_PROBLEMS)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def family(self) -> AnyFamily:
        """The family of the kernels; there is at least one."""
        return family_of(self.keys[0].signature)

    def _is_sound(self, key: K) -> bool:
        return self.family.rules.accepts(key.algorithm, key.signature, self.spec)

    def _first_rejection(self, key: K, problem: Any) -> Rejection | None:
        rules = self.family.rules
        return next(rules.rejections(key.algorithm, key.signature, self.spec, problem), None)

    def legal(self, problem: Any) -> Legal:
        """Return for each kernel whether no rule objects to it for ``problem``."""
        legal = self._sound
        for rule, distinct, index in self._rule_tables:
            if rule.always_satisfied(problem, self.spec):
                continue
            answers = [rule.check(problem, algorithm, self.spec) is None for algorithm in distinct]
            if not all(answers):
                legal = legal & np.array(answers, np.bool_)[index]
        return legal

    def with_shares(self, problem: Any, legal: Legal) -> tuple[Pool[K], Legal]:
        """Return these kernels with others of the same tilings whose workgroups share sums.

        Itself if that would not help: where ``problem`` has tiles enough for the GPU. The second
        item tells which are legal for the problem, as ``legal`` does of these.
        """
        if not self.sharing:
            return self, legal
        algorithms = [self.keys[place].algorithm for place in np.flatnonzero(legal)]
        more = tuple(self.family.supply.shares(problem, algorithms, self.spec))
        if not more:
            return self, legal
        joined: Pool[K] = _with_shares(self, more)
        return joined, joined.legal(problem)

    def position(self, key: AnyKey) -> int | None:
        """Return the place of a kernel, or None."""
        return self._positions.get(key)

    @cached_property
    def _positions(self) -> dict[AnyKey, int]:
        return {key: position for position, key in enumerate(self.keys)}

    def rejections(self, problem: Any, until: int | None = None) -> Iterator[Rejection]:
        """Yield the first violation to each kernel before position ``until`` that has one."""
        for key in self.keys[:until]:
            rejection = self._first_rejection(key, problem)
            if rejection is not None:
                yield rejection

    def account(self, problem: Any) -> Iterator[tuple[K, str]]:
        """Yield each kernel with its predicted time, or with the first rule that objects."""
        times = self._known_times(problem)
        for place, key in enumerate(self.keys):
            rejection = self._first_rejection(key, problem)
            legal = "legal" if times is None else f"{times[place]:.2f} µs predicted"
            yield key, legal if rejection is None else f"rejected, {rejection}"

    def _known_times(self, problem: Any) -> Times | None:
        try:
            return self.times_of(problem) if self.legal(problem).any() else None
        except CkUnsupportedError:
            return None

    def times_of(self, problem: Any) -> Times:
        """Return the time in µs that the cost model predicts for each kernel."""
        times = self._times.get(problem)
        if times is None:
            times = self.cost.times(problem)
            times.flags.writeable = False
            self._times.put(problem, times)
        return times

    def table(self, places: Sequence[int], problem: Any) -> list[str]:
        """Return the terms that make up the times of one or two kernels, as lines of text."""
        return self.cost.table(places, problem)

    def terms(self, place: int, problem: Any) -> Mapping[str, float]:
        """Return what makes up the time of the kernel at a place, in µs."""
        return self.cost.terms(place, problem)

    @cached_property
    def carried_from(self) -> str:
        """The GPU whose constants the predictions use if nobody measured this one, else empty."""
        return fitted(self.spec, self.family.name).carried_from

    @cached_property
    def kinds(self) -> npt.NDArray[np.intp]:
        """A number for each kernel, equal for those whose predictions are wrong together."""
        numbers: dict[object, int] = {}
        kinds = [self.family.supply.kind(key.algorithm) for key in self.keys]
        return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], np.intp)

    def regret(self, problem: Any, times: Times, chosen: int) -> float | None:
        """Return by which part of the best time a choice is slower, at most, in 9 of 10 cases.

        None where nobody measured how wrong the cost model is. Of each kind the quickest kernel
        counts, for predictions of one kind are wrong together.

        Args:
            problem: What is to be computed.
            times: Predicted; infinite where a kernel is not legal.
            chosen: The place of the choice.
        """
        constants = fitted(self.spec, self.family.name)
        if constants.carried_from or constants.family != self.family.name:
            return None
        spread = constants.spread(min(problem.m, problem.n))
        return None if spread is None else regret_bound(*self.rivals(times, chosen), spread)

    def rivals(self, times: Times, chosen: int) -> tuple[Times, int]:
        """Return the least time of each kind of kernels, that of the choice for its own kind.

        And the kind of the choice.
        """
        least = np.full(len(self), np.inf)
        np.minimum.at(least, self.kinds, times)
        kind = int(self.kinds[chosen])
        least[kind] = times[chosen]
        return least, kind

    @cached_property
    def cost(self) -> CostModel:
        """The cost model of these kernels."""
        return self.family.cost(self.keys, self.spec, self.built)


AnyPool = Pool[Any]
"""A pool of any family."""


@lru_cache(maxsize=64)
def _with_shares(pool: AnyPool, algorithms: tuple[Any, ...]) -> AnyPool:
    """Return a pool with further kernels of its signature, as far as rules allow them."""
    signature, spec, rules = pool.keys[0].signature, pool.spec, pool.family.rules
    shared = [
        key_of(signature, algorithm, spec.name)
        for algorithm in dict.fromkeys(algorithms)
        if rules.accepts(algorithm, signature, spec)
    ]
    return Pool(
        (*pool.keys, *shared),
        spec,
        pool.origin,
        checked=True,
        preferred=pool.preferred,
        shared=len(shared),
    )


RuleTable = tuple[ProblemRule, tuple[Any, ...], npt.NDArray[np.intp]]


def rule_table(rule: ProblemRule, keys: Sequence[AnyKey]) -> RuleTable:
    """Return ``rule``, an algorithm for each decision key, and each kernel's index among these."""
    index_of: dict[object, int] = {}
    distinct: list[Any] = []
    index = np.empty(len(keys), np.intp)
    for position, key in enumerate(keys):
        decision_key = rule.decision_key(key.algorithm)
        if decision_key not in index_of:
            index_of[decision_key] = len(distinct)
            distinct.append(key.algorithm)
        index[position] = index_of[decision_key]
    return rule, tuple(distinct), index
