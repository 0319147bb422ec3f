# SPDX-License-Identifier: MIT
"""Cache entries on their way between machines that share no folder.

Whoever sends work leaves a mark in its cache; a worker that sees the mark there shares the folder
and sends nothing. Another one builds into its own cache and sends its entries as bytes, which are
checked, byte by byte, before they are taken in.
"""

import io
import tarfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cklang.build.store import Entry, Store
from cklang.errors import error


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheArchive:
    """One cache entry as bytes."""

    kind: str
    digest: str
    archive: bytes
    """A tar file of its folder."""


@contextmanager
def shared_cache_probe(store: Store) -> Iterator[str]:
    """Give the path of a mark in the cache folder, whose name nobody could guess."""
    folder = store.base / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    mark = folder / f"mark-{uuid.uuid4().hex}"
    mark.touch()
    try:
        yield str(mark)
    finally:
        mark.unlink(missing_ok=True)


def sees_probe(mark: str) -> bool:
    """Tell whether this process sees the folder in which a mark was left."""
    return Path(mark).exists()


def send(entry: Entry) -> CacheArchive:
    """Return an entry as bytes."""
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w") as archive:
        for path in sorted(entry.folder.iterdir()):
            archive.add(path, path.name)
    return CacheArchive(kind=entry.kind, digest=entry.digest, archive=text.getvalue())


def receive(store: Store, parcel: CacheArchive) -> Entry:
    """Take an entry in that came as bytes."""

    def write(folder: Path) -> None:
        # An entry is files without folders. The filters of ``extractall`` came with Python 3.11.4.
        with tarfile.open(fileobj=io.BytesIO(parcel.archive)) as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is None or Path(member.name).name != member.name:
                    problem = f"{member.name!r} is no file of its folder"
                    raise error("C003", kind=parcel.kind, digest=parcel.digest, problem=problem)
                (folder / member.name).write_bytes(content.read())

    return store.adopt(parcel.kind, parcel.digest, write)
