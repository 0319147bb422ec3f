# SPDX-License-Identifier: MIT
"""Compile the emulator for this machine's CPU, once.

A library that is in the wheel, or in the folder ``CKLANG_PREBUILT``, is taken as it is: it runs on
every CPU with AVX2 and uses AVX-512 where it is there. Otherwise the library is compiled for this
CPU. It then lies in the cache under a key of everything it is made of: the C++ sources, the
instruction tables, the GPUs' facts, the compiler, its flags and the CPU's features.

Files are compiled in units: files that read the same headers, most of them a folder, are one, so
that headers are read and templates instantiated once; every other file is a unit. The object of
each unit lies beside the library under its own key, so that changed units alone are compiled again.
Both are compared with what was built before they are used: a library that is cut short ends the
process.
"""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cklang import knobs
from cklang.arch import ArchSpec, all_archs
from cklang.emulator.engine.isa.schema import FAMILIES
from cklang.errors import error
from cklang.toolchain import folders
from cklang.toolchain.built_library import intact, problem_of_library, put_in_place
from cklang.toolchain.compilers import Kind, Toolchain, find_toolchain, run_tool
from cklang.toolchain.installed import stamps
from cklang.toolchain.integrity import file_digest
from cklang.toolchain.log import logger
from cklang.toolchain.paths import cache_root
from cklang.toolchain.prebuilt import EMULATOR, prebuilt
from cklang.toolchain.progress import Wait

LIBRARY = "libamdhip64.so"
"""The name under which hip-python, and every HIP program, looks for the HIP library."""

DRIVER = "libcklang_kfd.so"
"""The library beside it that stands for the kernel driver of GPUs below AMD's own runtime."""

_HERE = Path(__file__).parent
_SOURCES = _HERE / "src"
_TABLES = _HERE / "isa"
_NEEDED = ("avx2", "fma", "f16c")
_NEEDED_OF_PORTABLE = (*_NEEDED, "bmi1", "bmi2", "abm", "movbe")
"""What x86-64-v3 is, by Linux's names for it."""
_SOURCES_FILE = "sources.txt"
"""The file of a library compiled before that says which sources it is of."""
_NATIVE, _PORTABLE = "native", "x86-64-v3"
"""The CPUs that a library is compiled for: this one, or each that has AVX2 and FMA."""
_FLAGS = (
    "-O2",
    "-fno-exceptions",
    "-fno-rtti",
    # A value keeps its bits whatever type it is read as; integers wrap; nothing is fused or
    # reordered that the instruction set does not fuse or reorder.
    "-fno-strict-aliasing",
    "-fwrapv",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
)
# Without the check that headers were precompiled at the same level: it is the same text.
_UNVALIDATED = ("-Xclang", "-fno-validate-pch")
# The parts of the C library that it calls. It names them: a program need not have loaded any.
_NEEDED_LIBRARIES = ("libm.so.6", "libpthread.so.0", "libdl.so.2", "libc.so.6")
_EXPORTS = _HERE / "exports.txt"
"""What AMD's library exports, and since which version."""
_OWN = (
    "ckemu_*",
    *("hipModuleGetFunctionCount", "hipModuleLoadFatBinary"),
    "hipOccupancyAvailableDynamicSMemPerBlock",
)
"""What this library exports beyond them, under a version of its own."""
_DRIVER_UNIT = "kfd"
"""The unit that the driver's library alone has; no other unit reads its headers."""
_INTERPOSED = (
    *("access", "fopen", "fopen64", "ioctl", "open", "open64", "openat", "opendir"),
    *("stat", "stat64", "amdgpu_*", "drm*"),
)
"""What the driver's library exports: functions that stand before those of other libraries."""
_JOINED = {
    _DRIVER_UNIT: ("kfd/*",),
    "hip_calls": ("hip/hip_*",),
    "checks": ("checks/*",),
    "decode": ("decode/*",),
    "hip": ("hip/*",),
    "core": ("core/*",),
    "debug": ("debug/*",),
    "translate": (
        *("translate/assembler", "translate/avx2", "translate/piece", "translate/products"),
        *("translate/quads", "translate/section", "translate/translate"),
    ),
    "rdna": (
        *("ops/rdna_block", "ops/rdna_control", "ops/rdna_cross_lane", "ops/rdna_memory"),
        *("ops/rdna_scalar_float", "ops/rdna_vector"),
    ),
    "matrix": (
        *("ops/matrix", "ops/matrix_double", "ops/matrix_scaled", "ops/matrix_sparse"),
        "ops/matrix_wave",
    ),
    "lds": ("ops/lds*",),
    "scalar": ("ops/control*", "ops/scalar", "ops/scalar_bit"),
    "small": (
        *("ops/cross_lane", "ops/dual", "ops/half_flush", "ops/handlers", "ops/modifiers"),
        *("ops/numerics", "ops/rdna_names", "ops/refusals", "ops/trig_preop"),
    ),
}
"""Files compiled as one unit; a file is in the first unit with a pattern that fits it."""
_WITHOUT_PRECOMPILED = "decode"
"""The unit that is compiled while the headers are: they would leave the other core idle."""
_LEVELS = {"hip_calls": "-O1", "debug": "-O1", "matrix": "-O3", "matrix_avx512": "-O3"}
"""How much the compiler spends on a unit, where it is not the usual: less where kernels do not run,
more on matrix products."""
_EVERY_FLAG = (*_FLAGS, *_LEVELS, *_LEVELS.values(), *_UNVALIDATED)
# What takes longest is compiled first, so that the cores finish together.
_SLOW_FIRST = (
    *(_WITHOUT_PRECOMPILED, "checks", "hip", "hip_calls", "core", "translate", "rdna", "lds"),
    *("matrix", "flat", "debug", "buffer", "packed", "buffer_format", "convert_scaled", "compare"),
    *("small", "integer", "half", "scalar", "matrix_avx512", "convert", "matrix_numerics"),
)


