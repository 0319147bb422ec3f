# SPDX-License-Identifier: MIT
"""Compiled objects of sources that have not changed, so that nobody waits for them twice.

An entry is found by the command and the source's bytes. It holds what the compiler wrote, and a
digest of each file that the source includes; all must be as they were. What names the time of
its compilation is not kept. As with other caches of this kind, a header that is added where it
hides another one is not noticed.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cklang.toolchain.paths import cache_root

MOST_ENTRIES = 2000
"""Entries that are kept; of more, those that were not used for the longest time are removed."""

_TIMED = re.compile(rb"__(?:DATE|TIME|TIMESTAMP)__")
_WORD = re.compile(r"(?:\\.|[^\s\\])+")


@dataclass(frozen=True, slots=True)
class Entry:
    """The place of one object in the cache."""

    folder: Path

    def load(self, output: Path) -> str | None:
        """Copy the object to ``output`` and return what the compiler said; None if it is stale."""
        try:
            record = json.loads((self.folder / "record.json").read_text("utf-8"))
            content = (self.folder / "object").read_bytes()
            if _digest(content) != record["object"]:
                return None
            for path, digest in record["files"].items():
                if _digest(Path(path).read_bytes()) != digest:
                    return None
        except (OSError, ValueError, KeyError):
            return None
        output.write_bytes(content)
        os.utime(self.folder)
        text: str = record["text"]
        return text

    def store(self, output: Path, dependencies: Path, text: str) -> None:
        """Keep the object at ``output``, made from the files that a makefile rule lists."""
        contents = {path: path.read_bytes() for path in files_of_rule(dependencies.read_text())}
        if any(_TIMED.search(content) for content in contents.values()):
            return
        content = output.read_bytes()
        record = {
            "object": _digest(content),
            "files": {str(path): _digest(data) for path, data in contents.items()},
            "text": text,
        }
        parent = self.folder.parent
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="new.", dir=parent))
        (work / "object").write_bytes(content)
        (work / "record.json").write_text(json.dumps(record), "utf-8")
        _replace(work, self.folder)
        _prune(parent)


def entry_of(identity: str, command: Sequence[str], source: Path) -> Entry:
    """Return the place for what ``command`` makes of ``source``; ``identity`` is the compiler's.

    The command must not name temporary files. Relative paths in it are those of the current folder.
    """
    parts = (identity, str(Path.cwd()), str(source.resolve()), *command)
    digest = hashlib.sha256("\0".join(parts).encode() + b"\0" + source.read_bytes())
    return Entry(cache_root() / "hipcc" / "objects" / digest.hexdigest()[:32])


def files_of_rule(rule: str) -> list[Path]:
    r"""Return the files on the right side of a makefile rule as clang writes it.

    >>> [str(path) for path in files_of_rule("a.o: a.cpp \\\n  my\\ own.h\n")]
    ['a.cpp', 'my own.h']
    """
    _, _, right = rule.replace("\\\n", " ").partition(": ")
    words = (match.group() for match in _WORD.finditer(right))
    return [Path(word.replace("\\ ", " ").replace("\\#", "#").replace("$$", "$")) for word in words]


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _replace(work: Path, folder: Path) -> None:
    """Publish an entry; of two that are made at a time either may stay."""
    _remove(folder)
    try:
        work.rename(folder)
    except OSError:
        _remove(work)


def _remove(folder: Path) -> None:
    for path in (folder / "object", folder / "record.json"):
        path.unlink(missing_ok=True)
    if folder.is_dir():
        folder.rmdir()


def _prune(parent: Path) -> None:
    folders = list(parent.iterdir())
    if len(folders) <= MOST_ENTRIES:
        return

    def age(folder: Path) -> float:
        try:
            return folder.stat().st_mtime
        except OSError:  # another process has removed it
            return 0.0

    for folder in sorted(folders, key=age)[: len(folders) - MOST_ENTRIES]:
        _remove(folder)
