# SPDX-License-Identifier: MIT
"""The loaded emulator: the part of its C interface that is not HIP (``src/hip/ckemu.h``)."""

import ctypes
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cache
from typing import Any

from cklang import knobs
from cklang.arch import base_name
from cklang.elf import sections_of
from cklang.emulator.engine.build import library_path
from cklang.errors import error

NUMERICS = ("fma", "exact", "cdna3")
"""How matrix products may be rounded, in the order of the C interface."""

TRANSLATIONS = ("off", "hot", "all")
"""What may be translated to host code, in the order of the C interface."""

_CHECKS = (*knobs.SANITIZERS, *knobs.SPECIAL_SANITIZERS)
"""What launches can be checked for, in the order of the C interface."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """What the last launches on a device took; instructions are counted once a wave."""

    instructions: int
    valu: int
    salu: int
    mfma: int
    lds: int
    memory: int
    """Buffer, global, flat and scratch instructions."""
    scalar_memory: int
    workgroups: int
    waves: int
    mfma_flops: int
    """Floating-point operations of matrix instructions, an addition and a product each."""
    bytes_loaded: int
    """Bytes of global memory that loads of all kinds read, within the range of buffers."""
    bytes_stored: int
    nanoseconds: int
    """Wall time in the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFacts:
    """Registers and memory of a kernel, as its code object states them."""

    sgprs: int
    vgprs: int
    agprs: int
    sgpr_spills: int
    vgpr_spills: int
    lds_bytes: int
    scratch_bytes: int
    """Private memory of each lane."""
    kernarg_bytes: int
    max_threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Instructions in a piece of code: how often each operation occurs in it."""

    emulated: dict[str, int]
    missing: dict[str, int]
    """Operations, or forms of them, that the emulator refuses to run."""
    undecoded: int
    """Words that no instruction of the GPU begins with."""


class _Stats(ctypes.Structure):
    _fields_ = [(field.name, ctypes.c_uint64) for field in fields(Stats)]


class _KernelFacts(ctypes.Structure):
    _fields_ = [(field.name, ctypes.c_uint32) for field in fields(KernelFacts)]


_COUNT = ctypes.POINTER(ctypes.c_uint64)
_FIDELITY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)
_EMIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_char_p)

_LINES = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint32
)

_TAKE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
_LAUNCHED = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_CENSUS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int)

_PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "ckemu_last_error": (ctypes.c_char_p, ()),
    "ckemu_fault": (ctypes.c_char_p, (ctypes.c_int,)),
    "ckemu_get_stats": (ctypes.c_int, (ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Stats))),
    "ckemu_promise_to_wait": (None, (ctypes.c_int,)),
    "ckemu_workgroups": (None, (_COUNT, _COUNT)),
    "ckemu_let_launches_wait": (ctypes.c_int, (ctypes.c_int,)),
    "ckemu_fidelity": (ctypes.c_int, (ctypes.c_int, _FIDELITY, ctypes.c_void_p)),
    "ckemu_get_kernel": (ctypes.c_int, (ctypes.c_void_p, ctypes.POINTER(_KernelFacts))),
    "ckemu_census": (
        ctypes.c_int,
        (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, _CENSUS, ctypes.c_void_p),
    ),
    "ckemu_set_patience": (None, (ctypes.c_uint64,)),
    "ckemu_set_numerics": (None, (ctypes.c_int,)),
    "ckemu_sanitize": (None, (ctypes.c_uint,)),
    "ckemu_set_schedule": (None, (ctypes.c_uint64,)),
    "ckemu_set_translation": (None, (ctypes.c_int,)),
    "ckemu_set_vectors": (ctypes.c_int, (ctypes.c_int,)),
    "ckemu_record": (None, (ctypes.c_uint, ctypes.c_int)),
    "ckemu_records": (ctypes.c_void_p, (ctypes.POINTER(ctypes.c_void_p), _COUNT)),
    "ckemu_free_records": (None, (ctypes.c_void_p,)),
    "ckemu_debug_attach": (None, (_LAUNCHED, ctypes.c_void_p)),
    "ckemu_debug_request": (
        ctypes.c_int,
        (ctypes.c_char_p, ctypes.c_uint64, _TAKE, ctypes.c_void_p),
    ),
    "ckemu_embed": (None, ()),
    "ckemu_quiet": (None, ()),
    "ckemu_set_timeout": (None, (ctypes.c_uint64,)),
    "ckemu_set_resident": (None, (ctypes.c_uint64,)),
    "ckemu_last_numerics": (ctypes.c_int, (ctypes.c_int,)),
    "ckemu_lines": (
        ctypes.c_int,
        (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, _LINES, ctypes.c_void_p),
    ),
    "ckemu_disassemble": (
        ctypes.c_int,
        (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t, _EMIT, ctypes.c_void_p),
    ),
}


@cache
def load() -> ctypes.CDLL:
    """Return the emulator's library, built if needed, loaded so that hip-python finds it.

    Call it before the first use of HIP: a HIP library that the process has loaded already stays.

    Raises:
        CkUnsupportedError: E001, the CPU lacks the vector instructions the emulator is made of.
        CkBuildError: B001 or B010, there is no compiler, or it failed.
        CkDeviceError: E002, the library does not load.
    """
    path = library_path()
    # Before the library reads them itself: a word that it does not know ends the process.
    checks, rounding, seconds = knobs.SANITIZE.get(), knobs.NUMERICS.get(), knobs.TIMEOUT.get()
    translated, order = knobs.TRANSLATE.get(), knobs.SCHEDULE.get()
    at_a_time, recorded = knobs.RESIDENT.get(), knobs.PROFILE.get()
    try:
        library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as problem:
        raise error("E002", path=path, problem=str(problem)) from problem
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
    library.ckemu_embed()
    library.ckemu_sanitize(_bits(checks))
    knobs.CHECKS_NOW.update(checks)
    if recorded:
        knobs.RECORDINGS_NOW.append(recorded)
    library.ckemu_set_numerics(NUMERICS.index(rounding))
    library.ckemu_set_timeout(1000 * (seconds or 0))
    library.ckemu_set_translation(TRANSLATIONS.index(translated))
    library.ckemu_set_schedule(order)
    library.ckemu_set_resident(at_a_time)
    return library


def _text(value: bytes | None) -> str:
    return (value or b"").decode(errors="replace")


def last_error() -> str:
    """Return the reason of this thread's last failed HIP call, or ''.

    A launch has returned before its kernel faults: the reason is there after the call that waits
    for the device, or any later one that the fault makes fail.
    """
    return _text(load().ckemu_last_error())


def fault(device: int) -> str:
    """Return the text of the fault that made HIP device number ``device`` fail, or ''."""
    return _text(load().ckemu_fault(device))


def quiet() -> None:
    """Print no faults on stderr from now on: the caller asks for them, by :func:`fault`."""
    load().ckemu_quiet()


def deadlock_threshold(slices: int = 1024) -> None:
    """Set after how many time slices, and milliseconds, without progress a launch is a deadlock.

    A slice is 262,144 instructions, or less for a workgroup whose waves all sleep; the number is
    shared by all resident workgroups; each gets at least 16. Slices after which a
    workgroup's registers hold something new, so that it may be computing, count a 64th.
    """
    load().ckemu_set_patience(slices)


def timeout(seconds: int) -> None:
    """Set after how many seconds a launch ends with a report of its waves' positions; 0: never.

    Raises:
        CkValueError: Z001, the number is negative.
    """
    if seconds < 0:
        raise error(
            "Z001", name="timeout", got=seconds, problem="must be 0 or more", doc=knobs.TIMEOUT.doc
        )
    load().ckemu_set_timeout(1000 * seconds)


def max_resident_workgroups(workgroups: int) -> None:
    """Set how many workgroups of a launch are under way at a time; 0: as many as the GPU holds.

    A workgroup that is under way keeps its registers and its LDS, so fewer of them take less memory
    and stay in the caches. A kernel whose workgroups wait for each other needs as many as wait; it
    ends as a deadlock with fewer. Cooperative launches are not limited.

    Raises:
        CkValueError: Z001, the number is negative.
    """
    if workgroups < 0:
        raise error(
            "Z001",
            name="max_resident_workgroups",
            got=workgroups,
            problem="must be 0 or more",
            doc=knobs.RESIDENT.doc,
        )
    load().ckemu_set_resident(workgroups)


def schedule(number: int) -> None:
    """Set in which order launches from now on execute; 0 is the usual one.

    A GPU executes waves side by side, and the results of loads and stores arrive some time after
    they are issued. Each number is one such order, which repeats itself exactly: waves and
    workgroups take turns in another sequence, and memory operations take effect as late as waits
    allow (1), or some of them do (2 and more). A kernel that waits and synchronises as it must has
    the same results in each, but for the rounding of atomic additions.

    Raises:
        CkValueError: Z001, the number is negative.
    """
    if number < 0:
        doc = knobs.SCHEDULE.doc
        raise error("Z001", name="schedule", got=number, problem="must be 0 or more", doc=doc)
    load().ckemu_set_schedule(number)


def translation(what: str) -> None:
    """Set what launches from now on translate to host code: ``off``, ``hot`` or ``all``.

    Results are the same bit for bit.

    Raises:
        CkValueError: Z001, the word is none of the three.
    """
    if what not in TRANSLATIONS:
        problem = f"must be one of {', '.join(TRANSLATIONS)}"
        raise error("Z001", name="translation", got=what, problem=problem, doc=knobs.TRANSLATE.doc)
    load().ckemu_set_translation(TRANSLATIONS.index(what))


def vector_width(bits: int) -> None:
    """Set what launches from now on compute with: AVX2 (256) or AVX-512 (512, the default).

    Results are the same bit for bit.

    Raises:
        CkValueError: Z001, the CPU has no such vectors.
    """
    if load().ckemu_set_vectors(bits) != 0:
        problem, doc = "must be 256, or 512 on a CPU with AVX-512", "bits of the host's vectors"
        raise error("Z001", name="vector_width", got=bits, problem=problem, doc=doc)


def numerics(mode: str) -> None:
    """Set how matrix products are rounded in launches from now on.

    Args:
        mode: "fma" adds product by product in the order of K, each with one rounding (the default,
            and fast); "exact" rounds the exact sum of products and addend once, to nearest even;
            "cdna3" is the published bit-accurate model of the MI300 (arXiv 2511.10909). A kernel
            that executes a product without a published model then faults and names it.

    Raises:
        CkValueError: Z001, there is no such mode.
    """
    if mode not in NUMERICS:
        knob = knobs.NUMERICS
        problem = f"must be one of {', '.join(NUMERICS)}"
        raise error("Z001", name="numerics", got=mode, problem=problem, doc=knob.doc)
    load().ckemu_set_numerics(NUMERICS.index(mode))


def sanitize(*checks: str) -> None:
    """Set what launches from now on are checked for, besides faults; none by default.

    Args:
        checks: "waits" ends a launch where a register that a load will still write is read or
            overwritten before a wait that covers the load; "races" where two waves access the
            same byte of LDS, one of them to change it, with no barrier between, or no wait before
            it; "uninitialized" where a byte of LDS is read that the workgroup has not written, or
            device memory that nobody has written since ``hipMalloc``; "memory" where an access to
            global memory or LDS is out of bounds; "hazards" where an instruction comes before the
            wait states are over that another one demands; "global_races" where two workgroups, or
            two waves of one, access the same byte of global memory, one of them to change it, and
            nothing orders them; "all" is all of these. By themselves: "range" where only the range
            of a buffer's descriptor keeps an access from memory; "numeric" where a NaN or an
            infinity is computed from operands that are none; "schedule" runs each launch in five
            orders (:func:`schedule`) and compares what it has written; "unwritten" where a copy to
            the host reads device memory that nothing has written since its allocation; "barriers"
            where not all threads of a workgroup reach a barrier.

    Raises:
        CkValueError: Z001, there is no such check.
    """
    for check in checks:
        if check not in (*_CHECKS, "all"):
            doc = knobs.SANITIZE.doc
            problem = f"must be one of {', '.join(_CHECKS)}, or all"
            raise error("Z001", name="sanitize", got=check, problem=problem, doc=doc)
    every = knobs.SANITIZERS if "all" in checks else ()
    chosen = {*every, *checks} - {"all"}
    load().ckemu_sanitize(_bits(chosen))
    knobs.CHECKS_NOW.clear()
    knobs.CHECKS_NOW.update(chosen)


def _bits(checks: Iterable[str]) -> int:
    return sum(1 << _CHECKS.index(check) for check in set(checks))


def promise_to_wait() -> Callable[[int], None]:
    """Return the function by which a thread says that it waits for what it launches from now on.

    Called with 1, until the thread waits next (``hipStreamSynchronize``) or calls it with 0, no
    other thread is woken for its launches: it runs them itself while it waits.
    """
    promise: Callable[[int], None] = load().ckemu_promise_to_wait
    return promise


def workgroups() -> tuple[int, int]:
    """Return how many workgroups of the launches that run now have ended, and how many exist."""
    ended, total = ctypes.c_uint64(), ctypes.c_uint64()
    load().ckemu_workgroups(ctypes.byref(ended), ctypes.byref(total))
    return ended.value, total.value


@contextmanager
def blocking_launches() -> Iterator[None]:
    """Let launches return when their kernels are done, as with ``HIP_LAUNCH_BLOCKING=1``.

    For host programs that read memory of their own, which a kernel writes, right after a launch.
    It holds for all threads, inside of the ``with`` statement.
    """
    library = load()
    before = library.ckemu_let_launches_wait(1)
    try:
        yield
    finally:
        library.ckemu_let_launches_wait(before)


def stats(device: int, launches: int = 1) -> Stats:
    """Return what the last ``launches`` launches on HIP device number ``device`` took together.

    Raises:
        CkDeviceError: E003, the device has not launched so many, or they are more than
            ``CKEMU_PAST_LAUNCHES``.
    """
    raw = _Stats()
    if load().ckemu_get_stats(device, launches, ctypes.byref(raw)) != 0:
        raise error("E003", device=device)
    return Stats(**{field.name: getattr(raw, field.name) for field in fields(Stats)})


def fidelity(device: int) -> dict[str, int]:
    """Return each distinct operation of the device's last launch and how often waves ran it.

    Raises:
        CkDeviceError: E003, the device has launched nothing.
    """
    counts: dict[str, int] = {}

    def emit(_: object, name: bytes, count: int) -> None:
        counts[name.decode()] = count

    if load().ckemu_fidelity(device, _FIDELITY(emit), None) != 0:
        raise error("E003", device=device)
    return counts


def last_numerics(device: int) -> str:
    """Return how the device's last launch rounded matrix products (see :func:`numerics`).

    Raises:
        CkDeviceError: E003, the device has launched nothing.
    """
    number = load().ckemu_last_numerics(device)
    if number < 0:
        raise error("E003", device=device)
    return NUMERICS[number]


def kernel_facts(function: int) -> KernelFacts:
    """Return the facts of the kernel behind the address of a ``hipFunction_t``.

    Raises:
        CkDeviceError: E004, it is no function of a loaded module.
    """
    raw = _KernelFacts()
    if load().ckemu_get_kernel(function, ctypes.byref(raw)) != 0:
        raise error("E004", function=hex(function))
    return KernelFacts(**{field.name: getattr(raw, field.name) for field in fields(KernelFacts)})


def packed_records() -> memoryview:
    """Return what launches since ``ckemu_record`` have recorded, as bytes.

    They are the library's own memory, which it gets back when nothing refers to them any more.
    """
    library, begin, size = load(), ctypes.c_void_p(), ctypes.c_uint64()
    records = library.ckemu_records(ctypes.byref(begin), ctypes.byref(size))
    memory = (ctypes.c_uint8 * size.value).from_address(begin.value or 0)
    weakref.finalize(memory, library.ckemu_free_records, records).atexit = False
    return memoryview(memory)


@contextmanager
def launches_under_control(launched: Callable[[], None]) -> Iterator[None]:
    """Let each launch of this process call ``launched`` on the thread that runs it.

    The launch is then under control of :func:`debug_request`, and goes on to its end when the
    function returns. It must not raise.
    """
    library = load()
    call = _LAUNCHED(lambda _: launched())
    library.ckemu_debug_attach(call, None)
    try:
        yield
    finally:
        library.ckemu_debug_attach(_LAUNCHED(0), None)


def debug_request(request: bytes) -> bytes:
    """Send a request of ``cklang/emulator/debugger/wire.py`` to the controlled launch."""
    pieces: list[bytes] = []

    def take(_: object, data: int, size: int) -> None:
        pieces.append(ctypes.string_at(data, size))

    if load().ckemu_debug_request(request, len(request), _TAKE(take), None) != 0:
        raise error("D033")
    return b"".join(pieces)


def disassemble(arch: str, code: bytes, *, wide_waves: bool = False) -> str:
    """Return the assembly text of ``code``: a code object, or bare instruction words.

    One line an instruction: its byte offset and its text. Where something cannot be decoded the
    last line says why.

    Args:
        arch: The GPU.
        code: What to disassemble.
        wide_waves: On RDNA, whether it is for waves of 64 lanes.

    Raises:
        CkDeviceError: E005, the emulator has no instruction tables for ``arch``.
    """
    words = text_section(code) if code[:4] == b"\x7fELF" else code
    lines: list[str] = []

    def emit(_: object, offset: int, text: bytes) -> None:
        lines.append(f"{offset:6x}: {text.decode(errors='replace')}\n")

    target = base_name(arch) + ":wave64" * wide_waves
    if load().ckemu_disassemble(target.encode(), words, len(words), _EMIT(emit), None) < 0:
        raise error("E005", arch=arch)
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class LineRow:
    """A row of a line table: the code from one byte up to another came from this line."""

    begin: int
    """In the text section, in bytes."""
    end: int
    file: str
    line: int


def line_table(arch: str, image: bytes) -> list[LineRow]:
    """Return the line table of a code object; empty if it has none.

    Where functions are inlined, a row names the innermost line.

    Raises:
        CkDeviceError: E005, the emulator has no instruction tables for ``arch``.
    """
    rows: list[LineRow] = []

    def emit(_: object, begin: int, end: int, file: bytes, line: int) -> None:
        rows.append(LineRow(begin, end, file.decode(errors="replace"), line))

    target = base_name(arch).encode()
    if load().ckemu_lines(target, image, len(image), _LINES(emit), None) < 0:
        raise error("E005", arch=arch)
    return rows


def instruction_census(arch: str, code: bytes) -> Census:
    """Count the instructions of ``code``: a code object, or bare instruction words.

    Raises:
        CkDeviceError: E005, the emulator has no instruction tables for ``arch``.
    """
    words = text_section(code) if code[:4] == b"\x7fELF" else code
    kinds: tuple[Counter[bytes], Counter[bytes]] = (Counter(), Counter())

    def emit(_: object, name: bytes, emulated: int) -> None:
        kinds[emulated][name] += 1

    if load().ckemu_census(arch.encode(), words, len(words), _CENSUS(emit), None) < 0:
        raise error("E005", arch=arch)
    undecoded = kinds[0].pop(b"", 0)
    missing, emulated = ({name.decode(): n for name, n in kind.items()} for kind in kinds)
    return Census(emulated=emulated, missing=missing, undecoded=undecoded)


def text_section(image: bytes) -> bytes:
    """The instructions of an ELF file."""
    return next((section.content for section in sections_of(image) if section.name == ".text"), b"")
