# SPDX-License-Identifier: MIT
"""Kernels from keys: stencil and host shim at once, then the fill, many kernels in parallel.

Each step comes from the cache if it is there. Nothing here touches a GPU.
"""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from cklang import forks, knobs, places
from cklang.build.artifacts import CODE, HOST, SOURCE, artifact_of
from cklang.build.bundle import Bundle, Bundled, Files, bundles_in, configured_files
from cklang.build.halves import has_main_loop, main_loop
from cklang.build.refusals import in_users_lines, naming_the_rule
from cklang.build.schedules import schedules
from cklang.build.stencil_files import BITCODE, COMPILED_FROM, StencilFiles
from cklang.build.store import Entry, Store, digest_of
from cklang.device.artifact import Artifact
from cklang.device.resources import Resources
from cklang.errors import CkBuildError, CkError, CkUnsupportedError, error
from cklang.families import FAMILIES
from cklang.fusion.functions import Functions
from cklang.keys import AnyKey
from cklang.lowering import headers
from cklang.toolchain.folders import linked
from cklang.toolchain.log import logger
from cklang.toolchain.paths import cache_root
from cklang.toolchain.progress import Wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from cklang.lowering.source import KernelSource
    from cklang.places import PlacedFill
    from cklang.toolchain.compilers import CkTree, Toolchain

Wanted = tuple[AnyKey, Functions]
"""A kernel to build: its key and what fills it."""

_Part = Future[tuple[Entry, bool]]
"""A stencil or a host shim that is being made, and whether it was there already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildResult:
    """What became of one kernel."""

    key: AnyKey
    artifact: Artifact | None
    failure: CkError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One kernel with the inputs of its three steps."""

    key: AnyKey
    source: KernelSource
    fill: PlacedFill
    stencil: Mapping[str, Any]
    kernel: Mapping[str, Any]
    bundled: Bundled | None
    """Where its stencil comes from if it is not compiled here."""


class _Headers(NamedTuple):
    """Headers that can be precompiled."""

    target: str
    """A GPU's name, or ``host``."""
    name: str


_ENOUGH_READERS = 3
"""How many compilations of a process read precompiled headers before they pay: they take four
seconds, and each compilation two more without. Where an earlier process has read them, more will
follow."""


