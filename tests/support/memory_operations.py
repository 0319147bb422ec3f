# SPDX-License-Identifier: MIT
"""What each load, store and atomic does with one lane's 16 bytes of memory, by its name.

A name says the space, the direction, and how many bytes of what kind; the spellings of CDNA and
RDNA differ. Each effect is a line of NumPy over bytes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import ml_dtypes
import numpy as np

from cklang.emulator.engine.isa import schema

Bytes = np.ndarray

#: Bytes, whether the sign is extended, and the half of the register that is meant (None: all).
_WIDTHS: dict[str, tuple[int, bool, int | None]] = {
    **dict.fromkeys(("ubyte", "byte", "u8", "b8"), (1, False, None)),
    **dict.fromkeys(("sbyte", "i8"), (1, True, None)),
    **dict.fromkeys(("ushort", "short", "u16", "b16"), (2, False, None)),
    **dict.fromkeys(("sshort", "i16"), (2, True, None)),
    **dict.fromkeys(("dword", "b32"), (4, False, None)),
    **dict.fromkeys(("dwordx2", "b64"), (8, False, None)),
    **dict.fromkeys(("dwordx3", "b96"), (12, False, None)),
    **dict.fromkeys(("dwordx4", "b128"), (16, False, None)),
}
_SIGNED = ("sbyte", "i8")
_ACCESS = re.compile(
    r"(?P<space>global|flat|scratch|buffer|ds)_(?P<way>load|store|read|write)_(?P<rest>\w+)"
)
_ATOMIC = re.compile(r"(?P<space>global|flat|buffer)_atomic_(?P<rest>\w+)")
_EXCHANGES = {"wrxchg": "swap", "storexchg": "swap", "cmpst": "cmpst", "cmpstore": "cmpstore"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation: what it makes of memory and of the result register."""

    name: str
    space: str
    data: int
    """Dwords of data that it reads; compare-and-store has two operands of half as many."""
    operands: int
    result: int
    """Dwords that it returns, 0 for none."""
    bytes: int
    """Of memory."""
    floats: type | None
    effect: Callable[[Bytes, Bytes, Bytes], tuple[Bytes, Bytes]]
    """(memory, data, old result) → (memory, result), one lane's bytes each."""


def _load(
    size: int, signed: bool, half: int | None
) -> Callable[[Bytes, Bytes, Bytes], tuple[Bytes, Bytes]]:
    def effect(memory: Bytes, data: Bytes, old: Bytes) -> tuple[Bytes, Bytes]:
        result = old.copy()
        if size >= 4:
            result[:size] = memory[:size]
            return memory, result
        kind = np.dtype(f"<{'i' if signed else 'u'}{size}")
        value = memory[:size].copy().view(kind)[0]
        if half is None:
            result[:4] = np.array([int(value) & 0xFFFFFFFF], "<u4").view(np.uint8)
        else:
            result[2 * half : 2 * half + 2] = np.array([int(value) & 0xFFFF], "<u2").view(np.uint8)
        return memory, result

    return effect


def _store(size: int, half: int | None) -> Callable[[Bytes, Bytes, Bytes], tuple[Bytes, Bytes]]:
    def effect(memory: Bytes, data: Bytes, old: Bytes) -> tuple[Bytes, Bytes]:
        memory = memory.copy()
        start = 2 * (half or 0)
        memory[:size] = data[start : start + size]
        return memory, old

    return effect


Step = Callable[..., np.ndarray]


