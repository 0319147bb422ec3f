# SPDX-License-Identifier: MIT
"""The compiler, the linker and the CK Tile headers: where they are and how they are called.

A compiler is looked for in this order: ``CKLANG_CLANG``; ROCm's amdclang++; a clang of version 20
or newer on PATH; the clang inside the ziglang wheel, which brings its own C and C++ headers. CK
Tile: ``CKLANG_CK_DIR``; ROCm's include folder; the amd-aiter wheel. Nothing is imported from
either wheel: their files are found by the names of their folders. :mod:`importlib.metadata` finds
them too, but its import takes a tenth of the time that a process needs to its first result.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
import time
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from cklang import knobs
from cklang.errors import error
from cklang.forks import cached_property
from cklang.toolchain.log import logger
from cklang.toolchain.paths import cache_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_INFO = ".dist-info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A wheel that is installed."""

    folder: Path
    """Where its packages are."""
    version: str
    info: Path
    """Its ``.dist-info`` folder."""

    def record(self) -> bytes:
        """Return its list of files and their digests; nothing if it has none."""
        path = self.info / "RECORD"
        return path.read_bytes() if path.is_file() else b""


def installed_wheel(name: str) -> Wheel | None:
    """Return the wheel of that name that Python imports; None if there is none.

    Example:
        >>> installed_wheel("NumPy").version == np.__version__
        True
        >>> installed_wheel("no-such-wheel")
    """
    start = re.sub(r"[-_.]+", "_", name).lower() + "-"
    for place in sys.path:
        try:
            entries = os.listdir(place or ".")
        except OSError:
            continue  # an archive, or nothing
        for entry in entries:
            if entry.endswith(_INFO) and entry.lower().startswith(start):
                folder = Path(place or ".")
                version = entry[len(start) : -len(_INFO)]
                return Wheel(folder=folder, version=version, info=folder / entry)
    return None


OLDEST_CLANG = 20
"""Clang 20 is the first release that knows gfx950."""

GET_ZIG = "pip install 'ziglang==0.17.0'"
GET_CK = "pip install --pre 'amd-aiter==0.1.7.post2.dev18'"

# Clang 21 named these two apart from __builtin_elementwise_min and max, which were the same before.
_BEFORE_CLANG_21 = tuple(
    f"-D__builtin_elementwise_{name}num=__builtin_elementwise_{name}" for name in ("min", "max")
)

_ZIG_BEFORE_CLANG_21 = "0.15"
"""The only release of the ziglang wheel with clang 20."""

_GLIBC_MINOR = 31
"""Host libraries run on every system with glibc 2.31 (2020) or newer."""

# How zig builds the libc++ that it links: code compiled against its headers must agree.
_LIBCXX_DEFINES = (
    "_LIBCPP_ABI_VERSION=1",
    "_LIBCPP_ABI_NAMESPACE=__1",
    "_LIBCPP_HAS_THREADS=1",
    "_LIBCPP_HAS_MONOTONIC_CLOCK=1",
    "_LIBCPP_HAS_TERMINAL=1",
    "_LIBCPP_HAS_MUSL_LIBC=0",
    "_LIBCPP_HAS_FILESYSTEM=1",
    "_LIBCPP_HAS_RANDOM_DEVICE=1",
    "_LIBCPP_HAS_LOCALIZATION=1",
    "_LIBCPP_HAS_UNICODE=1",
    "_LIBCPP_HAS_WIDE_CHARACTERS=1",
    "_LIBCPP_HAS_TIME_ZONE_DATABASE=0",
    "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS=0",
    "_LIBCPP_HAS_NO_STD_MODULES",
    "_LIBCPP_HAS_THREAD_API_PTHREAD=1",
    "_LIBCPP_HAS_THREAD_API_EXTERNAL=0",
    "_LIBCPP_PSTL_BACKEND_SERIAL",
    "_LIBCPP_LIBC_NEWLIB=0",
    # No run-time checks in std::array and its kin: they would end up in device code.
    "_LIBCPP_HARDENING_MODE_DEFAULT=2",
    "_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=2",
    f"__GLIBC_MINOR__={_GLIBC_MINOR}",
)


