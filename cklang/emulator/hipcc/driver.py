# SPDX-License-Identifier: MIT
"""Compile HIP programs so that they run without a GPU: clang's passes, one after the other.

Each HIP source is compiled for every GPU asked for, the code objects are put into one fat binary,
and the host pass embeds that and makes the stubs that launch the kernels. The program is linked
with the emulator's ``libamdhip64.so``, which it finds by its run path; ``LD_LIBRARY_PATH`` comes
before a run path, so the same program runs on a GPU where that names ROCm's library.
"""

import hashlib
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from cklang import knobs
from cklang.device.device import target_of
from cklang.emulator import library_path
from cklang.emulator.hip.headers import HOST_SUPPORT, KERNELS, PROGRAMS, hip_version
from cklang.emulator.hipcc import fat_binary
from cklang.emulator.hipcc.object_cache import entry_of
from cklang.emulator.hipcc.options import Language, Line, Side, Source, Stage, read
from cklang.emulator.hipcc.relocatable import DeviceCode, assembly, device_code
from cklang.errors import CkBuildError, error
from cklang.toolchain.compilers import Kind, Toolchain, find_ck_tree, find_toolchain, run_tool
from cklang.toolchain.paths import cache_root
from cklang.toolchain.progress import Wait

_HEADERS = (PROGRAMS, KERNELS)
_WRAPPERS = Path(__file__).parent / "wrappers"
"""Headers of the C++ library that device code needs in another form, and what comes before all."""
_LANGUAGE = _WRAPPERS / "language.h"
_OPENMP = Path(__file__).parent / "openmp"
_HIPRTC = Path(__file__).parent / "hiprtc" / "python.c"
_HIPRTC_CALL = b"hiprtcCreateProgram"
"""The name in an object that shows that it compiles kernels itself."""
_DEVICE = ("--cuda-device-only", "--no-gpu-bundle-output")
# Without a linker of its own, clang stops at bitcode; told twice, it goes on to an object.
_TO_OBJECT = ("-emit-llvm", "-c", "-Xclang", "-emit-obj")
_TO_TEXT = {Stage.ASSEMBLY: "-S", Stage.TEXT: "-E"}
_SUFFIX = {
    Stage.PROGRAM: ".out",
    Stage.OBJECT: ".o",
    Stage.ASSEMBLY: ".s",
    Stage.FAT_BINARY: ".hipfb",
    Stage.LIBRARY: ".a",
}
_STDOUT = Path("-")
"""Where preprocessed text goes, and what -o - asks for."""
_SYSTEM_LIBRARIES = ("-lpthread", "-lm", "-ldl")
_LEVEL = re.compile(r"-O([0-3sgz]|fast)?")


def build(
    words: Sequence[str], say: Callable[[str], object], *, headers: Sequence[str] | None = None
) -> Path:
    """Do what the words after ``cklang hipcc`` ask for; return the file that was made.

    Args:
        words: The command line, see :mod:`cklang.emulator.hipcc.options`.
        say: Takes text for the user: the compiler's warnings and errors, and notes.
        headers: Flags for the headers of the C and C++ libraries, in the place of the compiler's.

    Returns:
        The output; the last one, if there are several sources and ``-c``.

    Raises:
        CkValueError: B031 to B035, the command line cannot be honoured.
        CkBuildError: B030, a pass failed; ``say`` had the compiler's own words.
    """
    line = read(words)
    for note in line.notes:
        say(f"hipcc: {note}\n")
    if not line.link:
        raise error("B033")
    toolchain = find_toolchain()
    current = target_of().spec.name
    named = [current if arch == "native" else arch for arch in line.archs]
    line.archs = list(dict.fromkeys(named or [current]))
    with (
        tempfile.TemporaryDirectory(prefix="cklang-hipcc-") as folder,
        Wait("hipcc", _tool_runs(line)) as progress,
    ):
        return _Driver(line, toolchain, Path(folder), say, progress, headers).run()


def _tool_runs(line: Line) -> int:
    """Return how many compilers and linkers make what a command line asks for."""
    on_gpus = len(line.archs) * (1 if line.relocatable else 2)
    sides = {Side.BOTH: on_gpus + 1, Side.DEVICE: on_gpus, Side.HOST: 1}
    of_hip = 1 if line.stage in _TO_TEXT else sides[line.side]
    runs = sum(of_hip if source.language is Language.HIP else 1 for source in line.sources)
    return runs + (2 if line.stage is Stage.PROGRAM else 0)  # with the support code, and linking


