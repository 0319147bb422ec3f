# SPDX-License-Identifier: MIT
"""A content-addressed store of build results on disk.

An entry is a folder of raw files and a ``record.json`` (what it was made from, how long it took,
the size and SHA-256 of each file). It is written in a temporary folder of the same filesystem and
renamed into place, so a reader sees all of it or nothing. Locks only keep two processes from doing
the same work; nothing depends on them. Only a build that returned becomes an entry: the folder of
a failed one is kept aside for its compiler log.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cklang.codec import canonical_digest
from cklang.errors import CkError, error
from cklang.toolchain import folders
from cklang.toolchain.integrity import RECORD, files_in, problem_of, read_record, sealed
from cklang.toolchain.log import logger
from cklang.toolchain.paths import cache_root, writing
from cklang.toolchain.progress import Wait

if TYPE_CHECKING:
    from filelock import BaseFileLock

SCHEMA_VERSION = 1
"""Version of the folder layout and of ``record.json``."""

_STALE_SECONDS = 24 * 3600.0
_USE_SECONDS = 3600.0

_DAMAGED: set[Path] = set()
"""Folders of entries that were found damaged and not yet built again in this process."""

Inputs = Mapping[str, Any]
Build = Callable[[Path], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One finished build: its folder and its record."""

    kind: str
    digest: str
    folder: Path
    record: Mapping[str, Any]

    def file(self, name: str) -> Path:
        """Return the path of one of its files."""
        if name not in self.record["files"]:
            raise error(
                "C002", folder=self.folder, name=name, known=", ".join(self.record["files"])
            )
        return self.folder / name

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the build function returned."""
        facts: Mapping[str, Any] = self.record["facts"]
        return facts

    @property
    def seconds(self) -> float:
        """How long the build took."""
        return float(self.record["seconds"])

    @property
    def bytes(self) -> int:
        """Size of its files together."""
        return sum(int(file["bytes"]) for file in self.record["files"].values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """An entry that is not what its record says."""

    folder: Path
    problem: str


def digest_of(kind: str, inputs: Inputs) -> str:
    """Return the address of the build of ``kind`` from ``inputs`` (plain JSON data)."""
    return canonical_digest({"schema": SCHEMA_VERSION, "kind": kind, "inputs": inputs})


def _new_name() -> str:
    """Return a name that says whose folder it is, and that no other folder has."""
    return f"{os.uname().nodename}~{os.getpid()}~{os.urandom(16).hex()}"


class Store:
    """The store below ``root`` (default: the kernel cache of this user)."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root if root is not None else cache_root()
        self.base = self.root / f"v{SCHEMA_VERSION}"
        self._log = logger("cache")
        self._swept = False

    def find(self, kind: str, digest: str) -> Entry | None:
        """Return the entry at an address; None if there is none or it is damaged (logged)."""
        folder = self._folder(kind, digest)
        try:
            entry, problem = self._read(kind, folder, every_byte=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if problem is not None:
            self._warn(folder, problem)
            return None
        _mark_used(folder)
        return entry

    def get_or_build(self, kind: str, inputs: Inputs, build: Build) -> tuple[Entry, bool]:
        """Return the entry of ``inputs`` and whether it was there already.

        ``build(folder)`` writes files into an empty folder and returns facts (plain JSON data).
        What it raises passes through; places in the error that lie in the folder are kept in
        ``failed/`` and named by their new path.
        """
        digest = digest_of(kind, inputs)
        entry = self.find(kind, digest)
        if entry is not None:
            return entry, True
        with self._lock(kind, digest):
            entry = self.find(kind, digest)
            if entry is not None:
                return entry, True
            with writing(self.root):
                return self._build(kind, digest, inputs, build), False

    def _warn(self, folder: Path, problem: str) -> None:
        """Log a damaged entry, once until it was built again: many steps look for one entry."""
        if folder not in _DAMAGED:
            _DAMAGED.add(folder)
            self._log.warning("%s: %s; it will be built again", folder, problem)

    def entries(self, kind: str | None = None) -> Iterator[Entry]:
        """Iterate over the readable entries (without checking their files)."""
        for folder in self._folders(kind):
            try:
                record = json.loads((folder / RECORD).read_text())
                yield self._entry(record["kind"], folder, record)
            except (OSError, ValueError, KeyError):
                continue

    def verify(self) -> tuple[int, list[Damage]]:
        """Check every byte of every entry; return how many are whole and what is damaged."""
        intact, damaged = 0, []
        for folder in self._folders(None):
            try:
                _, problem = self._read(folder.parent.parent.name, folder, every_byte=True)
            except FileNotFoundError:
                problem = f"{RECORD} is missing"
            if problem is None:
                intact += 1
            else:
                damaged.append(Damage(folder=folder, problem=problem))
        return intact, damaged

    def adopt(self, kind: str, digest: str, write: Callable[[Path], None]) -> Entry:
        """Add an entry that another store built; an entry that exists already is kept.

        ``write(folder)`` writes its files and its record into an empty folder.
        """
        existing = self.find(kind, digest)
        if existing is not None:
            return existing
        temporary = self._temporary()
        try:
            write(temporary)
            entry, problem = self._read(kind, temporary, every_byte=True)
            if (
                entry is not None
                and problem is None
                and (kind, digest)
                != (entry.record["kind"], digest_of(kind, entry.record["inputs"]))
            ):
                problem = "it was made from other inputs"
        except BaseException:
            folders.remove(temporary)
            raise
        if entry is None or problem is not None:
            folders.remove(temporary)
            raise error("C003", kind=kind, digest=digest, problem=problem)
        return self._publish(kind, digest, temporary, entry.record)

    def remove(self, entry: Entry) -> None:
        """Take one entry out."""
        self._discard(entry.folder)

    def clear(self) -> None:
        """Take everything out, other schema versions' entries too."""
        if not self.root.is_dir():
            return
        for folder in self.root.iterdir():
            if folder.is_dir() and folder.name.startswith("v"):
                folders.remove(folder)

    def trim(self, limit: int) -> tuple[int, int]:
        """Remove the entries that were used least recently until ``limit`` bytes are left.

        Returns:
            How many entries were removed, and how many bytes they had.
        """
        entries = sorted(self.entries(), key=lambda entry: _last_used(entry.folder))
        excess = sum(entry.bytes for entry in entries) - limit
        count = removed = 0
        for entry in entries:
            if removed >= excess:
                break
            self.remove(entry)
            count, removed = count + 1, removed + entry.bytes
        return count, removed

    def sweep(self) -> list[Path]:
        """Remove temporary folders whose writer is gone; return them."""
        host, now, gone = os.uname().nodename, time.time(), []
        for folder in self._children(self.base / "tmp"):
            owner, _, rest = folder.name.partition("~")
            pid = rest.partition("~")[0]
            try:
                old = now - folder.stat().st_mtime > _STALE_SECONDS
            except FileNotFoundError:
                continue
            if old or (owner == host and pid.isdigit() and not _alive(int(pid))):
                folders.remove(folder)
                gone.append(folder)
        return gone

    def _folder(self, kind: str, digest: str) -> Path:
        return self.base / kind / digest[:2] / digest

    def _folders(self, kind: str | None) -> Iterator[Path]:
        for kind_folder in self._children(self.base):
            if kind_folder.name in _PRIVATE or kind not in (None, kind_folder.name):
                continue
            for shard in self._children(kind_folder):
                yield from self._children(shard)

    @staticmethod
    def _children(folder: Path) -> list[Path]:
        return sorted(folder.iterdir()) if folder.is_dir() else []

    @staticmethod
    def _entry(kind: str, folder: Path, record: Mapping[str, Any]) -> Entry:
        return Entry(kind=kind, digest=folder.name, folder=folder, record=record)

    def _read(
        self, kind: str, folder: Path, *, every_byte: bool
    ) -> tuple[Entry | None, str | None]:
        record = read_record(folder)
        problem = problem_of(folder, record, every_byte=every_byte)
        return None if record is None else self._entry(kind, folder, record), problem

    @contextmanager
    def _lock(self, kind: str, digest: str) -> Iterator[None]:
        lock = self._acquire(kind, digest)
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    def _acquire(self, kind: str, digest: str) -> BaseFileLock | None:
        import filelock

        folder = self.base / "locks"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = filelock.FileLock(str(folder / f"{kind}-{digest}.lock"))
            with Wait(f"waiting for another process, which builds the {kind} {digest[:16]}"):
                lock.acquire()
        except (OSError, NotImplementedError) as problem:
            self._log.info("no file locks under %s (%s): building without", self.base, problem)
            return None
        return lock

    def _build(self, kind: str, digest: str, inputs: Inputs, build: Build) -> Entry:
        if not self._swept:
            self._swept = True
            self.sweep()
        temporary = self._temporary()
        start = time.perf_counter()
        try:
            facts = dict(build(temporary))
            record = self._record(kind, digest, inputs, facts, temporary, start)
            (temporary / RECORD).write_text(json.dumps(record, indent=1, sort_keys=True))
        except CkError as failure:
            raise self._keep_failure(kind, digest, temporary, failure) from failure
        except BaseException:
            folders.remove(temporary)
            raise
        return self._publish(kind, digest, temporary, record)

    def _temporary(self) -> Path:
        folder = self.base / "tmp" / _new_name()
        with writing(self.root):
            folder.mkdir(parents=True)
        return folder

    @staticmethod
    def _record(
        kind: str, digest: str, inputs: Inputs, facts: Mapping[str, Any], folder: Path, start: float
    ) -> dict[str, Any]:
        record = {
            "schema": SCHEMA_VERSION,
            "kind": kind,
            "digest": digest,
            "inputs": dict(inputs),
            "facts": facts,
            "files": files_in(folder),
            "seconds": round(time.perf_counter() - start, 4),
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        return sealed(record)

    def _publish(self, kind: str, digest: str, temporary: Path, record: Mapping[str, Any]) -> Entry:
        folder = self._folder(kind, digest)
        folder.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(8):
            try:
                temporary.rename(folder)
                _DAMAGED.discard(folder)
                return self._entry(kind, folder, record)
            except OSError:
                # Somebody else published it first, or a damaged entry stands there.
                entry = self.find(kind, digest)
                if entry is not None:
                    folders.remove(temporary)
                    return entry
                self._discard(folder)
        raise error("C001", folder=folder, problem="it cannot be replaced")

    def _discard(self, folder: Path) -> None:
        """Take a folder away at once, so that nobody sees it half removed."""
        grave = self.base / "tmp" / _new_name()
        grave.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.rename(grave)
        except FileNotFoundError:
            return
        folders.remove(grave)

    def _keep_failure(self, kind: str, digest: str, temporary: Path, failure: CkError) -> CkError:
        kept = self.base / "failed" / f"{kind}-{digest}"
        kept.parent.mkdir(parents=True, exist_ok=True)
        if kept.exists():
            self._discard(kept)
        try:
            temporary.rename(kept)
        except OSError:
            # Another process kept the same failure in this moment; its log says the same.
            folders.remove(temporary)
        return _moved(failure, str(temporary), str(kept))


def _last_used(folder: Path) -> float:
    try:
        return (folder / RECORD).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _mark_used(folder: Path) -> None:
    """Let the record's time say when the entry was used; once an hour is exact enough."""
    if time.time() - _last_used(folder) > _USE_SECONDS:
        with suppress(OSError):  # a cache that others own, or that is read-only
            os.utime(folder / RECORD)


_PRIVATE = frozenset({"tmp", "locks", "failed"})


def _moved(failure: CkError, old: str, new: str) -> CkError:
    return type(failure)(
        failure.code,
        failure.message.replace(old, new),
        failure.hint.replace(old, new),
        failure.at,
        [note.replace(old, new) for note in failure.notes],
    )


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
