# SPDX-License-Identifier: MIT
"""Which kernel serves a problem of any family: from the registry, else on demand.

Rules filter first, then the strategy ranks what is left. The order in which kernels are found is
fixed: the registry's kernels for the signature; if none of them is legal, the preset of the
context; if none of that is, what the family keeps for such problems (attention: narrower accesses);
if none of that is, every legal algorithm in canonical order. If no kernel is legal, the error has
every reason.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from cklang import knobs
from cklang.arch import ArchSpec, arch
from cklang.build.bundle import Bundle, sole_source
from cklang.errors import CkError, CkUnsupportedError, error
from cklang.families import family_of, key_of
from cklang.families.protocol import DEFAULT_PRESET
from cklang.families.rule import Rejection
from cklang.fusion.functions import NO_FUNCTIONS, Functions
from cklang.keys import AnyKey, KernelSignature
from cklang.selection.background import build_later
from cklang.selection.context import current
from cklang.selection.pool import AnyPool, Pool
from cklang.selection.registry import Registry
from cklang.selection.request import Request
from cklang.selection.space import enumerate_legal, satisfiable
from cklang.selection.strategy import RankFunction, Strategy, strategy_of

_REASONS = 8
"""How many different reasons a refusal prints."""


K = TypeVar("K", bound=AnyKey)
P = TypeVar("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection(Generic[K, P]):
    """The kernel chosen for a problem.

    Example:
        >>> selection = ck.dispatch.select(ck.dispatch.problem(256, 512, 64), arch="gfx942")
        >>> selection.key.label
        'gemm_f16_rcr_..._gfx942_...'
        >>> selection.reason
        '... µs predicted, the least of ... legal candidates of ...'
    """

    key: K
    position: int
    """Its place in the pool, from 0."""
    pool: Pool[K]
    problem: P
    """As the kernel computes it: in the variant that was chosen."""
    reason: str
    """Why it, and not another one."""
    functions: Functions = NO_FUNCTIONS
    """What fills it, as far as whoever selected it said."""
    awaited: K | None = None
    """A better kernel, which is being built in the background (strategy ``tiered``)."""

    @property
    def predicted(self) -> float | None:
        """The predicted time in µs; None if the cost model has no rate for the element types.

        Example:
            >>> selection.predicted > 0
            True
        """
        try:
            return float(self.pool.times_of(self.problem)[self.position])
        except CkUnsupportedError:
            return None

    @property
    def candidates(self) -> int:
        """The number of kernels to choose from.

        Example:
            >>> selection.candidates > selection.position
            True
        """
        return len(self.pool)

    @property
    def origin(self) -> str:
        """Where the candidates came from.

        Example:
            >>> selection.origin
            "preset 'catalogue', built on demand"
        """
        return self.pool.origin

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """The first rule that each candidate ranked above it violates.

        Example:
            >>> problem = ck.dispatch.problem(255, 511, 63, alignment=2)
            >>> odd = ck.dispatch.select(problem, arch="gfx942", strategy="first_fit")
            >>> print(odd.rejections[0])
            vector-a: the number of columns of A is 63, must be a multiple of 8 (...)
        """
        return tuple(self.pool.rejections(self.problem, self.position))

    def __str__(self) -> str:
        return f"{self.key.label}: {self.reason} (from {self.origin})"


AnySelection = Selection[Any, Any]
"""A kernel of any family."""


def select(
    problem: Any,
    *,
    registry: Registry | None = None,
    arch: str | ArchSpec | None = None,
    strategy: str | Strategy | RankFunction | None = None,
    functions: Functions | None = None,
    splits: int | None = None,
    preset: str | None = None,
) -> AnySelection:
    """Return the kernel for ``problem``; deterministic, and remembered.

    Args:
        problem: What is to be computed.
        registry: Where to look first; the context's if left out.
        arch: The GPU or its name; the context's, else that of the device a call would run on.
        strategy: As in :func:`cklang.using`; the context's if left out.
        functions: What ``autotune`` needs to build kernels that are not in the registry.
        splits: Of an attention, as in :meth:`cklang.Op.using`.
        preset: As in :func:`cklang.using`; the context's if left out.

    Example:
        >>> problem = ck.dispatch.problem(256, 512, 64)
        >>> ck.dispatch.select(problem, arch="gfx942").reason
        '... µs predicted, the least of ... legal candidates of ...'
        >>> ck.dispatch.select(problem, arch="gfx942", strategy="first_fit").reason
        'candidate 1 of ... in fixed order, the first to which no rule objects'

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is no candidate.
        CkValueError: K001, there is no such strategy or preset.
    """
    defaults = current()
    gpu = defaults.arch if arch is None else arch
    chosen = defaults.strategy if strategy is None else strategy_of(strategy)
    where = defaults.registry if registry is None else registry
    chosen_preset = defaults.preset_name if preset is None else preset
    return _remembered(_Query(problem, where, gpu, chosen, splits, chosen_preset), functions)


def find(problem: Any, spec: ArchSpec, request: Request, functions: Functions) -> AnySelection:
    """Return the kernel for one kernel of a call.

    Args:
        problem: What is to be computed.
        spec: The GPU.
        request: What somebody asked for.
        functions: The user's functions, which fill the kernel.

    Raises:
        CkUnsupportedError: K101, rules reject every candidate; K102, there is no candidate.
        CkValueError: K022, the algorithm asked for is one of another family.
    """
    if request.algorithm is not None:
        return _named(problem, spec, request.algorithm, request.splits, functions)
    defaults = current()
    registry = defaults.registry if request.registry is None else request.registry
    strategy = defaults.strategy if request.strategy is None else request.strategy
    query = _Query(problem, registry, spec, strategy, request.splits, defaults.preset_name)
    return _remembered(query, functions)


def only_kernel(key: AnyKey, problem: Any, functions: Functions, reason: str) -> AnySelection:
    """Return the selection of a kernel beside which there is no other."""
    pool: AnyPool = Pool([key], arch(key.arch), "the one that there is", checked=True)
    return Selection(
        key=key, position=0, pool=pool, problem=problem, reason=reason, functions=functions
    )


class _Query(NamedTuple):
    """All that an answer depends on."""

    problem: Any
    registry: Registry
    gpu: str | ArchSpec | None
    strategy: Strategy
    splits: int | None
    preset: str


def _remembered(query: _Query, functions: Functions | None) -> AnySelection:
    # Without a GPU the answer depends on the device that calls would run on.
    device = knobs.DEVICE.get() if query.gpu is None else None
    about = (query.problem, query.gpu, query.strategy, query.splits, query.preset, device)
    selection = query.registry.derived(about, lambda: _fresh(query, _spec(query.gpu), functions))
    if functions is None:
        return selection
    # An equal call may have made it, whose functions are at other lines of the user's code.
    adapted = family_of(query.problem.signature).variants.functions(selection.problem, functions)
    return replace(selection, functions=adapted)


def _spec(gpu: str | ArchSpec | None) -> ArchSpec:
    if gpu is None:
        from cklang.device.device import target_of

        return target_of().spec
    return arch(gpu) if isinstance(gpu, str) else gpu


def _fresh(query: _Query, spec: ArchSpec, functions: Functions | None) -> AnySelection:
    """Return the kernel of the best variant of a problem."""
    family = family_of(query.problem.signature)
    variants = family.variants.of(query.problem, query.splits)
    variant, why = _best(variants, query, spec) if len(variants) > 1 else (variants[0], "")
    selection = _single(variant, query, spec, functions)
    clamped = family.variants.clamped(variant, selection.key.algorithm)
    if clamped is not variant:
        selection = _single(clamped, query, spec, functions)
    return replace(selection, reason=f"{selection.reason}{why}") if why else selection


def _best(variants: tuple[Any, ...], query: _Query, spec: ArchSpec) -> tuple[Any, str]:
    """Return the variant that the cost model prefers, and why if it is not the first."""
    family = family_of(query.problem.signature)
    offers: list[tuple[int, float, int]] = []
    for index, variant in enumerate(variants):
        for level, pool in enumerate(_pools(query, variant.signature, spec)):
            legal = pool.legal(variant)
            if not legal.any():
                continue
            try:
                offers.append((level, float(pool.times_of(variant)[legal].min()), index))
            except CkUnsupportedError:
                algorithm = pool.keys[int(legal.argmax())].algorithm
                chosen = family.variants.unmodelled(variants[0], algorithm, spec)
                words = family.variants.words(chosen)
                return chosen, "" if chosen is variants[0] else f"; {words} it keeps the GPU busy"
            break
    if not offers:
        return variants[0], ""
    level, least, best = min(offers)
    plain = next((us for at, us, index in offers if (at, index) == (level, 0)), None)
    if best == 0 or plain is None:
        return variants[best], ""
    if least > family.variants.gain * plain:
        return variants[0], ""
    words, first = family.variants.words(variants[best]), family.variants.words(variants[0])
    return variants[best], f"; {least:.2f} µs predicted {words}, {plain:.2f} {first}"


def _single(
    problem: Any, query: _Query, spec: ArchSpec, functions: Functions | None
) -> AnySelection:
    signature = problem.signature
    if functions is not None:
        functions = family_of(signature).variants.functions(problem, functions)
    tried: list[AnyPool] = []
    for pool in _pools(query, signature, spec):
        tried.append(pool)
        legal = pool.legal(problem)
        if not legal.any():
            continue
        pool, legal = pool.with_shares(problem, legal)
        declared = query.registry.find(pool.keys[0])
        known = declared.functions if declared is not None else functions
        chosen = query.strategy.choose(pool, problem, legal, known)
        awaited = None if chosen.awaited is None else pool.keys[chosen.awaited]
        if awaited is not None and known is not None:
            build_later((awaited, known), query.registry)
        return Selection(
            key=pool.keys[chosen.position],
            position=chosen.position,
            pool=pool,
            problem=problem,
            reason=chosen.reason,
            functions=functions or NO_FUNCTIONS,
            awaited=awaited,
        )
    return _widest(problem, signature, spec, tried, functions or NO_FUNCTIONS)


def _pools(query: _Query, signature: KernelSignature, spec: ArchSpec) -> Iterator[AnyPool]:
    """Yield the kernels that are declared, then the others; either may be none."""
    registry = query.registry
    yield registry.derived((signature, spec), lambda: _declared(registry, signature, spec))
    bundles = sole_source()
    if bundles is not None:
        yield _bundled(bundles, signature, spec)
    else:
        yield _on_demand(signature, spec, query.preset)
        last = _last_resorts(signature, spec)
        if len(last):
            yield last


@lru_cache(maxsize=256)
def _bundled(bundles: tuple[Bundle, ...], signature: KernelSignature, spec: ArchSpec) -> AnyPool:
    known = [a for bundle in bundles for a in bundle.algorithms(signature, spec.name)]
    keys = [key_of(signature, algorithm, spec.name) for algorithm in dict.fromkeys(known)]
    return Pool(keys, spec, "bundles; there are no CK Tile headers to compile others")


def _declared(registry: Registry, signature: KernelSignature, spec: ArchSpec) -> AnyPool:
    mine = registry.filter(lambda key: key.arch == spec.name and key.signature == signature)
    ordered = sorted(mine, key=lambda kernel: -kernel.priority)
    keys = [kernel.key for kernel in ordered]
    asks = family_of(signature).supply.models_resources
    used = {key: registry.resources(key) for key in keys if asks}
    built = {key: resources for key, resources in used.items() if resources is not None}
    return Pool(keys, spec, f"registry {registry.name!r}", built=built)


@lru_cache(maxsize=1024)
def _on_demand(signature: KernelSignature, spec: ArchSpec, preset: str) -> AnyPool:
    family = family_of(signature)
    preset = preset if family.supply.presets else DEFAULT_PRESET
    essential = family.candidates(signature, spec, DEFAULT_PRESET)
    others = family.candidates(signature, spec, preset)
    keys = [key_of(signature, a, spec.name) for a in dict.fromkeys((*essential, *others))]
    origin = f"preset {preset!r}, built on demand"
    sharing = preset != DEFAULT_PRESET
    return Pool(keys, spec, origin, checked=True, preferred=len(essential), sharing=sharing)


@lru_cache(maxsize=256)
def _last_resorts(signature: KernelSignature, spec: ArchSpec) -> AnyPool:
    family = family_of(signature)
    candidates = family.candidates(signature, spec, DEFAULT_PRESET)
    narrowed = family.supply.narrowed(candidates, signature)
    legal = (own for own in narrowed if family.rules.accepts(own, signature, spec))
    keys = [key_of(signature, algorithm, spec.name) for algorithm in legal]
    return Pool(keys, spec, "narrower accesses, built on demand", checked=True)


def _widest(
    problem: Any,
    signature: KernelSignature,
    spec: ArchSpec,
    tried: list[AnyPool],
    functions: Functions,
) -> AnySelection:
    """Take the first algorithm of the whole legal set that ``problem`` allows, or say why none."""
    for algorithm in _worth_trying(problem, signature, spec):
        keys = [key_of(signature, algorithm, spec.name)]
        pool: AnyPool = Pool(keys, spec, "every legal algorithm, built on demand", checked=True)
        if pool.legal(problem).any():
            reason = "the first of all legal algorithms that this problem allows"
            return Selection(
                key=keys[0],
                position=0,
                pool=pool,
                problem=problem,
                reason=reason,
                functions=functions,
            )
        if len(tried) < _REASONS:
            tried.append(pool)
    if not any(len(pool) for pool in tried):
        rules = family_of(signature).rules
        notes = [str(refusal) for refusal in rules.refusals(signature, spec)]
        raise error("K102", notes=notes, signature=signature.words, arch=spec.name)
    rejections = chain.from_iterable(pool.rejections(problem) for pool in tried)
    raise _refusal(problem, spec, rejections, "every algorithm there is")


def _worth_trying(problem: Any, signature: KernelSignature, spec: ArchSpec) -> Iterator[Any]:
    """Yield the whole legal set; one of it, for its reasons, if no algorithm can help."""
    if sole_source() is not None:
        return
    legal = enumerate_legal(signature, spec)
    first = next(legal, None)
    if first is None:
        return
    yield first
    rules = family_of(signature).rules.problems
    if all(satisfiable(rule, first, problem, signature, spec) for rule in rules):
        yield from legal


def _named(
    problem: Any, spec: ArchSpec, algorithm: Any, splits: int | None, functions: Functions
) -> AnySelection:
    family = family_of(problem.signature)
    if family.algorithm is not None and isinstance(algorithm, family.algorithm):
        if splits is None:
            problem = family.variants.unmodelled(problem, algorithm, spec)
        else:
            problem = family.variants.of(problem, splits)[0]
        problem = family.variants.clamped(problem, algorithm)
    key = key_of(problem.signature, algorithm, spec.name)
    pool: AnyPool = Pool([key], spec, "the algorithm you named")
    if not pool.legal(problem).all():
        raise _refusal(problem, spec, pool.rejections(problem), "the algorithm you named")
    return Selection(
        key=key,
        position=0,
        pool=pool,
        problem=problem,
        reason="you named it, and no rule objects",
        functions=family.variants.functions(problem, functions),
    )


def _refusal(problem: Any, spec: ArchSpec, rejections: Iterable[Rejection], what: str) -> CkError:
    counted = Counter(str(rejection) for rejection in rejections)
    notes = [reason if count == 1 else f"{count} x {reason}" for reason, count in counted.items()]
    hidden = len(notes) - _REASONS
    if hidden > 0:
        notes[_REASONS:] = [f"and {hidden} more reasons"]
    return error("K101", notes=notes, problem=problem, arch=spec.name, what=what)
