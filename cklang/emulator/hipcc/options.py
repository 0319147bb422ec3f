# SPDX-License-Identifier: MIT
"""The command line of ``cklang hipcc``: which words are sources, what each pass and the link get.

The words are those of clang. What is not named in the tables below is a compiler flag and goes to
clang as it is, in every pass.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from cklang.errors import error


class Stage(Enum):
    """Where the work ends."""

    PROGRAM = "link"
    OBJECT = "-c"
    ASSEMBLY = "-S"
    TEXT = "-E"
    FAT_BINARY = "--genco"
    LIBRARY = "--emit-static-lib"


class Side(Enum):
    """Which passes are made."""

    BOTH = "both"
    HOST = "--offload-host-only"
    DEVICE = "--offload-device-only"


class Language(Enum):
    """What a source is written in; only HIP has device passes."""

    HIP = "hip"
    CXX = "c++"
    C = "c"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file to compile."""

    path: Path
    language: Language


@dataclass(slots=True, kw_only=True)
class Line:
    """A command line, understood."""

    sources: list[Source] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    """For every pass."""
    host_flags: list[str] = field(default_factory=list)
    """For the host pass alone: the flags that write dependency files."""
    link: list[str | Source] = field(default_factory=list)
    """Sources, objects and linker flags, in order."""
    archs: list[str] = field(default_factory=list)
    """The GPUs asked for; empty if none was named."""
    output: Path | None = None
    stage: Stage = Stage.PROGRAM
    side: Side = Side.BOTH
    shared: bool = False
    relocatable: bool = False
    """Whether device functions may call those of other sources; their code is linked at the end."""
    openmp: bool = False
    """Whether the host code uses OpenMP."""
    verbose: bool = False
    notes: list[str] = field(default_factory=list)
    """What to tell the user about words that have no effect here."""


_SUFFIXES = {
    **dict.fromkeys((".hip", ".cu", ".cpp", ".cc", ".cxx", ".c++", ".C"), Language.HIP),
    ".c": Language.C,
}
_OBJECTS = (".o", ".a", ".so", ".obj")
_STAGES = {
    "-c": Stage.OBJECT,
    "-S": Stage.ASSEMBLY,
    "-E": Stage.TEXT,
    "--genco": Stage.FAT_BINARY,
    "--emit-static-lib": Stage.LIBRARY,
}
_SIDES = {
    "--offload-device-only": Side.DEVICE,
    "--cuda-device-only": Side.DEVICE,
    "--offload-host-only": Side.HOST,
    "--cuda-host-only": Side.HOST,
}
# Flags whose value is the next word, by who takes them.
_PAIRS = (
    *("-I", "-D", "-U", "-isystem", "-iquote", "-idirafter", "-include", "-imacros"),
    *(
        "-Xclang",
        "-Xoffload-linker",
        "-mllvm",
        "-Xarch_device",
        "-Xarch_host",
        "-Xpreprocessor",
        "--param",
    ),
)
_HOST_PAIRS = ("-MF", "-MT", "-MQ")
_HOST_WORDS = ("-M", "-MM", "-MD", "-MMD", "-MG", "-MP")
_LINK_PAIRS = ("-L", "-l", "-Xlinker", "-z", "-T", "-u", "-rpath")
_LINK_PREFIXES = ("-L", "-l", "-Wl,")
_LINK_WORDS = ("-static-libgcc", "-static-libstdc++", "-s", "-rdynamic", "-static", "-pie")
_BUILT_IN = ("-lhiprtc", "-lhiprand")
"""Libraries that programs get without being asked for; hipRAND's is a header."""
_OPENMP_LIBRARIES = ("-lomp", "-lgomp", "-liomp5")
_ARCHS = ("--offload-arch=", "--amdgpu-target=")
_OLD_STANDARD = re.compile(r"--?std=(c|gnu)\+\+(?:98|03|0x|11|1y|14)")
_AS_BEFORE_CXX17 = (
    *("-Wno-register", "-Wno-dynamic-exception-spec"),
    *(
        f"-D_LIBCPP_ENABLE_CXX17_REMOVED_{what}"
        for what in ("AUTO_PTR", "BINDERS", "RANDOM_SHUFFLE", "UNARY_BINARY_FUNCTION")
    ),
)
"""What lets C++17 take what it has removed from the standards before it."""
_NO_EFFECT = {
    "--offload-compress": "code objects are stored as they are",
    "--hip-link": "programs are always linked with the HIP library",
    "-parallel-jobs": "sources and GPUs are compiled side by side",
    **dict.fromkeys(
        ("-save-temps", "--save-temps"), "-S and --genco write what is between source and program"
    ),
}
_QUESTIONS = ("-print-", "--print-", "-dump")
_REFUSED = {
    "-static": "the HIP library is loaded when the program starts",
    "-fopenmp-targets": "kernels of OpenMP need its own offloading library; write them in HIP",
}