class Kind(Enum):
    """Whose clang it is, which decides the headers and the linker that go with it."""

    ZIG = "zig"
    ROCM = "rocm"
    CLANG = "clang"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRun:
    """What one call of a tool did."""

    command: tuple[str, ...]
    seconds: float
    output: str
    """Everything it wrote to stdout and stderr."""


@dataclass(frozen=True, kw_only=True)
class Toolchain:
    """One clang and the linker beside it."""

    kind: Kind
    program: Path
    """The clang driver, or the zig program that contains it."""
    version: str
    """What names the release: ``ziglang 0.17.0``, or the first line of ``--version``."""
    fingerprint: str
    """Hex digest that changes when the program does."""

    @cached_property
    def identity(self) -> str:
        """Text for cache keys: equal for equal compilers."""
        return f"{self.kind.value} {self.version} {self.fingerprint}"

    @property
    def clang(self) -> tuple[str, ...]:
        """The command that is clang."""
        inside = ("clang",) if self.kind is Kind.ZIG else ()
        return (str(self.program), *inside)

    @property
    def bundled(self) -> Path:
        """The folder of headers in the ziglang wheel."""
        return self.program.parent / "lib"

    def host_target(self) -> tuple[str, ...]:
        """Flags that name the host; empty for a compiler that was built for it."""
        return (f"--target={_host_triple()}",) if self.kind is Kind.ZIG else ()

    def host_headers(self) -> tuple[str, ...]:
        """Flags that give host C and C++ headers; empty where the system's are used."""
        if self.kind is not Kind.ZIG:
            return ()
        libc = self.bundled / "libc" / "include"
        folders = [
            self.bundled / "libcxx" / "include",
            self.bundled / "include",
            *(libc / name for name in _libc_folders()),
        ]
        includes = [part for folder in folders for part in ("-isystem", str(folder))]
        return ("-nostdinc", "-nostdinc++", *includes, *(f"-D{d}" for d in _LIBCXX_DEFINES))

    def hip_headers(self, *ours: Path) -> tuple[str, ...]:
        """Flags for the HIP headers: ROCm's own before ours, where it is ROCm's compiler."""
        folders = tuple(word for folder in ours for word in ("-I", str(folder)))
        if self.kind is Kind.ROCM:
            return ("-I", str(_rocm() / "include"), *folders)
        older = _BEFORE_CLANG_21 if self.is_clang_20 else ()
        return ("-nogpulib", "-nogpuinc", *folders, *older)

    def link_device(self, objects: Sequence[Path], output: Path) -> list[str]:
        """Return the command that links AMD GPU objects to one code object.

        A symbol that is left undefined is an error: an epilogue that was not filled in.
        """
        flags = ["-shared", "--no-undefined", *map(str, objects), "-o", str(output)]
        return [*self.linker, *flags]

    def compile_cxx(
        self, source: Path, output: Path, *, flags: Sequence[str] = ("-O3",)
    ) -> list[str]:
        """Return the command that compiles one host C++20 file to a position-independent object."""
        return [
            *self.clang,
            *self.host_target(),
            *("-x", "c++", "-std=c++20", "-fPIC", "-c"),
            *self.host_headers(),
            *flags,
            *(str(source), "-o", str(output)),
        ]

    def link_program(self, words: Sequence[str], output: Path, *, shared: bool) -> list[str]:
        """Return the command that links a host program, or with ``shared`` a library.

        ``words`` are objects, libraries and linker flags in order. With zig the first call on a
        machine compiles libc++ (about a minute); run it with the environment of
        :meth:`environment`, which keeps the result in cklang's cache folder.
        """
        if self.kind is Kind.ZIG:
            linker = [str(self.program), "c++", "-target", f"{_host_triple()}.2.{_GLIBC_MINOR}"]
        else:
            linker = [str(self.program), "--driver-mode=g++", "-static-libstdc++"]
        kind = ["-shared"] if shared else []
        return [*linker, *kind, *words, "-o", str(output)]

    def link_plain(self, objects: Sequence[Path], output: Path) -> list[str]:
        """Return the command that links host objects which need no runtime library but libc.

        Unused functions and what they would need are dropped; libc symbols are found in the
        process that loads the library.
        """
        if self.kind is Kind.ZIG:
            start = [*self.linker, "-shared", "--gc-sections"]
        else:
            start = [*self.clang, "-shared", "-Wl,--gc-sections"]
        return [*start, *map(str, objects), "-o", str(output)]

    def archive(self, objects: Sequence[Path], output: Path) -> list[str]:
        """Return the command that puts host objects into a static library with an index."""
        if self.kind is Kind.ZIG:
            start = [str(self.program), "ar"]
        else:
            start = [str(self._beside("llvm-ar", f"llvm-ar-{_major(self.version)}", "ar"))]
        return [*start, "rcs", str(output), *map(str, objects)]

    def environment(self) -> dict[str, str]:
        """Return the environment of tool processes: caches of their own go into our folder."""
        folder = str(cache_root() / "zig")
        return knobs.tool_environment(ZIG_GLOBAL_CACHE_DIR=folder, ZIG_LOCAL_CACHE_DIR=folder)

    @property
    def is_clang_20(self) -> bool:
        """Whether its clang is of version 20."""
        if self.kind is Kind.ZIG:
            return f" {_ZIG_BEFORE_CLANG_21}." in self.version
        return _major(self.version) == OLDEST_CLANG

    @property
    def precompiles(self) -> bool:
        """Whether it precompiles headers of HIP: clang 20 calls the host's functions from there."""
        return not self.is_clang_20

    @property
    def linker(self) -> tuple[str, ...]:
        """The command that is ``ld.lld``."""
        if self.kind is Kind.ZIG:
            return (str(self.program), "ld.lld")
        return (str(self._beside("ld.lld", f"ld.lld-{_major(self.version)}")),)

    def _beside(self, *names: str) -> Path:
        """Return a program of the compiler's folder, or of PATH."""
        folders = [self.program.resolve().parent, *knobs.executable_path()]
        for candidate in (folder / name for folder in folders for name in names):
            if candidate.is_file():
                return candidate
        raise error("B003", program=self.program, tool=names[0], get=GET_ZIG)