def library_path() -> Path:
    """Return the emulator's library, compiled now if this machine does not have it yet.

    Raises:
        CkUnsupportedError: E001, the CPU lacks the vector instructions the emulator is made of.
        CkBuildError: B001 or B010, there is no compiler, or it failed.
    """
    compiled = _prebuilt()
    if compiled is not None:
        return compiled
    return _compiled(_NATIVE)


def portable_library() -> Path:
    """Return the library for every CPU with AVX2, as in wheels; compiled now if needed."""
    return _compiled(_PORTABLE)


def copy_library(library: Path, folder: Path) -> None:
    """Make ``folder`` one in which :func:`library_path` finds a library of these sources."""
    folders.copy_folder(library.parent, folder, "*.log", "*.inc")
    (folder / _SOURCES_FILE).write_text(_sources_key())


def _prebuilt() -> Path | None:
    """Return the library that was compiled before, if it is there and can be used."""
    folder = prebuilt(EMULATOR)
    if folder is None:
        return None
    problem = _problem_of_prebuilt(folder)
    if problem is not None:
        logger("emulator").warning("%s is not used: %s", folder, problem)
        return None
    return folder / LIBRARY


def _problem_of_prebuilt(folder: Path) -> str | None:
    missing = sorted(set(_NEEDED_OF_PORTABLE) - _cpu_features())
    if missing:
        return f"this CPU lacks {', '.join(missing)}"
    sources = folder / _SOURCES_FILE
    if not sources.is_file() or sources.read_text() != _sources_key():
        return "it is of other sources than this cklang"
    return problem_of_library(folder)


def _compiled(cpu: str) -> Path:
    toolchain = find_toolchain()

    def build(folder: Path) -> None:
        _check_cpu()
        _build(toolchain, cpu, folder)

    return intact(cache_root() / "emulator" / _key(toolchain, cpu), build) / LIBRARY


@dataclass(frozen=True, slots=True)
class _Unit:
    """Sources that are compiled as one."""

    name: str
    sources: tuple[Path, ...]

    @property
    def text(self) -> str:
        """What is compiled."""
        included = (path.relative_to(_SOURCES).as_posix() for path in self.sources)
        return "".join(f'#include "{path}"\n' for path in included)


def _unit_of(source: Path) -> str:
    """Return the name of the unit that a source is in.

    Example:
        >>> _unit_of(_SOURCES / "hip" / "hip_event.cpp"), _unit_of(_SOURCES / "ops" / "flat.cpp")
        ('hip_calls', 'flat')
    """
    path = source.with_suffix("")
    joined = (name for name, patterns in _JOINED.items() if any(map(path.match, patterns)))
    return next(joined, source.stem)


