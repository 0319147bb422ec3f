# SPDX-License-Identifier: MIT
"""Stencil bundles: compiled CK Tile kernels with their functions open, in one file.

A machine with a clang and no CK Tile headers fills the stencils of a bundle: ``cklang build
--bundle FILE`` writes one, ``CKLANG_BUNDLE`` names those to use; a wheel may have one too
(:mod:`cklang.toolchain.prebuilt`). A bundle is a zip archive::

    bundle.json            version, compiler and headers that made it, and a row for each stencil
    <digest>/stencil.bc    LLVM bitcode
    <digest>/host.so       the host shim
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cklang import knobs
from cklang.codec import expect_fields
from cklang.errors import CkBuildError, error
from cklang.families import key_from_json
from cklang.forks import cached_property
from cklang.keys import AnyKey, KernelSignature, opened
from cklang.toolchain.prebuilt import STENCILS, prebuilt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cklang.build.stencil_files import StencilFiles

SCHEMA_VERSION = 3

Files = tuple[tuple[Path, int], ...]
"""Files of bundles, each with the time of its last change."""

_INDEX = "bundle.json"
_PARTS = ("version", "compiler", "headers", "stencils")
_ROW = ("key", "member", "source", "digest")
# Archives of equal stencils are equal files.
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundled:
    """One stencil of a bundle."""

    path: Path
    member: str
    digest: str
    """SHA-256 (hex) of its two files."""

    def copy(self, name: str, folder: Path) -> Path:
        """Write file ``name`` of it into ``folder``."""
        import zipfile

        with zipfile.ZipFile(self.path) as archive:
            data = archive.read(f"{self.member}/{name}")
        target = folder / name
        target.write_bytes(data)
        (folder / "log.txt").write_text(f"{name} comes from {self.path}\n")
        return target


@dataclass(frozen=True)
class Bundle:
    """A bundle file; equal if it is the same file with the same contents."""

    path: Path
    compiler: str
    headers: str
    rows: tuple[tuple[str, str, str, str], ...]
    """For each stencil: its key's digest, the SHA-256 of its source and of its files, its key."""

    def __hash__(self) -> int:
        return hash((self.path, len(self.rows)))

    @cached_property
    def identity(self) -> str:
        """Text for cache keys: equal for bundles of the same stencils."""
        return _sha(json.dumps(self.rows).encode())

    @cached_property
    def _by_digest(self) -> dict[tuple[str, str], str]:
        return {(member, source): digest for member, source, digest, _ in self.rows}

    @cached_property
    def keys(self) -> tuple[AnyKey, ...]:
        """The keys of its stencils, in the file's order."""
        return tuple(key_from_json(json.loads(text)) for _, _, _, text in self.rows)

    def algorithms(self, signature: KernelSignature, gpu: str) -> Iterator[Any]:
        """Yield the algorithms of its stencils for a signature on a GPU, in the file's order."""
        open_ = opened(signature)
        for key in self.keys:
            if key.arch == gpu and key.signature == open_:
                yield key.algorithm

    def find(self, key: AnyKey, source: str) -> Bundled | None:
        """Return the stencil of ``key`` (its functions open) if it is built from ``source``."""
        digest = self._by_digest.get((key.digest, _sha(source.encode())))
        return None if digest is None else Bundled(path=self.path, member=key.digest, digest=digest)


def _sha(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()


def write(path: Path, files: Iterable[StencilFiles], *, compiler: str, headers: str) -> int:
    """Write a bundle of the stencils ``files``, each once; return how many they are.

    ``compiler`` and ``headers`` are the identities of what made them.
    """
    import zipfile

    def put(name: str, data: bytes) -> None:
        archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)

    rows: list[dict[str, Any]] = []
    temporary = path.with_name(f".{path.name}.part")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for stencil in {f.key.digest: f for f in files}.values():
            bitcode, host = stencil.bitcode.read_bytes(), stencil.host_shim.read_bytes()
            for name, data in (("stencil.bc", bitcode), ("host.so", host)):
                put(f"{stencil.key.digest}/{name}", data)
            source = _sha(stencil.source.encode())
            digest = _sha(bitcode, host)
            row = (stencil.key.to_json(), stencil.key.digest, source, digest)
            rows.append(dict(zip(_ROW, row, strict=True)))
        index = dict(zip(_PARTS, (SCHEMA_VERSION, compiler, headers, rows), strict=True))
        put(_INDEX, json.dumps(index, indent=1).encode())
    temporary.replace(path)
    return len(rows)


def read(path: Path) -> Bundle:
    """Return the bundle in a file."""
    import zipfile

    try:
        with zipfile.ZipFile(path) as archive:
            data = json.loads(archive.read(_INDEX))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as problem:
        raise error("B040", path=path, problem=problem) from problem
    if not isinstance(data, dict) or data.get("version") != SCHEMA_VERSION:
        version = data.get("version") if isinstance(data, dict) else data
        raise error("K003", what="bundle", got=version, want=SCHEMA_VERSION)
    expect_fields("bundle", data, _PARTS)
    for row in data["stencils"]:
        expect_fields("bundle stencil", row, _ROW)
    rows = tuple(
        (str(row["member"]), str(row["source"]), str(row["digest"]), json.dumps(row["key"]))
        for row in data["stencils"]
    )
    return Bundle(path, str(data["compiler"]), str(data["headers"]), rows)


def configured() -> tuple[Bundle, ...]:
    """Return the bundles that ``CKLANG_BUNDLE`` names, in order, and that which was prebuilt."""
    return bundles_in(configured_files())


def configured_files() -> Files:
    """Return the files of these bundles and their times, without reading them."""
    return tuple((path, path.stat().st_mtime_ns) for path in _existing())


def bundles_in(files: Files) -> tuple[Bundle, ...]:
    """Return the bundles in files; each is read once until it changes."""
    return tuple(_read(path, changed) for path, changed in files)


def sole_source() -> tuple[Bundle, ...] | None:
    """Return the configured bundles if stencils come from nowhere else: there are no headers.

    None if headers are there, or if nothing is configured.
    """
    bundles = configured()
    if not bundles:
        return None
    from cklang.toolchain.compilers import find_ck_tree

    try:
        find_ck_tree()
    except CkBuildError:
        return bundles
    return None


def _existing() -> list[Path]:
    paths = knobs.BUNDLE.get()
    for path in paths:
        if not path.is_file():
            raise error("B040", path=path, problem="there is no such file")
    compiled = prebuilt(STENCILS)
    return [*paths, *([] if compiled is None else [compiled])]


@cache
def _read(path: Path, changed: int) -> Bundle:
    return read(path)
