# SPDX-License-Identifier: MIT
"""Every environment variable of cklang: typed, documented, read here and nowhere else.

In HIP programs, which have no Python, the emulator's library reads those that are for it
(``emulator/engine/src/core/environment.cpp``) by the same rules.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from cklang.errors import error

T = TypeVar("T")

_overrides: ContextVar[dict[str, str]] = ContextVar("cklang_knobs", default={})  # noqa: B039

# Every call reads CKLANG_DEVICE. On POSIX os.environ keeps its variables, encoded, in this dict,
# and a look into it takes a tenth of the time.
_encoded: dict[bytes, bytes] | None = vars(os.environ).get("_data") if os.name == "posix" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob(Generic[T]):
    """One environment variable: its name, how its text is read, and what it is for."""

    name: str
    default: T
    parse: Callable[[str], T]
    doc: str
    encoded: bytes = field(init=False, repr=False)
    """The name as the environment keeps it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoded", self.name.encode())

    def get(self) -> T:
        """Return the value from :func:`scope`, else the environment, else the default."""
        overrides = _overrides.get()
        text = overrides.get(self.name) if overrides else None
        if text is None:
            if _encoded is None:
                text = os.environ.get(self.name)
            elif (value := _encoded.get(self.encoded)) is not None:
                text = os.fsdecode(value)
        if text is None or text == "":
            return self.default
        try:
            return self.parse(text)
        except ValueError as problem:
            raise error(
                "Z001", name=self.name, got=text, problem=str(problem), doc=self.doc
            ) from problem


def _path(text: str) -> Path | None:
    return Path(text).expanduser()


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(Path(part).expanduser() for part in text.split(os.pathsep) if part)


def _text(text: str) -> str | None:
    return text


def _count(text: str) -> int | None:
    value = int(text)
    if value < 1:
        raise ValueError("must be 1 or more")
    return value