class Builder:
    """Builds kernels into a store and remembers them.

    Args:
        store: Where everything that is built is kept.
        toolchain: The compiler.
        tree: CK Tile's headers; None if there are none, and only ``bundles`` give stencils.
        files: Bundles of stencils that were compiled elsewhere, the first one first, each with its
            time. They are read when a kernel is built: what is in the cache needs none.
    """

    def __init__(
        self, store: Store, toolchain: Toolchain, tree: CkTree | None, files: Files = ()
    ) -> None:
        self.store = store
        self.toolchain = toolchain
        self._tree = tree
        self._files = files
        self.known: dict[str, Artifact] = {}  # what this process took from the store or built
        self._lock = forks.lock()
        self._readers: Counter[_Headers] = Counter()

    @property
    def bundles(self) -> tuple[Bundle, ...]:
        """Stencils that were compiled elsewhere."""
        return bundles_in(self._files)

    @property
    def tree(self) -> CkTree:
        """CK Tile's headers."""
        from cklang.toolchain.compilers import find_ck_tree

        return find_ck_tree() if self._tree is None else self._tree

    def source(self, key: AnyKey, functions: Functions) -> KernelSource:
        """Return the C++ of a kernel and the C of its functions."""
        return source_of(key, functions)

    def find(self, key: AnyKey, functions: Functions) -> Artifact | None:
        """Return a kernel if it is built already."""
        return self.at(digest_of("kernel", self._job(key, functions).kernel))

    def at(self, address: str) -> Artifact | None:
        """Return the kernel at an address of the store; None if it is not there."""
        entry = self.store.find("kernel", address)
        if entry is None:
            return None
        return self._remember(artifact_of(entry, cached=True, steps={}))

    def fill_name(self, artifact: Artifact) -> str:
        """Return the name of a kernel's fill in its debug information; empty if it has none."""
        entry = self.store.find("kernel", artifact.folder.name)
        return "" if entry is None else places.name_of_fill(entry.record["inputs"]["fill"])

    @property
    def identity(self) -> str:
        """Text for cache keys: equal for equal compilers and headers, or else bundles."""
        if self._tree is None and self._files:
            tree = " ".join(bundle.identity for bundle in self.bundles)
        else:
            tree = self.tree.identity
        return f"{self.toolchain.identity} {tree}"

    def is_compiled(self, key: AnyKey, functions: Functions) -> bool:
        """Whether a kernel's stencil is built or in a bundle: at most its functions are left."""
        job = self._job(key, functions)
        return job.bundled is not None or all(
            self.store.find(kind, digest_of(kind, job.stencil)) for kind in ("stencil", "host")
        )

    def build_all(
        self, wanted: Sequence[Wanted], executor: Executor | None = None
    ) -> list[Artifact]:
        """Return the kernels of ``wanted`` in order, building those that are not built.

        Raises:
            CkBuildError: The first failure; the others are its notes.
        """
        results = self.build_many(wanted, executor)
        if any(result.failure is not None for result in results):
            raise failures_together(results)
        return [result.artifact for result in results if result.artifact is not None]

    def build_many(
        self,
        wanted: Sequence[Wanted],
        executor: Executor | None = None,
        max_workers: int | None = None,
    ) -> list[BuildResult]:
        """Return the result of each kernel of ``wanted``, in order.

        ``executor`` runs the steps in threads of this process (default: ``max_workers`` at once,
        or ``CKLANG_JOBS``); each step is a compiler process, so threads are enough.
        """
        refused: dict[int, BuildResult] = {}
        jobs: dict[int, _Job] = {}
        for index, (key, functions) in enumerate(wanted):
            try:
                jobs[index] = self._job(key, functions)
            except CkUnsupportedError as failure:
                # A kernel that cannot be generated fails alone, like one that does not compile.
                refused[index] = BuildResult(key=key, artifact=None, failure=failure)
        missing = {id(job): job for job in jobs.values() if self._ready(job) is None}
        failures: dict[int, CkError] = {}
        if missing:
            with (
                _wait("kernel", list(missing.values()), len(missing)) as progress,
                _pool(executor, max_workers) as pool,
            ):
                failures = self._build(list(missing.values()), pool, progress)
        built = {
            index: self._result(job, failures.get(id(job)), id(job) in missing)
            for index, job in jobs.items()
        }
        return [(built | refused)[index] for index in range(len(wanted))]

    def stencil_files(self, wanted: Wanted) -> StencilFiles:
        """Return the files of a kernel's stencil, building it if it is not built."""
        key, functions = wanted
        return self.stencil_of(key, self.source(key, functions))

    def stencil_of(self, key: AnyKey, source: KernelSource) -> StencilFiles:
        """Return the files of a stencil whose C++ is generated; its functions are not read."""
        (files,) = self._stencils([self._job_of(key, source)])
        return files

    def stencils(self, wanted: Sequence[Wanted]) -> list[StencilFiles]:
        """Return the files of the stencils of ``wanted`` in order; functions stay open."""
        return self._stencils([self._job(key, functions) for key, functions in wanted])

    def _stencils(self, jobs: Sequence[_Job]) -> list[StencilFiles]:
        with _wait("stencil", jobs) as progress, _pool(None, None) as pool:
            parts = self._parts(jobs, pool, progress)
            wait(part for both in parts.values() for part in both)
        of_jobs = [(job, parts[digest_of("stencil", job.stencil)]) for job in jobs]
        results = [
            BuildResult(key=job.key, artifact=None, failure=_first_failure(both))
            for job, both in of_jobs
        ]
        if any(result.failure is not None for result in results):
            raise failures_together(results)
        return [
            StencilFiles(
                key=job.key.stencil,
                source=job.source.stencil,
                bitcode=stencil.result()[0].file(BITCODE),
                host_shim=host.result()[0].file(HOST),
            )
            for job, (stencil, host) in of_jobs
        ]

    def entries(self, wanted: Wanted) -> tuple[Entry, ...]:
        """Return a kernel's entries in the store: stencil, host shim and kernel."""
        job = self._job(*wanted)
        inputs = {"stencil": job.stencil, "host": job.stencil, "kernel": job.kernel}
        stored = (
            self.store.find(kind, digest_of(kind, step_inputs))
            for kind, step_inputs in inputs.items()
        )
        return tuple(entry for entry in stored if entry is not None)

    def _job(self, key: AnyKey, functions: Functions) -> _Job:
        return self._job_of(key, self.source(key, functions))

    def _job_of(self, key: AnyKey, source: KernelSource) -> _Job:
        from cklang.build import steps

        bundled = self._bundled(key, source)
        if bundled is not None:
            shipped = {"bundle": bundled.digest, "tools": self.toolchain.identity}
            stencil: dict[str, Any] = {**shipped, "arch": key.arch}
        else:
            tools = steps.identity(self.toolchain, self._tree_for(key))
            read = _headers_of(source.stencil, source)
            inputs = (source.stencil, key.arch, tools, read)
            stencil = dict(zip(COMPILED_FROM, inputs, strict=True))
        fill = source.placed
        places.note(fill.name, fill.places)
        kernel = {
            **stencil,
            "fill": fill.text,
            "fill_headers": headers.identity(fill.text),
            "key": key.to_json(),
            "schedules": [schedule.name for schedule in schedules(overlapped=source.overlapped)],
        }
        flags = steps.fill_flags(fill.text)
        if flags:
            kernel["fill_flags"] = list(flags)
        return _Job(
            key=key, source=source, fill=fill, stencil=stencil, kernel=kernel, bundled=bundled
        )

    def _bundled(self, key: AnyKey, source: KernelSource) -> Bundled | None:
        matches = (bundle.find(key.stencil, source.stencil) for bundle in self.bundles)
        return next((bundled for bundled in matches if bundled is not None), None)

    def _tree_for(self, key: AnyKey) -> CkTree:
        try:
            return self.tree
        except CkBuildError as problem:
            if not self.bundles:
                raise
            paths = ", ".join(str(bundle.path) for bundle in self.bundles)
            notes = [*problem.notes, f"{paths} has no stencil of this version for {key.label}"]
            raise CkBuildError(problem.code, problem.message, problem.hint, notes=notes) from None

    def _ready(self, job: _Job) -> Artifact | None:
        known = self.known.get(job.key.digest)
        if known is not None and known.folder.name == digest_of("kernel", job.kernel):
            return known
        return self.at(digest_of("kernel", job.kernel))

    def _remember(self, artifact: Artifact) -> Artifact:
        with self._lock:
            self.known[artifact.key.digest] = artifact
        return artifact

    def _result(self, job: _Job, failure: CkError | None, built: bool) -> BuildResult:
        artifact = None if failure is not None else self._ready(job)
        if failure is None and artifact is None:
            failure = error("B020", label=job.key.label)
        if artifact is not None and not built:
            artifact = replace(artifact, cached=True, seconds=0.0)
        return BuildResult(key=job.key, artifact=artifact, failure=failure)

    def _build(self, jobs: Sequence[_Job], pool: Executor, progress: Wait) -> dict[int, CkError]:
        """Build every job; several that share a stencil wait for one of it.

        The longest stencils come first, and its functions are linked into each as soon as it is
        there, so that no worker idles while there is something to do.
        """
        parts = self._parts(jobs, pool, progress)
        sharing: dict[str, list[_Job]] = {}
        for job in jobs:
            sharing.setdefault(digest_of("stencil", job.stencil), []).append(job)
        fills: list[tuple[_Job, Future[Artifact]]] = []
        failures: dict[int, CkError] = {}
        addresses = {part: address for address, both in parts.items() for part in both}
        for part in as_completed(addresses):
            address = addresses[part]
            if not all(future.done() for future in parts[address]):
                continue
            for job in sharing.pop(address, ()):  # nothing if both were done at once
                try:
                    entries = [future.result() for future in parts[address]]
                except CkError as failure:
                    failures[id(job)] = failure
                    continue
                fills.append((job, pool.submit(self._fill, progress, job, *entries)))
        for job, fill in fills:
            try:
                self._remember(fill.result())
            except CkError as failure:
                failures[id(job)] = failure
        return failures

    def _parts(
        self, jobs: Sequence[_Job], pool: Executor, progress: Wait
    ) -> dict[str, tuple[_Part, _Part]]:
        """Begin each stencil and its host shim, the longest first; return them by its address."""
        parts: dict[str, tuple[_Part, _Part]] = {}
        self._expect({digest_of("stencil", job.stencil): job for job in jobs}.values())
        for job in sorted(jobs, key=lambda job: -FAMILIES[job.key.family].compile_seconds):
            address = digest_of("stencil", job.stencil)
            if address not in parts:
                # The longer one first.
                stencil = pool.submit(self._step, progress, "stencil", job, self._stencil)
                host = pool.submit(self._step, progress, "host", job, self._host)
                parts[address] = stencil, host
        return parts

    def _step(
        self, progress: Wait, kind: str, job: _Job, build: Callable[[_Job, Path], Mapping[str, Any]]
    ) -> tuple[Entry, bool]:
        with progress.step(f"{kind} of {job.key.stencil.label}"), naming_the_rule(job.key):
            return self.store.get_or_build(kind, job.stencil, lambda folder: build(job, folder))

    def _stencil(self, job: _Job, folder: Path) -> Mapping[str, Any]:
        from cklang.build.steps import compile_stencil

        if job.bundled is not None:
            job.bundled.copy(BITCODE, folder)
            return {"seconds": 0.0, "key": job.key.stencil.to_json()}
        step = compile_stencil(
            job.source.stencil,
            job.key.arch,
            folder,
            self.toolchain,
            self.tree,
            precompiled=self._precompiled(job),
            loop=partial(self._loop, job),
        )
        return {"seconds": step.seconds, "key": job.key.stencil.to_json()}

    def _loop(self, job: _Job) -> Path:
        """Return the compiled main loop of a stencil, which those with other epilogues share."""
        from cklang.build.steps import compile_loop

        text, arch = main_loop(job.source.stencil), job.key.arch

        def build(folder: Path) -> Mapping[str, Any]:
            precompiled = self._precompiled(job)
            step = compile_loop(
                text, arch, folder, self.toolchain, self.tree, precompiled=precompiled
            )
            return {"seconds": step.seconds}

        tools = job.stencil["tools"]
        read = _headers_of(text, job.source)
        inputs = {"source": text, "arch": arch, "tools": tools, "headers": read}
        return self.store.get_or_build("loop", inputs, build)[0].file("mainloop.bc")

    def _expect(self, jobs: Iterable[_Job]) -> None:
        """Note what is going to be compiled with which headers."""
        for job in jobs:
            known = self.store.find("stencil", digest_of("stencil", job.stencil)) is not None
            if known or job.bundled is not None or not self.toolchain.precompiles:
                continue
            units = 2 if has_main_loop(job.source.stencil) else 1
            for wanted, count in (
                (self._headers(job), units),
                (self._headers(job, host=True), int(job.source.host_headers)),
            ):
                if count and wanted not in self._readers and self._was_read_before(job, wanted):
                    self._readers[wanted] += _ENOUGH_READERS
                self._readers[wanted] += count

    def _was_read_before(self, job: _Job, wanted: _Headers) -> bool:
        """Note that a process reads headers, and return whether another has."""
        _, was_noted = self.store.get_or_build("read", self._inputs(job, wanted), lambda folder: {})
        return was_noted

    def _headers(self, job: _Job, *, host: bool = False) -> _Headers:
        # The host executes no loads, however they are masked.
        name = headers.PRECOMPILED if host else job.source.precompiled
        return _Headers("host" if host else job.key.arch, name)

    def _inputs(self, job: _Job, wanted: _Headers) -> Mapping[str, Any]:
        """Return what precompiled headers depend on: they name the places of files, too."""
        places = (self.tree.include, *headers.folders(), self.toolchain.program)
        text = headers.precompiled(wanted.name).read_text("utf-8")
        return {
            "arch": wanted.target,
            "tools": job.stencil["tools"],
            "places": [*map(str, places)],
            "of": wanted.name,
            "headers": headers.identity(text, as_written=True),
        }

    def _precompiled(self, job: _Job, *, host: bool = False) -> Path | None:
        """Return CK Tile's headers precompiled for the job's GPU, or for the host.

        None if too few read them, if that fails, if the host shim includes none, or if the
        compiler cannot.
        """
        from cklang.build.steps import compile_headers

        if not self.toolchain.precompiles or (host and not job.source.host_headers):
            return None
        wanted = self._headers(job, host=host)

        def build(folder: Path) -> Mapping[str, Any]:
            step = compile_headers(
                job.key.arch, folder, self.toolchain, self.tree, wanted.name, host=host
            )
            return {"seconds": step.seconds}

        inputs = self._inputs(job, wanted)
        try:
            if self._readers[wanted] < _ENOUGH_READERS:
                known = self.store.find("headers", digest_of("headers", inputs))
                return None if known is None else known.file("headers.pch")
            entry, _ = self.store.get_or_build("headers", inputs, build)
            return entry.file("headers.pch")
        except CkError as problem:
            logger("build").info("headers are not precompiled: %s", problem)
            return None

    def _host(self, job: _Job, folder: Path) -> Mapping[str, Any]:
        from cklang.build.steps import compile_host

        if job.bundled is not None:
            job.bundled.copy(HOST, folder)
            return {"seconds": 0.0}
        step = compile_host(
            job.source.stencil,
            job.key.arch,
            folder,
            self.toolchain,
            self.tree,
            precompiled=self._precompiled(job, host=True),
        )
        return {"seconds": step.seconds}

    def _fill(
        self, progress: Wait, job: _Job, stencil: tuple[Entry, bool], host: tuple[Entry, bool]
    ) -> Artifact:
        def build(folder: Path) -> Mapping[str, Any]:
            from cklang.build import code_object
            from cklang.build.steps import link_fill

            bitcode = stencil[0].file(BITCODE)
            with in_users_lines():
                step = link_fill(
                    bitcode,
                    job.fill.text,
                    job.key.arch,
                    folder,
                    self.toolchain,
                    overlapped=job.source.overlapped,
                )
            linked(host[0].file(HOST), folder / HOST)
            (folder / SOURCE).write_text(job.source.inline)
            facts = code_object.read(folder / CODE).kernel(job.source.kernel)
            return {
                "seconds": step.seconds,
                "symbol": job.source.kernel,
                "schedule": step.schedule,
                "resources": {f.name: getattr(facts, f.name) for f in fields(Resources)},
            }

        with progress.step(f"fill of {job.key.label}"), naming_the_rule(job.key, "B011"):
            entry, cached = self.store.get_or_build("kernel", job.kernel, build)
        report = {
            "stencil": {"seconds": stencil[0].seconds, "cached": stencil[1]},
            "host": {"seconds": host[0].seconds, "cached": host[1]},
            "fill": {"seconds": entry.seconds, "cached": cached},
        }
        return artifact_of(entry, cached=cached, steps=report)