def _units() -> list[_Unit]:
    """Return all units, those first that take longest."""
    gathered: dict[str, list[Path]] = {}
    for source in _sources():
        gathered.setdefault(_unit_of(source), []).append(source)

    def order(unit: _Unit) -> tuple[int, str]:
        slow = unit.name in _SLOW_FIRST
        return (_SLOW_FIRST.index(unit.name) if slow else len(_SLOW_FIRST), unit.name)

    return sorted((_Unit(name, tuple(paths)) for name, paths in gathered.items()), key=order)


def _sources() -> list[Path]:
    return sorted(_SOURCES.rglob("*.cpp"))


def _headers() -> list[Path]:
    return sorted(_SOURCES.rglob("*.h"))


def _named(path: Path) -> bytes:
    """Return a file of this package as what digests are made of: its name here, and its bytes."""
    return f"{path.relative_to(_HERE).as_posix()}\0".encode() + path.read_bytes() + b"\0"


@cache
def _sources_key() -> str:
    """SHA-256 of what a library is made of, but for the compiler and the CPU.

    Reading all files takes longer than loading the library. So it is kept in the cache, at what
    tells whether a file has changed.
    """
    known = cache_root() / "emulator_sources" / _sources_stamp()
    if known.is_file():
        return known.read_text()
    digest = hashlib.sha256()
    tables = [*_TABLES.glob("*.json"), *_TABLES.glob("*.py")]
    for path in sorted([*_sources(), *_headers(), *tables]):
        digest.update(_named(path))
    digest.update(_without_files().encode())
    key = digest.hexdigest()
    with suppress(OSError):  # a cache that cannot be written
        known.parent.mkdir(parents=True, exist_ok=True)
        fresh = known.with_suffix(f".{os.getpid()}")
        fresh.write_text(key)
        fresh.replace(known)
    return key


def _sources_stamp() -> str:
    """SHA-256 of the sizes and times of the files that a library is made of, and of the rest."""
    files = (*stamps(str(_SOURCES), (".cpp", ".h")), *stamps(str(_TABLES), (".json", ".py")))
    return hashlib.sha256("\0".join([*sorted(files), _without_files()]).encode()).hexdigest()


def _without_files() -> str:
    units = (f"{name} {' '.join(patterns)}" for name, patterns in _JOINED.items())
    exports = (_version_script(), _driver_script())
    facts = (_devices(), _gpus(), *_EVERY_FLAG, *_NEEDED_LIBRARIES, *exports)
    return "\0".join((*facts, *units))


def _key(toolchain: Toolchain, cpu: str) -> str:
    facts = (_sources_key(), toolchain.identity, *_cpu_facts(cpu))
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:32]


def _cpu_facts(cpu: str) -> tuple[str, ...]:
    """What code that is compiled for a CPU depends on: on this CPU's features if it is for it."""
    return (cpu, *(sorted(_cpu_features()) if cpu == _NATIVE else ()))


def _shared_digest(toolchain: Toolchain, cpu: str, work: Path) -> bytes:
    """SHA-256 of what every object depends on: headers, generated tables, compiler, CPU."""
    digest = hashlib.sha256()
    # The order must not depend on where the cache is.
    for path in sorted([*work.glob("*.h"), *work.glob("*.inc")]):
        digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    for path in _headers():
        if path.parent.name != _DRIVER_UNIT:
            digest.update(_named(path))
    facts = (toolchain.identity, *_EVERY_FLAG, *_cpu_facts(cpu))
    digest.update("\0".join(facts).encode())
    return digest.digest()


def _cpu_features() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "flags":
            return set(value.split())
    return set()


def _check_cpu() -> None:
    missing = sorted(set(_NEEDED) - _cpu_features())
    if missing:
        raise error("E001", missing=", ".join(missing))


_WITHOUT_IMAGES = ("cdna3", "cdna4")
"""Families without image instructions; clang defines ``__HIP_NO_IMAGE_SUPPORT`` for them."""


