# SPDX-License-Identifier: MIT
"""``ck.export``: a folder that runs calls of an op without cklang, from C, C++ and Python.

=================  ===============================================================================
file               what it is
=================  ===============================================================================
``<name>.h``       the C interface: load, find a call by its tensors, launch it
``<name>.cpp``     its implementation: C++17 that needs nothing but ``libamdhip64``
``<name>.py``      the same for Python, with ctypes: NumPy arrays, torch tensors, any device memory
``<name>.json``    the calls in numbers, which the Python module reads
``*.hsaco``        the code objects, one for each kernel and GPU
``*.so``           of calls with free extents: what computes the grid and argument of each kernel
=================  ===============================================================================
"""

import json
import keyword
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from cklang.build.builder import shared_builder
from cklang.device.artifact import Artifact
from cklang.elf import sections_of, with_headers
from cklang.errors import error
from cklang.exporting.calls import ExportedCall, exported_call
from cklang.exporting.free import FreeCall, free_call, free_dims
from cklang.exporting.manifest import KernelFile, manifest_of, manifest_text
from cklang.lowering.render import template
from cklang.runtime.op import Op
from cklang.toolchain.progress import Wait

_SHORT = 10**9
_WIDEST = 1 << 63
_FOLDER = Path(__file__).parent / "templates"


def header_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the C header."""
    words = list(map(_free_words, manifest["free"]))
    return template("interface.h.j2", _FOLDER).render(manifest=manifest, gpus_words=words)


def launcher_text(manifest: Mapping[str, Any]) -> str:
    """Return the text of the C++ that implements it."""
    return template("launcher.cpp.j2", _FOLDER).render(
        manifest=manifest, rows=_rows, braces=_braces, text=_text
    )


def _free_words(free: Mapping[str, Any]) -> str:
    """Return the free extents of a call as a line of text."""
    dims = (
        f"{d['name']} from {d['first']} to {d['last']}{_steps(d['step'])}" for d in free["dims"]
    )
    return f"{free['gpu']}: {', '.join(dims)}"


def _steps(step: int) -> str:
    return "" if step == 1 else f" in steps of {step}"


def _text(value: str | None) -> str:
    """Return a literal of C, in which JSON's escapes of what is printable mean the same."""
    return "nullptr" if value is None else json.dumps(value)


def _braces(value: Any) -> str:
    """Return nested lists of integers, and records of them, as an initialiser of C++."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        return "{" + ", ".join(map(_braces, value)) + "}"
    return str(value) if value < _WIDEST else hex(value)


def _rows(rows: Sequence[Sequence[int]]) -> str:
    """Return rows of numbers as the initialisers of C structs."""
    return ", ".join(f"{{{', '.join(map(_number, row))}}}" for row in rows)


def _number(value: int) -> str:
    # A decimal literal is signed, which the largest 64-bit words are too great for.
    return str(value) if abs(value) < _SHORT else hex(value)


def without_debug_information(code: bytes) -> bytes:
    """Return an ELF file of 64 bits whose ``.debug`` sections are empty.

    All sections keep their numbers and names; what is loaded keeps its place in the file.
    """
    sections = sections_of(code)
    loaded = max(
        (section.offset + section.size for section in sections if section.is_loaded), default=0
    )
    result, headers = bytearray(code[:loaded]), []
    for part in sections:
        if part.is_loaded or not part.content:
            headers.append(part.header)
        elif part.name.startswith(".debug"):
            headers.append(part.header_at(0, 0))
        else:
            result += bytes(-len(result) % max(part.alignment, 1))
            headers.append(part.header_at(len(result), part.size))
            result += part.content
    return with_headers(bytes(result), headers)


_LOADER = Path(__file__).parent / "loader.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What was written."""

    folder: Path
    name: str
    calls: tuple[ExportedCall, ...]
    """The calls with listed extents."""
    free: tuple[FreeCall, ...]
    """The calls with free extents."""
    code_objects: tuple[Path, ...]

    @property
    def bytes(self) -> int:
        """The size of the code objects together."""
        return sum(path.stat().st_size for path in self.code_objects)

    def __str__(self) -> str:
        names = [*(call.gpu for call in self.calls), *(call.gpu for call in self.free)]
        gpus = ", ".join(dict.fromkeys(names))
        kernels = len(self.code_objects)
        calls = [f"{len(self.calls)} calls"] if self.calls else []
        calls += ["calls of free extents"] if self.free else []
        what = f"{' and '.join(calls)} of {self.name} on {gpus}"
        line = f"{self.folder}: {what}, {kernels} kernels, {self.bytes:,} bytes"
        return "\n".join((line, *map(str, self.free)))


