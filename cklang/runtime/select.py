# SPDX-License-Identifier: MIT
"""Which kernel serves a problem: from the registry, else on demand from the legal set.

Rules filter first, then the strategy ranks what is left. The order in which kernels are found is
fixed: the registry's kernels for the signature; if none of them is legal, the default preset; if
none of that is, every legal algorithm in canonical order. Who finds nothing gets every reason.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from cklang import knobs
from cklang.arch import ArchSpec, arch
from cklang.attention_keys import AttentionAlgorithm
from cklang.errors import CkError, error
from cklang.ir.nodes import Function
from cklang.keys import Algorithm, KernelKey, Signature
from cklang.runtime.bundle import Bundle, sole_source
from cklang.runtime.candidates import DEFAULT_PRESET, candidates
from cklang.runtime.context import current
from cklang.runtime.convolution import AnyProblem
from cklang.runtime.pool import Pool
from cklang.runtime.registry import Registry
from cklang.runtime.rules import Rejection, refusals, rules_of
from cklang.runtime.space import enumerate_legal, satisfiable
from cklang.runtime.strategy import Direction, Strategy, strategy_of

__all__ = ["Request", "Selection", "find", "select"]

_MEMO_LIMIT = 4096
_REASONS = 8
"""How many different reasons a refusal prints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asked of a selection; None: what the context says."""

    algorithm: Algorithm | AttentionAlgorithm | None = None
    registry: Registry | None = None
    strategy: Strategy | None = None
    splits: int | None = None
    """Of an attention: among how many workgroups the keys of a tile of queries are shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The kernel chosen for a problem."""

    key: KernelKey
    position: int
    """Its place in the pool, from 0."""
    pool: Pool
    problem: AnyProblem
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


_memo: dict[object, Selection] = {}
_lock = threading.Lock()


def select(
    problem: AnyProblem,
    *,
    registry: Registry | None = None,
    arch: str | ArchSpec | None = None,
    strategy: str | Strategy | Direction | None = None,
    epilogue: Function | None = None,
) -> Selection:
    """Return the kernel for ``problem``; deterministic, and remembered.

    Args:
        problem: What is to be computed.
        registry: Where to look first; the context's if left out.
        arch: The GPU or its name; the context's, else that of the device a call would run on.
        strategy: As in :func:`cklang.using`; the context's if left out.
        epilogue: What ``autotune`` needs to build kernels that are not in the registry.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is no candidate.
    """
    defaults = current()
    gpu = defaults.arch if arch is None else arch
    chosen = defaults.strategy if strategy is None else strategy_of(strategy)
    request = (problem, registry or defaults.registry, gpu, chosen)
    return _remembered(request, epilogue)


def find(problem: AnyProblem, spec: ArchSpec, request: Request, epilogue: Function) -> Selection:
    """Return the kernel for one kernel of a call.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is no candidate.
    """
    if isinstance(request.algorithm, AttentionAlgorithm):
        want = "a cklang.Algorithm for an op without attention"
        raise error("K002", what="using(...)", want=want, got=request.algorithm)
    if request.algorithm is not None:
        return _asked(problem, spec, request.algorithm)
    defaults = current()
    registry = defaults.registry if request.registry is None else request.registry
    strategy = defaults.strategy if request.strategy is None else request.strategy
    return _remembered((problem, registry, spec, strategy), epilogue)


_Question = tuple[AnyProblem, Registry, "str | ArchSpec | None", Strategy]


def _remembered(question: _Question, epilogue: Function | None) -> Selection:
    # Without a GPU the answer depends on the device that calls would run on.
    device = knobs.DEVICE.get() if question[2] is None else None
    key = (question, question[1].version, device)
    known = _memo.get(key)
    if known is not None:
        return known
    problem, registry, gpu, strategy = question
    found = _fresh(problem, registry, _spec(gpu), strategy, epilogue)
    with _lock:
        while len(_memo) >= _MEMO_LIMIT:
            _memo.pop(next(iter(_memo)))
        _memo[key] = found
    return found


def _spec(gpu: str | ArchSpec | None) -> ArchSpec:
    if gpu is None:
        from cklang.runtime.device import target_of

        return target_of().spec
    return arch(gpu) if isinstance(gpu, str) else gpu


def _fresh(
    problem: AnyProblem,
    registry: Registry,
    spec: ArchSpec,
    strategy: Strategy,
    epilogue: Function | None,
) -> Selection:
    signature = problem.signature
    seen: list[Pool] = []
    for pool in _pools(registry, signature, spec):
        seen.append(pool)
        legal = pool.legal(problem)
        if not legal.any():
            continue
        declared = registry.find(pool.keys[0])
        known = declared.epilogue if declared is not None else epilogue
        chosen = strategy.choose(pool, problem, legal, known)
        return Selection(
            key=pool.keys[chosen.position],
            position=chosen.position,
            pool=pool,
            problem=problem,
            reason=chosen.reason,
        )
    return _widest(problem, signature, spec, seen)


def _pools(registry: Registry, signature: Signature, spec: ArchSpec) -> Iterator[Pool]:
    declared = _declared(registry, registry.version, signature, spec)
    if len(declared):
        yield declared
    bundles = sole_source()
    if bundles is not None:
        yield _bundled(bundles, signature, spec)
    else:
        pool = _on_demand(signature, spec)
        if len(pool):
            yield pool


@lru_cache(maxsize=256)
def _bundled(bundles: tuple[Bundle, ...], signature: Signature, spec: ArchSpec) -> Pool:
    held = [a for bundle in bundles for a in bundle.algorithms(signature, spec.name)]
    keys = [KernelKey(signature, algorithm, spec.name) for algorithm in dict.fromkeys(held)]
    return Pool(keys, spec, "bundles; there are no CK Tile headers to compile others")


@lru_cache(maxsize=256)
def _declared(registry: Registry, version: int, signature: Signature, spec: ArchSpec) -> Pool:
    mine = registry.filter(lambda key: key.arch == spec.name and key.signature == signature)
    ordered = sorted(mine, key=lambda kernel: -kernel.priority)
    keys = [kernel.key for kernel in ordered]
    built = {key: used for key in keys if (used := registry.resources(key)) is not None}
    return Pool(keys, spec, f"registry {registry.name!r}", built=built)


@lru_cache(maxsize=1024)
def _on_demand(signature: Signature, spec: ArchSpec) -> Pool:
    keys = [KernelKey(signature, each, spec.name) for each in candidates(signature, spec)]
    origin = f"preset {DEFAULT_PRESET!r}, built on demand"
    return Pool(keys, spec, origin, checked=True)


def _widest(
    problem: AnyProblem, signature: Signature, spec: ArchSpec, seen: list[Pool]
) -> Selection:
    """Take the first algorithm of the whole legal set that ``problem`` allows, or say why none."""
    for algorithm in _worth_trying(problem, signature, spec):
        keys = [KernelKey(signature, algorithm, spec.name)]
        pool = Pool(keys, spec, "every legal algorithm, built on demand", checked=True)
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


def _worth_trying(problem: AnyProblem, signature: Signature, spec: ArchSpec) -> Iterator[Algorithm]:
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


def _asked(problem: AnyProblem, spec: ArchSpec, algorithm: Algorithm) -> Selection:
    key = KernelKey(problem.signature, algorithm, spec.name)
    pool = Pool([key], spec, "the algorithm you named")
    if not pool.legal(problem).all():
        raise _refusal(problem, spec, pool.rejections(problem), "the algorithm you named")
    reason = "you named it, and no rule objects"
    return Selection(key=key, position=0, pool=pool, problem=problem, reason=reason)


def _refusal(
    problem: AnyProblem, spec: ArchSpec, rejections: Iterable[Rejection], what: str
) -> CkError:
    counted = Counter(str(rejection) for rejection in rejections)
    notes = [reason if count == 1 else f"{count} x {reason}" for reason, count in counted.items()]
    hidden = len(notes) - _REASONS
    if hidden > 0:
        notes[_REASONS:] = [f"and {hidden} more reasons"]
    return error("K101", notes=notes, problem=problem, arch=spec.name, what=what)
