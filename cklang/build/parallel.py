# SPDX-License-Identifier: MIT
"""Many kernels built at once, and a summary of what became of them.

Without an executor, compiler processes run side by side under threads of this process. Any other
:class:`concurrent.futures.Executor` (processes, a cluster) gets one task for each stencil: plain
data goes out, plain data comes back, and the workers meet in the kernel cache.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import Any

from cklang import knobs
from cklang.build.builder import BuildResult, Wanted, failures_together, shared_builder
from cklang.build.remote_cache import CacheArchive, receive, sees_probe, send, shared_cache_probe
from cklang.build.store import Store
from cklang.device.artifact import Artifact
from cklang.errors import CkError
from cklang.families import key_from_json
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.toolchain.paths import cache_root
from cklang.toolchain.progress import Wait


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSummary:
    """What became of each kernel of a build, in order."""

    results: tuple[BuildResult, ...]
    seconds: float
    """From the first task to the last result."""

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """The kernels that are there now."""
        return tuple(r.artifact for r in self.results if r.artifact is not None)

    @property
    def failures(self) -> Mapping[AnyKey, CkError]:
        """The kernels that could not be built, and why."""
        return {r.key: r.failure for r in self.results if r.failure is not None}

    def __str__(self) -> str:
        artifacts, failed = self.artifacts, self.failures
        cached = sum(artifact.cached for artifact in artifacts)
        took = f"{self.seconds:.2f} s ({cached} from the cache)"
        lines = [f"{len(artifacts)} of {len(self.results)} kernels in {took}"]
        lines += [f"failed: {key.label}: {why.message}" for key, why in failed.items()]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A worker's result for one kernel, with its cache entries if the sender cannot see them."""

    result: BuildResult
    parcels: tuple[CacheArchive, ...]


Plain = Sequence[tuple[dict[str, Any], dict[str, str]]]
"""Keys as JSON, and the functions that fill them as text by hole."""


def build(
    kernels: Sequence[Wanted], *, max_workers: int | None = None, executor: Executor | None = None
) -> BuildSummary:
    """Build ``kernels``; the summary lists the failures.

    Args:
        kernels: What to build: keys, and the functions that fill them.
        max_workers: Compiler processes at once, without ``executor``.
        executor: Runs the tasks instead; it is not shut down.
    """
    start = time.perf_counter()
    if executor is None or isinstance(executor, ThreadPoolExecutor):
        results = shared_builder().build_many(kernels, executor, max_workers)
    else:
        results = _elsewhere(kernels, executor)
    return BuildSummary(results=tuple(results), seconds=time.perf_counter() - start)


def built(kernels: Sequence[Wanted], executor: Executor | None = None) -> tuple[Artifact, ...]:
    """Return the kernels in order, built as by :func:`build`."""
    summary = build(kernels, executor=executor)
    if summary.failures:
        raise failures_together(summary.results)
    return summary.artifacts


def _elsewhere(kernels: Sequence[Wanted], executor: Executor) -> list[BuildResult]:
    groups: dict[str, list[Wanted]] = {}
    for key, functions in kernels:
        groups.setdefault(key.stencil.digest, []).append((key, functions))
    knob_values, store = settings(), Store()
    results: dict[str, BuildResult] = {}
    title = f"building {len(kernels)} kernels"
    with shared_cache_probe(store) as mark, Wait(title, len(groups)) as progress:
        tasks: dict[Future[list[Done]], list[Wanted]] = {}
        for group in groups.values():
            plain = [(key.to_json(), functions.texts) for key, functions in group]
            tasks[executor.submit(build_plain, plain, knob_values, mark)] = group
        # Results are fetched at once: a worker may die before the others are done.
        for task in as_completed(tasks):
            with progress.step(f"{len(tasks[task])} kernels of a stencil"):
                for done in task.result():
                    results[done.result.key.digest] = _taken(done, store)
    return [results[key.digest] for key, _ in kernels]


def _taken(done: Done, store: Store) -> BuildResult:
    """Return a worker's result with its files in this machine's cache."""
    entries = [receive(store, parcel) for parcel in done.parcels]
    artifact = done.result.artifact
    if artifact is None or not entries:
        return done.result
    return replace(done.result, artifact=artifact.at(entries[-1].folder))


def settings() -> dict[str, str]:
    """Return the knobs that make a worker build the same kernels into the same cache."""
    named = (knobs.CK_DIR, knobs.CLANG, knobs.ROCM_PATH, knobs.ARCH_DIR)
    values: dict[str, object] = {knob.name: knob.get() for knob in named}
    values[knobs.CACHE_DIR.name] = cache_root()
    # A task's compilers run one after another; the executor decides how many tasks there are.
    values[knobs.JOBS.name] = 1
    return {name: str(value) for name, value in values.items() if value is not None}


def build_plain(kernels: Plain, knob_values: Mapping[str, str], mark: str) -> list[Done]:
    """Build kernels sent as plain data, with the settings of the sender.

    Args:
        kernels: Of one stencil, so that it is compiled once.
        knob_values: Values of knobs, by environment name.
        mark: A file in the sender's cache: a worker that does not see it builds into its own
            cache, with its own compiler and headers, and sends what it made.
    """
    shared = sees_probe(mark)
    mine = dict(knob_values) if shared else {knobs.JOBS.name: knob_values[knobs.JOBS.name]}
    with knobs.scope(**mine):
        builder = shared_builder()
        wanted = [(key_from_json(key), Functions.parse(texts)) for key, texts in kernels]
        results = builder.build_many(wanted)
        sent = [() if shared else builder.entries(job) for job in wanted]
        return [
            Done(result=result, parcels=tuple(map(send, entries)))
            for result, entries in zip(results, sent, strict=True)
        ]