@dataclass(frozen=True, slots=True, kw_only=True)
class CkTree:
    """A tree of CK Tile headers."""

    include: Path
    """The folder that holds ``ck_tile/``."""
    source: str
    """Where it came from, for people: ``amd-aiter 0.1.7.post2.dev18``."""
    fingerprint: str
    """Hex digest of its content."""

    @property
    def identity(self) -> str:
        """Text for cache keys: equal for equal headers."""
        return f"ck_tile {self.fingerprint}"


def find_toolchain() -> Toolchain:
    """Return the compiler to use."""
    return _find_toolchain(knobs.CLANG.get(), str(_rocm()), tuple(knobs.executable_path()))


ROCM_7 = "rocm7"
"""The name of the compiler that ROCm 7's is made from, clang 20."""

_kernel_toolchain: ContextVar[Toolchain | None] = ContextVar(
    "cklang_kernel_toolchain", default=None
)


@contextmanager
def kernels_by(name: str) -> Iterator[None]:
    """Compile the kernels of a block by a clang, a zig, or the one that is called ``rocm7``.

    Raises:
        CkBuildError: B002, it cannot be used; B007, there is no clang 20.
    """
    token = _kernel_toolchain.set(_named(name))
    try:
        yield
    finally:
        _kernel_toolchain.reset(token)


def kernel_toolchain() -> Toolchain:
    """Return the compiler of kernels: that of :func:`kernels_by`, or :func:`find_toolchain`'s."""
    return _kernel_toolchain.get() or find_toolchain()


def _named(name: str) -> Toolchain:
    rocm, path = _rocm(), tuple(knobs.executable_path())
    if name != ROCM_7:
        return _find_toolchain(name, str(rocm), path)
    folder = cache_root() / "compilers" / "clang20"
    programs = (
        rocm / "bin" / "amdclang++",
        *(place / f"clang++-{OLDEST_CLANG}" for place in path),
        folder / "ziglang" / "zig",
    )
    for program in filter(Path.is_file, programs):
        toolchain = _find_toolchain(str(program), str(rocm), path)
        if toolchain.is_clang_20:
            return toolchain
    raise error("B007", folder=folder)