def _packed(dtype: type) -> Step:
    def add(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        x, y = (part.view(np.uint16).view(dtype).astype(np.float32) for part in (old, new))
        return (x + y).astype(dtype).view(np.uint32)

    return add


def _smaller(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where(new < old, new, old)


def _larger(old: np.ndarray, new: np.ndarray) -> np.ndarray:
    return np.where(new > old, new, old)


def _exchanged(old: np.ndarray, new: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    return np.where(old == wanted, new, old)


_STEPS: dict[str, Step] = {
    "swap": lambda old, new: new,
    "add": lambda old, new: old + new,
    "sub": lambda old, new: old - new,
    "rsub": lambda old, new: new - old,
    "csub": lambda old, new: np.where(old < new, old - old, old - new),
    "sub_clamp": lambda old, new: np.where(old < new, old - old, old - new),
    "cond_sub": lambda old, new: np.where(old < new, old, old - new),
    "min": _smaller,
    "max": _larger,
    "min_num": _smaller,
    "max_num": _larger,
    "and": lambda old, new: old & new,
    "or": lambda old, new: old | new,
    "xor": lambda old, new: old ^ new,
    "inc": lambda old, new: np.where(old >= new, old - old, old + old.dtype.type(1)),
    "dec": lambda old, new: np.where((old == 0) | (old > new), new, old - old.dtype.type(1)),
    "pk_add_f16": _packed(np.float16),
    "pk_add_bf16": _packed(ml_dtypes.bfloat16),
    # Two operands: new and expected, but mask and new, and what is subtracted and what is added.
    "cmpswap": _exchanged,
    "cmpst": lambda old, wanted, new: _exchanged(old, new, wanted),
    "cmpstore": _exchanged,
    "mskor": lambda old, mask, new: (old & ~mask) | new,
    "wrap": lambda old, below, above: np.where(old >= below, old - below, old + above),
}
_TWO = ("cmpswap", "cmpst", "cmpstore", "mskor", "wrap")
_TYPES = {"u": "<u", "i": "<i", "b": "<u", "f": "<f"}


def _type_of(rest: str) -> tuple[str, np.dtype[np.generic]]:
    """The step and the type of an atomic's name without its space: `smax_x2`, `add_u64`."""
    if rest in _STEPS and rest.startswith("pk_"):
        return rest, np.dtype("<u4")
    match = re.fullmatch(r"(\w+?)_([uibf])(32|64)", rest)
    if match:
        return match[1], np.dtype(f"{_TYPES[match[2]]}{int(match[3]) // 8}")
    plain, wide, _ = rest.partition("_x2")
    letter = "<i" if plain in ("smin", "smax") else "<u"
    step = plain[1:] if plain in ("smin", "smax", "umin", "umax") else plain
    return step, np.dtype(f"{letter}{8 if wide else 4}")


def _atomic(
    step: str, kind: np.dtype[np.generic], returns: bool
) -> Callable[[Bytes, Bytes, Bytes], tuple[Bytes, Bytes]]:
    size = kind.itemsize

    def effect(memory: Bytes, data: Bytes, result: Bytes) -> tuple[Bytes, Bytes]:
        memory, result = memory.copy(), result.copy()
        old = memory[:size].copy().view(kind)
        operands = [data[:size].copy().view(kind)]
        if step in _TWO:
            operands.append(data[size : 2 * size].copy().view(kind))
        with np.errstate(all="ignore"):
            new = _STEPS[step](old, *operands)
        memory[:size] = np.asarray(new).astype(kind).view(np.uint8)
        if returns:
            result[:size] = old.view(np.uint8)
        return memory, result

    return effect


def _access(name: str) -> Operation | None:
    match = _ACCESS.fullmatch(name)
    if match is None:
        return None
    rest = match["rest"]
    half = None
    if "d16" in rest:
        half = int("hi" in rest)
        rest = rest.replace("d16_hi", "").replace("d16", "").strip("_")
    elif rest.startswith("hi_"):
        return None
    if rest not in _WIDTHS:
        return None
    size, signed, _ = _WIDTHS[rest]
    if half is not None:
        signed = rest in _SIGNED
    loads = match["way"] in ("load", "read")
    dwords = (size + 3) // 4
    return Operation(
        name=name, space=match["space"], data=0 if loads else dwords, operands=1,
        result=dwords if loads else 0, bytes=size, floats=None,
        effect=_load(size, signed, half) if loads else _store(size, half),
    )  # fmt: skip


def _update(name: str) -> Operation | None:
    match = _ATOMIC.fullmatch(name)
    space = match["space"] if match else "ds"
    rest, returns = (match["rest"] if match else name.removeprefix("ds_")), True
    if match is None:
        returns = "_rtn" in rest
        rest = rest.replace("_rtn", "")
        first, _, last = rest.partition("_")
        rest = f"{_EXCHANGES.get(first, first)}_{last}" if last else rest
    step, kind = _type_of(rest)
    if step not in _STEPS:
        return None
    dwords = kind.itemsize // 4
    floats = kind.type if kind.kind == "f" else None
    return Operation(
        name=name, space=space, data=dwords * (2 if step in _TWO else 1),
        operands=2 if step in _TWO and space == "ds" else 1, result=dwords if returns else 0,
        bytes=kind.itemsize, floats=floats, effect=_atomic(step, kind, returns),
    )  # fmt: skip


@cache
def operations(family: str) -> tuple[Operation, ...]:
    """The family's operations on memory that the names of this module describe."""
    encodings = {"GLOBAL", "FLAT", "SCRATCH", "MUBUF", "DS"}
    rows = schema.load(family).rows
    names = [row.name for row in rows if encodings & {encoding for encoding, _ in row.opcodes}]
    return tuple(op for name in names if (op := _access(name) or _update(name)) is not None)
