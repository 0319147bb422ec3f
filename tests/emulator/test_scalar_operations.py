# SPDX-License-Identifier: MIT
"""Scalar operations on exec, with immediates, and loads of all widths: by what their names say."""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

import numpy as np
import pytest

from cklang.emulator.engine.isa import schema
from tests.support.assembly import CDNA, assembled
from tests.support.rdna import WAITS

pytestmark = pytest.mark.usefixtures("emulator")

_ALL = (1 << 64) - 1
GPUS = {schema.load(family).arch: family for family in schema.FAMILIES}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What an operation may change: its destination, exec and scc."""

    d: int
    exec: int
    scc: int


#: (source, state) → state
Effect = Callable[[int, State], State]
_MASKS: dict[str, Callable[[int, int], int]] = {
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "nand": lambda s, e: ~(s & e),
    "nor": lambda s, e: ~(s | e),
    "xnor": lambda s, e: ~(s ^ e),
    # The numbers are of the operand that is inverted: from 1 on CDNA, from 0 on RDNA.
    "andn1": lambda s, e: ~s & e,
    "andn2": lambda s, e: s & ~e,
    "orn1": lambda s, e: ~s | e,
    "orn2": lambda s, e: s | ~e,
    "and_not0": lambda s, e: ~s & e,
    "and_not1": lambda s, e: s & ~e,
    "or_not0": lambda s, e: ~s | e,
    "or_not1": lambda s, e: s | ~e,
}
_COMPARISONS = {"eq": operator.eq, "lg": operator.ne, "gt": operator.gt, "ge": operator.ge,
                "lt": operator.lt, "le": operator.le}  # fmt: skip
_QUADS = re.compile(r"s_(quadmask|wqm)_b(32|64)")
_EXEC = re.compile(r"s_(\w+?)_(saveexec|wrexec)_b(32|64)")
_COMPARE = re.compile(r"s_cmpk_(\w\w)_([iu])32")
IMMEDIATES = (0, 1, 77, -1, -32768, 32767)


def _on_exec(step: str, keeps: bool, bits: int) -> Effect:
    mask = (1 << bits) - 1

    def effect(source: int, old: State) -> State:
        new = _MASKS[step](source & mask, old.exec & mask) & mask
        d = old.exec & mask if keeps else new
        high = ~mask & _ALL
        return State(d=old.d & high | d, exec=old.exec & high | new, scc=int(new != 0))

    return effect


def _on_quads(wide: bool, bits: int) -> Effect:
    def effect(source: int, old: State) -> State:
        any_ = [int(source >> 4 * n & 15 != 0) for n in range(bits // 4)]
        d = sum((15 * bit << 4 * n) if wide else bit << n for n, bit in enumerate(any_))
        high = ~((1 << bits) - 1) & _ALL
        return State(d=old.d & high | d, exec=old.exec, scc=int(d != 0))

    return effect


def _signed(word: int) -> int:
    return (word & 0xFFFFFFFF) - (word & 0x80000000) * 2


def _compare(step: str, signed: bool, immediate: int) -> Effect:
    def effect(source: int, old: State) -> State:
        left = _signed(source) if signed else source & 0xFFFFFFFF
        right = immediate if signed else immediate & 0xFFFF
        return State(d=old.d, exec=old.exec, scc=int(_COMPARISONS[step](left, right)))

    return effect


def _replaced(value: Callable[[int, State], int]) -> Effect:
    """Of the low dword of the destination."""

    def effect(source: int, old: State) -> State:
        low = value(source, old) & 0xFFFFFFFF
        return State(d=old.d & ~0xFFFFFFFF & _ALL | low, exec=old.exec, scc=old.scc)

    return effect


def _mulk(immediate: int, source: int, old: State) -> int:
    return _signed(old.d) * immediate


def _cmovk(immediate: int, source: int, old: State) -> int:
    return immediate if old.scc else old.d


def _movk(immediate: int, source: int, old: State) -> int:
    return immediate


def cases(gpu: str) -> dict[str, tuple[str, int, Effect]]:
    """Kernel name → text, lanes of the wave, effect; d is s[20:21] and the source s[16:17]."""
    by_name: dict[str, tuple[str, int, Effect]] = {}
    for name in (row.name for row in schema.load(GPUS[gpu]).rows):
        if match := _EXEC.fullmatch(name):
            bits = int(match[3])
            wave = 64 if gpu in CDNA or bits == 64 else 32
            pair = "s20, s16" if bits == 32 else "s[20:21], s[16:17]"
            effect = _on_exec(match[1], match[2] == "saveexec", bits)
            by_name[name] = (f"{name} {pair}", wave, effect)
        elif match := _QUADS.fullmatch(name):
            bits = int(match[2])
            pair = "s20, s16" if bits == 32 else "s[20:21], s[16:17]"
            by_name[name] = (f"{name} {pair}", 64, _on_quads(match[1] == "wqm", bits))
        elif match := _COMPARE.fullmatch(name):
            for immediate in IMMEDIATES:
                text = f"{name} s16, {immediate & 0xFFFF:#x}"
                effect = _compare(match[1], match[2] == "i", immediate)
                by_name[f"{name}_{immediate & 0xFFFF}"] = (text, 64, effect)
    for immediate in IMMEDIATES:
        word = f"{immediate & 0xFFFF:#x}"
        by_name[f"mulk_{word}"] = (
            f"s_mulk_i32 s20, {word}",
            64,
            _replaced(partial(_mulk, immediate)),
        )
        by_name[f"cmovk_{word}"] = (
            f"s_cmovk_i32 s20, {word}",
            64,
            _replaced(partial(_cmovk, immediate)),
        )
        by_name[f"movk_{word}"] = (
            f"s_movk_i32 s20, {word}",
            64,
            _replaced(partial(_movk, immediate)),
        )
    return by_name


# Six dwords in: source, exec, the old destination; scc is bit 0 of the source. Seven out.
_BODY = """
  s_load_{x4} s[4:7], s[0:1], 0x0
  {wait}
  s_load_{x4} s[16:19], s[4:5], 0x0
  s_load_{x2} s[20:21], s[4:5], 0x10
  {wait}
  s_bitcmp1_b32 s16, 0
  {enter}
  {text}
  s_cselect_b32 s24, 1, 0
  {leave}
  v_mov_b32 v2, s20
  v_mov_b32 v3, s21
  v_mov_b32 v4, s22
  v_mov_b32 v5, s23
  v_mov_b32 v6, s24
  v_mov_b32 v1, 0
  global_store_{x4} v1, v[2:5], s[6:7]
  global_store_{x1} v1, v6, s[6:7] offset:16