def version() -> str:
    """Return what ``--version`` prints: the version of HIP, as ROCm has it, and the compiler's."""
    toolchain = find_toolchain()
    with tempfile.TemporaryDirectory(prefix="cklang-hipcc-") as folder:
        command = [*toolchain.clang, "--version"]
        done = run_tool(
            command, log=Path(folder) / "version.txt", environment=toolchain.environment()
        )
    ours = f"cklang {metadata.version('cklang')}"
    return f"HIP version: {hip_version()} ({ours})\n{done.output}"


@dataclass(slots=True)
class _Driver:
    """One call: its command line, and where intermediate files lie."""

    line: Line
    toolchain: Toolchain
    folder: Path
    say: Callable[[str], object]
    progress: Wait
    headers: Sequence[str] | None = None

    def run(self) -> Path:
        line = self.line
        if line.stage is Stage.PROGRAM and line.side is Side.BOTH:
            return self._program()
        if not line.sources:
            raise error("B033")
        if line.stage is Stage.LIBRARY:
            return self._static_library()
        if line.output is not None and len(line.sources) > 1:
            raise error("B034", output=line.output, count=len(line.sources))
        jobs = knobs.JOBS.get() or 2
        with ThreadPoolExecutor(jobs) as pool:
            outputs = list(pool.map(self._single, range(len(line.sources))))
        return outputs[-1]

    def _objects(self) -> list[Path]:
        sources = self.line.sources
        with ThreadPoolExecutor(knobs.JOBS.get() or 2) as pool:
            files = pool.map(
                lambda n: self._object(n, sources[n], self.folder / f"{n}.o"), range(len(sources))
            )
            return list(files)

    def _static_library(self) -> Path:
        output = self.line.output or Path("a.a")
        output.unlink(missing_ok=True)  # an archive is added to
        self._step("archiving", self.toolchain.archive(self._objects(), output), "archive")
        return output

    def _program(self) -> Path:
        line = self.line
        objects = iter(self._objects())
        # The sources among the words of the link are those of the line, in order.
        words = [str(next(objects)) if isinstance(w, Source) else w for w in line.link]
        files = [path for path in map(Path, words) if path.suffix in (".o", ".a")]
        code = device_code([path for path in files if path.is_file()])
        if code.fat_binaries:
            words.append(str(self._linked(code)))
        library = library_path().parent
        run_path = f"-Wl,-rpath,{library}"
        if line.openmp:
            words.append(str(self._compiled(_OPENMP / "runtime.c")))
        if any(_HIPRTC_CALL in path.read_bytes() for path in files if path.is_file()):
            words.append(str(self._hiprtc()))
        support = self._compiled(HOST_SUPPORT)
        words += [str(support), f"-L{library}", "-lamdhip64", run_path, *_SYSTEM_LIBRARIES]
        output = line.output or Path("a.out")
        command = self.toolchain.link_program(words, output, shared=line.shared)
        self._announce_libcxx()
        self._step("linking", command, "link")
        self._libcxx_mark().touch()
        return output

    def _libcxx_mark(self) -> Path:
        """Exists once a program was linked on this machine with this compiler."""
        folder = cache_root() / "hipcc"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"linked-{self.toolchain.fingerprint[:16].replace('/', '-')}"

    def _announce_libcxx(self) -> None:
        if self.toolchain.kind is Kind.ZIG and not self._libcxx_mark().is_file():
            self.say("hipcc: compiling zig's C++ library (once, about a minute)\n")

    def _single(self, number: int) -> Path:
        """Make the one output that a source has when nothing is linked."""
        line, source = self.line, self.line.sources[number]
        output = line.output or (
            Path(source.path.stem + _SUFFIX[line.stage]) if line.stage in _SUFFIX else _STDOUT
        )
        if line.stage is Stage.FAT_BINARY:
            output.write_bytes(self._fat_binary(number, source))
        elif line.stage in _TO_TEXT:
            self._text(number, source, output)
        elif line.side is Side.DEVICE:
            self._one_arch(line.stage)
            output.write_bytes(self._code_object(number, source, line.archs[0]))
        else:
            self._object(number, source, output)
        return output

    def _object(self, number: int, source: Source, output: Path) -> Path:
        """The host object of a source, with its kernels in it."""
        file = self.folder / f"{number}.hipfb"
        if source.language is Language.HIP and self.line.side is Side.BOTH:
            file.write_bytes(self._fat_binary(number, source))
        what = f"the host pass of {source.path}"
        command = [*self._host(source), "-c"]
        # Dependencies that the user asks for must be written; an object of the cache has none.
        if any(flag.startswith("-M") for flag in self.line.host_flags):
            words = [*command, *self._embedding(file, source), str(source.path), "-o", str(output)]
            self._step(what, words, f"{number}-host")
        else:
            self._cached_step(what, command, source, output, file)
        return output

    def _linked(self, code: DeviceCode) -> Path:
        """Return an object with the device code of all objects, linked for each GPU."""
        images = {}
        for arch, modules in code.bitcode.items():
            start, unit = self.folder / f"link-{arch}", self.folder / f"link-{arch}.o"
            files = [start.with_suffix(f".{n}.bc") for n in range(len(modules))]
            for file, module in zip(files, modules, strict=True):
                file.write_bytes(module)
            joined = [w for f in files[1:] for w in ("-mlink-bitcode-file", str(f))]
            flags = ["-O3", "-c", *(part for word in joined for part in ("-Xclang", word))]
            target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib"]
            command = [*self.toolchain.clang, *target, *flags, "-x", "ir", str(files[0])]
            what = f"linking the device code for {arch}"
            self._step(what, [*command, "-o", str(unit)], start.name)
            output = start.with_suffix(".hsaco")
            self._step(what, self.toolchain.link_device([unit], output), start.name)
            images[arch] = output.read_bytes()
        bundle, text, item = (self.folder / f"linked{end}" for end in (".hipfb", ".s", ".o"))
        bundle.write_bytes(fat_binary.bundle(images))
        text.write_text(assembly(code, bundle) + "\n")
        command = [*self.toolchain.clang, *self.toolchain.host_target(), "-c", str(text)]
        self._step("embedding the device code", [*command, "-o", str(item)], "linked")
        return item

    def _fat_binary(self, number: int, source: Source) -> bytes:
        if self.line.relocatable:
            modules = {a: self._bitcode(number, source, a) for a in self.line.archs}
            return fat_binary.bundle(modules)
        return fat_binary.bundle({a: self._code_object(number, source, a) for a in self.line.archs})

    def _bitcode(self, number: int, source: Source, arch: str) -> bytes:
        output = self.folder / f"{number}-{arch.replace(':', '-')}.bc"
        command = [*self._device(arch), *self._relocatable(source), "-emit-llvm", "-c"]
        self._cached_step(f"the {arch} pass of {source.path}", command, source, output)
        return output.read_bytes()

    def _relocatable(self, source: Source) -> tuple[str, str]:
        """The flags of both passes of a source whose kernels other sources' are linked with.

        Kernels and variables of its own get names that no other source has: clang makes them from
        a number that must be the same in both passes.
        """
        text = "\0".join((str(source.path.resolve()), *self.line.flags))
        return "-fgpu-rdc", f"-cuid={hashlib.sha256(text.encode()).hexdigest()[:16]}"

    def _code_object(self, number: int, source: Source, arch: str) -> bytes:
        name = f"{number}-{arch.replace(':', '-')}"
        unit, output = self.folder / f"{name}.o", self.folder / f"{name}.hsaco"
        what = f"the {arch} pass of {source.path}"
        self._cached_step(what, [*self._device(arch), *_TO_OBJECT], source, unit)
        self._step(f"linking {what}", self.toolchain.link_device([unit], output), name)
        return output.read_bytes()

    def _text(self, number: int, source: Source, output: Path) -> None:
        """Assembly or preprocessed text, which only one pass at a time can write."""
        stage = self.line.stage
        if self.line.side is Side.HOST or source.language is not Language.HIP:
            command = self._host(source)
        else:
            self._one_arch(stage)
            command = self._device(self.line.archs[0])
        file = self.folder / f"{number}.text" if output == _STDOUT else output
        command += [_TO_TEXT[stage], str(source.path), "-o", str(file)]
        self._step(f"the pass over {source.path}", command, str(number))
        if output == _STDOUT:
            sys.stdout.write(file.read_text("utf-8", "replace"))

    def _one_arch(self, stage: Stage) -> None:
        if self.line.side is not Side.DEVICE:
            raise error("B035", flag=stage.value, problem="which of the passes it means")
        if len(self.line.archs) != 1:
            names = ",".join(self.line.archs)
            raise error("B035", flag=stage.value, problem=f"which GPU of {names} it means")

    def _device(self, arch: str) -> list[str]:
        flags = self._user()
        # Reports of faults name source lines; the table that says them changes no instruction.
        lines = () if any(flag.startswith("-g") for flag in flags) else ("-gline-tables-only",)
        # The device pass skips the pragmas, and sees the same text as the host's.
        openmp = ("-D_OPENMP=202011",) if self.line.openmp else ()
        return [*self._hip(), *_DEVICE, f"--offload-arch={arch}", *lines, *openmp, *flags]

    def _host(self, source: Source) -> list[str]:
        user = [*self._user(), *self.line.host_flags]
        if source.language is Language.HIP:
            # The host pass needs the name of some GPU, and nothing of it.
            arch = f"--offload-arch={self.line.archs[0]}"
            return [*self._hip(), "--cuda-host-only", arch, *user]
        hip = (*_system(*_HEADERS), "-D__HIP_PLATFORM_AMD__")
        return [*self._common(), *hip, "-x", source.language.value, *user]

    def _hip(self) -> list[str]:
        ours = self.toolchain.hip_headers(*_HEADERS)
        system = ["-isystem" if flag == "-I" else flag for flag in ours]
        # ROCm's compiler has such a header of its own.
        first = () if self.toolchain.kind is Kind.ROCM else ("-include", str(_LANGUAGE))
        hip = (*first, "-x", "hip", "-D__HIP_PLATFORM_AMD__")
        return [*self._common(_WRAPPERS), *system, *hip]

    def _common(self, *first: Path) -> list[str]:
        """The compiler, these headers and the C++ library's; CK Tile's come after all others."""
        try:
            ck_tile = ["-idirafter", str(find_ck_tree().include)]
        except CkBuildError:
            # A program that wants CK Tile's headers is told by clang that there are none.
            ck_tile = []
        toolchain = self.toolchain
        before = (*toolchain.clang, *toolchain.host_target(), *_system(*first))
        own = toolchain.host_headers() if self.headers is None else self.headers
        start = (*before, *own)
        # Some of the user's flags mean something to the other pass alone.
        return [*start, *ck_tile, "-Wno-unused-command-line-argument"]

    def _user(self) -> list[str]:
        """The user's flags; -O3 where they name no level, as ROCm's hipcc does."""
        named = any(_LEVEL.fullmatch(flag) for flag in self.line.flags)
        openmp = _system(_OPENMP) if self.line.openmp else ()
        return [*(() if named else ("-O3",)), *openmp, *self.line.flags]

    def _hiprtc(self) -> Path:
        """Return what a program that calls hiprtc is linked with."""
        python = f'-DCKLANG_PYTHON="{sys.executable}"'
        return self._compiled(_HIPRTC, python)

    def _compiled(self, source: Path, *more: str) -> Path:
        """Return the object of a file of ours that becomes part of a program.

        That is what objects may call and the machine's libraries lack.
        """
        language = "c" if source.suffix == ".c" else "c++"
        output = self.folder / f"{source.parent.name}-{source.stem}.o"
        flags = (
            "-x",
            language,
            "-O2",
            "-fPIC",
            "-Wno-unused-command-line-argument",
            "-c",
            str(source),
        )
        toolchain = self.toolchain
        start = (*toolchain.clang, *toolchain.host_target(), *toolchain.host_headers())
        self._step(f"compiling {source}", [*start, *flags, *more, "-o", str(output)], output.stem)
        return output

    def _embedding(self, code: Path, source: Source) -> list[str]:
        """The flags that put a fat binary into an object; none if there is no such file."""
        if not code.is_file():
            return []
        if self.line.relocatable:
            return [*self._relocatable(source), "-Xclang", f"-fembed-offload-object={code}"]
        return ["-Xclang", "-fcuda-include-gpubinary", "-Xclang", str(code)]

    def _cached_step(
        self, what: str, command: list[str], source: Source, output: Path, code: Path | None = None
    ) -> None:
        """Compile a source, unless that was done before and nothing has changed since.

        The device code in file ``code``, if there is any, becomes part of the object.
        """
        embed = self._embedding(code, source) if code is not None else []
        device = [hashlib.sha256(code.read_bytes()).hexdigest()] if code and embed else []
        entry = entry_of(self.toolchain.identity, [*command, *device], source.path)
        text = entry.load(output)
        if text is not None:
            with self.progress.step(what):
                self.say(text)
            return
        rule = output.with_suffix(".d")
        # The driver's own -MD is for the host pass alone.
        words_of_pass = ("-dependency-file", str(rule), "-MT", "object", "-sys-header-deps")
        dependencies = [part for word in words_of_pass for part in ("-Xclang", word)]
        words = [*command, *embed, *dependencies, str(source.path), "-o", str(output)]
        entry.store(output, rule, self._step(what, words, output.stem))

    def _step(self, what: str, command: list[str], name: str) -> str:
        """Run a tool; return what it said, after the user has seen it."""
        if self.line.verbose:
            self.say(" ".join(command) + "\n")
        log = self.folder / f"{name}.txt"
        try:
            with self.progress.step(what):
                done = run_tool(command, log=log, environment=self.toolchain.environment())
        except CkBuildError as problem:
            text = log.read_text(encoding="utf-8", errors="replace")
            # The log holds the command, what the tool wrote, and how it ended.
            self.say("\n".join(text.rstrip().splitlines()[1:-1]) + "\n")
            raise error("B030", what=what) from problem
        self.say(done.output)
        return done.output


def _system(*folders: Path) -> tuple[str, ...]:
    """Return the flags for include folders whose headers get no warnings."""
    return tuple(word for folder in folders for word in ("-isystem", str(folder)))
