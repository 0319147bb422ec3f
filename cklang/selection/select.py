# SPDX-License-Identifier: MIT
"""Which kernel serves a problem of any family: from the registry, else on demand.

Rules filter first, then the strategy ranks what is left. The order in which kernels are found is
fixed: the registry's kernels for the signature; if none of them is legal, the default preset; if
none of that is, every legal algorithm in canonical order. Who finds nothing gets every reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar, overload

from cklang import knobs
from cklang.arch import ArchSpec, arch
from cklang.attention_keys import AttentionAlgorithm, AttentionGradKey, AttentionKey
from cklang.build.bundle import Bundle, sole_source
from cklang.errors import CkError, CkUnsupportedError, error
from cklang.families.attention.plan import AttentionFunctions
from cklang.families.attention.problem import AttentionCase, AttentionGradCase
from cklang.families.attention.split_kv import WORTH, few_enough, split_counts, splits_without_model
from cklang.families.conv.problem import AnyProblem
from cklang.families.family import (
    AnyAlgorithm,
    AnySignature,
    Asked,
    ChosenKey,
    Filling,
    computes,
    key_of,
)
from cklang.keys import KernelKey
from cklang.selection.candidates import DEFAULT_PRESET, candidates
from cklang.selection.context import current
from cklang.selection.pool import AnyPool, Pool
from cklang.selection.registry import Registry
from cklang.selection.rules import Rejection, refusals, rules_of
from cklang.selection.space import enumerate_legal, satisfiable
from cklang.selection.strategy import Direction, Strategy, strategy_of

__all__ = ["AnySelection", "Request", "Selection", "find", "select"]

_REASONS = 8
"""How many different reasons a refusal prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asked of a selection; None: what the context says."""

    algorithm: AnyAlgorithm | None = None
    registry: Registry | None = None
    strategy: Strategy | None = None
    splits: int | None = None
    """Of an attention: among how many workgroups the keys of a tile of queries are shared."""


K = TypeVar("K", bound=ChosenKey)
P = TypeVar("P", bound=Asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Generic[K, P]):
    """The kernel chosen for a problem."""

    key: K
    position: int
    """Its place in the pool, from 0."""
    pool: Pool[K]
    problem: P
    """As the kernel computes it: of an attention, with the splits of its keys."""
    reason: str
    """Why it, and not another one."""

    @property
    def candidates(self) -> int:
        """How many kernels there were to choose from."""
        return len(self.pool)

    @property
    def origin(self) -> str:
        """Where the candidates came from."""
        return self.pool.origin

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """The first objection to each candidate before it that has one."""
        return tuple(self.pool.rejections(self.problem, self.position))

    def __str__(self) -> str:
        return f"{self.key.label}: {self.reason} (from {self.origin})"


AnySelection = Selection[Any, Any]
"""A kernel of any family."""


@overload
def select(
    problem: AnyProblem,
    *,
    registry: Registry | None = None,
    arch: str | ArchSpec | None = None,
    strategy: str | Strategy | Direction | None = None,
    epilogue: Filling | None = None,
    splits: int | None = None,
) -> Selection[KernelKey, AnyProblem]: ...


@overload
def select(
    problem: AttentionCase,
    *,
    registry: Registry | None = None,
    arch: str | ArchSpec | None = None,
    strategy: str | Strategy | Direction | None = None,
    epilogue: Filling | None = None,
    splits: int | None = None,
) -> Selection[AttentionKey, AttentionCase]: ...


@overload
def select(
    problem: AttentionGradCase,
    *,
    registry: Registry | None = None,
    arch: str | ArchSpec | None = None,
    strategy: str | Strategy | Direction | None = None,
    epilogue: Filling | None = None,
    splits: int | None = None,
) -> Selection[AttentionGradKey, AttentionGradCase]: ...


def select(
    problem: Asked,
    *,
    registry: Registry | None = None,
    arch: str | ArchSpec | None = None,
    strategy: str | Strategy | Direction | None = None,
    epilogue: Filling | None = None,
    splits: int | None = None,
) -> AnySelection:
    """Return the kernel for ``problem``; deterministic, and remembered.

    Args:
        problem: What is to be computed.
        registry: Where to look first; the context's if left out.
        arch: The GPU or its name; the context's, else that of the device a call would run on.
        strategy: As in :func:`cklang.using`; the context's if left out.
        epilogue: What ``autotune`` needs to build kernels that are not in the registry: the
            epilogue, or the functions of an attention.
        splits: Of an attention, as in :meth:`cklang.Op.using`.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is no candidate.
    """
    defaults = current()
    gpu = defaults.arch if arch is None else arch
    chosen = defaults.strategy if strategy is None else strategy_of(strategy)
    where = defaults.registry if registry is None else registry
    question = _Question(problem, where, gpu, chosen, splits)
    return _remembered(question, epilogue)


@overload
def find(
    problem: AnyProblem, spec: ArchSpec, request: Request, filling: Filling
) -> Selection[KernelKey, AnyProblem]: ...


@overload
def find(
    problem: AttentionCase, spec: ArchSpec, request: Request, filling: Filling
) -> Selection[AttentionKey, AttentionCase]: ...


@overload
def find(
    problem: AttentionGradCase, spec: ArchSpec, request: Request, filling: Filling
) -> Selection[AttentionGradKey, AttentionGradCase]: ...


def find(problem: Asked, spec: ArchSpec, request: Request, filling: Filling) -> AnySelection:
    """Return the kernel for one kernel of a call.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is no candidate.
        CkValueError: K002, the algorithm asked for is one of another family.
    """
    if request.algorithm is not None:
        return _asked(problem, spec, request.algorithm, request.splits)
    defaults = current()
    registry = defaults.registry if request.registry is None else request.registry
    strategy = defaults.strategy if request.strategy is None else request.strategy
    question = _Question(problem, registry, spec, strategy, request.splits)
    return _remembered(question, filling)


class _Question(NamedTuple):
    """All that an answer depends on."""

    problem: Asked
    registry: Registry
    gpu: str | ArchSpec | None
    strategy: Strategy
    splits: int | None


def _remembered(question: _Question, filling: Filling | None) -> AnySelection:
    # Without a GPU the answer depends on the device that calls would run on.
    device = knobs.DEVICE.get() if question.gpu is None else None
    about = (question.problem, question.gpu, question.strategy, question.splits, device)
    return question.registry.derived(about, lambda: _fresh(question, _spec(question.gpu), filling))


def _spec(gpu: str | ArchSpec | None) -> ArchSpec:
    if gpu is None:
        from cklang.device.device import target_of

        return target_of().spec
    return arch(gpu) if isinstance(gpu, str) else gpu


def _fresh(question: _Question, spec: ArchSpec, filling: Filling | None) -> AnySelection:
    problem = question.problem
    if not isinstance(problem, AttentionCase) or problem.signature.split:
        return _single(problem, question, spec, filling)
    count, why = _splits(problem, question, spec)
    found = _in_splits(problem, count, question, spec, filling)
    fewer = few_enough(count, problem, found.key.algorithm)
    if fewer < count:
        found = _in_splits(problem, fewer, question, spec, filling)
    return replace(found, reason=f"{found.reason}{why}")


def _in_splits(
    case: AttentionCase, count: int, question: _Question, spec: ArchSpec, filling: Filling | None
) -> AnySelection:
    if count == 1:
        return _single(case, question, spec, filling)
    if isinstance(filling, AttentionFunctions):
        # What follows o is computed by the kernel that combines the splits.
        filling = replace(filling, output=None)
    return _single(case.split(count), question, spec, filling)


def _splits(case: AttentionCase, question: _Question, spec: ArchSpec) -> tuple[int, str]:
    """Return among how many workgroups keys are shared, and why that many if nobody said so."""
    if question.splits is not None:
        return question.splits, ""
    counts = split_counts(case)
    if len(counts) == 1:
        return counts[0], ""
    offers: list[tuple[int, float, int]] = []
    for count in counts:
        form = case.split(count) if count > 1 else case
        for level, pool in enumerate(_pools(question.registry, form.signature, spec)):
            legal = pool.legal(form)
            if not legal.any():
                continue
            try:
                offers.append((level, float(pool.times_of(form)[legal].min()), count))
            except CkUnsupportedError:
                algorithm = pool.keys[int(legal.argmax())].algorithm
                count = splits_without_model(case, spec, algorithm)
                why = f"; {count} splits keep the GPU busy" if count > 1 else ""
                return count, why
            break
    if not offers:
        return 1, ""
    _, least, best = min(offers)
    whole = next((us for level, us, count in offers if (level, count) == (min(offers)[0], 1)), None)
    if best == 1 or whole is None:
        return best, ""
    if least > WORTH * whole:
        return 1, ""
    return best, f"; {least:.2f} µs predicted in {best} splits, {whole:.2f} in one"


def _single(
    problem: Asked, question: _Question, spec: ArchSpec, filling: Filling | None
) -> AnySelection:
    signature, registry = problem.signature, question.registry
    seen: list[AnyPool] = []
    for pool in _pools(registry, signature, spec):
        seen.append(pool)
        legal = pool.legal(problem)
        if not legal.any():
            continue
        declared = registry.find(pool.keys[0])
        known = declared.filling if declared is not None else filling
        chosen = question.strategy.choose(pool, problem, legal, known)
        return Selection(
            key=pool.keys[chosen.position],
            position=chosen.position,
            pool=pool,
            problem=problem,
            reason=chosen.reason,
        )
    return _widest(problem, signature, spec, seen)


def _pools(registry: Registry, signature: AnySignature, spec: ArchSpec) -> Iterator[AnyPool]:
    """Yield the kernels that are declared, then the others; either may be none."""
    yield registry.derived((signature, spec), lambda: _declared(registry, signature, spec))
    bundles = sole_source()
    if bundles is not None:
        yield _bundled(bundles, signature, spec)
    else:
        yield _on_demand(signature, spec)


@lru_cache(maxsize=256)
def _bundled(bundles: tuple[Bundle, ...], signature: AnySignature, spec: ArchSpec) -> AnyPool:
    held = [a for bundle in bundles for a in bundle.algorithms(signature, spec.name)]
    keys = [key_of(signature, algorithm, spec.name) for algorithm in dict.fromkeys(held)]
    return Pool(keys, spec, "bundles; there are no CK Tile headers to compile others")


def _declared(registry: Registry, signature: AnySignature, spec: ArchSpec) -> AnyPool:
    mine = registry.filter(lambda key: key.arch == spec.name and computes(key, signature))
    ordered = sorted(mine, key=lambda kernel: -kernel.priority)
    keys = [kernel.key for kernel in ordered]
    # The model of attention does not ask for them.
    products = [key for key in keys if isinstance(key, KernelKey)]
    built = {key: used for key in products if (used := registry.resources(key)) is not None}
    return Pool(keys, spec, f"registry {registry.name!r}", built=built)


@lru_cache(maxsize=1024)
def _on_demand(signature: AnySignature, spec: ArchSpec) -> AnyPool:
    keys = [key_of(signature, each, spec.name) for each in candidates(signature, spec)]
    origin = f"preset {DEFAULT_PRESET!r}, built on demand"
    return Pool(keys, spec, origin, checked=True)


def _widest(
    problem: Asked, signature: AnySignature, spec: ArchSpec, seen: list[AnyPool]
) -> AnySelection:
    """Take the first algorithm of the whole legal set that ``problem`` allows, or say why none."""
    for algorithm in _worth_trying(problem, signature, spec):
        keys = [key_of(signature, algorithm, spec.name)]
        pool: AnyPool = Pool(keys, spec, "every legal algorithm, built on demand", checked=True)
        if pool.legal(problem).any():
            reason = "the first of all legal algorithms that this problem allows"
            return Selection(key=keys[0], position=0, pool=pool, problem=problem, reason=reason)
        if len(seen) < _REASONS:
            seen.append(pool)
    if not any(len(pool) for pool in seen):
        notes = [str(each) for each in refusals(signature, spec)]
        raise error("K102", notes=notes, signature=signature.words, arch=spec.name)
    rejections = chain.from_iterable(pool.rejections(problem) for pool in seen)
    raise _refusal(problem, spec, rejections, "every algorithm there is")


def _worth_trying(
    problem: Asked, signature: AnySignature, spec: ArchSpec
) -> Iterator[AnyAlgorithm]:
    """Yield the whole legal set; one of it, for its reasons, if no algorithm can help."""
    if sole_source() is not None:
        return
    legal = enumerate_legal(signature, spec)
    first = next(legal, None)
    if first is None:
        return
    yield first
    if all(satisfiable(rule, first, problem, signature, spec) for rule in rules_of(signature)):
        yield from legal


def _asked(
    problem: Asked, spec: ArchSpec, algorithm: AnyAlgorithm, splits: int | None
) -> AnySelection:
    if isinstance(problem, AttentionCase) and isinstance(algorithm, AttentionAlgorithm):
        count = splits_without_model(problem, spec, algorithm) if splits is None else splits
        count = few_enough(count, problem, algorithm)
        problem = problem.split(count) if count > 1 else problem
    key = key_of(problem.signature, algorithm, spec.name)
    pool: AnyPool = Pool([key], spec, "the algorithm you named")
    if not pool.legal(problem).all():
        raise _refusal(problem, spec, pool.rejections(problem), "the algorithm you named")
    reason = "you named it, and no rule objects"
    return Selection(key=key, position=0, pool=pool, problem=problem, reason=reason)


def _refusal(problem: Asked, spec: ArchSpec, rejections: Iterable[Rejection], what: str) -> CkError:
    counted = Counter(str(rejection) for rejection in rejections)
    notes = [reason if count == 1 else f"{count} x {reason}" for reason, count in counted.items()]
    hidden = len(notes) - _REASONS
    if hidden > 0:
        notes[_REASONS:] = [f"and {hidden} more reasons"]
    return error("K101", notes=notes, problem=problem, arch=spec.name, what=what)