@cache
def _find_toolchain(chosen: str | None, rocm: str, path: tuple[Path, ...]) -> Toolchain:
    if chosen is not None:
        return _from_program(chosen, path)
    amdclang = Path(rocm) / "bin" / "amdclang++"
    if amdclang.is_file():
        return _from_clang(amdclang, Kind.ROCM)
    for program in _clangs_on(path):
        toolchain = _from_clang(program, Kind.CLANG)
        if _major(toolchain.version) >= OLDEST_CLANG:
            return toolchain
    zig = _zig_wheel()
    if zig is None:
        raise error("B001", oldest=OLDEST_CLANG, get=GET_ZIG)
    return zig


def _from_program(name: str, path: tuple[Path, ...]) -> Toolchain:
    candidates = [Path(name).expanduser(), *(folder / name for folder in path)]
    program = next((c for c in candidates if c.is_file()), None)
    if program is None:
        raise error("B002", got=name, problem="there is no such program", oldest=OLDEST_CLANG)
    if program.name.startswith("zig"):
        wheel = _zig_wheel()
        if wheel is not None and wheel.program.samefile(program):
            return wheel
        version = _first_line([str(program), "version"])
        return Toolchain(
            kind=Kind.ZIG, program=program, version=f"zig {version}", fingerprint=_stamp(program)
        )
    kind = Kind.ROCM if program.name.startswith("amdclang") else Kind.CLANG
    toolchain = _from_clang(program, kind)
    if _major(toolchain.version) < OLDEST_CLANG and kind is Kind.CLANG:
        problem = f"it is {toolchain.version!r}"
        raise error("B002", got=name, problem=problem, oldest=OLDEST_CLANG)
    return toolchain


def _from_clang(program: Path, kind: Kind) -> Toolchain:
    version = _first_line([str(program), "--version"])
    return Toolchain(kind=kind, program=program, version=version, fingerprint=_stamp(program))


def _clangs_on(path: tuple[Path, ...]) -> list[Path]:
    names = ["clang++", *(f"clang++-{major}" for major in range(30, OLDEST_CLANG - 1, -1))]
    return [folder / name for name in names for folder in path if (folder / name).is_file()]


def _zig_wheel() -> Toolchain | None:
    wheel = installed_wheel("ziglang")
    if wheel is None:
        return None
    program = wheel.folder / "ziglang" / "zig"
    if not program.is_file():
        return None
    # The wheel's own record has the digest of the program, so 185 MB need not be read.
    record, row = wheel.record(), b"ziglang/zig,sha256="
    begin = record.find(row) + len(row)
    known = record[begin : record.index(b",", begin)].decode() if begin >= len(row) else ""
    return Toolchain(
        kind=Kind.ZIG,
        program=program,
        version=f"ziglang {wheel.version}",
        fingerprint=known or _stamp(program),
    )


def find_ck_tree() -> CkTree:
    """Return the CK Tile headers to use."""
    return _find_ck_tree(knobs.CK_DIR.get(), _rocm())


@cache
def _find_ck_tree(chosen: Path | None, rocm: Path) -> CkTree:
    if chosen is not None:
        for include in (chosen, chosen / "include"):
            if _has_ck_tile(include):
                return _tree(include, f"CKLANG_CK_DIR={chosen}")
        raise error("B005", got=chosen)
    if _has_ck_tile(rocm / "include"):
        return _tree(rocm / "include", f"ROCm in {rocm}")
    wheel = _aiter_wheel()
    if wheel is None:
        raise error("B004", get=GET_CK)
    return wheel


def _aiter_wheel() -> CkTree | None:
    wheel = installed_wheel("amd-aiter")
    if wheel is None:
        return None
    # A few hundred neighbours of ten thousand lines: an expression for all takes ten times as long.
    record, part = wheel.record(), b"/include/ck_tile/"
    begin = record.rfind(b"\n", 0, record.find(part)) + 1
    rows = record[begin : record.find(b"\n", record.rfind(part))].splitlines()
    some = [row for row in rows if part in row]
    pattern = r"^(.*/include)/(ck_tile/[^,\n]*),sha256=([^,]+),"
    lines = re.findall(pattern, b"\n".join(some).decode(), re.M)
    root = next((root for root, name, _ in lines if name == "ck_tile/core.hpp"), None)
    if root is None:
        return None
    content = "\n".join(f"{name} {sha}" for r, name, sha in sorted(lines) if r == root)
    return CkTree(
        include=wheel.folder / root,
        source=f"amd-aiter {wheel.version}",
        fingerprint=hashlib.sha256(content.encode()).hexdigest(),
    )