def write_tables(folder: Path) -> None:
    """Write the C++ that is made from tables: of instructions and of GPUs."""
    from cklang.emulator.engine.isa.tables import generate

    generate(folder)
    (folder / "devices.inc").write_text(_devices())
    (folder / "gpus.inc").write_text(_gpus())


def _devices() -> str:
    """The device table of hip/device.cpp: one initialiser for each GPU the emulator knows."""
    return "".join(_device(spec) for spec in all_archs())


def _gpus() -> str:
    """The table of decode/decode.cpp: each GPU's instruction table and the flag in its files."""
    rows = ((spec.name, FAMILIES.index(spec.family), spec.elf_machine) for spec in all_archs())
    return "".join(f'{{"{name}", Family{{{family}}}, {flag}}},\n' for name, family, flag in rows)


def _device(spec: ArchSpec) -> str:
    major, minor, _ = spec.version
    joined = spec.compute_units_per_multiprocessor
    values = (
        *(f'"{text}"' for text in (spec.name, spec.product)),
        spec.wave_size,
        spec.compute_units // joined,
        spec.simds_per_cu * joined,
        spec.max_waves_per_simd,
        spec.max_threads_per_block,
        spec.lds_bytes,
        spec.lds_bytes * joined,
        spec.vgprs_per_simd_lane,
        spec.vgpr_granule,
        spec.sgprs_per_wave,
        spec.l2_bytes,
        spec.memory_bytes,
        int(spec.clock_hz / 1000),
        int(spec.memory_clock_hz / 1000),
        spec.memory_bus_bits,
        major,
        minor,
        spec.chiplets,
        int(spec.family not in _WITHOUT_IMAGES),
    )
    return f"{{{', '.join(map(str, values))}}},\n"


def _build(toolchain: Toolchain, cpu: str, folder: Path) -> None:
    """Compile and link in a temporary folder, then publish it under its final name."""
    with put_in_place(folder, LIBRARY) as work:
        try:
            write_tables(work)
            objects = _compile(toolchain, cpu, work)
            _link(toolchain, objects, work)
            _gather_logs(work)
        except BaseException:
            if any(work.glob("*.log")):
                _gather_logs(work)
                failed = folder.with_name(f"{folder.name}.failed.log")
                failed.write_bytes((work / "build.log").read_bytes())
            raise


def _compile(toolchain: Toolchain, cpu: str, work: Path) -> list[Path]:
    units = _units()
    flags = (*_FLAGS, f"-march={cpu}", "-I", str(work), "-I", str(_SOURCES))
    kept = cache_root() / "emulator" / "objects"
    kept.mkdir(parents=True, exist_ok=True)
    shared = _shared_digest(toolchain, cpu, work)
    names = {unit: _object_name(shared, unit) for unit in units}
    known = {unit: kept_object(kept, name) for unit, name in names.items()}
    missing = {unit.name for unit, path in known.items() if path is None}

    def run(source: Path, output: Path, more: tuple[str, ...]) -> Path:
        command = toolchain.compile_cxx(source, output, flags=(*flags, *more))
        run_tool(command, log=work / f"{output.stem}.log", environment=toolchain.environment())
        return output

    def precompile() -> Path:
        more = ("-x", "c++-header", "-fpch-instantiate-templates")
        return run(_SOURCES / "core" / "common.h", work / "common.pch", more)

    def one(unit: _Unit) -> Path:
        with progress.step(unit.name):
            return compiled(unit)

    def compiled(unit: _Unit) -> Path:
        published = known[unit]
        if published is None:
            joint = headers if unit.name != _WITHOUT_PRECOMPILED else None
            read = ("-include-pch", str(joint.result())) if joint is not None else ()
            level = (_LEVELS[unit.name], *_UNVALIDATED) if unit.name in _LEVELS else ()
            source = work / f"{unit.name}.cpp"
            source.write_text(unit.text)
            output = run(source, work / f"{unit.name}.o", (*read, *level))
            published = kept / f"{names[unit]}-{file_digest(output)[:32]}.o"
            output.rename(published)
        return published

    jobs = knobs.JOBS.get() or os.cpu_count() or 1
    title = "compiling the GPU emulator (once)"
    with ThreadPoolExecutor(jobs) as pool, Wait(title, len(units)) as progress:
        headers = pool.submit(precompile) if missing - {_WITHOUT_PRECOMPILED} else None
        running = [pool.submit(one, unit) for unit in units]
        try:
            for done in as_completed(running):
                done.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [done.result() for done in running]