def read(words: Sequence[str]) -> Line:
    """Read the words after ``cklang hipcc``."""
    line, rest, language = Line(), iter(words), None
    for word in rest:
        if word.startswith(("-x", "-o")):
            value = word[2:] or _value(word, rest)
            if word.startswith("-o"):
                line.output = Path(value)
            else:
                language = _language(value)
        elif word.startswith("-") and word != "-":
            _flag(line, word, rest)
        else:
            _file(line, word, language)
    return line


def _flag(line: Line, word: str, rest: Iterator[str]) -> None:
    flag = word.partition("=")[0]
    if (reason := _refusal(flag)) is not None:
        raise error("B032", flag=flag, reason=reason)
    if flag in _NO_EFFECT:
        line.notes.append(f"{word} has no effect: {_NO_EFFECT[flag]}")
    elif word in _STAGES:
        line.stage = _STAGES[word]
    elif word in _SIDES:
        line.side = _SIDES[word]
    elif word.startswith(_ARCHS):
        names = word.partition("=")[2].split(",")
        line.archs += [name for name in names if name not in line.archs]
    elif word in ("-v", "-###"):
        line.verbose = True
    elif word in ("-fgpu-rdc", "-fno-gpu-rdc"):
        line.relocatable = word == "-fgpu-rdc"
    elif word == "-shared":
        line.shared = True
    elif word.startswith("-fopenmp") or word in _OPENMP_LIBRARIES:
        _openmp(line, word)
    else:
        _passed_on(line, word, rest)


def _refusal(flag: str) -> str | None:
    """Return why a flag cannot be honoured, or None."""
    if flag.startswith(_QUESTIONS):
        return "it asks a compiler about itself, and compiles nothing"
    return _REFUSED.get(flag)


def _openmp(line: Line, word: str) -> None:
    """OpenMP is for host code; its runtime is ours (:mod:`cklang.emulator.hipcc.openmp`)."""
    line.openmp = True
    if word in _OPENMP_LIBRARIES:
        line.notes.append(f"{word} has no effect: the runtime is part of the program")
    elif word.partition("=")[0] == "-fopenmp":
        line.host_flags.append("-fopenmp=libomp")  # the calls that the runtime answers
    else:
        line.host_flags.append(word)


def _passed_on(line: Line, word: str, rest: Iterator[str]) -> None:
    """Give a flag that means nothing to this driver to those it is for."""
    if word in _PAIRS:
        line.flags += [word, _value(word, rest)]
    elif word in _HOST_PAIRS:
        line.host_flags += [word, _value(word, rest)]
    elif word in _HOST_WORDS:
        line.host_flags.append(word)
    elif word in _LINK_PAIRS:
        line.link += [word, _value(word, rest)]
    elif word.startswith(_LINK_PREFIXES) or word in _LINK_WORDS:
        line.link += [word] if word not in _BUILT_IN else []
    elif (old := _OLD_STANDARD.fullmatch(word)) is not None:
        newer = f"-std={old[1]}++17"
        line.flags += [newer, *_AS_BEFORE_CXX17]
        line.notes.append(f"{word} is read as {newer}, which HIP's headers need here")
    else:
        line.flags.append(word)
        if word in ("-pthread", "-g") or word.startswith("-fsanitize="):
            line.link.append(word)


def _file(line: Line, word: str, language: Language | None) -> None:
    path = Path(word)
    if not path.is_file():
        raise error("B031", word=word, problem="there is no such file")
    source_language = language or _SUFFIXES.get(path.suffix)
    if source_language is not None:
        source = Source(path=path, language=source_language)
        line.sources.append(source)
        line.link.append(source)
    elif path.suffix in _OBJECTS or ".so." in path.name:
        line.link.append(word)
    else:
        known = ", ".join((*_SUFFIXES, *_OBJECTS))
        raise error("B031", word=word, problem=f"its name ends in none of {known}")


def _language(name: str) -> Language | None:
    if name == "none":
        return None
    for language in Language:
        if language.value == name:
            return language
    known = ", ".join(language.value for language in Language)
    raise error("B031", word=f"-x {name}", problem=f"languages are {known} and none")


def _value(word: str, rest: Iterator[str]) -> str:
    value = next(rest, None)
    if value is None:
        raise error("B031", word=word, problem="it is the last word, and needs a value after it")
    return value