"""
_MOVES = {
    64: ("s_mov_b64 exec, s[18:19]", "s_mov_b64 s[22:23], exec\n  s_mov_b64 exec, -1"),
    32: (
        "s_mov_b32 exec_lo, s18",
        "s_mov_b32 s22, exec_lo\n  s_mov_b32 s23, s19\n  s_mov_b32 exec_lo, -1",
    ),
}


def body(gpu: str, text: str, wave: int) -> str:
    names = {"x1": "dword", "x2": "dwordx2", "x4": "dwordx4"}
    if gpu not in CDNA:
        names = {"x1": "b32", "x2": "b64", "x4": "b128"}
    wait = WAITS.get(gpu, "s_waitcnt lgkmcnt(0)")
    enter, leave = _MOVES[wave]
    return _BODY.format(**names, wait=wait, text=text, enter=enter, leave=leave)


CASES = {gpu: cases(gpu) for gpu in GPUS}
BODIES = {
    gpu: {name: body(gpu, text, wave) for name, (text, wave, _) in by_name.items()}
    for gpu, by_name in CASES.items()
}


def words_of(random: Random) -> list[int]:
    """Source, exec and destination: random, sparse, empty or full."""
    kinds = (
        lambda: random.getrandbits(64),
        lambda: 1 << random.randrange(64),
        lambda: 0,
        lambda: _ALL,
        lambda: random.choice(IMMEDIATES) & 0xFFFF,
    )
    return [random.choice(kinds)() for _ in range(3)]


@pytest.mark.parametrize("gpu", GPUS)
def test_operations_on_scalars(gpu: str) -> None:
    modules = {}
    for wave in {wave for _, wave, _ in CASES[gpu].values()}:
        bodies = {n: BODIES[gpu][n] for n, case in CASES[gpu].items() if case[1] == wave}
        modules[wave] = assembled(bodies, gpu, wave=wave)
    random, wrong = Random(7), []
    for name, (text, wave, effect) in CASES[gpu].items():
        for _ in range(6):
            source, mask, old = words_of(random)
            data = np.array([source, mask, old], np.uint64).view(np.uint32)
            output = np.zeros(8, np.uint32)
            assert modules[wave].launch(name, data, output, block=wave) == "hipSuccess", text
            want = effect(source, State(d=old, exec=mask, scc=source & 1))
            got = output[:4].view(np.uint64)
            if (int(got[0]), int(got[1]), output[4]) != (want.d, want.exec, want.scc):
                wrong.append((text, hex(source), hex(mask), hex(old), output[:5], want))
    assert not wrong, wrong[:5]


_LOAD = re.compile(r"s_(buffer_)?load_(dword(?:x\d+)?|[biu]\d+)")
_BYTES = {"dword": 4, "dwordx2": 8, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64}


def _load_body(gpu: str, name: str, buffered: bool, dwords: int) -> str:
    """From byte 4 of memory to s[32:47], or from byte 24 of a buffer of 64 bytes."""
    x4 = "dwordx4" if gpu in CDNA else "b128"
    wait = WAITS.get(gpu, "s_waitcnt lgkmcnt(0)")
    to = f"s[32:{31 + dwords}]" if dwords > 1 else "s32"
    place = "s[8:11], 0x18" if buffered else "s[4:5], 0x4"
    moves = "".join(
        f"  v_mov_b32 v{2 + n % 4}, s{32 + n}\n"
        + (f"  global_store_{x4} v1, v[2:5], s[6:7] offset:{4 * (n - 3)}\n" if n % 4 == 3 else "")
        for n in range(16)
    )
    clear = "".join(f"  s_mov_b32 s{32 + n}, 0x5a5a\n" for n in range(16))
    return (
        f"  s_load_{x4} s[4:7], s[0:1], 0x0\n  v_mov_b32 v1, 0\n{clear}  {wait}\n"
        "  s_mov_b32 s8, s4\n  s_mov_b32 s9, s5\n  s_mov_b32 s10, 64\n"
        f"  s_mov_b32 s11, {'0x20000' if gpu in CDNA else hex(3 << 28)}\n"
        f"  {name} {to}, {place}\n  {wait}\n{moves}"
    )


def _loads(gpu: str) -> dict[str, tuple[bool, int, bool]]:
    """Name → whether from a buffer, bytes, whether the sign is extended."""
    by_name = {}
    for name in (row.name for row in schema.load(GPUS[gpu]).rows):
        if match := _LOAD.fullmatch(name):
            kind = match[2]
            size = _BYTES.get(kind) or int(kind[1:]) // 8
            by_name[name] = (bool(match[1]), size, kind[0] == "i")
    return by_name


LOADS = {gpu: _loads(gpu) for gpu in GPUS}
LOAD_BODIES = {
    gpu: {
        name: _load_body(gpu, name, buffered, max(size // 4, 1))
        for name, (buffered, size, _) in by_name.items()
    }
    for gpu, by_name in LOADS.items()
}


@pytest.mark.parametrize("gpu", GPUS)
def test_loads_of_all_widths(gpu: str) -> None:
    module = assembled(LOAD_BODIES[gpu], gpu)
    memory = np.random.default_rng(3).integers(128, 256, 128, np.uint8)
    for name, (buffered, size, signed) in LOADS[gpu].items():
        output = np.zeros(16, np.uint32)
        assert module.launch(name, memory.view(np.uint32), output, block=64) == "hipSuccess"
        want = np.full(16, 0x5A5A, np.uint32)
        start = 24 if buffered else 4
        if size < 4:
            kind = f"<{'i' if signed else 'u'}{size}"
            want[0] = np.uint32(int(memory[start : start + size].view(kind)[0]) & 0xFFFFFFFF)
        else:
            taken = memory[start : start + size].copy()
            if buffered:  # beyond 64 bytes there is nothing
                taken[max(64 - start, 0) :] = 0
            want[: size // 4] = taken.view(np.uint32)
        np.testing.assert_array_equal(output, want, name)