def _first_failure(parts: Iterable[_Part]) -> CkError | None:
    """Return what cklang says of a step that failed; whatever else failed is raised."""
    for part in parts:
        try:
            part.result()
        except CkError as failure:
            return failure
    return None


def _headers_of(text: str, source: KernelSource) -> str:
    """Return what names the headers that a part of a kernel's source includes."""
    return headers.identity(text, headers.precompiled(source.precompiled).read_text("utf-8"))


def source_of(key: AnyKey, functions: Functions) -> KernelSource:
    """Return the C++ of a kernel and the C of its functions."""
    return FAMILIES[key.family].lower(key, functions)


def _wait(what: str, jobs: Sequence[_Job], fills: int = 0) -> Wait:
    """Return the wait for some stencils and ``fills`` functions linked into them."""
    seconds = {
        digest_of("stencil", job.stencil): FAMILIES[job.key.family].compile_seconds for job in jobs
    }
    count = fills or len(seconds)
    expected = max([sum(seconds.values()) / _workers(), *seconds.values()])
    title = f"building {count} {what}{'s' if count > 1 else ''}"
    return Wait(title, 2 * len(seconds) + fills, expected)


@contextmanager
def _pool(executor: Executor | None, max_workers: int | None) -> Iterator[Executor]:
    """Yield an executor, which its owner shuts down, or else one of our own."""
    if executor is not None:
        yield executor
        return
    own = ThreadPoolExecutor(max_workers or _workers(), "cklang-build")
    try:
        yield own
    except BaseException:
        # Whoever interrupts it waits for the steps that run, not for those that have not begun.
        own.shutdown(wait=True, cancel_futures=True)
        raise
    own.shutdown(wait=True)


def _workers() -> int:
    # Two even on one core: a step may wait for another process's lock.
    return max(2, knobs.JOBS.get() or os.cpu_count() or 2)


def failures_together(results: Sequence[BuildResult]) -> CkError:
    """Return the first failure, with the others as its notes."""
    first, *rest = [(result.key, result.failure) for result in results if result.failure]
    key, failure = first
    notes = [*failure.notes, f"while building {key.label}"]
    notes += [f"{other.label} failed too: {problem.message}" for other, problem in rest]
    if len(results) > 1:
        notes.append(f"{len(rest) + 1} of {len(results)} kernels failed")
    return type(failure)(failure.code, failure.message, failure.hint, failure.at, notes)


def shared_builder() -> Builder:
    """Return this process's builder for the current cache folder and toolchain."""
    from cklang.toolchain.compilers import find_ck_tree, kernel_toolchain

    files = configured_files()
    try:
        tree = find_ck_tree()
    except CkBuildError:
        if not files:
            raise
        tree = None
    return _shared(cache_root(), kernel_toolchain(), tree, files)


@cache
def _shared(root: Path, toolchain: Toolchain, tree: CkTree | None, files: Files) -> Builder:
    return Builder(Store(root), toolchain, tree, files)