def _object_name(shared: bytes, unit: _Unit) -> str:
    """Return the name of what a unit is compiled to, without that of its contents."""
    digest = hashlib.sha256(shared)
    own = (path for path in _headers() if path.parent.name == unit.name == _DRIVER_UNIT)
    for source in (*unit.sources, *own):
        digest.update(_named(source))
    return f"{unit.name}-{digest.hexdigest()[:32]}"


def kept_object(kept: Path, name: str) -> Path | None:
    """Return the object of that name whose contents are those that its file name ends with."""
    for path in kept.glob(f"{name}-*.o"):
        if file_digest(path)[:32] == path.stem.rpartition("-")[2]:
            return path
        logger("emulator").warning("%s is damaged; it will be compiled again", path)
        path.unlink(missing_ok=True)
    return None


def exported_calls() -> dict[str, list[str]]:
    """Return the names that AMD's library exports, by version.

    Example:
        >>> "hipMalloc" in exported_calls()["hip_4.2"]
        True
    """
    parts = _EXPORTS.read_text().split("[")[1:]
    return {version: names.split() for version, names in (part.split("]") for part in parts)}


def _version_script() -> str:
    """Return what the linker reads to export names with their versions, and nothing else."""
    script, before = f"cklang {{ global: {'; '.join(_OWN)}; local: *; }};\n", ""
    for version, names in exported_calls().items():
        script += f"{version} {{ global: {'; '.join(names)}; }}{before};\n"
        before = f" {version}"
    return script


def _driver_script() -> str:
    return f"{{ global: {'; '.join((*_INTERPOSED, 'ckemu_*'))}; local: *; }};\n"


def _link(toolchain: Toolchain, objects: list[Path], work: Path) -> None:
    """Link both libraries: that of HIP, and with one unit more that of the driver."""
    hip = [path for path in objects if not path.name.startswith(f"{_DRIVER_UNIT}-")]
    _link_one(toolchain, hip, work, LIBRARY, _version_script())
    _link_one(toolchain, objects, work, DRIVER, _driver_script())


def _link_one(
    toolchain: Toolchain, objects: list[Path], work: Path, name: str, script: str
) -> None:
    exports = work / "exports.map"
    exports.write_text(script)
    # `link_plain` calls the linker itself with zig, and the compiler driver elsewhere.
    direct = toolchain.kind is Kind.ZIG
    libraries = _stand_ins(toolchain, work) if direct else []
    command = toolchain.link_plain([*objects, *libraries], work / name)
    options = (f"--soname={name}", f"--version-script={exports}")
    if direct:
        command += options
    else:
        command += [*(f"-Wl,{option}" for option in options), "-Wl,--no-as-needed", "-lm"]
    run_tool(command, log=work / f"link-{name}.log", environment=toolchain.environment())


def _stand_ins(toolchain: Toolchain, work: Path) -> list[Path]:
    """Return empty libraries with the names of the C library's parts.

    Linked with them, the emulator needs those by name, also where no C library is installed to
    link with.
    """
    source, item = work / "empty.cpp", work / "empty.o"
    source.write_text("")
    environment = toolchain.environment()
    run_tool(toolchain.compile_cxx(source, item), log=work / "empty.log", environment=environment)
    folder = work / "stand-ins"
    folder.mkdir(exist_ok=True)
    for name in _NEEDED_LIBRARIES:
        command = [*toolchain.link_plain([item], folder / name), f"--soname={name}"]
        run_tool(command, log=work / f"{name}.log", environment=environment)
    return [folder / name for name in _NEEDED_LIBRARIES]


def _gather_logs(work: Path) -> None:
    """Join the logs of all steps, and drop what only the build needed."""
    logs = sorted(work.glob("*.log"))
    text = "".join(path.read_text(encoding="utf-8") for path in logs)
    steps = (path for kind in ("*.o", "*.pch", "isa_tables.*", "*.cpp") for path in work.glob(kind))
    for path in [*logs, *steps]:
        path.unlink()
    folders.remove(work / "stand-ins")
    (work / "build.log").write_text(text, encoding="utf-8")
