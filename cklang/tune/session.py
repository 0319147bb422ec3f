# SPDX-License-Identifier: MIT
"""``ck.autotune``: measure candidates of some problems until time or hope is used up.

Candidates come from where a call would take its kernel from, the model's favourites first. Problems
take turns, so that a short budget gives each of them something. Everything is stored as it is
measured, and what is stored is not measured again: a session that was stopped goes on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cklang import knobs
from cklang.display import ShownAsText
from cklang.errors import CkUnsupportedError, error
from cklang.families import family_of
from cklang.keys import AnyKey
from cklang.ops.attention_backward import GradientKind
from cklang.selection.select import find
from cklang.selection.strategy import FirstFit
from cklang.toolchain.paths import cache_root
from cklang.toolchain.progress import Wait
from cklang.tune.by_clock import clocked_device
from cklang.tune.task import Call, TuningTask, problem_text, tasks_of

if TYPE_CHECKING:
    from cklang.arch import ArchSpec
    from cklang.runtime.op import Op
    from cklang.selection.pool import AnyPool
    from cklang.tune.database import Database, Measurement, QueryKey
    from cklang.tune.worker import Worker

_LIMIT_SECONDS = 300.0
"""What one measurement may take, its build included."""
_AT_ONCE = 32
"""Kernels that are handed to the workers together, the budget being looked at in between."""
_UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedProblem:
    """What a session found for one problem."""

    problem: Any
    query: QueryKey
    favourite: AnyKey
    """What the model takes for the quickest."""
    candidates: int
    """How many legal kernels there are."""
    measurements: tuple[Measurement, ...]
    """All that is known of them, of earlier sessions too; the best first."""
    fresh: int
    """How many of them are new."""
    ended: str
    """Why no more were measured."""

    @property
    def best(self) -> Measurement | None:
        """The right kernel of least cost, or None."""
        first = self.measurements[:1]
        return first[0] if first and first[0].cost is not None else None

    def cost_of(self, key: AnyKey) -> float | None:
        """Return what a kernel costs, or None if that is not known."""
        return next((m.cost for m in self.measurements if m.key == key), None)

    def __str__(self) -> str:
        lines = [f"{self.problem}: {len(self.measurements)} of {self.candidates} kernels measured"]
        lines[0] += f" ({self.fresh} new); {self.ended}"
        best, was = self.best, self.cost_of(self.favourite)
        if best is None or best.cost is None:
            lines.append("  no kernel gave a right result")
        else:
            lines.append(f"  best       {best.cost:.6g} {best.unit}: {best.key.label}")
        if was is not None:
            lines.append(f"  heuristic  {was:.6g}: {self.favourite.label}")
        bad = [m for m in self.measurements if m.cost is None]
        lines += [f"  {m.status.value}: {m.key.label}: {m.note}" for m in bad]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningReport(ShownAsText):
    """What a session found, problem by problem."""

    problems: tuple[TunedProblem, ...]
    database: Path
    device: str
    seconds: float

    def __str__(self) -> str:
        head = f"{self.device}, {self.seconds:.1f} s, stored in {self.database}"
        return "\n".join([head, *map(str, self.problems)])


@dataclass(slots=True, eq=False)
class _Search:
    """One problem while it is worked on."""

    task: TuningTask
    problem: Any
    query: QueryKey
    pool: AnyPool
    order: list[int]
    """Places in the pool of legal kernels, the favourite first."""
    known: dict[str, Measurement]
    patience: int
    place: int = 0
    fresh: int = 0
    since: int = 0
    """Kernels measured since the best one."""
    least: tuple[float, float] | None = None
    ended: str = ""

    def note(self, measurement: Measurement) -> None:
        """Take what was measured, now or earlier, into account."""
        self.known[measurement.key.digest] = measurement
        rank = measurement.rank
        if rank is not None and (self.least is None or rank < self.least):
            self.least, self.since = rank, 0
        else:
            self.since += 1

    def next(self) -> AnyKey | None:
        """Return the next kernel that is to be measured, or None with the reason in ``ended``."""
        while self.place < len(self.order):
            if self.since >= self.patience and self.least is not None:
                self.ended = f"none of the last {self.since} was better"
                return None
            key: AnyKey = self.pool.keys[self.order[self.place]]
            self.place += 1
            known = self.known.get(key.digest)
            if known is None:
                return key
            self.note(known)
        some = len(self.order) < np.count_nonzero(self.pool.legal(self.problem))
        self.ended = "the limit is reached" if some else "all were measured"
        return None


_Round = Sequence[tuple[_Search, AnyKey]]
_Measurer = Callable[["_Round"], "Iterator[tuple[_Search, Measurement]]"]


def autotune(
    op: Op,
    problems: Sequence[Call],
    *,
    budget: str | float = "60s",
    database: Path | str | None = None,
    device: str | None = None,
    executor: Executor | None = None,
    limit: int = 64,
    patience: int = 8,
    gradient: bool = False,
    deterministic: bool = False,
    bias: bool = False,
) -> TuningReport:
    """Measure kernels for calls of ``op``, and store the times.

    Calls in ``with ck.using(strategy="tuned"):`` then take the best kernel of their problem.

    Each kernel is built, run in a process of its own that may crash, and held against the
    reference: a wrong one never wins. On an emulated device kernels are compared by the clock's
    time (``docs/clock.md``), and the unit says so.

    Args:
        op: The op.
        problems: For each call the extents of the op's dims, by name, or its arguments.
        budget: How long to go on: ``"60s"``, ``"5m"``, ``"1h"``, or seconds.
        database: A file; the cache folder's ``tuning.sqlite`` if left out.
        device: As in a call.
        executor: Measures instead of a worker process: other machines with such a device and
            toolchain. A kernel that kills or occupies its workers is a failed one; what breaks the
            executor itself ends the session.
        limit: Most kernels of a problem that are measured.
        patience: How many kernels in a row may be no better before a problem is given up.
        gradient: Whether for :func:`cklang.attention_grad` of ``op`` instead.
        deterministic: As there; its kernels are others.
        bias: As there; its kernels are others too.

    Returns:
        For each problem what is known of its kernels.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> report = ck.autotune(  # doctest: +SKIP
        ...     linear, [{"M": 256, "N": 512, "K": 64}], limit=2, device="emu:gfx942",
        ...     database="tuning.sqlite",
        ... )
        >>> print(report)  # doctest: +SKIP
        emulated gfx942, ... s, stored in tuning.sqlite
        M=256 N=512 K=64 rcr strides A=64 B=64 E=512: 2 of ... kernels measured (2 new); ...
          best       ... µs by the clock (the GPU is emulated): gemm_f16_rcr_...
          heuristic  ...: gemm_f16_rcr_...

    Raises:
        CkValueError: N007, there is no problem; K033, no such budget; N006, K003, the database
            cannot be used.
        CkError: What a call raises.
    """
    from cklang.device.device import open_device
    from cklang.tune.database import Database

    seconds = seconds_of(budget)
    kind = GradientKind(deterministic=deterministic, bias=bias) if gradient else None
    if not problems:
        raise error("N007")
    target_device = open_device(device)  # may build the emulator: that is not tuning
    start = time.monotonic()
    path = Path(database) if database is not None else database_path()
    with (
        knobs.scope(CKLANG_DEVICE=target_device.name),
        Database(path) as store,
        ExitStack() as stack,
    ):
        searches = [
            _search(op, task, store, limit, patience)
            for call in problems
            for task in tasks_of(op, call, kind)
        ]
        measurer = _measurer(executor, target_device.name, stack)
        stack.enter_context(Wait(f"tuning @{op.program.name}", expected=seconds))
        for some in _rounds(searches, start + seconds):
            for search, measurement in measurer(some):
                store.record(search.query, measurement)
                search.note(measurement)
                search.fresh += 1
        tuned = tuple(_tuned_problem(search, store) for search in searches)
    spent = time.monotonic() - start
    return TuningReport(problems=tuned, database=path, device=str(target_device), seconds=spent)


def database_path() -> Path:
    """Return the file in which measurements are kept if nobody names one."""
    return cache_root() / "tuning.sqlite"


def seconds_of(budget: str | float) -> float:
    """Return the seconds of ``"60s"``, ``"5m"`` or ``"1h"``, or of a number of them."""
    if isinstance(budget, str):
        text = budget.strip()
        unit = text.lstrip("0123456789.")
        number = text[: len(text) - len(unit)]
        try:
            return float(number) * _UNITS[unit.strip() or "s"]
        except (ValueError, KeyError):
            pass
    elif not isinstance(budget, bool) and budget >= 0:
        return float(budget)
    raise error("K033", got=budget)


def query_of(problem: Any, spec: ArchSpec) -> QueryKey:
    """Return what measurements of ``problem`` on a device with ``spec`` are stored under."""
    from cklang.build.builder import shared_builder
    from cklang.build.steps import identity
    from cklang.device.device import target_of
    from cklang.lowering import headers
    from cklang.tune.database import QueryKey

    builder = shared_builder()
    toolchain = f"{identity(builder.toolchain, builder.tree)} {headers.identity_of_all()}"
    text = problem_text(problem)
    units = f"{spec.name}/{spec.compute_units}"
    device = clocked_device(spec) if target_of().emulated else units
    return QueryKey(problem=text, arch=spec.name, toolchain=toolchain, device=device)


def _search(op: Op, task: TuningTask, store: Database, limit: int, patience: int) -> _Search:
    from cklang.device.device import target_of

    spec = target_of().spec
    request = replace(op.request, strategy=FirstFit())
    selection = find(task.problem, spec, request, task.functions)
    problem = selection.problem
    task = task.in_splits(family_of(problem.signature).variants.splits(problem))
    pool: AnyPool = selection.pool
    query = query_of(problem, spec)
    known = {m.key.digest: m for m in store.measurements(query)}
    return _Search(
        task=task,
        problem=problem,
        query=query,
        pool=pool,
        order=_order(pool, problem)[:limit],
        known=known,
        patience=patience,
    )


def _order(pool: AnyPool, problem: Any) -> list[int]:
    """Return the places of the legal kernels, by predicted time if the model knows them."""
    legal = pool.legal(problem)
    try:
        times = pool.times_of(problem)
    except CkUnsupportedError:
        times = np.zeros(len(pool))
    order = np.argsort(times, kind="stable")
    return [int(place) for place in order if legal[place]]


def _rounds(searches: Sequence[_Search], end: float) -> Iterator[_Round]:
    """Yield one kernel for each problem that still has one, again and again until ``end``.

    Many problems are measured in groups, so that the budget can end a session between groups.
    """
    open_ = list(searches)
    while open_:
        some = [(search, search.next()) for search in open_]
        open_ = [search for search, key in some if key is not None]
        pending = [(search, key) for search, key in some if key is not None]
        for start in range(0, len(pending), _AT_ONCE):
            if time.monotonic() >= end:
                for search in open_:
                    search.ended = "the budget is used up"
                return
            yield pending[start : start + _AT_ONCE]


def _measurer(executor: Executor | None, device: str, stack: ExitStack) -> _Measurer:
    """Return what measures a round: a worker process of its own, or the tasks of an executor."""
    from cklang.build.parallel import settings

    knob_values = {**settings(), knobs.DEVICE.name: device}
    if executor is not None:
        return partial(_by_executor, executor, knob_values)

    from cklang.tune.worker import Worker

    return partial(_by_worker, stack.enter_context(Worker(knob_values, _LIMIT_SECONDS)))


def _by_worker(worker: Worker, some: _Round) -> Iterator[tuple[_Search, Measurement]]:
    from cklang.build.builder import shared_builder

    # Built in parallel; a failed build is reported where its kernel is measured.
    shared_builder().build_many([(key, search.task.functions) for search, key in some])
    for search, key in some:
        yield search, worker.measure(search.task, key)


def _by_executor(
    executor: Executor, knob_values: Mapping[str, str], some: _Round
) -> Iterator[tuple[_Search, Measurement]]:

    from cklang.tune.measure import measure

    tasks = [
        (search, key, executor.submit(measure, search.task.to_json(), key.to_json(), knob_values))
        for search, key in some
    ]
    for search, key, task in tasks:
        # Builds included, and those that stand in the queue before it.
        yield search, _answer(task, key, _LIMIT_SECONDS * len(tasks))


def _answer(task: Future[Any], key: AnyKey, seconds: float) -> Measurement:
    """Return a task's measurement, or its failure; a broken executor is not the kernel's fault."""
    from cklang.build.dask_executor import gave_up
    from cklang.tune.database import Measurement, Status
    from cklang.tune.measure import failed

    try:
        return Measurement.from_json(task.result(seconds))
    except TimeoutError:
        task.cancel()
        return failed(key, Status.SLOW, f"it had not ended after {seconds:g} s")
    except Exception as problem:
        if not gave_up(problem):
            raise
        return failed(key, Status.CRASHED, "every worker that tried it died")


def _tuned_problem(search: _Search, store: Database) -> TunedProblem:
    keys = {search.pool.keys[place].digest for place in search.order}
    known = [m for m in store.measurements(search.query) if m.key.digest in keys]
    return TunedProblem(
        problem=search.problem,
        query=search.query,
        favourite=search.pool.keys[search.order[0]],
        candidates=int(np.count_nonzero(search.pool.legal(search.problem))),
        measurements=tuple(known),
        fresh=search.fresh,
        ended=search.ended,
    )