def _number(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError("must be 0 or more")
    return value


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError("must be 0 or 1")
    return text == "1"


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return text.lower()

    return parse


def _checks(text: str) -> frozenset[str]:
    """Words of the two lists; `all` is every one of the first."""
    words = (*SANITIZERS, *SPECIAL_SANITIZERS)
    chosen = frozenset(word.strip().lower() for word in text.split(","))
    if not chosen <= {*words, "all"}:
        raise ValueError(f"must be a comma-separated list of {', '.join(words)}, or all")
    return chosen - {"all"} | frozenset(SANITIZERS if "all" in chosen else ())


SANITIZERS = ("waits", "races", "uninitialized", "memory", "hazards", "global_races")
"""What kernels can be checked for besides faults; ``all`` is these."""

SPECIAL_SANITIZERS = ("range", "numeric", "schedule", "unwritten", "barriers")
"""Checks of what right kernels may do too, which are asked for by name."""

CHECKS_NOW: set[str] = set()
"""The checks that the emulator makes now, as :func:`cklang.emulator.sanitize` has set them last."""

RECORDINGS_NOW: list[object] = []
"""Why launches are recorded now: what :func:`cklang.emulator.timing` fills; ``CKLANG_PROFILE``."""


def _path_knob(name: str, doc: str) -> Knob[Path | None]:
    return Knob(name=name, default=None, parse=_path, doc=doc)


def _text_knob(name: str, doc: str) -> Knob[str | None]:
    return Knob(name=name, default=None, parse=_text, doc=doc)


def _count_knob(name: str, doc: str) -> Knob[int | None]:
    return Knob(name=name, default=None, parse=_count, doc=doc)


def _number_knob(name: str, doc: str) -> Knob[int]:
    return Knob(name=name, default=0, parse=_number, doc=doc)


ARCH_DIR = _path_knob(
    "CKLANG_ARCH_DIR",
    "a folder with further arch_specs files, to try a GPU that cklang does not know",
)
BUNDLE: Knob[tuple[Path, ...]] = Knob(
    name="CKLANG_BUNDLE",
    default=(),
    parse=_paths,
    doc="files of compiled stencils (cklang build --bundle), separated as in PATH",
)
CACHE_DIR = _path_knob(
    "CKLANG_CACHE_DIR", "folder of the kernel cache (default: the user's cache folder)"
)
CLANG = _text_knob("CKLANG_CLANG", "the clang to use: a path to clang (20 or newer) or to zig")
CK_DIR = _path_knob(
    "CKLANG_CK_DIR", "a composable_kernel checkout or include folder (the one that holds ck_tile/)"
)
DATA_DIR = _path_knob(
    "CKLANG_DATA_DIR",
    "the folder of published measurements that benchmarks and tests read (default: shared/data "
    "beside the checkout)",
)
DEBUGGER = _text_knob(
    "CKLANG_DEBUGGER",
    "the socket of a debugger that controls the launches on emulated GPUs (cklang debug sets it)",
)
DEVICE = _text_knob(
    "CKLANG_DEVICE",
    "the device to run on: 'emu:gfx942' for an emulated one, 'hip:0' for a real one",
)
FAULT: Knob[str] = Knob(
    name="CKLANG_FAULT",
    default="abort",
    parse=_one_of("abort", "continue"),
    doc="what becomes of a HIP program whose kernel fails on the emulator: abort, as with ROCm, or "
    "continue with an error; in Python a failed kernel is an exception",
)
GPUS = _text_knob(
    "CKLANG_GPUS",
    "the GPUs of the emulated machine, such as gfx942*4,gfx950 (default: one of each kind; of "
    "these a HIP program sees those that it has code for)",
)
DRIVER_FOLDER = _path_knob(
    "CKLANG_KFD",
    "the folder of what the emulated kernel driver tells AMD's own runtime (cklang rocm sets it)",
)
DRIVER_LOG = _text_knob(
    "CKLANG_KFD_LOG",
    "whether the emulated kernel driver tells on stderr what AMD's own runtime calls: 1, or unset",
)
JOBS = _count_knob(
    "CKLANG_JOBS", "how many compiler processes may run at once (default: the number of cores)"
)
SANITIZE: Knob[frozenset[str]] = Knob(
    name="CKLANG_SANITIZE",
    default=frozenset(),
    parse=_checks,
    doc="what the emulator checks while kernels run (slower): missing waits for loads (waits), "
    "accesses to LDS that no barrier orders (races), reads of LDS or device memory that nobody has "
    "written (uninitialized), accesses out of bounds (memory), pairs of instructions between which "
    "wait states are missing (hazards), accesses to global memory that nothing orders "
    "(global_races), or all for all of these; and what right kernels may do too: accesses that "
    "only a buffer's range keeps from memory (range), births of NaN and infinity (numeric), "
    "results that differ in other orders of execution (schedule), results with elements that "
    "nothing has written (unwritten), barriers that some threads of a workgroup miss (barriers)",
)
REPORTS = _path_knob(
    "CKLANG_REPORTS",
    "a file to which the emulator appends the reports of its checks, a line of JSON for each "
    "cause; kernels go on behind them (cklang check --format json does this)",
)
SUPPRESSIONS = _path_knob(
    "CKLANG_SUPPRESSIONS",
    "a file that says which reports of the emulator's checks are ignored: on each line a "
    "check, or *, and a pattern of kernels or of FILE:LINE",
)
RESIDENT = _number_knob(
    "CKLANG_RESIDENT",
    "how many workgroups of a launch the emulator has under way at a time, for kernels whose "
    "workgroups do not wait for each other; 0: as many as the GPU holds",
)
SCHEDULE = _number_knob(
    "CKLANG_SCHEDULE",
    "the number of an order in which the emulator executes kernels: waves and workgroups take "
    "turns in another order, and memory operations take effect as late as waits allow (1), or some "
    "of them (2 and more); 0 is the usual one",
)
LOG: Knob[str] = Knob(
    name="CKLANG_LOG",
    default="warning",
    parse=_one_of("debug", "info", "warning", "error"),
    doc="log level: debug, info, warning, error; with error, long waits are not announced",
)
NUMERICS: Knob[str] = Knob(
    name="CKLANG_NUMERICS",
    default="fma",
    parse=_one_of("fma", "exact", "cdna3"),
    doc="how the emulator rounds matrix products: fma (fast), exact (once), cdna3 (as an MI300)",
)
TRANSLATE: Knob[str] = Knob(
    name="CKLANG_TRANSLATE",
    default="hot",
    parse=_one_of("off", "hot", "all"),
    doc="what the emulator translates to host code: off (nothing), hot (what is executed often), "
    "all (what is executed)",
)
PLANS: Knob[bool] = Knob(
    name="CKLANG_PLANS",
    default=True,
    parse=_switch,
    doc="0: plan each call anew in each process; else the launches of its first calls are looked "
    "for in the kernel cache and kept there",
)
PREBUILT = _path_knob(
    "CKLANG_PREBUILT",
    "a folder that cklang warm --out has written: an emulator and stencils that are compiled "
    "already (default: those of the wheel, if it has any)",
)
PRESET: Knob[str] = Knob(
    name="CKLANG_PRESET",
    default="catalogue",
    parse=str,
    doc="which products and convolutions are tried where no registry declares a kernel: a preset "
    "of docs/dispatch.md, such as essential, which compiles few kernels",
)
PEER_TIMEOUT = _count_knob(
    "CKLANG_PEER_TIMEOUT",
    "how many seconds a kernel, stream or event of an emulated GPU waits for another process that "
    "shares memory and makes no progress (default: 60)",
)
PRINT_AFTER = _text_knob(
    "CKLANG_PRINT_AFTER",
    "a pass of fusion: programs are printed as it leaves them, to standard error",
)
PROFILE = _text_knob(
    "CKLANG_PROFILE",
    "how many workgroups of each launch on emulated GPUs are recorded, and the folder in which "
    "each process leaves its records: 8:/tmp/records (cklang profile sets it)",
)
PYTHON = _path_knob(
    "CKLANG_PYTHON",
    "the interpreter with which hiprtc of the emulator compiles, for programs that cklang hipcc "
    "has not built",
)
TIMEOUT = _count_knob(
    "CKLANG_TIMEOUT",
    "after how many seconds the emulator ends a launch and reports where its waves are "
    "(default: only deadlocks end)",
)
TIMING: Knob[bool] = Knob(
    name="CKLANG_TIMING",
    default=False,
    parse=_switch,
    doc="1: calls that are planned from then on measure their launches, op.last.ms: by events on a "
    "GPU, by the clock on an emulated one, where calls then take longer",
)
VERIFY: Knob[bool] = Knob(
    name="CKLANG_VERIFY",
    default=False,
    parse=_switch,
    doc="1: print, parse and compare every program that the frontend makes (tests do)",
)
ROCM_PATH = _path_knob("ROCM_PATH", "the ROCm installation (default: /opt/rocm)")

ALL: tuple[Knob[Any], ...] = tuple(
    value for value in tuple(globals().values()) if isinstance(value, Knob)
)
"""All knobs, in the order in which ``cklang doctor`` prints them."""


@contextmanager
def scope(**values: str) -> Iterator[None]:
    """Set knobs by environment name for a block, in this thread of control only."""
    known = {knob.name for knob in ALL}
    for name in values:
        if name not in known:
            raise error(
                "Z001", name=name, got=values[name], problem="no such knob", doc=", ".join(known)
            )
    token = _overrides.set({**_overrides.get(), **values})
    try:
        yield
    finally:
        _overrides.reset(token)


def export(values: dict[str, str | None]) -> dict[str, str | None]:
    """Set variables of this process and those that it starts (None: remove); what they were."""
    before = {name: os.environ.get(name) for name in values}
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before


def user_cache() -> Path:
    """Return the folder in which programs of this user keep what they can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME", "").strip() or "~/.cache").expanduser()


def executable_path() -> list[Path]:
    """Return the folders in which programs are looked for (PATH)."""
    return [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]


def tool_environment(**extra: str) -> dict[str, str]:
    """Return the environment for a child process, with ``extra`` set."""
    return {**os.environ, **extra}