def _tree(include: Path, source: str) -> CkTree:
    digest = hashlib.sha256()
    for file in sorted((include / "ck_tile").rglob("*.hpp")):
        digest.update(str(file.relative_to(include)).encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return CkTree(include=include, source=source, fingerprint=digest.hexdigest())


def _has_ck_tile(include: Path) -> bool:
    return (include / "ck_tile" / "core.hpp").is_file()


def run_tool(
    command: Sequence[str], *, log: Path, environment: dict[str, str] | None = None
) -> ToolRun:
    """Run one tool to its end, and keep the command, its time and all its output in ``log``.

    This is the only place that starts a process. ``log`` is appended to.
    """
    import subprocess

    start = time.perf_counter()
    done = subprocess.run(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    seconds = time.perf_counter() - start
    with log.open("a", encoding="utf-8") as file:
        file.write(f"$ {' '.join(command)}\n{done.stdout}# exit {done.returncode}, ")
        file.write(f"{seconds:.3f} s\n\n")
    logger("tool").debug("%.3f s: %s", seconds, " ".join(command))
    if done.returncode != 0:
        raise error(
            "B010",
            notes=distil(done.stdout),
            tool=_tool_name(command),
            status=done.returncode,
            log=log,
        )
    return ToolRun(command=tuple(command), seconds=seconds, output=done.stdout)


_ERROR = re.compile(r"(?:^|\s)(?:fatal )?error:", re.M)
_FRAME = re.compile(r"in instantiation of .* requested here|from .*\.hip:\d+")
_COUNT = re.compile(r"\d+ errors? generated|too many errors emitted")


def distil(output: str) -> tuple[str, ...]:
    """Return the lines of a compiler's output that say what is wrong.

    They are: the first error, the source line and caret below it, and the first instantiation
    note in generated code.
    """
    lines = output.splitlines()
    errors = [i for i, line in enumerate(lines) if _ERROR.search(line) and not _COUNT.search(line)]
    if not errors:
        return tuple(lines[-5:])
    first = errors[0]
    context = [line for line in lines[first + 1 : first + 3] if re.match(r"\s*\d*\s*\|", line)]
    frames = [line for line in lines[first:] if _FRAME.search(line) and ".hip:" in line]
    return (lines[first], *context, *frames[:1])


def _tool_name(command: Sequence[str]) -> str:
    program = Path(command[0]).name
    return f"{program} {command[1]}" if program.startswith("zig") else program


def _first_line(command: list[str]) -> str:
    import subprocess

    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not done.stdout.strip():
        problem = f"{' '.join(command)} fails"
        raise error("B002", got=command[0], problem=problem, oldest=OLDEST_CLANG)
    return done.stdout.splitlines()[0].strip()


def _major(version: str) -> int:
    match = re.search(r"(\d+)\.\d+", version)
    return int(match.group(1)) if match else 0


def _stamp(program: Path) -> str:
    """A digest of what changes when a program is replaced, without reading all of it."""
    real = program.resolve()
    stat = real.stat()
    return hashlib.sha256(f"{real} {stat.st_size} {stat.st_mtime_ns}".encode()).hexdigest()


def _rocm() -> Path:
    return knobs.ROCM_PATH.get() or Path("/opt/rocm")


_LIBC_FOLDERS = {
    "x86_64": ("x86-linux-gnu", "generic-glibc", "x86-linux-any", "any-linux-any"),
    "aarch64": ("aarch64-linux-gnu", "generic-glibc", "aarch64-linux-any", "any-linux-any"),
}


def _libc_folders() -> tuple[str, ...]:
    machine = platform.machine()
    if machine not in _LIBC_FOLDERS or platform.system() != "Linux":
        raise error("B006", got=f"{platform.system()} on {machine}", known=", ".join(_LIBC_FOLDERS))
    return _LIBC_FOLDERS[machine]


def _host_triple() -> str:
    return f"{platform.machine()}-linux-gnu"