def export(
    op: Op,
    problems: Sequence[Mapping[str, Any] | Sequence[Any]],
    gpus: Sequence[str],
    folder: str | Path,
    *,
    name: str | None = None,
    kernels: int | None = None,
) -> Exported:
    """Write calls of an op as files that run without cklang and without a compiler for GPUs.

    Args:
        op: What is called.
        problems: One for each call: the extents of its dims by name, with dtype variables and
            constants, for packed arguments; or example arguments, for their shapes and strides.
            An extent that is a range or ``...`` is free: the launchers take any of them.
        gpus: The GPUs, as in ``["gfx942", "gfx950"]``; none of them need be in this machine.
        folder: Where; it is made if it is not there, and files of the same names are replaced.
        name: The prefix of files and of C functions; the op's name if left out.
        kernels: Among how many kernels a GPU chooses for a problem with free extents: those that
            lose least by the cost model. None: all that cklang would choose.

    Returns:
        What was written.

    Example:
        >>> M, N, K = ck.dims("M N K")
        >>> @ck.op
        ... def linear(x: ck.f16[M, K], w: ck.f16[N, K]) -> ck.f16[M, N]:
        ...     return ck.relu(x @ w.T)
        >>> problems = [{"M": rows, "N": 512, "K": 64} for rows in (1, 256)]
        >>> print(ck.export(linear, problems, ["gfx942"], "linear"))  # doctest: +SKIP
        linear: 2 calls of linear on gfx942, ... bytes

    Raises:
        CkValueError: K071, the name is no identifier; K072, nothing is to be exported; K004, there
            is no such GPU; K074, extents cannot be free; CkUnsupportedError: K070, an
            argument is a prepared weight; K073, K075, a family needs the extents;
            CkBuildError: B rows, a kernel cannot be built; CkError: what planning a call raises.
    """
    prefix = op.program.name if name is None else name
    if not prefix.isascii() or not prefix.isidentifier() or keyword.iskeyword(prefix):
        raise error("K071", got=prefix)
    for what, values in (("problems", problems), ("gpus", gpus)):
        if not values:
            raise error("K072", what=what)
    builder = shared_builder()
    listed = [problem for problem in problems if not _is_free(problem)]
    ranges = [problem for problem in problems if isinstance(problem, Mapping) and _is_free(problem)]
    with Wait(f"exporting @{op.program.name}", len(gpus) * len(problems)) as progress:
        wanted = progress.over(product(gpus, listed), _named)
        calls = [exported_call(op, problem, gpu, builder) for gpu, problem in wanted]
        open_ = progress.over(product(gpus, ranges), _named)
        free = [free_call(op, dict(problem), gpu, kernels) for gpu, problem in open_]
    built = [builder.build_all(call.kernels) for call in free]
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    files = _files(prefix, calls, free, built)
    for path, kernel in files.items():
        (target / kernel.file).write_bytes(without_debug_information(path.read_bytes()))
    for artifact in (kernel for own in built for kernel in own):
        shutil.copyfile(artifact.host_shim, target / str(files[artifact.code_object].shim))
    places = [[kernel.code_object for kernel in own] for own in built]
    manifest = manifest_of(prefix, calls, list(zip(free, places, strict=True)), files)
    (target / f"{prefix}.json").write_text(manifest_text(manifest))
    (target / f"{prefix}.h").write_text(header_text(manifest))
    (target / f"{prefix}.cpp").write_text(launcher_text(manifest))
    shutil.copyfile(_LOADER, target / f"{prefix}.py")
    return Exported(
        folder=target,
        name=prefix,
        calls=tuple(calls),
        free=tuple(free),
        code_objects=tuple(target / kernel.file for kernel in files.values()),
    )


def _named(wanted: tuple[str, Any]) -> str:
    gpu, problem = wanted
    return f"{gpu}, {problem}" if isinstance(problem, Mapping) else gpu


def _is_free(problem: Mapping[str, Any] | Sequence[Any]) -> bool:
    return isinstance(problem, Mapping) and bool(free_dims(problem))


def _files(
    prefix: str,
    calls: Sequence[ExportedCall],
    free: Sequence[FreeCall],
    built: Sequence[Sequence[Artifact]],
) -> dict[Path, KernelFile]:
    """Return each code object of the folder, by its place in the kernel cache."""
    files: dict[Path, KernelFile] = {}
    for artifact in (artifact for call in calls for artifact in call.kernels):
        files.setdefault(artifact.code_object, _file(prefix, artifact, len(files)))
    for call, artifacts in zip(free, built, strict=True):
        for artifact, symbol in zip(artifacts, call.symbols, strict=True):
            kernel = files.get(artifact.code_object) or _file(prefix, artifact, len(files))
            shim = kernel.file.removesuffix(".hsaco") + ".so"
            files[artifact.code_object] = replace(kernel, shim=shim, describe=symbol)
    return files


def _file(prefix: str, artifact: Artifact, number: int) -> KernelFile:
    gpu = artifact.key.arch
    return KernelFile(
        file=f"{prefix}_{artifact.key.family}_{number}_{gpu}.hsaco", symbol=artifact.symbol, gpu=gpu
    )
